"""Changes planted in emitted files: whatever is not what was to be written is refused, by every target."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import planted_files
import programs
import pytest
from built_programs import direct, ring
from planted_files import PLANTINGS, cases, changed_numbers, every_number, where
from sampling import EXHAUSTIVE

import collc as compiler
from collc.backends import TARGETS, oneccl_xml
from collc.backends.base import Target, Window
from collc.backends.ir_text import IrText
from collc.backends.mpi_c import MpiC, reader, tables
from collc.backends.mpi_c.source import ENGINE
from collc.backends.msccl_xml import MscclXml, document
from collc.backends.oneccl_xml import OneCclXml
from collc.ir.collective import OPERATIONS, ORDERED
from collc.ir.program import Program
from collc.messages.internal import InternalError

#: changes of each kind in a file, and of numbers
_EACH, _NUMBERS = 1, 6

#: what reading and executing do not miss, so that only the comparison with what was to be written finds it
ONLY_COMPARED = {
    "mpi-c": {
        "block_slots": "more than a step needs, or fewer than make a block fast",
        "block_slot_chunks": "more than a step needs",
        "block_sends": "more or fewer in flight, but one",
        "step_code": "a send of a copy where none is needed, or the other way round",
    },
    "msccl-xml": {
        "<!--": "comments",
        "name": "a name",
        "nchannels": "more channels than threadblocks use", "nthreads": "the width of a threadblock",
        "minBytes": "other sizes of calls", "maxBytes": "other sizes of calls",
        "inplace": "another use that is right too", "outofplace": "another use that is right too",
        "i_chunks": "a buffer larger than what is used", "o_chunks": "a buffer larger than what is used",
        "s_chunks": "scratch larger than what is used",
        "s": "runtimes count steps in document order",
        "srcoff": "a place that the step does not read", "dstoff": "a place that the step does not write",
        "cnt": "of a step that moves nothing",
        "depid": "a wait that comes to the same", "deps": "a wait that comes to the same",
        "hasdep": "a flag that nobody waits for",
    },
    "oneccl-xml": {
        "<!--": "comments", "version": "of XML", "encoding": "of XML",
        "name": "a name", "channels": "more channels than messages use",
        "minBytes": "other sizes of calls", "maxBytes": "other sizes of calls",
        "inplace": "another use that is right too", "outofplace": "another use that is right too",
        "count": "of a segment that nothing uses", "chunk": "of a segment that nothing uses",
        "step": "a sync that comes to the same",
    },
    "mscclpp-json": {
        "name": "a name", "max_message_size": "other sizes of calls", "min_message_size": "other sizes of calls",
    },
    "ir": {},
    "report": dict.fromkeys(
        ("charset", "content", "id", "href", "tabindex", "section", "labelledby", "title", "description"),
        "the text that is written from the data, and its form",
    ),
    "svg": dict.fromkeys(
        ("x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "r", "rx", "d", "width", "height", "viewBox", "class",
         "transform", "stroke_dasharray", "dasharray", "title"),
        "places, forms and words: what they show is in the attributes beside them",
    ),
    "dot": {"label": "a text that nothing depends on", "color": "a shade", "penwidth": "of an edge of a tree"},
    "chakra": {},  # bytes, not attributes
    "nccl-tuner": {},
    "nccl-topo": {"version": "NCCL reads it and does not compare it"},
    "nccl-graph": {
        "version": "of the file", "id": "a graph that NCCL does not know", "pattern": "of trees", "crossnic": "a hint",
        "speedintra": "what a channel carries", "speedinter": "what a channel carries", "latencyinter": "a hint",
        "samechannels": "a hint", "dev": "a GPU whose rank the file names, or a NIC of a chain",
    },
}  # fmt: skip


@pytest.mark.slow
def test_right_files_are_accepted() -> None:
    for case in cases():
        report = case.judge(case.files)
        assert report.ok, (case.name, report.failed)
        assert len(report.checks) > 5
    assert {case.target.name for case in cases()} == set(TARGETS)


@pytest.mark.slow
def test_every_change_of_a_sample_is_refused() -> None:
    luck = random.Random(1)
    accepted, tried = [], 0
    for case in cases():
        for number, file in enumerate(case.files):
            for kind, plant in PLANTINGS.items():
                for _ in range((_NUMBERS if kind == "number" else _EACH) * (8 if EXHAUSTIVE else 1)):
                    text, position = plant(file.text, luck)
                    assert text != file.text and position >= 0
                    tried += 1
                    if not case.refusal(number, text):
                        accepted.append((case.name, kind, position, where(file.text, position)))
    assert accepted == []
    assert tried > 500


@pytest.mark.skipif(not EXHAUSTIVE, reason="COLLC_EXHAUSTIVE=1 tries every number of every file")
@pytest.mark.parametrize("name", [case.name for case in cases()] if EXHAUSTIVE else [])
def test_every_change_of_every_number_is_refused(name: str) -> None:
    """All numbers of all files; those of the engine, the same in all C files, in one only."""
    accepted = []
    case = next(case for case in cases() if case.name == name)
    for number, file in enumerate(case.files):
        places = every_number(file.text)
        if file.filename.endswith(".c") and name not in ("mpi-c allgather", "mpi-c interposed"):
            begin = file.text.index("/* ---- Elements and buffers")
            end = file.text.index("static const struct plan plans")
            places = [place for place in places if not begin <= place < end]
        for place in places:
            for text in changed_numbers(file.text, place):
                if not case.refusal(number, text):
                    accepted.append((place, where(file.text, place)))
    assert accepted == []


@pytest.mark.slow
def test_reading_alone_misses_only_what_is_listed() -> None:
    """Numbers of tables and attributes: what the comparison with the written text is needed for is known."""
    luck, missed = random.Random(2), set()
    for case in cases():
        if case.name in ("mpi-c wide", "mpi-c interposed"):
            continue
        for number, file in enumerate(case.files):
            places = [p for p in every_number(file.text) if _is_listed(file.text, p)]
            for place in places if EXHAUSTIVE else luck.sample(places, min(len(places), 12)):
                text = luck.choice(list(changed_numbers(file.text, place)))
                if not case.refusal(number, text, compared=False):
                    missed.add((case.target.name, where(file.text, place).split(" ")[0]))
    assert {what for what in missed if what[1] not in ONLY_COMPARED[what[0]]} == set()
    assert ("mpi-c", "block_sends") in missed


def _is_listed(text: str, place: int) -> bool:
    """Whether a number stands in a table or an attribute."""
    found = where(text, place)
    return found.isidentifier() and (not text[:place].rstrip("0123456789").endswith("_"))


# ---- what a writer could do wrong


@pytest.mark.parametrize("table", [
    "rank_blocks", "rank_scratch", "rank_segments", "block_send_peer", "block_recv_peer", "block_channel",
    "block_steps", "block_waits", "step_code", "step_src_buffer", "step_src", "step_dst_buffer", "step_dst",
    "step_count", "step_waits", "wait_block", "wait_step", "segment_cell", "segment_chunk",
])  # fmt: skip
def test_wrong_tables_are_found_without_the_writer(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A number that is wrong before it is written: file and tables agree, the program does not."""
    program, right, luck = direct("allreduce", 3, 2), tables._joined, random.Random(3)

    def wrong(columns: Any) -> Any:
        found = right(columns)
        if table in found:
            column = found[table].copy()
            at = luck.randrange(len(column))
            column[at] = (column[at] ^ 1) if table == "step_code" else column[at] + luck.choice((-1, 1))
            found[table] = column
        return found

    monkeypatch.setattr(tables, "_joined", wrong)
    for _ in range(3):
        report = MpiC().check(program, MpiC().emit(program))
        assert not report.ok and report.failed[0].name != "tables", table


@pytest.mark.parametrize("table", ["block_slots", "block_slot_chunks", "block_sends"])
def test_too_little_room_is_found_without_the_writer(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program, right = programs.ring_allreduce(4, 2), tables._blocks
    monkeypatch.setattr(tables, "_blocks", lambda one: {**right(one), table: np.zeros(4, dtype=int)})
    report = MpiC().check(program, MpiC().emit(program))
    assert [check.name for check in report.failed] == ["allowance"]


def _other_step(algorithm: Any, luck: random.Random) -> Any:
    """Return the algorithm with one step that does something else."""
    gpu = luck.randrange(len(algorithm.gpus))
    blocks = list(algorithm.gpus[gpu].threadblocks)
    at = luck.choice([k for k, block in enumerate(blocks) if block.steps])
    steps = list(blocks[at].steps)
    k = luck.choice([k for k, step in enumerate(steps) if step.type == "r"])
    steps[k] = attrs.evolve(steps[k], dstoff=(steps[k].dstoff + 1) % algorithm.nchunksperloop)
    blocks[at] = attrs.evolve(blocks[at], steps=tuple(steps))
    gpus = list(algorithm.gpus)
    gpus[gpu] = attrs.evolve(gpus[gpu], threadblocks=tuple(blocks))
    return attrs.evolve(algorithm, gpus=tuple(gpus))


def _other_exchange(document: Any, luck: random.Random) -> Any:
    """Return the document with one rank that leaves out its last step."""
    ranks = list(document.ranks)
    at = luck.randrange(len(ranks))
    first, *rest = ranks[at].threads
    ranks[at] = attrs.evolve(ranks[at], threads=(attrs.evolve(first, steps=first.steps[:-1]), *rest))
    return attrs.evolve(document, ranks=tuple(ranks))


@pytest.mark.parametrize(
    ("module", "target", "change"),
    [(document, MscclXml(), _other_step), (oneccl_xml.target, OneCclXml(), _other_exchange)],
    ids=["msccl-xml", "oneccl-xml"],
)
def test_wrong_models_are_found_without_the_writer(
    module: Any, target: Target, change: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that is wrong before it is written: file and model agree, the program does not."""
    program, right, luck = programs.ring_allgather(4), module.document, random.Random(4)
    monkeypatch.setattr(module, "document", lambda *a, **options: change(right(*a, **options), luck))
    report = target.check(program, target.emit(program))
    assert not report.ok and report.failed[0].name not in planted_files.COMPARED


def test_a_file_of_another_program_is_refused() -> None:
    """Right by itself, and with what it was written from, but not what was to be emitted."""
    pairs: list[tuple[Target, Program, Program]] = [
        (target, attrs.evolve(direct("allgather", 3), name="c"), attrs.evolve(ring("allgather", 3), name="c"))
        for target in (MpiC(), MscclXml(), OneCclXml(), IrText())
    ]
    for target, wanted, other in pairs:
        report = target.check(wanted, target.emit(other))
        assert report.failed, target
        assert target.check(other, target.emit(other)).ok
    small = [(Window("a", 1, 99, "a"), direct("allreduce", 2)), (Window("b", 100, None, "b"), ring("allreduce", 2))]
    for windows in ([99, 98], [99, 100]):
        parts = [(attrs.evolve(small[0][0], high=windows[1]), small[0][1]), small[1]]
        assert not MpiC().check_selected(parts, MpiC().emit_selected(small)).ok
    assert not MpiC().check_selected([small[0], small[0]], MpiC().emit_selected(small)).ok


@pytest.mark.slow
def test_files_that_came_from_another_process_are_checked() -> None:
    """What a text was written from stays behind; it is made again."""
    luck = random.Random(5)
    for case in cases()[::5]:
        files = pickle.loads(pickle.dumps(case.files))
        assert files == case.files and all(file.model is None for file in files)
        if "selected" in case.name or "library" in case.name:
            continue
        assert case.judge(files).ok
        text, _ = planted_files.plant_number(files[0].text, luck)
        assert not case.judge([attrs.evolve(files[0], text=text), *files[1:]]).ok


@pytest.mark.slow
def test_missing_and_further_files_are_refused() -> None:
    for case in cases()[::7]:
        assert not case.judge(case.files[:-1]).ok
        assert not case.judge([*case.files, case.files[0]]).ok
        renamed = attrs.evolve(case.files[0], filename="other" + case.files[0].filename)
        assert not case.judge([renamed, *case.files[1:]]).ok


# ---- the engine


def test_the_engine_is_all_that_ships() -> None:
    shipped = {path.name for path in reader.files(reader.__package__).iterdir()}
    assert sorted(ENGINE) == sorted(name for name in shipped if name.startswith("engine_"))


def test_another_engine_than_the_shipped_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader reads what ships itself, so a changed template of the writer is seen."""
    from collc.backends.mpi_c import source

    right, program = source.template, ring("allreduce", 3)

    def other(name: str) -> str:
        return right(name).replace("place->end = origin + edge", "place->end = edge")

    monkeypatch.setattr(source, "template", other)
    report = MpiC().check(program, MpiC().emit(program))
    (wrong,) = report.failed
    assert wrong.name == "reading" and "origin + edge(call, offset + chunks)" in wrong.detail


# ---- the compiler

TEXT = """\
topology net = torus(2, 2);
collective sums = allreduce on net;
schedule sums using auto { sizes: all };
collective rows = allgather on net;
"""


@pytest.mark.slow
@pytest.mark.parametrize("target", ["mpi-c", "msccl-xml", "oneccl-xml", "ir", "mpi-c{library=pod}"])
def test_the_compiler_refuses_what_its_target_wrote_wrong(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every way of writing files is checked, and none with `--verify=off`."""
    classes: dict[str, Any] = {"mpi-c": MpiC, "msccl-xml": MscclXml, "oneccl-xml": OneCclXml, "ir": IrText}
    kind = classes[target.split("{")[0]]
    name = "join" if "library" in target else "emit"
    right = getattr(kind, name)

    def wrong(self: Any, *args: Any) -> Any:
        first, *rest = right(self, *args)
        number = first.text.rindex("0")
        return [attrs.evolve(first, text=first.text[:number] + "1" + first.text[number + 1 :]), *rest]

    monkeypatch.setattr(kind, name, wrong)
    with pytest.raises(InternalError, match="wrote a wrong file"):
        _ = compiler.compile_source(TEXT, target=target, collective=() if name == "join" else "rows").files
    made = compiler.compile_source(TEXT, target=target, collective=() if name == "join" else "rows", verify="off")
    assert made.files


def test_selected_algorithms_are_read_back(monkeypatch: pytest.MonkeyPatch) -> None:
    right = MpiC.emit_selected

    def wrong(self: MpiC, parts: Any) -> Any:
        first, *rest = right(self, parts)
        text = first.text.replace("algorithm_row[] = {\n    0,", "algorithm_row[] = {\n    4,")
        return [attrs.evolve(first, text=text), *rest]

    monkeypatch.setattr(MpiC, "emit_selected", wrong)
    with pytest.raises(InternalError, match="wrote a wrong file"):
        compiler.compile_source(TEXT, target="mpi-c", collective="sums")
    assert compiler.compile_source(TEXT, target="mpi-c", collective="sums", verify="off").files


def test_a_target_without_a_reader_is_none() -> None:
    assert "check" in Target.__abstractmethods__

    class Blind(Target):
        def emit(self, ir: Any) -> Any:
            return []

    with pytest.raises(TypeError, match="check"):
        Blind()  # type: ignore[abstract]


def test_what_is_to_be_written_is_no_part_of_a_result() -> None:
    made = compiler.compile_source(TEXT, target="mpi-c", collective="rows")
    assert all(artifact.model is None for artifact in made.artifacts.values())


@pytest.mark.parametrize("target", [MpiC(), MscclXml(), OneCclXml(), IrText()], ids=lambda t: t.name)
@pytest.mark.parametrize("op", sorted(set(OPERATIONS) - ORDERED))
def test_files_of_every_operation_are_accepted(op: str, target: Target) -> None:
    program = direct("allreduce", 3, 2)
    program = attrs.evolve(program, collective=attrs.evolve(program.collective, op=op, dtype="int8", size=96))
    assert target.check(program, target.emit(program)).ok
