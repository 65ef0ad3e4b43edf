"""Libraries for LD_PRELOAD without memory: a call that one rank cannot serve is left to the MPI by all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from interposed import PROGRAM, Preloaded, Ran, everything
from sampling import EXHAUSTIVE

from collc.backends.mpi_c.interpose import interposed
from collc.backends.mpi_c.interpose.build import abi, build
from collc.backends.mpi_c.toolchain import Mpi, compile_c

pytestmark = pytest.mark.needs("mpi")

#: SCARCE=RANK:FIRST:LAST lets that rank's allocations of the library fail; at the end each tells what it has not freed
SCARCE = """
#include <stdio.h>
static int scarce_made, scarce_live, scarce_failed;
static void *scarce_get(size_t number, size_t bytes)
{
    const char *rank = getenv("PMI_RANK"), *wanted = getenv("SCARCE");
    int victim = -1, first = 0, last = 0, now = __sync_add_and_fetch(&scarce_made, 1);
    if (rank == NULL)
        rank = getenv("OMPI_COMM_WORLD_RANK");
    if (rank != NULL && wanted != NULL && sscanf(wanted, "%d:%d:%d", &victim, &first, &last) == 3 &&
        victim == atoi(rank) && now >= first && now <= last) {
        scarce_failed++;
        return NULL;
    }
    __sync_add_and_fetch(&scarce_live, 1);
    return (calloc)(number, bytes);
}
static void scarce_free(void *memory)
{
    scarce_live -= memory != NULL;
    (free)(memory);
}
__attribute__((destructor)) static void scarce_tell(void)
{
    if (scarce_made > 0)
        fprintf(stderr, "scarce: made %d failed %d live %d\\n", scarce_made, scarce_failed, scarce_live);
}
#define malloc(bytes) scarce_get(1, bytes)
#define calloc(number, bytes) scarce_get(number, bytes)
#define free(memory) scarce_free(memory)
"""
CALLS = 60 if EXHAUSTIVE else 30
TOLD = re.compile(r"scarce: made (\d+) failed (\d+) live (-?\d+)")


def preloaded(mpi: Mpi, folder: Path, before: str = "", after: str = "") -> Preloaded:
    made = Preloaded.__new__(Preloaded)
    made.mpi, made.folder, made.library = mpi, folder, folder / f"lib.{abi(mpi)}.so"
    made.program = folder / "program"
    text = interposed("lib", everything(4))
    assert before in text and "#include <mpi.h>\n" in text
    text = text.replace(before, after) if before else text
    build(mpi, text.replace("#include <mpi.h>\n", f"#include <mpi.h>\n{SCARCE}", 1), made.library)
    compile_c(mpi, [PROGRAM], made.program)
    return made


def told(ran: Ran) -> tuple[int, int]:
    """Return how many allocations a rank makes, and how many fail, of a run that was right and leaked nothing."""
    assert ran.status == 0 and "wrong 0\n" in ran.out, ran.err
    ranks = [tuple(map(int, found)) for found in TOLD.findall(ran.err)]
    assert len(ranks) == 4 and all(live == 0 for _, _, live in ranks), ran.err
    left = [number for (_, end), number in ran.report.calls.items() if end == "no memory"]
    failed = sum(failed for _, failed, _ in ranks)
    assert all(number % 4 == 0 for number in left) and (sum(left) > 0) == (failed > 0)
    assert ran.report.served > 50
    return max(made for made, _, _ in ranks), failed


def every_allocation(made: Preloaded, step: int = 1) -> None:
    most, failed = told(made.run(4, CALLS, 1))
    assert failed == 0 and most > 9
    for turn, nth in enumerate(range(1, most + 1, step) if EXHAUSTIVE else (2, most // 2)):
        last = nth + 5 * (turn % 2)
        assert told(made.run(4, CALLS, 1, SCARCE=f"{turn % 4}:{nth}:{last}"))[1] > 0 or nth > most - 9


def test_every_allocation(mpich: Mpi, tmp_path: Path) -> None:
    every_allocation(preloaded(mpich, tmp_path))


@pytest.mark.skipif(not EXHAUSTIVE, reason="many runs on a second MPI; set COLLC_EXHAUSTIVE=1")
def test_every_allocation_on_a_second_mpi(openmpi: Mpi, tmp_path: Path) -> None:
    every_allocation(preloaded(openmpi, tmp_path), 7)


def test_a_leak_is_seen(mpich: Mpi, tmp_path: Path) -> None:
    made = preloaded(mpich, tmp_path, "    free(gone->memory);\n", "")
    with pytest.raises(AssertionError, match="scarce"):
        told(made.run(4, CALLS, 1))
