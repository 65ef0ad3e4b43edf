"""C files of networks without a group: messages are sets of chunks, written as pieces that stand for many runs."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from message_programs import KINDS, listed_schedule, message_program
from mpi_c_builds import right
from mpi_fixtures import Built
from sampling import EXHAUSTIVE
from strategies import connected

from collc.backends.base import Artifact
from collc.backends.mpi_c import MpiC
from collc.backends.mpi_c.cursor import Unreadable
from collc.backends.mpi_c.decode import decode
from collc.backends.mpi_c.fixed_pieces import all_fixed, fixed_pieces
from collc.backends.mpi_c.numbers import Numbers
from collc.backends.mpi_c.piece_tables import runs_of
from collc.backends.mpi_c.pieces import ENDS, pieces_of
from collc.backends.mpi_c.reader import SourceText, read_source
from collc.backends.mpi_c.shared_pieces import shared_pieces
from collc.backends.mpi_c.template_tables import segment_differences, template_differences
from collc.backends.mpi_c.templates import messages_of
from collc.backends.mpi_c.toolchain import Mpi
from collc.ir.opcodes import Opcode
from collc.ir.program import Program
from collc.ir.symmetric import MOST_LISTED, SYMMETRIC_KINDS, TEMPLATE_KINDS
from collc.ir.symmetric_program import SymmetricProgram
from collc.ir.topology import Topology
from collc.ir.verify import Report, verify
from collc.passes.lowering.lower import Lower

NETS = ("generalized_kautz(2, 11)", "generalized_kautz(3, 20)", "without(torus(3, 3), {0 -> 1})", "debruijn(2, 3)")
_TABLES = (
    "algorithm_sizes", "algorithm_moves", "algorithm_shard", "group_sizes", "algorithm_width", "rank_blocks",
    "rank_scratch", "rank_segments", "step_pieces", "piece_buffer", "piece_place", "piece_count", "piece_times",
    "piece_stride", "step_src", "step_dst", "step_count", "block_send_peer", "block_recv_peer", "wait_step",
    "block_slots", "block_slot_chunks",
)  # fmt: skip

_SHARED = ("piece_count", "piece_src", "piece_dst")
_FIXED = ("piece_count", "piece_place")


@cache
def _files(kind: str) -> tuple[SymmetricProgram, list[Artifact]]:
    program = message_program(NETS[0 if kind == "alltoall" else 1], kind)
    return program, list(MpiC().emit(program))


def _read(text: str, kind: str) -> Report:
    program, files = _files(kind)
    return MpiC().check(program, [attrs.evolve(files[0], text=text), files[1]])


@pytest.mark.quick
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NETS)
def test_files_are_read_back(name: str, kind: str) -> None:
    program = message_program(name, kind)
    report = MpiC().check(program, MpiC().emit(program))
    assert report.ok, report.failed
    assert any(check.detail == "all ranks are listed" for check in report.checks)


def test_as_many_ranks_as_a_byte_holds() -> None:
    """Columns are as narrow as their numbers: the last of 128 ranks fits into a signed byte, 128 itself does not."""
    program = message_program("generalized_kautz(4, 128)", "allgather")
    assert program.width == 128 and program.seed.send_peer.dtype == np.int8
    assert verify(program).ok


@pytest.mark.parametrize("table", _TABLES)
def test_a_changed_number_is_found(table: str) -> None:
    for kind in SYMMETRIC_KINDS if EXHAUSTIVE else SYMMETRIC_KINDS[1:2]:
        _changes_are_found(table, kind)


@pytest.mark.parametrize("table", [*(name for name in _TABLES if not name.startswith("piece_")), *_SHARED])
def test_a_changed_number_of_an_all_to_all_is_found(table: str) -> None:
    _changes_are_found(table, "alltoall")


def _changes_are_found(table: str, kind: str) -> None:
    text = _files(kind)[1][0].text
    start = text.index(f" {table}[] = {{")
    body = text[start : text.index("};", start)]
    for place in list(re.finditer(r"\d+,", body))[:: 1 if EXHAUSTIVE else 7][:20]:
        at = start + place.start()
        digit = str((int(text[at]) + 1) % 10)
        assert not _read(text[:at] + digit + text[at + 1 :], kind).ok, (table, place[0])


@pytest.mark.parametrize("table", [*(name for name in _TABLES if not name.startswith("piece_")), *_FIXED])
def test_a_changed_number_of_an_allreduce_is_found(table: str) -> None:
    _changes_are_found(table, "allreduce")


@pytest.mark.parametrize("table", _SHARED)
def test_two_places_that_are_swapped_are_found(table: str) -> None:
    numbers = _emitted()[1].numbers
    column = numbers[table]
    apart = np.flatnonzero(column[1:] != column[:-1])
    for at in apart[:: 1 if EXHAUSTIVE else max(len(apart) // 60, 1)].tolist():
        swapped = column.copy()
        swapped[[at, at + 1]] = column[[at + 1, at]]
        assert _wrong({**numbers, table: swapped}), (table, at)


@pytest.mark.parametrize("table", ["segment_cell", "segment_chunk", "rank_segments"])
def test_another_segment_of_scratch_is_found(table: str) -> None:
    program, source = _emitted()
    numbers = source.numbers[table].copy()
    numbers[1] += 1
    try:
        one = decode(attrs.evolve(source, numbers={**source.numbers, table: numbers}))[0][0]
    except Unreadable:
        return
    assert next(segment_differences(program, one.first, one.cell, one.held), None) is not None


def test_a_message_that_is_dropped_is_found() -> None:
    """Without its rows, and with those that follow in their places: the step moves other data, or none."""
    numbers = _emitted()[1].numbers
    for at in np.flatnonzero(numbers["step_pieces"])[:: 1 if EXHAUSTIVE else 29].tolist():
        for name in ("step_pieces", "step_count"):
            fewer = numbers[name].copy()
            fewer[at] = 0
            assert _wrong({**numbers, name: fewer}), (name, at)


@cache
def _emitted() -> tuple[SymmetricProgram, SourceText]:
    program, files = _files("alltoall")
    return program, read_source(files[0].text, "c.c")


def _wrong(numbers: Numbers) -> bool:
    """Return whether the numbers are not those of the all-to-all: by decoding, executing, or as another program."""
    program, source = _emitted()
    try:
        found = decode(attrs.evolve(source, numbers=numbers))[0][0].program
    except Unreadable:
        return True
    assert isinstance(found, SymmetricProgram)
    return next(template_differences(found, program), None) is not None or not verify(found).ok


@given(connected(min_ranks=2), st.sampled_from(KINDS))
def test_lists_that_both_ends_share_have_the_runs(network: Topology, kind: str) -> None:
    """Any program of messages can have such lists; only files with a large all-to-all have them."""
    program = message_program(network, kind)
    shared = shared_pieces(program)
    messages = messages_of(program)
    at = {end: np.maximum(getattr(shared, end), 0) for end in ENDS}
    several = shared.number > 0
    columns = {f"{end}_offset": np.where(several, at[end], getattr(messages, f"{end}_offset")) for end in ENDS}
    number, runs = runs_of(dict(shared.columns), attrs.evolve(messages, **columns), shared.number)
    assert np.array_equal(number, np.diff(program.message_start))
    seed = program.seed
    for name, column in runs.items():
        used = seed.uses(name[:3]) if name != "count" else seed.count >= 0
        assert np.array_equal(column[used], getattr(seed, name)[used]), name


@given(connected(min_ranks=2))
def test_lists_of_fixed_places_have_the_runs(network: Topology) -> None:
    program = message_program(network, "allreduce")
    assert all_fixed([program]) == bool(program.joined.any())
    fixed, messages = fixed_pieces(program), messages_of(program)
    several = fixed.number > 0
    columns = {
        f"{end}_offset": np.where(several, np.maximum(getattr(fixed, end), 0), getattr(messages, f"{end}_offset"))
        for end in ENDS
    }
    number, runs = runs_of(dict(fixed.columns), attrs.evolve(messages, **columns), fixed.number)
    assert np.array_equal(number, np.diff(program.message_start))
    seed = program.seed
    for name, column in runs.items():
        used = seed.uses(name[:3]) if name != "count" else seed.count >= 0
        assert np.array_equal(column[used], getattr(seed, name)[used]), name


def test_only_files_of_fixed_places_have_their_lists() -> None:
    """A file with one other program of messages of several runs, or with a run read elsewhere, has other lists."""
    program, other = message_program(NETS[1], "allreduce"), message_program(NETS[1], "allgather")
    assert all_fixed([program]) and not all_fixed([program, other]) and not all_fixed([other])
    for name in ("src_offset", "dst_offset", "src_buffer", "dst_buffer"):
        column = getattr(program.seed, name).astype(np.int64)
        row = int(np.flatnonzero(program.seed.uses(name[:3]) & (program.joined == 1))[0])
        column[row] = 2 if name == "src_buffer" else 0 if name == "dst_buffer" else column[row] + 1
        moved = attrs.evolve(program, seed=attrs.evolve(program.seed, **{name: column}))
        assert not all_fixed([moved]), name


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([(3, 1), (-3, 2)], "ends before"), ([(-3, 2), (2, 1)], "series of none"), ([(1, 1), (3, 1)], "no chunks"),
        ([(-3, 2), (-3, 2)], "series of none"), ([(0, 1), (3, 1)], "no chunks"),
    ],
)  # fmt: skip
def test_lists_of_fixed_places_that_are_wrong_are_not_read(rows: list[tuple[int, int]], text: str) -> None:
    program = message_program(NETS[1], "allreduce")
    fixed, messages = fixed_pieces(program), messages_of(program)
    at = int(np.flatnonzero((fixed.number > 0) & (messages.opcode == Opcode.SEND))[0])
    count, place = np.array(rows).T
    one = np.zeros(len(fixed.number), dtype=np.int64)
    one[at] = len(rows)
    columns = {f"{end}_offset": np.where(fixed.number > 0, 0, getattr(messages, f"{end}_offset")) for end in ENDS}
    with pytest.raises(Unreadable, match=text):
        runs_of({"piece_count": count, "piece_place": place}, attrs.evolve(messages, **columns), one)


def test_files_of_allreduces_are_smaller_with_lists_of_fixed_places() -> None:
    program = message_program("generalized_kautz(4, 96)", "allreduce")
    sizes = [
        sum(len(f" {number},") for column in one.columns.values() for number in column.tolist())
        for one in (fixed_pieces(program), pieces_of(program))
    ]
    assert sizes[0] < 0.7 * sizes[1]


@pytest.mark.parametrize("name", NETS)
def test_equal_lists_are_written_once_and_series_are_one_piece(name: str) -> None:
    program = message_program(name, "allgather")
    pieces = pieces_of(program)
    several = pieces.number > 0
    runs = int((program.message_start[1:] - program.message_start[:-1])[several].sum())
    assert len(pieces) < runs / 2
    lists = set()
    for end in ENDS:
        first = getattr(pieces, end)
        for at in range(len(first)):
            if several[at] and first[at] >= 0:
                rows = slice(first[at], first[at] + pieces.number[at])
                lists.add((int(first[at]), *(tuple(column[rows].tolist()) for column in pieces.columns.values())))
    assert len({one[1:] for one in lists}) == len({one[0] for one in lists})


def test_files_of_messages_are_a_fraction_of_those_of_instructions() -> None:
    schedule = listed_schedule("generalized_kautz(4, 256)", "allgather")
    files = [MpiC().emit(Lower(listed=most).run(schedule))[0].text for most in (0, None)]
    assert len(files[0]) < len(files[1]) / 5


def test_files_of_all_to_alls_share_lists_and_are_smaller() -> None:
    schedule = listed_schedule("generalized_kautz(4, 32)", "alltoall")
    messages, listed = (MpiC().emit(Lower(listed=most).run(schedule))[0].text for most in (0, None))
    engine = len(MpiC().emit(message_program("circulant(3, {1})", "allgather"))[0].text)
    assert "piece_src" in messages and "piece_src" not in listed
    assert len(messages) - engine < (len(listed) - engine) / 2


def test_short_schedules_and_other_targets_keep_instructions() -> None:
    schedule = listed_schedule(NETS[0], "allgather")
    assert len(schedule) < MOST_LISTED and isinstance(Lower(listed=MOST_LISTED).run(schedule), Program)
    assert isinstance(Lower().run(schedule), Program) and "broadcast" not in TEMPLATE_KINDS


@pytest.mark.needs("mpi")
@pytest.mark.parametrize("name", NETS if EXHAUSTIVE else NETS[::2])
def test_allreduces_of_fixed_places_on_a_real_mpi(name: str, mpich: Mpi, tmp_path: Path) -> None:
    made = [message_program(name, "allreduce").renamed("allreduce")]
    assert all_fixed(made)
    built = Built(mpich, made, tmp_path)
    assert right(built.run(counts=(0, 1, 5, 1000), dtypes=("float64", "strided"), ops=("sum", "user"))) > 0


@pytest.mark.needs("mpi")
@pytest.mark.parametrize("name", NETS if EXHAUSTIVE else NETS[::2])
def test_calls_on_a_real_mpi(name: str, mpich: Mpi, tmp_path: Path) -> None:
    made = [message_program(name, kind).renamed(kind.replace("-", "_")) for kind in KINDS]
    built = Built(mpich, made, tmp_path, library=True)
    assert right(built.run(counts=(0, 1, 5, 1000), dtypes=("float64", "strided"), ops=("sum", "user"))) > 0
