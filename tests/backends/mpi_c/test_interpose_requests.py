"""Nonblocking calls of programs that know nothing of the library, which serves them with COLLC_NONBLOCKING=1."""

from __future__ import annotations

from pathlib import Path

import pytest
from interposed import Preloaded, Ran, everything, with_fault
from places import the

from collc.backends.mpi_c.toolchain import Mpi

pytestmark = pytest.mark.needs("mpi")

NAMES = ("allgather", "allreduce", "alltoall", "bcast", "gather", "reduce", "reduce_scatter_block", "scatter")
UNEVEN = ("allgatherv", "reduce_scatter")
KINDS = {f"MPI_I{name}" for name in (*NAMES, *UNEVEN)}
PERSISTENT = {f"MPI_{name.capitalize()}_init" for name in (*NAMES, *UNEVEN)}


@pytest.fixture(scope="module")
def on_mpich(mpich: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Preloaded:
    return Preloaded(mpich, tmp_path_factory.mktemp("mpich"), everything(4), program=the("nonblocking_program.c"))


@pytest.fixture(scope="module")
def on_openmpi(openmpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Preloaded:
    return Preloaded(openmpi, tmp_path_factory.mktemp("openmpi"), everything(4), program=the("nonblocking_program.c"))


def right(ran: Ran) -> None:
    assert ran.all_right, ran.out + ran.err


def served(ran: Ran) -> set[str]:
    return {name for (name, end) in ran.report.calls if end == "served"}


def test_requests_end_in_any_order(on_mpich: Preloaded) -> None:
    ran = on_mpich.run(4, COLLC_NONBLOCKING="1")
    right(ran)
    assert served(ran) >= KINDS | PERSISTENT
    assert not [key for key in ran.report.calls if key[0] in KINDS | PERSISTENT and key[1] != "served"]


def test_requests_end_in_any_order_on_another_mpi(on_openmpi: Preloaded) -> None:
    ran = on_openmpi.run(4, COLLC_NONBLOCKING="1")
    right(ran)
    assert served(ran) >= KINDS | PERSISTENT
    assert not [key for key in ran.report.calls if key[0] in KINDS | PERSISTENT and key[1] != "served"]


def test_they_are_left_to_the_mpi_otherwise(on_mpich: Preloaded, on_openmpi: Preloaded) -> None:
    for preloaded, more in ((on_mpich, {}), (on_openmpi, {"KEEP_HANDLES": "1"})):
        ran = preloaded.run(4, **more)
        right(ran)
        assert not served(ran) & (KINDS | PERSISTENT)


@pytest.mark.parametrize(
    ("sound", "faulty"),
    [
        # complete before it began
        (
            "    *handle = it->handle;\n    cip_hand_over(it);",
            "    *handle = it->handle;\n"
            '    cip_Send("", 0, MPI_BYTE, 0, it->tag, cip_worker.self);\n    cip_hand_over(it);',
        ),
        ("it->work.packs_out && !from_us)", "it->work.packs_out && 0)"),  # never unpacked
        ("        if (cip_is_needed(held)) {", "        if (0) {"),  # freed while a persistent call needs it
        ("    sigfillset(&all);", "    sigemptyset(&all);"),  # the program's signals
        (
            "    error = cip_pack_now(it);\n    if (error == MPI_SUCCESS)\n        error = it->entry->start",
            "    error = it->entry->start",
        ),  # the data of the start before
    ],
)
def test_faults_are_seen(sound: str, faulty: str, on_mpich: Preloaded, tmp_path: Path) -> None:
    library = with_fault(on_mpich, tmp_path, sound, faulty)
    assert not on_mpich.run(4, library=library, COLLC_NONBLOCKING="1").all_right


FAILING = ("            it->error = error;\n", "            it->error = MPI_ERR_OTHER;\n")


@pytest.mark.parametrize("which", ["on_mpich", "on_openmpi"])
def test_an_error_in_a_call_is_told(which: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """To the program, or it ends the program, as its communicator's error handler says."""
    preloaded: Preloaded = request.getfixturevalue(which)
    library = with_fault(preloaded, tmp_path, *FAILING)
    ran = preloaded.run(4, "returns", library=library, COLLC_NONBLOCKING="1")
    assert sorted(ran.out.split("\n")) == ["", *(f"rank {rank}: an error" for rank in range(4))]


def test_an_error_ends_the_program(on_mpich: Preloaded, tmp_path: Path) -> None:
    library = with_fault(on_mpich, tmp_path, *FAILING)
    ran = on_mpich.run(4, library=library, COLLC_NONBLOCKING="1")
    assert ran.status != 0 and "collc: a nonblocking call failed" in ran.err
