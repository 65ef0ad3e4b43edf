"""Calls with a count for each rank, of programs that know nothing of the library."""

from __future__ import annotations

from pathlib import Path

import pytest
from interposed import Preloaded, everything, with_fault
from places import the

from collc.backends.mpi_c.toolchain import Mpi

pytestmark = pytest.mark.needs("mpi")

KNOWN = {"MPI_Allgatherv", "MPI_Reduce_scatter"}
TOLD = {"MPI_Alltoallv", "MPI_Gatherv", "MPI_Scatterv"}


@pytest.fixture(scope="module")
def on_mpich(mpich: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Preloaded:
    return Preloaded(mpich, tmp_path_factory.mktemp("mpich"), everything(4), program=the("uneven_program.c"))


@pytest.fixture(scope="module")
def on_openmpi(openmpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Preloaded:
    return Preloaded(openmpi, tmp_path_factory.mktemp("openmpi"), everything(4), program=the("uneven_program.c"))


@pytest.mark.parametrize("told", [True, False], ids=["told", "not-told"])
@pytest.mark.parametrize("which", ["on_mpich", "on_openmpi"])
def test_uneven_data_are_padded(which: str, told: bool, request: pytest.FixtureRequest) -> None:
    """Of some calls every rank knows all sizes. Of the others they tell each other, if the variable says so."""
    preloaded: Preloaded = request.getfixturevalue(which)
    ran = preloaded.run(4, **({"COLLC_UNEVEN": "1"} if told else {}))
    assert ran.all_right, ran.out + ran.err
    calls = ran.report.calls
    served = {name.removesuffix("_c") for name, end in calls if end == "served"}
    assert served & (KNOWN | TOLD) == (KNOWN | TOLD if told else KNOWN)
    # the lopsided data of one call; those that are not told, all of theirs
    left = {(name, end): number for (name, end), number in calls.items() if end != "served"}
    assert left == (
        {("MPI_Alltoallv", "unequal counts"): 4} if told
        else {(name, "needs --uneven"): 64 if name == "MPI_Alltoallv" else 60 for name in TOLD}
    )  # fmt: skip


@pytest.mark.parametrize(
    ("sound", "faulty"),
    [
        ("memory + k * step, unpack, comm)", "memory + (unpack ? k * step / 2 : k * step), unpack, comm)"),
        ("place += count; ", "place += step; "),  # blocks that stand one after the other
        ("(const char *)sent.places + rank * ", "(const char *)sent.places + 0 * "),  # in place
        ("cip_count_of(&sides.got, rank)", "cip_count_of(&sides.got, 0)"),
    ],
)
def test_faults_are_seen(sound: str, faulty: str, on_mpich: Preloaded, tmp_path: Path) -> None:
    library = with_fault(on_mpich, tmp_path, sound, faulty)
    assert not on_mpich.run(4, library=library, COLLC_UNEVEN="1").all_right
