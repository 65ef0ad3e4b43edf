"""The textual IR: what is printed is read back, and whatever else is read ends in a message with a place."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples
from text_examples import PROGRAM, SCHEDULE

from collc.backends.ir_text import IrText
from collc.ir.collective import Collective
from collc.ir.program import Opcode, Program
from collc.ir.schedule import Schedule
from collc.ir.text import parse_ir, print_ir
from collc.ir.text.render import render
from collc.ir.topology import Topology

# ---- round trips


@pytest.mark.slow
@settings(max_examples=examples(200), deadline=None)
@given(strategies.levels())
def test_print_and_parse_are_inverse(level):
    """Every level comes back equal, from a text that is the same however often it was printed."""
    text = print_ir(level)
    again = parse_ir(text)
    assert again == level
    assert type(again) is type(level)
    assert print_ir(again) == text


@given(st.lists(st.lists(st.integers(0, 2**63 - 1), min_size=3, max_size=3)))
def test_integers_of_every_width_come_back(rows):
    """The digit writer and the digit reader agree with Python on all 63-bit integers."""
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    assert render(list(table.T), " ") == "".join(f" {a} {b} {c}\n" for a, b, c in rows)
    if rows:
        weights = np.maximum(table[:, 0], 1)
        tree = parse_ir(_forest_text([(0, w) for w in weights]))
        assert tree.weight.tolist() == weights.tolist()


def _forest_text(trees: list[tuple[int, int]]) -> str:
    rows = "".join(f"{root} {weight}\n" for root, weight in trees)
    head = print_ir(Collective("allgather", 1)).replace("collective", TOPOLOGY_OF_ONE + "\ncollective")
    return f"""{head}
forest {{
scheduler forest
parts {2**63 - 1}
direction outward
routes 0: links {{
}}
trees {len(trees)}: root weight {{
{rows}}}
edges 0: tree parent child route {{
}}
}}"""


TOPOLOGY_OF_ONE = print_ir(Topology("one", 1, [], [])).split("\n", 2)[2]


def test_large_numbers_of_rows_cross_slabs():
    """Tables and programs longer than one slab of the scanner lose nothing where slabs meet."""
    topology = strategies.torus(30, 30)
    rng = np.random.default_rng(1)
    rows, shards = 120_000, topology.num_ranks
    lo = rng.integers(0, 10**6, rows)
    schedule = Schedule(
        topology, Collective("allgather", shards), 10**6 + 9, np.sort(rng.integers(0, 1000, rows)),
        rng.integers(0, 2, rows), rng.integers(0, shards, rows), lo, lo + rng.integers(1, 9, rows),
        rng.integers(0, topology.num_links, rows),
    )  # fmt: skip
    assert parse_ir(print_ir(schedule)) == schedule
    program = _large_program(2000, 40)
    text = print_ir(program)
    assert len(text) > 3 << 20
    assert parse_ir(text) == program


def _large_program(ranks: int, steps: int) -> Program:
    """Return a program of two blocks a rank; every second instruction waits for the other block's same step."""
    blocks = 2 * ranks
    opcode = np.tile([Opcode.SEND, Opcode.RECV], blocks * steps // 2)
    rows = np.arange(blocks * steps)
    block, step = np.divmod(rows, steps)
    waits = np.flatnonzero(step % 2)
    return Program(
        Collective("allreduce", ranks), 1, [0] * ranks, np.arange(blocks) // 2, [1] * blocks, [0] * blocks,
        np.arange(blocks) % 2, np.arange(blocks + 1) * steps, opcode, rows * 0, rows % ranks * (opcode == 1),
        np.where(opcode == 1, 0, 1), rows % ranks * (opcode == 2), rows * 0 + 1,
        np.append(0, np.cumsum(step % 2)), (block[waits] ^ 1) * steps + step[waits], name="large",
    )  # fmt: skip


@pytest.mark.slow
def test_a_million_rows_take_seconds():
    """Printing and parsing take about 0.4 s each; the bound allows for a busy machine."""
    topology, rows = strategies.torus(20, 20), 1_000_000
    rng = np.random.default_rng(0)
    lo = rng.integers(0, 59, rows)
    schedule = Schedule(
        topology, Collective("allgather", 400), 60, np.sort(rng.integers(0, 20, rows)), np.zeros(rows, dtype=int),
        rng.integers(0, 400, rows), lo, lo + 1, rng.integers(0, 1600, rows),
    )  # fmt: skip
    begin = time.process_time()
    text = print_ir(schedule)
    assert parse_ir(text) == schedule
    assert time.process_time() - begin < 5


# ---- the form


def test_a_schedule_reads_like_this():
    assert print_ir(SCHEDULE) == (
        """collc-ir 1

topology "uniring(3, 1)" {
  ranks 3
  unit link
  symmetry "abelian(3)"
  classes 1: bandwidth latency {
    1 0
  }
  links 3: src dst class {
    0 1 0
    1 2 0
    2 0 0
  }
}

collective allgather ranks 3 op sum dtype float32

schedule {
  scheduler steps
  parts 2
  discrete no
  routes direct
  transfers 3: step action shard lo hi route from to {
    0 copy 0 0 2 0 0 1
    0 copy 1 0 2 1 1 2
    1 copy 0 0 2 1 1 2
  }
}
"""
    )


def test_a_program_reads_like_this():
    assert print_ir(PROGRAM) == (
        """collc-ir 1

collective allreduce ranks 2 size 64 op sum dtype float32

program "tiny" {
  scheduler ""
  chunks 1
  rank 0 scratch 0 {
    threadblock 0 send 1 recv none channel 0 {
      0: send input 0 count 2
    }
    threadblock 1 send none recv 1 channel 0 {
      0: recv -> output 0 count 2 after 0.0
    }
  }
  rank 1 scratch 2 {
    threadblock 0 send 0 recv 0 channel 0 {
      0: recv-reduce-copy input 0 -> scratch 0 count 2
      1: send scratch 0 count 2
    }
  }
}
"""
    )


def test_what_a_person_writes_is_read():
    """Blanks, blank lines, comments, Windows line ends and missing redundant columns do not matter."""
    text = print_ir(SCHEDULE)
    short = re.sub(r"^( +\d copy .*) \d \d$", r"\1", text.replace(" from to", ""), flags=re.MULTILINE)
    assert short.count("copy") == 3 and len(short) == len(text) - len(" from to") - 3 * len(" 0 1")
    for loose in (
        short,
        text.replace("\n", "\r\n"),
        text.replace("\n  ", "\n\n \t  "),
        text.replace("\nschedule", "\n# who sends what\n  # when\nschedule"),
        text.replace(" {", "{").replace("3:", "3 :"),
    ):
        assert loose != text
        assert parse_ir(loose) == SCHEDULE


# ---- the target


@pytest.mark.parametrize(("level", "name"), [(PROGRAM, "tiny.ir"), (SCHEDULE, "allgather.ir")])
def test_the_target_emits_the_text(level, name):
    target = IrText(level="program" if level is PROGRAM else "schedule")
    (artifact,) = target.emit(level)
    assert (artifact.filename, artifact.text, artifact.target) == (name, print_ir(level), "ir")
    assert parse_ir(artifact.text) == level


@settings(max_examples=examples(20), deadline=None)
@given(strategies.schedules())
def test_the_target_executes_what_it_wrote(schedule):
    """A correct schedule passes the check; with a transfer left out of the file it does not."""
    target = IrText(level="schedule")
    (artifact,) = target.emit(schedule)
    assert target.check(schedule, [artifact]).ok
    if schedule.collective.kind == "allgather" and len(schedule):
        less = schedule.rows(np.arange(len(schedule)) > 0)
        assert not target.check(schedule, target.emit(less)).ok
        assert not target.check(less, target.emit(less)).ok


def test_a_file_name_stays_in_its_directory():
    (artifact,) = IrText().emit(Program.build(Collective("allgather", 1), 1, [0], [], [], name="../a b"))
    assert artifact.filename == "___a_b.ir"
