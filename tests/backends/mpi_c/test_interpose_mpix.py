"""Persistent collectives of programs on Open MPI 4, which has them by names of its own: ``MPIX_Allreduce_init``, .."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
from interposed import STRICT, Preloaded, everything, with_fault
from places import the

import collc
from collc.backends.mpi_c.interpose import Served
from collc.backends.mpi_c.source import Function
from collc.backends.mpi_c.toolchain import Mpi, compile_c

pytestmark = pytest.mark.needs("mpi")

OPTIONS = {"COLLC_NONBLOCKING": "1", "COLLC_UNEVEN": "1"}

#: what each program makes persistent
NAMES = {
    "nonblocking": [
        "allgather",
        "allreduce",
        "alltoall",
        "bcast",
        "gather",
        "reduce",
        "reduce_scatter_block",
        "scatter",
    ],
    "staged": ["allgatherv", "alltoallv", "alltoallw", "gatherv", "reduce_scatter", "scatterv"],
    "neighbours": [f"neighbor_{name}" for name in ["allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw"]],
}


@pytest.fixture(scope="module")
def library(openmpi_4: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Preloaded:
    specification = "topology t = biring(4); collective near = neighbours on t;"
    near = Served(Function("near", ((None, collc.compile_source(specification, target="ir").program),)))
    folder = tmp_path_factory.mktemp("openmpi-4")
    return Preloaded(openmpi_4, folder, [*everything(4), near], program=the("nonblocking_program.c"), optimized=False)


def running(library: Preloaded, name: str, folder: Path) -> Preloaded:
    """Return the library with another program."""
    made = copy.copy(library)
    made.program = folder / name
    compile_c(made.mpi, [the(f"{name}_program.c")], made.program, (*STRICT, "-pthread"))
    return made


@pytest.mark.parametrize("name", NAMES)
def test_they_are_served(name: str, library: Preloaded, tmp_path: Path) -> None:
    # Calls that are left would fail with types that were freed and with repeated neighbours, or not end.
    ran = running(library, name, tmp_path).run(
        4, *["repeated"] * (name == "staged"), **OPTIONS, KEEP_HANDLES="1", DISTINCT="1"
    )
    assert ran.all_right, ran.out + ran.err
    persistent = {function for function, _ in ran.report.calls if function.endswith("_init")}
    assert persistent >= {f"MPIX_{function.capitalize()}_init" for function in NAMES[name]}
    assert all(function.startswith("MPIX_") for function in persistent)
    ends = {end for function, end in ran.report.calls if function in persistent}
    assert "served" in ends and ends <= {"served", "unequal counts", "no data", "other neighbours"}


def test_without_the_option_they_are_counted(library: Preloaded) -> None:
    ran = library.run(4, KEEP_HANDLES="1")
    assert ran.all_right, ran.out + ran.err
    assert ran.report.calls["MPIX_Allreduce_init", "needs --nonblocking"] > 0


def test_a_fault_is_seen(library: Preloaded, tmp_path: Path) -> None:
    """A library with MPI 4's names: no call of the program comes to it."""
    faulty = with_fault(library, tmp_path, '#undef CIP_INIT\n#define CIP_INIT "MPIX_"\n', "")
    ran = library.run(4, library=faulty, KEEP_HANDLES="1", **OPTIONS)
    assert not {function for function, _ in ran.report.calls if function.endswith("_init")}
