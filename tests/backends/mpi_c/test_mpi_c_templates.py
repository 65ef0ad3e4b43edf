"""C files that list one rank and a group: their text, faults in it, and calls on a real MPI."""

from __future__ import annotations

import re
from pathlib import Path

import attrs
import pytest
from mpi_c_builds import right
from mpi_fixtures import Built
from sampling import EXHAUSTIVE
from template_programs import KINDS, network, template

from collc.backends.base import Window
from collc.backends.mpi_c import MpiC
from collc.backends.mpi_c.toolchain import Mpi
from collc.ir.verify import Report

NETS = ("torus(4, 4)", "hypercube(3)", "circulant(9, {1, 3})", "torus(2, 3, 2)")
_TABLES = (
    "algorithm_group", "algorithm_sizes", "algorithm_moves", "algorithm_shard", "group_sizes", "block_pieces",
    "step_pieces", "piece_src_buffer", "piece_src", "piece_dst_buffer", "piece_dst", "piece_count", "step_src",
    "step_dst", "step_count", "block_send_peer", "block_recv_peer", "wait_step", "block_slots", "block_slot_chunks",
)  # fmt: skip


def _read(text: str, kind: str) -> Report:
    program = template(network("torus(4, 4)"), kind)
    files = MpiC().emit(program)
    return MpiC().check(program, [attrs.evolve(files[0], text=text), files[1]])


@pytest.mark.quick
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NETS)
def test_files_are_read_back(name: str, kind: str) -> None:
    program = template(network(name), kind)
    report = MpiC().check(program, MpiC().emit(program))
    assert report.ok, report.failed
    assert any(f"executed 1 of {program.num_ranks} ranks" in check.detail for check in report.checks)


@pytest.mark.parametrize("table", _TABLES)
def test_a_changed_number_is_found(table: str) -> None:
    for kind in KINDS if EXHAUSTIVE else KINDS[:1]:
        text = MpiC().emit(template(network("torus(4, 4)"), kind))[0].text
        start = text.index(f" {table}[] = {{")
        body = text[start : text.index("};", start)]
        for place in list(re.finditer(r"\d+,", body))[:: 1 if EXHAUSTIVE else 7][:20]:
            at = start + place.start()
            digit = str((int(text[at]) + 1) % 10)
            assert not _read(text[:at] + digit + text[at + 1 :], kind).ok, (table, place[0])


def test_a_file_for_sizes_holds_both_forms() -> None:
    program = template(network("torus(4, 4)"), "allreduce")
    whole = program.unfold()
    parts = [(Window("template", 0, 1000, "small"), program), (Window("whole", 1001, None, "large"), whole)]
    for order in (parts, [(a[0], b[1]) for a, b in zip(parts, reversed(parts), strict=True)]):
        report = MpiC().check_selected(order, MpiC().emit_selected(order))
        assert report.ok, report.failed


def test_files_are_small_however_many_ranks_there_are() -> None:
    sizes = [len(MpiC().emit(template(network(f"hypercube({n})"), "allreduce"))[0].text) for n in (3, 7)]
    assert sizes[1] < 2 * sizes[0]


@pytest.mark.needs("mpi")
@pytest.mark.parametrize("name", NETS if EXHAUSTIVE else NETS[1:])
def test_calls_on_a_real_mpi(name: str, mpich: Mpi, tmp_path: Path) -> None:
    built = Built(mpich, [template(network(name), kind).renamed(kind.replace("-", "_")) for kind in KINDS], tmp_path)
    counts = (0, 1, 5, 1000)
    assert right(built.run(counts=counts, dtypes=("float64", "strided"), ops=("sum", "user"))) > 0


@pytest.mark.needs("mpi")
def test_calls_of_64_ranks(mpich: Mpi, tmp_path: Path) -> None:
    built = Built(mpich, [template(network("torus(8, 8)"), "allreduce")], tmp_path)
    assert right(built.run(counts=(0, 63, 1000) if EXHAUSTIVE else (1000,), dtypes=("int32",), ops=("sum",))) == (
        6 if EXHAUSTIVE else 2
    )
