"""MPICH's own tests of collectives under the library: as they are, and with nonblocking calls for blocking ones.

They do not belong to collc. ``COLLC_MPICH_TESTS`` names the folder ``test/mpi`` of MPICH's sources; without it nothing
runs. A test must end with the library as it does without.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from built_programs import direct, ring
from interposed import Preloaded, functions

from collc.backends.mpi_c.interpose import interposed
from collc.backends.mpi_c.interpose.build import build
from collc.backends.mpi_c.toolchain import Mpi, compile_c
from collc.ir.collective import KINDS

SOURCES = os.environ.get("COLLC_MPICH_TESTS")
RANKS = (2, 4, 5, 8, 10)

pytestmark = [pytest.mark.needs("mpi"), pytest.mark.slow, pytest.mark.skipif(not SOURCES, reason="COLLC_MPICH_TESTS")]

#: what MPICH's ``configure`` would find here
CONFIGURATION = [
    *(f"-DHAVE_{name}=1" for name in (
        "STDINT_H", "INTTYPES_H", "STDLIB_H", "STRING_H", "STDARG_H", "UNISTD_H", "SYS_TIME_H", "SYS_TYPES_H",
        "SYS_STAT_H", "SYS_RESOURCE_H", "GETRUSAGE", "STRDUP", "USLEEP", "LONG_LONG", "LONG_DOUBLE", "MPI_WIN_CREATE",
        "PTHREAD_H", "_BOOL",
    )),
    "-DSIZEOF_INT=4", "-DSIZEOF_LONG=8", "-DSIZEOF_VOID_P=8", "-DSIZEOF_LONG_LONG=8", "-DSIZEOF_SHORT=2",
    "-DPOINTERINT_t=long", "-DTHREAD_PACKAGE_NAME=THREAD_PACKAGE_POSIX", "-DMPICH_TESTS=1",
]  # fmt: skip

#: collectives whose blocking calls become nonblocking ones, by functions of MPICH's ``mpicolltest.h``
NONBLOCKING = (
    "Allgather", "Allgatherv", "Allreduce", "Alltoall", "Alltoallv", "Alltoallw", "Bcast", "Gather", "Gatherv",
    "Reduce", "Reduce_scatter", "Reduce_scatter_block", "Scatter", "Scatterv",
)  # fmt: skip

#: the test of functions of large counts (``MPI_Bcast_c``), which Open MPI 5.0 does not have
LARGE = "coll_large"

#: tests that call a tool of MPICH's build, or run for minutes
LEFT = {"bcast", "nonblocking3"}


def programs() -> Iterator[tuple[str, int, tuple[str, ...]]]:
    """Yield the name of each test, its ranks and arguments."""
    found: dict[str, tuple[int, tuple[str, ...]]] = {}
    text = (Path(SOURCES) / "coll" / "testlist.in").read_text() if SOURCES else ""
    for line in text.splitlines():
        words = line.split()
        if len(words) < 2 or not words[1].isdigit() or int(words[1]) not in RANKS or "memtype" in line:
            continue
        if words[0] not in LEFT and SOURCES and (Path(SOURCES) / "coll" / f"{words[0]}.c").exists():
            arguments = tuple(word.removeprefix("arg=") for word in words[2:] if word.startswith("arg="))
            found.setdefault(words[0], (int(words[1]), arguments))
    for name, (ranks, arguments) in found.items():
        yield name, ranks, arguments


@pytest.fixture(scope="module", params=["mpich", "openmpi"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Preloaded:
    mpi: Mpi = request.getfixturevalue(request.param)
    made = Preloaded.__new__(Preloaded)
    made.mpi, made.folder = mpi, tmp_path_factory.mktemp(request.param)
    made.library, made.program = made.folder / "lib.so", made.folder / "program"
    served = [
        ring(kind, ranks, 2) if kind == "allreduce" else direct(kind, ranks, 2) for ranks in RANKS for kind in KINDS
    ]
    build(mpi, interposed("lib", functions(*served)), made.library)
    (made.folder / "mpitestconf.h").write_text("")
    (made.folder / "later.h").write_text(
        '#include <mpi.h>\n#define USE_MTEST_NBC 1\n#include "mpicolltest.h"\n'
        + "".join(f"#define MPI_{name} MTest_{name}\n" for name in NONBLOCKING)
    )
    return made


def compiled(library: Preloaded, name: str, begun: bool) -> None:
    """Compile a test; ``begun``: with nonblocking calls."""
    top = Path(str(SOURCES))
    flags = [
        "-w",
        *CONFIGURATION,
        *(f"-I{folder}" for folder in (library.folder, top / "include", top / "dtpools/include")),
    ]
    flags += ["-include", str(library.folder / "later.h")] if begun else []
    shared = [top / "util" / f"{part}.c" for part in ("mtest", "mtest_common", "mtest_single", "dtypes")]
    linked = ("-Wl,--no-as-needed", "-lm", "-pthread")
    compile_c(library.mpi, [top / "coll" / f"{name}.c", *shared], library.program, (*flags, *linked))


@pytest.mark.parametrize("begun", [False, True], ids=["as-it-is", "nonblocking"])
@pytest.mark.parametrize(("name", "ranks", "arguments"), list(programs()))
def test_it_ends_as_without_the_library(
    library: Preloaded, name: str, ranks: int, arguments: tuple[str, ...], begun: bool
) -> None:
    if name == LARGE and library.mpi.vendor == "Open MPI":
        pytest.skip("Open MPI 5.0 has no functions of large counts")
    compiled(library, name, begun)
    alone = library.run(ranks, *arguments, COLLC_DISABLE="1")
    ran = library.run(ranks, *arguments, COLLC_NONBLOCKING="1", COLLC_UNEVEN="1")
    assert (ran.status == 0, "No Errors" in ran.out) == (alone.status == 0, "No Errors" in alone.out), ran.out + ran.err
    # What is left has a reason in the call; none wants an option, a thread or a communicator.
    assert not {end for _, end in ran.report.calls} & {
        "no MPI_THREAD_MULTIPLE", "no private communicator yet", "needs --nonblocking", "needs --uneven",
        "needs --nonblocking --uneven",
    }  # fmt: skip
