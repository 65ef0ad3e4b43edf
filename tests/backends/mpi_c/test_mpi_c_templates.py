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
WORDED = ("cayley(dihedral(6), {1, 2})", "cayley(symmetric(3), {1, 3, 4})", "cayley(metacyclic(7, 3, 2), {1, 2, 3})")
_TABLES = (
    "algorithm_group", "algorithm_sizes", "algorithm_moves", "algorithm_shard", "group_sizes", 
    "step_pieces", "piece_buffer", "piece_place", "piece_count", "piece_times", "piece_stride", "step_src",
    "step_dst", "step_count", "block_send_peer", "block_recv_peer", "wait_step", "block_slots", "block_slot_chunks",
)  # fmt: skip
_OF_WORDS = (
    "algorithm_words", "algorithm_times", "word_generator", "word_rest", "generator_times", "algorithm_group",
    "algorithm_sizes", "group_sizes", "block_send_peer", "block_recv_peer", "step_src",
)  # fmt: skip


def _read(text: str, kind: str, name: str = "torus(4, 4)") -> Report:
    program = template(network(name), kind)
    files = MpiC().emit(program)
    return MpiC().check(program, [attrs.evolve(files[0], text=text), files[1]])


@pytest.mark.quick
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [*NETS, *WORDED])
def test_files_are_read_back(name: str, kind: str) -> None:
    program = template(network(name), kind)
    report = MpiC().check(program, MpiC().emit(program))
    assert report.ok, report.failed
    assert any(f"executed 1 of {program.num_ranks} ranks" in check.detail for check in report.checks)


@pytest.mark.parametrize("table", _TABLES)
def test_a_changed_number_is_found(table: str) -> None:
    _change(table, "torus(4, 4)")


@pytest.mark.parametrize("table", _OF_WORDS)
def test_a_changed_number_of_a_group_without_vectors_is_found(table: str) -> None:
    _change(table, WORDED[0])


def _change(table: str, name: str) -> None:
    for kind in KINDS if EXHAUSTIVE else (KINDS[0], "alltoall"):
        text = MpiC().emit(template(network(name), kind))[0].text
        start = text.index(f" {table}[] = {{")
        body = text[start : text.index("};", start)]
        for place in list(re.finditer(r"\d+,", body))[:: 1 if EXHAUSTIVE else 7][:20]:
            at = start + place.start()
            digit = str((int(text[at]) + 1) % 10)
            assert not _read(text[:at] + digit + text[at + 1 :], kind, name).ok, (table, place[0])


@pytest.mark.parametrize("name", ["torus(4, 4)", "cayley(dihedral(6), {1, 2})"])
def test_a_file_for_sizes_holds_both_forms(name: str) -> None:
    program = template(network(name), "allreduce")
    whole = program.unfold()
    parts = [(Window("template", 0, 1000, "small"), program), (Window("whole", 1001, None, "large"), whole)]
    for order in (parts, [(a[0], b[1]) for a, b in zip(parts, reversed(parts), strict=True)]):
        report = MpiC().check_selected(order, MpiC().emit_selected(order))
        assert report.ok, report.failed


def test_a_library_holds_groups_of_both_kinds() -> None:
    nets = ("cayley(dihedral(6), {1, 2})", "torus(4, 3)", "cayley(symmetric(3), {1, 3})", "uniring(5)", WORDED[2])
    programs = [template(network(name), "allreduce").renamed(f"c{at}") for at, name in enumerate(nets)]
    programs.insert(2, programs[1].unfold())
    target = MpiC(library="all")
    mains = [target.emit(program)[0] for program in programs]
    report = target.check_joined(mains, target.join(mains))
    assert report.ok, report.failed


def test_files_are_small_however_many_ranks_there_are() -> None:
    sizes = [len(MpiC().emit(template(network(f"hypercube({n})"), "allreduce"))[0].text) for n in (3, 7)]
    assert sizes[1] < 2 * sizes[0]


@pytest.mark.needs("mpi")
@pytest.mark.parametrize("name", [*NETS, *WORDED] if EXHAUSTIVE else [*NETS[1:], WORDED[0]])
def test_calls_on_a_real_mpi(name: str, mpich: Mpi, tmp_path: Path) -> None:
    made = [template(network(name), kind).renamed(kind.replace("-", "_")) for kind in KINDS]
    built = Built(mpich, made, tmp_path, library=True)
    counts = (0, 1, 5, 1000)
    assert right(built.run(counts=counts, dtypes=("float64", "strided"), ops=("sum", "user"))) > 0


@pytest.mark.needs("mpi")
@pytest.mark.parametrize("name", ["torus(8, 8)", *(["cayley(dihedral(32), {1, 2, 62})"] if EXHAUSTIVE else [])])
def test_calls_of_64_ranks(name: str, mpich: Mpi, tmp_path: Path) -> None:
    built = Built(mpich, [template(network(name), "allreduce")], tmp_path)
    assert right(built.run(counts=(0, 63, 1000) if EXHAUSTIVE else (1000,), dtypes=("int32",), ops=("sum",))) == (
        6 if EXHAUSTIVE else 2
    )
