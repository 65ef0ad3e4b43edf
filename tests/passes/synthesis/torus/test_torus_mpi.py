"""The torus algorithms as C under a real MPI: every algorithm, every collective it does, every element."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Ran
from mpi_fixtures import Built
from torus_runs import SHAPES, asked, source

import collc as compiler
from collc.backends.mpi_c.toolchain import Mpi

pytestmark = pytest.mark.needs("mpi")

MOST = 32  # programs of a driver


def built(mpi: Mpi, text: str, folder: Path) -> list[Built]:
    """Compile every collective of a file to C, as many in a driver as it takes."""
    programs = [one.program for one in compiler.compile_source(text).collectives.values()]
    made = []
    for first in range(0, len(programs), MOST):
        (folder / str(first)).mkdir()
        made.append(Built(mpi, programs[first : first + MOST], folder / str(first), ("-O0",), library=True))
    return made


@pytest.mark.parametrize("ranks", SHAPES)
def test_generated_c_computes_the_collective(ranks: int, mpich: Mpi, tmp_path: Path) -> None:
    """Every algorithm with every collective it does, on some shapes each, in place and out of place, every element on
    every rank."""
    wanted, counts = asked(ranks), (1000, 3) if ranks in (6, 7) else (1000,)
    drivers = built(mpich, source(wanted), tmp_path)
    rows = [row for one in drivers for row in one.run(counts=counts, dtypes=("int32",)).rows]
    assert {row.name for row in rows} == {f"all_c{number}" for number in range(len(wanted))}
    assert len(rows) == len(wanted) * len(counts) * 2
    assert [f"{wanted[int(row.name.removeprefix('all_c'))]}: {row.detail}" for row in rows if not row.correct] == []


def test_maxima_without_folding_refuse_sums(mpich: Mpi, tmp_path: Path) -> None:
    """Contributions come twice, which the program knows: it takes operations that allow it and no other."""
    text = "collective c = allreduce on torus(6) { op: max };\n"
    (driver,) = built(mpich, text + "schedule c using swing { variant: latency, fold: false };\n", tmp_path)
    rows = driver.run(counts=(100,), dtypes=("int32",), ops=("max", "min", "sum", "prod")).rows
    assert {row.op: row.correct for row in rows} == {"max": True, "min": True, "sum": False, "prod": False}
    assert all("MPI_Op" in row.detail or "error" in row.detail for row in rows if not row.correct)


def test_a_run_takes_an_operation_that_the_program_is_right_for(mpich: Mpi, collc: Callable[..., Ran]) -> None:
    text = "collective c = allreduce on torus(6) { op: lor };\n"
    text += "schedule c using swing { variant: latency, fold: false };\n"
    done = collc("run", "-", "--count", "10", "--repeat", "1", "--mpi", str(mpich.folder), stdin=text)
    assert done.status == 0, done.out + done.err
