"""C files of clusters with a few odd boxes: few ranks and a rotation; their text, faults in it, calls on a real MPI."""

from __future__ import annotations

import re
from pathlib import Path

import attrs
import numpy as np
import pytest
from mpi_c_builds import right
from mpi_fixtures import Built
from orbit_programs import boxes, orbit_program
from sampling import EXHAUSTIVE
from turned_programs import KINDS, broken, turned_program

from collc.backends.base import Window
from collc.backends.mpi_c import MpiC
from collc.backends.mpi_c.toolchain import Mpi
from collc.backends.mpi_c.turns import TURNS, folded
from collc.ir.program import Buffer, Program
from collc.ir.turning import all_images
from collc.ir.verify import Report

NET = broken(10, 3, "gpu[3, 1]")
NETS = (NET, broken(9, 2, "gpu[0, 0]"), broken(17, 2, "gpu[3, 1], gpu[16, 0]"))
_TABLES = (
    *TURNS, "algorithm_sizes", "algorithm_moves", "algorithm_shard", "group_sizes", "algorithm_width", "rank_blocks",
    "rank_scratch", "rank_segments", "step_pieces", "step_src", "step_dst", "step_count", "block_send_peer",
    "block_recv_peer", "block_channel", "wait_block", "wait_step", "block_slots", "block_slot_chunks",
)  # fmt: skip


def _read(text: str, kind: str) -> Report:
    program = turned_program(NET, kind)
    files = MpiC().emit(program)
    return MpiC().check(program, [attrs.evolve(files[0], text=text), files[1]])


@pytest.mark.quick
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("network", NETS, ids=str)
def test_files_are_read_back(network: object, kind: str) -> None:
    assert network in NETS
    program = turned_program(network, kind, 2)
    files = MpiC().emit(program)
    assert "turn_places" in files[0].text
    report = MpiC().check(program, files)
    assert report.ok, report.failed


@pytest.mark.parametrize("table", _TABLES)
def test_a_changed_number_is_found(table: str) -> None:
    for kind in KINDS if EXHAUSTIVE else KINDS[1:]:
        text = MpiC().emit(turned_program(NET, kind))[0].text
        start = text.index(f" {table}[] = {{")
        body = text[start : text.index("};", start)]
        for place in list(re.finditer(r"\d+,", body))[:: 1 if EXHAUSTIVE else 7][:20]:
            at = start + place.start()
            digit = str((int(text[at]) + 1) % 10)
            assert not _read(text[:at] + digit + text[at + 1 :], kind).ok, (table, place[0])


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_lists_odd_ranks_and_one_box(kind: str) -> None:
    program = turned_program(NET, kind)
    found = folded(program)
    assert found is not None and found.turning.width == 5  # two of the odd box, three of the next
    moves = frozenset(buffer for buffer in Buffer if program.moves(buffer))
    images, joined = all_images(found.few.seed, found.few.joined, found.turning, moves)
    assert np.array_equal(joined, program.joined)
    assert all(np.array_equal(getattr(images, c), getattr(program.seed, c)) for c in Program.COLUMNS)
    listed = len(MpiC().emit(attrs.evolve(program, turning=None))[0].text)
    more = len(MpiC().emit(turned_program(broken(20, 3, "gpu[3, 1]"), kind))[0].text)
    few = len(MpiC().emit(program)[0].text)
    assert few < listed and more < 1.5 * few


def test_a_program_that_its_rotation_does_not_make_lists_all_ranks() -> None:
    program = turned_program(NET, "allgather")
    count = program.seed.scratch.astype(np.int64)
    count[-1] += 1
    other = attrs.evolve(program, seed=attrs.evolve(program.seed, scratch=count))
    assert folded(other) is None and "turn_places" not in MpiC().emit(other)[0].text


def test_all_images_of_a_message_send_copies_if_one_does() -> None:
    found = folded(turned_program(NET, "allgather"))
    assert found is not None
    one = found._images(frozenset([int(np.flatnonzero(found.message == found.message[-1])[0])]))
    assert one == frozenset(np.flatnonzero(found.message == found.message[-1]).tolist())


def test_a_file_for_sizes_holds_all_forms() -> None:
    turned, other = turned_program(NET, "allgather"), turned_program(NETS[0], "allgather", 2)
    plain = attrs.evolve(turned, turning=None)
    for parts in ([turned, plain, turned.unfold()], [turned.unfold(), other, plain]):
        windows = (Window("a", 0, 999, "a"), Window("b", 1000, 1999, "b"), Window("c", 2000, None, "c"))
        mixed = list(zip(windows, parts, strict=True))
        report = MpiC().check_selected(mixed, MpiC().emit_selected(mixed))
        assert report.ok, report.failed


def test_files_without_a_rotation_have_no_places() -> None:
    text = MpiC().emit(orbit_program(boxes(3, 2), "allgather"))[0].text
    assert "algorithm_width" in text and "turn_places" not in text and "find_turn" not in text


@pytest.mark.needs("mpi")
@pytest.mark.parametrize("network", NETS if EXHAUSTIVE else NETS[1:2], ids=str)
def test_calls_on_a_real_mpi(network: object, mpich: Mpi, tmp_path: Path) -> None:
    assert network in NETS
    made = [turned_program(network, kind, 2).renamed(kind.replace("-", "_")) for kind in KINDS]
    built = Built(mpich, made, tmp_path, library=True)
    counts = (0, 1, 5, 1000)
    assert right(built.run(counts=counts, dtypes=("float64", "strided"), ops=("sum", "user"))) > 0
