"""Tables by opcode and masks of programs: they say what opcodes say one by one, and nobody builds them again."""

from __future__ import annotations

import re

import numpy as np
import pytest
from built_programs import ring
from hypothesis import given, settings
from places import ROOT
from sampling import examples
from strategies import any_programs

from collc.ir import opcodes
from collc.ir.opcodes import Opcode, table
from collc.ir.program import Buffer, Program

#: name of a table, and of a mask where there is one -> which opcodes it holds for
FACTS = {
    "sends": lambda op: op.sends,
    "receives": lambda op: op.receives,
    "reads_src": lambda op: op.reads_src,
    "reads_dst": lambda op: op.reads_dst,
    "writes_dst": lambda op: op.writes_dst,
    "reduces": lambda op: op.reduces,
    "fused": lambda op: op.receives and (op.sends or op.reduces),
    "local": lambda op: not op.sends and not op.receives,
    "stores": lambda op: op.writes_dst and not op.reads_dst,
}


@pytest.mark.parametrize("name", FACTS)
def test_tables(name: str) -> None:
    found = getattr(opcodes, name.upper())
    assert found.tolist() == [FACTS[name](op) for op in Opcode]
    assert opcodes.USES == {"src": opcodes.READS_SRC, "dst": opcodes.WRITES_DST}
    with pytest.raises(ValueError, match="read-only"):
        found[0] = True


def test_a_table_of_one_s_own() -> None:
    assert np.flatnonzero(table(Opcode.RECV, Opcode.COPY)).tolist() == [Opcode.RECV, Opcode.COPY]
    assert not table().any()


@settings(max_examples=examples(40), deadline=None)
@given(any_programs())
def test_masks(program: Program) -> None:
    ops = [Opcode(op) for op in program.opcode.tolist()]
    for name in FACTS.keys() - {"stores"}:
        assert getattr(program, name).tolist() == [FACTS[name](op) for op in ops]
    for end, used in (("src", program.reads_src), ("dst", program.writes_dst)):
        assert program.uses(end).tolist() == used.tolist()
        for buffer in Buffer:
            inside = [u and b == buffer for u, b in zip(used, getattr(program, f"{end}_buffer"), strict=True)]
            assert program.uses(end, buffer).tolist() == inside
    assert program.rank.tolist() == [int(program.block_rank[b]) for b in program.block]
    assert program.rank.dtype == np.int64
    waits = [program.dependencies(i) for i in range(program.num_instructions)]
    assert program.num_dependencies.tolist() == [len(w) for w in waits]
    assert program.dependent.tolist() == [i for i, w in enumerate(waits) for _ in w]


def test_masks_cannot_be_written_to() -> None:
    program = ring("allreduce", 3)
    with pytest.raises(ValueError, match="read-only"):
        program.sends[0] = False


# ---- one home

BY_HAND = re.compile(
    r"np\.(array|isin)\(.*\bop(code)?\.(sends|receives|reads_src|reads_dst|writes_dst|reduces)\b"
    r"|np\.isin\(\w*\.?opcode, \[|np\.isin\(np\.arange\(len\(Opcode\)\)"
)


def by_hand(source: str) -> list[str]:
    return [line.strip() for line in source.splitlines() if BY_HAND.search(line)]


def test_nobody_builds_masks_again() -> None:
    files = [
        path for room in ("ir", "passes", "backends", "frontends", "collc") for path in (ROOT / room).rglob("*.py")
    ]
    assert len(files) > 300
    assert {path.name: lines for path in files if (lines := by_hand(path.read_text("utf-8")))} == {}


def test_masks_built_again_are_seen() -> None:
    planted = [
        "_SENDS = np.array([op.sends for op in Opcode])",
        "sends = np.isin(program.opcode, [int(op) for op in Opcode if op.sends])",
        "_FUSES = np.isin(np.arange(len(Opcode)), [Opcode.RECV, Opcode.RECV_REDUCE_COPY])",
    ]
    assert by_hand("\n".join(["import numpy as np", *planted])) == planted
