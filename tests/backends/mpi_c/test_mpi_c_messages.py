"""C files of networks without a group: messages are sets of chunks, written as pieces that stand for many runs."""

from __future__ import annotations

import re
from pathlib import Path

import attrs
import pytest
from message_programs import KINDS, listed_schedule, message_program
from mpi_c_builds import right
from mpi_fixtures import Built
from sampling import EXHAUSTIVE

from collc.backends.mpi_c import MpiC
from collc.backends.mpi_c.pieces import ENDS, pieces_of
from collc.backends.mpi_c.toolchain import Mpi
from collc.ir.program import Program
from collc.ir.symmetric import MOST_LISTED, SYMMETRIC_KINDS
from collc.ir.verify import Report
from collc.passes.lowering.lower import Lower

NETS = ("generalized_kautz(2, 11)", "generalized_kautz(3, 20)", "without(torus(3, 3), {0 -> 1})", "debruijn(2, 3)")
_TABLES = (
    "algorithm_sizes", "algorithm_moves", "algorithm_shard", "group_sizes", "algorithm_width", "rank_blocks",
    "rank_scratch", "rank_segments", "step_pieces", "piece_buffer", "piece_place", "piece_count", "piece_times",
    "piece_stride", "step_src", "step_dst", "step_count", "block_send_peer", "block_recv_peer", "wait_step",
    "block_slots", "block_slot_chunks",
)  # fmt: skip


def _read(text: str, kind: str) -> Report:
    program = message_program(NETS[1], kind)
    files = MpiC().emit(program)
    return MpiC().check(program, [attrs.evolve(files[0], text=text), files[1]])


@pytest.mark.quick
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NETS)
def test_files_are_read_back(name: str, kind: str) -> None:
    program = message_program(name, kind)
    report = MpiC().check(program, MpiC().emit(program))
    assert report.ok, report.failed
    assert any(check.detail == "all ranks are listed" for check in report.checks)


@pytest.mark.parametrize("table", _TABLES)
def test_a_changed_number_is_found(table: str) -> None:
    for kind in KINDS if EXHAUSTIVE else KINDS[1:2]:
        text = MpiC().emit(message_program(NETS[1], kind))[0].text
        start = text.index(f" {table}[] = {{")
        body = text[start : text.index("};", start)]
        for place in list(re.finditer(r"\d+,", body))[:: 1 if EXHAUSTIVE else 7][:20]:
            at = start + place.start()
            digit = str((int(text[at]) + 1) % 10)
            assert not _read(text[:at] + digit + text[at + 1 :], kind).ok, (table, place[0])


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


def test_short_schedules_and_other_targets_keep_instructions() -> None:
    schedule = listed_schedule(NETS[0], "allgather")
    assert len(schedule) < MOST_LISTED and isinstance(Lower(listed=MOST_LISTED).run(schedule), Program)
    assert isinstance(Lower().run(schedule), Program) and "broadcast" not in SYMMETRIC_KINDS


@pytest.mark.needs("mpi")
@pytest.mark.parametrize("name", NETS if EXHAUSTIVE else NETS[::2])
def test_calls_on_a_real_mpi(name: str, mpich: Mpi, tmp_path: Path) -> None:
    made = [message_program(name, kind).renamed(kind.replace("-", "_")) for kind in KINDS]
    built = Built(mpich, made, tmp_path)
    assert right(built.run(counts=(0, 1, 5, 1000), dtypes=("float64", "strided"), ops=("sum", "user"))) > 0
