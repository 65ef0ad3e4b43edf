"""Calls with a count for each rank, of programs that know nothing of the library."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from interposed import Preloaded, Ran, everything
from places import the

from collc.backends.mpi_c.interpose import interposed
from collc.backends.mpi_c.interpose.build import build
from collc.backends.mpi_c.toolchain import Mpi, compile_c

pytestmark = pytest.mark.needs("mpi")

KNOWN = {"MPI_Allgatherv", "MPI_Reduce_scatter"}
TOLD = {"MPI_Alltoallv", "MPI_Gatherv", "MPI_Scatterv"}


def made(mpi: Mpi, folder: Path) -> Preloaded:
    preloaded = Preloaded(mpi, folder, everything(4))
    compile_c(mpi, [the("uneven_program.c")], preloaded.program, ("-Wall", "-Wextra", "-Werror"))
    return preloaded


@pytest.fixture(scope="module")
def on_mpich(mpich: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Preloaded:
    return made(mpich, tmp_path_factory.mktemp("mpich"))


@pytest.fixture(scope="module")
def on_openmpi(openmpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Preloaded:
    return made(openmpi, tmp_path_factory.mktemp("openmpi"))


def is_right(ran: Ran) -> bool:
    return ran.status == 0 and bool(re.search(r"^checks [1-9]\d+ failures 0$", ran.out, re.MULTILINE))


@pytest.mark.parametrize("told", [True, False], ids=["told", "not-told"])
@pytest.mark.parametrize("which", ["on_mpich", "on_openmpi"])
def test_uneven_data_are_padded(which: str, told: bool, request: pytest.FixtureRequest) -> None:
    """Of some calls every rank knows all sizes. Of the others they tell each other, if the variable says so."""
    preloaded: Preloaded = request.getfixturevalue(which)
    ran = preloaded.run(4, **({"COLLC_UNEVEN": "1"} if told else {}))
    assert is_right(ran), ran.out + ran.err
    calls = ran.report.calls
    assert {name for name, end in calls if end == "served" and name in KNOWN | TOLD} == (
        KNOWN | TOLD if told else KNOWN
    )
    # the lopsided data of one call; those that are not told, all of theirs
    left = {name: number for (name, end), number in calls.items() if end == "unequal counts"}
    assert left == ({"MPI_Alltoallv": 4} if told else dict.fromkeys(TOLD, 60) | {"MPI_Alltoallv": 64})


@pytest.mark.parametrize(
    ("sound", "faulty"),
    [
        ("memory + k * step, unpack, comm)", "memory + (unpack ? k * step / 2 : k * step), unpack, comm)"),
        ("place += count; ", "place += step; "),  # blocks that stand one after the other
        ("    sent.places = &call->in.places[rank];", "    sent.places = &call->in.places[0];"),  # in place
        ("        sides.got.count = sides.got.counts[rank];", "        sides.got.count = sides.got.counts[0];"),
    ],
)
def test_faults_are_seen(sound: str, faulty: str, on_mpich: Preloaded, tmp_path: Path) -> None:
    text = interposed("lib", everything(4))
    assert text.count(sound) == 1
    library = tmp_path / "faulty.so"
    build(on_mpich.mpi, text.replace(sound, faulty), library)
    assert not is_right(on_mpich.run(4, library=library, COLLC_UNEVEN="1"))
