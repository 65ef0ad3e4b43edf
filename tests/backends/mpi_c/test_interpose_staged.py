"""Nonblocking and persistent calls with a count for each rank: ranks tell each other their sizes as a first stage."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from interposed import Preloaded, Ran, everything, with_fault
from places import the
from sampling import EXHAUSTIVE

from collc.backends.mpi_c.toolchain import Mpi

pytestmark = pytest.mark.needs("mpi")

ALL = {"COLLC_NONBLOCKING": "1", "COLLC_UNEVEN": "1", "CANCEL_ALL": "1"}
KNOWN, TOLD = ("allgatherv", "reduce_scatter"), ("alltoallv", "alltoallw", "gatherv", "scatterv")


def forms(names: Iterable[str]) -> set[str]:
    """Return the nonblocking and the persistent functions of some collectives."""
    return {form for name in names for form in (f"MPI_I{name}", f"MPI_{name.capitalize()}_init")}


BLOCKING = {f"MPI_{name.capitalize()}" for name in TOLD}


@pytest.fixture(scope="module")
def on_mpich(mpich: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Preloaded:
    return Preloaded(mpich, tmp_path_factory.mktemp("mpich"), everything(4), program=the("staged_program.c"))


@pytest.fixture(scope="module")
def on_openmpi(openmpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Preloaded:
    return Preloaded(openmpi, tmp_path_factory.mktemp("openmpi"), everything(4), program=the("staged_program.c"))


def ended(ran: Ran, outcome: str) -> dict[str, int]:
    """Return the calls of an outcome by function, those with large counts among them."""
    found: dict[str, int] = {}
    for (name, end), number in ran.report.calls.items():
        if end == outcome:
            found[name.removesuffix("_c")] = found.get(name.removesuffix("_c"), 0) + number
    return found


@pytest.mark.parametrize("which", ["on_mpich", "on_openmpi"])
def test_all_forms_are_served(which: str, request: pytest.FixtureRequest) -> None:
    preloaded: Preloaded = request.getfixturevalue(which)
    ran = preloaded.run(4, **ALL)
    assert ran.all_right, ran.out + ran.err
    assert set(ended(ran, "served")) >= BLOCKING | forms(KNOWN + TOLD)
    # What is left: calls without data, two kinds that padding makes too large, a communicator of two groups.
    assert {end for _, end in ran.report.calls} == {"served", "no data", "unequal counts", "intercommunicator"}
    assert {name.lower().split("_")[1].removeprefix("i") for name in ended(ran, "unequal counts")} == {
        "alltoallv", "alltoallw",
    }  # fmt: skip
    assert ended(ran, "intercommunicator") == {"MPI_Ialltoallv": 4}


@pytest.mark.parametrize("which", ["on_mpich", "on_openmpi"])
def test_the_report_names_the_options_that_would_serve_them(which: str, request: pytest.FixtureRequest) -> None:
    preloaded: Preloaded = request.getfixturevalue(which)
    ran = preloaded.run(4, KEEP_HANDLES="1")
    assert ran.all_right, ran.out + ran.err
    both, one = ended(ran, "needs --nonblocking --uneven"), ended(ran, "needs --nonblocking")
    assert set(both) == forms(TOLD)
    assert set(one) == forms((*KNOWN, "allreduce"))
    assert set(ended(ran, "needs --uneven")) == BLOCKING
    served = preloaded.run(4, **ALL, KEEP_HANDLES="1")
    # Before sizes are told, only those of this rank are known: some of these calls will turn out to be left.
    for name, number in one.items():
        assert number == ended(served, "served")[name]
    for name, number in both.items():
        assert number == sum(ended(served, end).get(name, 0) for end in ("served", "no data", "unequal counts"))


@pytest.mark.parametrize(
    ("sound", "faulty"),
    [
        ("        work->stays = sides.stays;\n", ""),  # in place, the root's block of a scatter
        (
            "        cip_await_stages((const MPI_Comm *)a); \\\n",
            "",
        ),  # its communicator is freed before
        ("        if (side->types[k] == type)", "        if (0)"),  # a type of MPI_Ialltoallw is freed before
        ("at * (blocks->types == NULL ? extent : 1)", "at * extent"),  # places in bytes
        ("    if (cip_is_under_way((const MPI_Request *)a))", "    if (0)"),  # the request of a collective is cancelled
        ("    it->most = known.most;\n", "    it->most = it->known.most;\n"),  # the size of its own block
        ("        error = cip_leave(it);\n", "        error = MPI_SUCCESS;\n"),  # what is left is never done
        ("    if (call->kind == CIP_ALLTOALL)\n        return sent;\n", ""),  # in place
        ("side == &call->in || call->out.data != MPI_IN_PLACE;", "1;"),  # lists that mean nothing
    ],
)
def test_faults_are_seen(sound: str, faulty: str, on_mpich: Preloaded, tmp_path: Path) -> None:
    library = with_fault(on_mpich, tmp_path, sound, faulty)
    assert not on_mpich.run(4, library=library, **ALL).all_right


@pytest.mark.slow
@pytest.mark.skipif(not EXHAUSTIVE, reason="whether two calls overlap is chance; set COLLC_EXHAUSTIVE=1")
def test_second_stages_keep_the_order_of_calls(on_mpich: Preloaded, tmp_path: Path) -> None:
    """If odd ranks begin the later of two calls first, ranks wait for each other without end."""
    # Odd ranks hold each call until the next one is there, or for a while; that alone changes nothing.
    there = "it->next != NULL && it->next->stage == CIP_TELLING"
    wait = (
        f"({{ static int held; for (int k = 0; k < 99 && held < 5000 && !({there}); k++, held++) usleep(2000); 1; }})"
    )
    late = f"it->rank % 2 && cip_is_next(it) && {wait}"
    another = f"{late} && {there}"
    held = with_fault(on_mpich, tmp_path, "if (!cip_is_next(it))", f"if (!cip_is_next(it) || ({late} && 0))")
    assert on_mpich.run(4, library=held, seconds=120, **ALL).all_right
    library = with_fault(on_mpich, tmp_path, "if (!cip_is_next(it))", f"if ({another})")
    with pytest.raises(subprocess.TimeoutExpired):
        on_mpich.run(4, library=library, seconds=40, **ALL)
