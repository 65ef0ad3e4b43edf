"""Calls that the MPI's own collectives carry out because they were timed faster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from interposed import Preloaded, Ran, everything, with_fault

from collc.backends.mpi_c.toolchain import Mpi
from collc.files.tuned import Timed, read_tuned
from collc.ir.collective import KINDS

pytestmark = pytest.mark.needs("mpi")

SLOWER = "timed slower"
SOME = {"MPI_Allreduce", "MPI_Reduce"}
#: calls with a count for each rank are not timed
UNEVEN = {"MPI_Allgatherv", "MPI_Reduce_scatter"}


@pytest.fixture(scope="module")
def on_mpich(mpich: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Preloaded:
    return Preloaded(mpich, tmp_path_factory.mktemp("mpich"), everything(4))


@pytest.fixture(scope="module")
def on_openmpi(openmpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Preloaded:
    return Preloaded(openmpi, tmp_path_factory.mktemp("openmpi"), everything(4))


def run(preloaded: Preloaded, path: Path, library: Path | None = None) -> Ran:
    """Run a program that compares every call with the MPI's own."""
    return preloaded.run(4, 40, 1, library=library, COLLC_TUNE=str(path))


def is_right(ran: Ran) -> bool:
    return ran.status == 0 and "calls 40\nwrong 0\n" in ran.out


def lines(rows: Iterable[Timed]) -> str:
    return "".join(
        f"{one.kind}\t{one.ranks}\t{one.nodes}\t{one.size}\t{one.built_in:.3f}\t{one.compiled:.3f}\n" for one in rows
    )


def file_of(folder: Path, built_in: float, compiled: float) -> Path:
    """Write the times of all collectives and sizes, those of one as long as those of any other."""
    path = folder / "times.tsv"
    path.write_text(lines(Timed(kind, 4, 1, 1 << n, built_in, compiled) for kind in KINDS for n in range(27)))
    return path


def ends(calls: Counter[tuple[str, str]], end: str) -> set[str]:
    return {name.removesuffix("_c") for name, found in calls if found == end}


@pytest.mark.parametrize("which", ["on_mpich", "on_openmpi"])
def test_every_collective_is_timed_once(which: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    preloaded: Preloaded = request.getfixturevalue(which)
    path = tmp_path / "times.tsv"
    ran = run(preloaded, path)
    assert is_right(ran), ran.out + ran.err
    rows = read_tuned(str(path), str(tmp_path))
    assert len({row.kind for row in rows}) >= 5 and {row.kind for row in rows} <= set(KINDS)
    assert {(row.ranks, row.nodes) for row in rows} == {(4, 1)}
    before = path.read_text()
    again = run(preloaded, path)
    assert is_right(again), again.out + again.err
    assert path.read_text() == before
    assert (SLOWER in {end for _, end in again.report.calls}) == any(not row.is_compiled for row in rows)


@pytest.mark.parametrize("which", ["on_mpich", "on_openmpi"])
def test_times_of_earlier_runs_decide(which: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    preloaded: Preloaded = request.getfixturevalue(which)
    compiled = run(preloaded, file_of(tmp_path, 2, 1))
    before = (tmp_path / "times.tsv").read_text()
    assert is_right(compiled) and not ends(compiled.report.calls, SLOWER)
    assert (tmp_path / "times.tsv").read_text() == before
    built_in = run(preloaded, file_of(tmp_path, 1, 2))
    assert is_right(built_in)
    assert ends(built_in.report.calls, SLOWER) - UNEVEN == ends(compiled.report.calls, "served") - UNEVEN >= SOME
    assert ends(built_in.report.calls, "served") <= UNEVEN


@pytest.mark.parametrize("text", ["", "\x00\xff\n" * 9, "allreduce\t4\t1\t-8\tnan\tinf\n", "x" * 100_000, lines(
    [Timed("allreduce", 5, 1, 64, 1.0, 2.0), Timed("allreduce", 4, 2, 64, 1.0, 2.0), Timed("sums", 4, 1, 64, 1.0, 2.0)]
)])  # fmt: skip
def test_other_files_say_nothing(text: str, on_mpich: Preloaded, tmp_path: Path) -> None:
    path = tmp_path / "times.tsv"
    path.write_text(text, encoding="latin-1")
    ran = run(on_mpich, path)
    assert is_right(ran), ran.out + ran.err


def test_a_folder_that_is_not_there_is_no_fault_of_the_program(on_mpich: Preloaded, tmp_path: Path) -> None:
    ran = run(on_mpich, tmp_path / "none" / "times.tsv")
    assert is_right(ran), ran.out + ran.err


def test_without_the_variable_nothing_is_timed(on_mpich: Preloaded) -> None:
    assert SLOWER not in {end for _, end in on_mpich.run(4, 20, 1).report.calls}


@pytest.mark.parametrize(
    ("sound", "faulty"),
    [
        ("it.out = calloc(", "it.out = call->recv; if (0) it.out = calloc("),  # the program's memory
        ("    free(it.out);", "    memset(call->recv, 1, 1); free(it.out);"),
    ],
)
def test_faults_are_seen(sound: str, faulty: str, on_mpich: Preloaded, tmp_path: Path) -> None:
    library = with_fault(on_mpich, tmp_path, sound, faulty)
    assert not is_right(run(on_mpich, tmp_path / "times.tsv", library))


def test_a_choice_that_is_turned_round_is_seen(on_mpich: Preloaded, tmp_path: Path) -> None:
    library = with_fault(on_mpich, tmp_path, "built_in < compiled ? CIP_BUILT_IN", "built_in > compiled ? CIP_BUILT_IN")
    ran = run(on_mpich, file_of(tmp_path, 1, 2), library)
    assert is_right(ran) and ends(ran.report.calls, "served") >= SOME
