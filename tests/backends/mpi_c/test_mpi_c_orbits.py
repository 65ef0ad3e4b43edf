"""C files that list one rank of every orbit of a group: their text, faults in it, and calls on a real MPI."""

from __future__ import annotations

import re
from pathlib import Path

import attrs
import pytest
from mpi_c_builds import right
from mpi_fixtures import Built
from orbit_programs import KINDS, boxes, orbit_program
from sampling import EXHAUSTIVE
from template_programs import network, template

from collc.backends.base import Window
from collc.backends.mpi_c import MpiC
from collc.backends.mpi_c.toolchain import Mpi
from collc.ir.topology import Topology
from collc.ir.verify import Report

NETS: tuple[str | Topology, ...] = ("dgx_a100(3)", boxes(3, 2), boxes(4, 3), boxes(5, 2, "ib[0]"), boxes(2, 4))
_TABLES = (
    "algorithm_group", "algorithm_sizes", "algorithm_moves", "algorithm_shard", "group_sizes", "algorithm_width",
    "rank_blocks", "rank_scratch", "rank_segments", "step_pieces", "piece_buffer", "piece_place",
    "piece_count", "piece_times", "piece_stride", "step_src", "step_dst", "step_count", "block_send_peer",
    "block_recv_peer", "wait_step", "block_slots", "block_slot_chunks",
)  # fmt: skip


def _read(text: str, kind: str) -> Report:
    program = orbit_program(boxes(3, 2), kind, 2)
    files = MpiC().emit(program)
    return MpiC().check(program, [attrs.evolve(files[0], text=text), files[1]])


@pytest.mark.quick
@pytest.mark.parametrize("pieces", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NETS, ids=str)
def test_files_are_read_back(name: str | Topology, kind: str, pieces: int) -> None:
    program = orbit_program(name, kind, pieces)
    report = MpiC().check(program, MpiC().emit(program))
    assert report.ok, report.failed
    executed = f"executed {program.width} of {program.num_ranks} ranks"
    assert any(executed in check.detail for check in report.checks)


@pytest.mark.parametrize("table", _TABLES)
def test_a_changed_number_is_found(table: str) -> None:
    for kind in KINDS if EXHAUSTIVE else KINDS[1:2]:
        text = MpiC().emit(orbit_program(boxes(3, 2), kind, 2))[0].text
        start = text.index(f" {table}[] = {{")
        body = text[start : text.index("};", start)]
        for place in list(re.finditer(r"\d+,", body))[:: 1 if EXHAUSTIVE else 7][:20]:
            at = start + place.start()
            digit = str((int(text[at]) + 1) % 10)
            assert not _read(text[:at] + digit + text[at + 1 :], kind).ok, (table, place[0])


def test_a_width_that_is_not_needed_is_refused() -> None:
    text = MpiC().emit(orbit_program(boxes(3, 2), "allgather", 2))[0].text
    wrong = _read(re.sub(r"( algorithm_width\[\] = {\n *)2,", r"\g<1>1,", text), "allgather")
    assert "has no number above 1" in wrong.failed[0].detail


def test_a_file_for_sizes_holds_all_forms() -> None:
    orbits = orbit_program(boxes(5, 2, "ib[0]"), "allreduce")
    one = template(network("biring(10)"), "allreduce")
    parts = [
        (Window("orbits", 0, 1000, "small"), orbits), (Window("whole", 1001, 2000, "middle"), orbits.unfold()),
        (Window("one", 2001, None, "large"), one),
    ]  # fmt: skip
    for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2]):
        mixed = [(part[0], parts[at][1]) for part, at in zip(parts, order, strict=True)]
        report = MpiC().check_selected(mixed, MpiC().emit_selected(mixed))
        assert report.ok, report.failed


def test_a_file_for_the_trees_of_one_rank_has_no_width() -> None:
    text = MpiC().emit(orbit_program("torus(3, 3)", "allreduce", 2))[0].text
    assert "algorithm_width" not in text and "algorithm_sizes" in text


def test_files_do_not_hold_the_tables_of_all_boxes() -> None:
    few, many = (len(MpiC().emit(orbit_program(f"dgx_a100({n})", "allreduce"))[0].text) for n in (4, 16))
    assert many < 2 * few


@pytest.mark.needs("mpi")
@pytest.mark.parametrize("name", NETS if EXHAUSTIVE else NETS[1:3], ids=str)
def test_calls_on_a_real_mpi(name: str | Topology, mpich: Mpi, tmp_path: Path) -> None:
    made = [orbit_program(name, kind, 2).renamed(kind.replace("-", "_")) for kind in KINDS]
    built = Built(mpich, made, tmp_path, library=True)
    counts = (0, 1, 5, 1000)
    assert right(built.run(counts=counts, dtypes=("float64", "strided"), ops=("sum", "user"))) > 0


@pytest.mark.needs("mpi")
def test_calls_of_16_ranks(mpich: Mpi, tmp_path: Path) -> None:
    made = [orbit_program(boxes(4, 4, "ib[0]"), kind, 3).renamed(kind.replace("-", "_")) for kind in KINDS]
    built = Built(mpich, made, tmp_path, library=True)
    assert right(built.run(counts=(0, 63, 1000), dtypes=("int32",), ops=("sum",))) > 0
