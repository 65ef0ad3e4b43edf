"""Steps as columns: what is read, checked and executed column by column is what it is step by step."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np
import programs
import pytest
from foreign_files import IN_PLACE, alltoall, ring
from hypothesis import given, settings
from hypothesis import strategies as st
from msccl_files import xml
from sampling import examples

from collc.backends.msccl_xml import MscclXml, read, reader, structure
from collc.backends.msccl_xml import program as loading
from collc.backends.msccl_xml.consume import device
from collc.backends.msccl_xml.document import document
from collc.backends.msccl_xml.model import Algorithm, Gpu, Step, Steps
from collc.backends.msccl_xml.steps import FIELDS, LINE, as_steps
from collc.backends.msccl_xml.writer import write
from collc.ir.diagnostic import CollcError
from collc.ir.program import Opcode, Program


def written(program: Program) -> str:
    (artifact,) = MscclXml().emit(program)
    return artifact.text


TEXTS = [
    written(programs.ring_allreduce(4)),
    written(programs.ring_allreduce(4, fused=False)),
    written(programs.allpairs_allreduce(4)),
    written(programs.ring_allgather(4)),
    IN_PLACE,
    ring(3),
    alltoall(3),
    xml("allgather", 2, [[(1, 1, 0, ["nop <1:0", "s i0 o0 1 <1:0", "r i0 o1 1"]), (-1, -1, 0, ["cpy i0 o0 1 !"])],
                         [(0, 0, 0, ["s i0 o1 1", "r i0 o0 1"]), (-1, -1, 0, ["cpy i0 o1 1 !"])]], (1, 2, 0)),
]  # fmt: skip


def by_elements(text: str) -> Algorithm:
    """Return what a text is, read element by element."""
    source = reader.Source("<xml>", text)
    return reader._Reader(source).algorithm(reader._parse(source))


def lines(algorithm: Algorithm) -> list[object]:
    """Return the line of everything that has one."""
    gpus = algorithm.gpus
    return [
        algorithm.line, *(gpu.line for gpu in gpus), *(block.line for gpu in gpus for block in gpu.threadblocks),
        *algorithm.table[:, LINE].tolist(),
    ]  # fmt: skip


# ---- reading


@pytest.mark.parametrize("text", TEXTS[:4])
def test_files_of_collc_are_read_by_lines(text: str) -> None:
    found = reader._by_lines(text.encode(), "<xml>")
    assert found is not None and found == by_elements(text)
    assert lines(found) == lines(by_elements(text))
    assert write(found) == text


STEP = (
    '      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>'
)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<algo ", f"<!--\n{STEP}\n    <x -->\n<algo "),
        ("<algo ", "<!-- <collc-steps/> -->\n<algo "),
        ('cnt="1"', 'cnt="01"'),
        ('cnt="1"', "cnt='1'"),
        ('cnt="1"', 'cnt="1" more="2"'),
        ('cnt="1"', 'cnt="99999999999"'),
        ('type="s"', 'type="ra"'),
        ("\n    </tb>", "\n    <!-- a comment --></tb>"),
        ("\n    </tb>", "\n    <other/></tb>"),
        ("    </tb>", ""),
        ("      <step", "\n      <step"),
        ("      <step", "<step"),
        ("\n", "\r\n"),
    ],
)
def test_other_texts_are_read_as_they_were(old: str, new: str) -> None:
    text = TEXTS[3].replace(old, new, 3)
    assert text != TEXTS[3]
    try:
        expected: Algorithm | list[str] = by_elements(text)
    except CollcError as problem:
        expected = [str(d) for d in problem.diagnostics]
    try:
        found: Algorithm | list[str] = read(text)
    except CollcError as problem:
        found = [str(d) for d in problem.diagnostics]
    assert found == expected
    if isinstance(found, Algorithm) and isinstance(expected, Algorithm):
        assert lines(found) == lines(expected)
        assert (found.remarks, found.comments) == (expected.remarks, expected.comments)


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_a_changed_text_is_read_as_element_by_element(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(TEXTS))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text) - 1))
        new = data.draw(st.text(alphabet="<>/\"'=& -19xisn\n\t", max_size=4))
        text = text[:at] + new + text[at + data.draw(st.integers(0, 12)) :]
    outcomes = []
    for work in (by_elements, read):
        try:
            found = work(text)
            outcomes.append((found, lines(found), found.remarks))
        except CollcError as problem:
            outcomes.append([str(d) for d in problem.diagnostics])
    assert outcomes[0] == outcomes[1]


# ---- checks and programs


@st.composite
def changed(draw: st.DrawFn) -> Algorithm:
    """An algorithm of which a few numbers are others."""
    algorithm = read(draw(st.sampled_from(TEXTS)))
    gpus = list(algorithm.gpus)
    for _ in range(draw(st.integers(0, 3))):
        rank = draw(st.integers(0, len(gpus) - 1))
        blocks = list(gpus[rank].threadblocks)
        number = draw(st.integers(0, len(blocks) - 1))
        block = blocks[number]
        if len(block.steps) and draw(st.integers(0, 5)):
            table = block.steps.table.copy()
            column = draw(st.sampled_from([k for k, name in enumerate(FIELDS) if name != "line"]))
            most = {"type": 8, "srcbuf": 2, "dstbuf": 2}.get(FIELDS[column])
            value = draw(st.integers(0, most) if most else st.integers(-2, 9))
            table[draw(st.integers(0, len(table) - 1)), column] = value
            blocks[number] = attrs.evolve(block, steps=Steps(table))
        else:
            blocks[number] = attrs.evolve(
                block, **{draw(st.sampled_from(["id", "send", "recv"])): draw(st.integers(-1, 3))}
            )
        gpus[rank] = attrs.evolve(gpus[rank], threadblocks=tuple(blocks))
    return attrs.evolve(algorithm, gpus=tuple(gpus))


@settings(max_examples=examples(150), deadline=None)
@given(changed())
def test_checks_of_columns_find_what_checks_of_steps_find(algorithm: Algorithm) -> None:
    wrong = {
        (gpu.id, block.id, k)
        for gpu in algorithm.gpus
        for block in gpu.threadblocks
        for k, step in enumerate(block.steps)
        if structure._step_problem(block, step) or any(structure._bounds_problems(chunks_of(gpu), step))
    }
    rows = structure._wrong_steps(algorithm).tolist()
    named = [(gpu.id, block.id, k) for gpu, block in algorithm.blocks for k in range(len(block.steps))]
    assert {named[row] for row in rows} == wrong


def chunks_of(gpu: Gpu) -> dict[str, int]:
    return {"i": gpu.i_chunks, "o": gpu.o_chunks, "s": gpu.s_chunks}


@settings(max_examples=examples(150), deadline=None)
@given(changed())
def test_waits_by_columns_are_those_that_the_device_executes(algorithm: Algorithm) -> None:
    """Where columns decide, the rules step by step find nothing, and the same program."""
    if device(algorithm) is None or any(structure._numbering(algorithm)):
        return
    plain = attrs.evolve(algorithm)
    plain.devices.append(None)
    assert not list(structure._runs_and_waits(plain))
    if any(finding.fatal for finding in structure.check_structure(algorithm)):
        return
    fast, slow = (loading.to_program(one).program for one in (algorithm, plain))
    for name in Program.COLUMNS:
        assert np.array_equal(getattr(fast, name), getattr(slow, name)), name


def test_files_of_collc_are_decided_by_columns() -> None:
    """But for those with runs of `re`, which the parsers merge."""
    assert [device(read(text)) is not None for text in TEXTS[:4]] == [True, True, False, True]


# ---- writing


def plain_waits(program: Program) -> Iterator[tuple[int, int]]:
    """Yield what each instruction waits for, found instruction by instruction; no NOPs."""
    block, reached = program.block.tolist(), dict[tuple[int, int], int]()
    for row in range(program.num_instructions):
        deps = program.deps[program.dep_start[row] : program.dep_start[row + 1]].tolist()
        latest = {other: max(d for d in deps if block[d] == other) for other in {block[d] for d in deps}}
        for other in sorted(latest):
            if other != block[row] and latest[other] > reached.get((block[row], other), -1):
                reached[block[row], other] = latest[other]
                yield row, latest[other]


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_waits_of_a_document(data: st.DataObject) -> None:
    """Dependencies that an earlier step has, or that another of the same threadblock covers, become no waits."""
    program = data.draw(st.sampled_from([programs.allpairs_allreduce(4), programs.ring_allreduce(4, fused=False)]))
    rank, n = program.rank, program.num_instructions
    pairs = {(int(a), int(b)) for a, b in zip(program.dependent, program.deps, strict=True)}
    for _ in range(data.draw(st.integers(0, 12))):
        row = data.draw(st.integers(0, n - 1))
        near = np.flatnonzero(rank == rank[row]).tolist()
        pairs.add((row, data.draw(st.sampled_from(near))))
    listed = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
    counts = np.bincount(listed[:, 0], minlength=n)
    tangled = attrs.evolve(program, dep_start=np.append(0, np.cumsum(counts)), deps=listed[:, 1])
    draft = document(tangled, coll="allreduce", proto="Simple", name="a")
    steps = [(b, s) for g in draft.gpus for b in g.threadblocks for s in b.steps]
    waits = list(plain_waits(tangled))
    expected = [(int(tangled.block_id[tangled.block[dep]]), row) for row, dep in waits]
    assert [s.depid for _, s in steps if s.depid >= 0] == [block for block, _ in expected]
    flags = sum(s.hasdep for _, s in steps)
    assert flags == len({dep for _, dep in waits})
    folded = len(steps) - int((tangled.opcode != Opcode.NOP).sum())
    assert folded == sum(max(k - 1, 0) for k in np.bincount([row for row, _ in waits], minlength=n).tolist())


def test_steps_are_a_sequence() -> None:
    one, other = Step(0, "s", "i", 0, "o", 0, 1), Step(1, "nop", "i", -1, "o", -1, 0, 2, 3, line=7)
    steps = as_steps([one, other])
    assert (len(steps), steps[1], list(steps), steps[1:]) == (2, other, [one, other], (other,))
    assert steps == as_steps((one, attrs.evolve(other, line=9))) and hash(steps) == hash(as_steps(steps))
    assert steps != as_steps([one]) and steps != [one, other] and repr(steps) == repr((one, other))
