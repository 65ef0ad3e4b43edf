"""Calls like the one before, on handles that name something else by now."""

from __future__ import annotations

from pathlib import Path

import pytest
from interposed import Preloaded, everything, with_fault
from places import the

from collc.backends.mpi_c.toolchain import Mpi

pytestmark = pytest.mark.needs("mpi")

PROGRAM = the("reused_program.c")


@pytest.fixture(scope="module")
def on_mpich(mpich: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Preloaded:
    return Preloaded(mpich, tmp_path_factory.mktemp("mpich"), everything(4), program=PROGRAM)


@pytest.fixture(scope="module")
def on_openmpi(openmpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Preloaded:
    return Preloaded(openmpi, tmp_path_factory.mktemp("openmpi"), everything(4), program=PROGRAM)


@pytest.mark.parametrize("which", ["on_mpich", "on_openmpi"])
def test_what_was_known_of_a_freed_handle_is_forgotten(which: str, request: pytest.FixtureRequest) -> None:
    preloaded: Preloaded = request.getfixturevalue(which)
    ran = preloaded.run(4)
    assert ran.all_right, ran.out + ran.err
    served = {name for name, end in ran.report.calls if end == "served"}
    assert served >= {"MPI_Allgather", "MPI_Allreduce", "MPI_Bcast"}
    assert ("MPI_Allreduce", "operation") in ran.report.calls


@pytest.mark.parametrize(
    ("sound", "faulty"),
    [
        ("habit->freed == cip_all.freed && ", ""),
        ("cip_lasts(call->send_type) &&\n                cip_lasts(call->recv_type);", "1;"),
        ("(!cip_reduces(call) || cip_classes_of(call->op) >= 0) && ", ""),
        ("a->root == b->root && ", ""),
        ("a->send_count == b->send_count &&\n           a->recv_count == b->recv_count && ", ""),
        ("habit->type == type && ", ""),
    ],
)  # fmt: skip
def test_faults_are_seen(sound: str, faulty: str, on_mpich: Preloaded, tmp_path: Path) -> None:
    library = with_fault(on_mpich, tmp_path, sound, faulty)
    assert not on_mpich.run(4, library=library).all_right
