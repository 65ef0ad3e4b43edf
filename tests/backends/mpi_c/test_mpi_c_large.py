"""Counts beyond what an int holds: arithmetic, messages cut or sent by the MPI's large-count functions, real bytes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import attrs
import programs
import pytest
from built_programs import direct, ring
from mpi_fixtures import STRICT
from places import the

from collc.backends.mpi_c import MpiC
from collc.backends.mpi_c.launch import launch
from collc.backends.mpi_c.toolchain import Mpi, compile_c

pytestmark = pytest.mark.needs("mpi")

SOURCE = the("mpi_c_large.c")

PROGRAMS = {
    "sums": ring("allreduce", 4, 3), "pieces": direct("reduce-scatter", 4, 2), "rows": ring("allgather", 4, 3),
    "swap": programs.alltoall(4, 2), "news": direct("broadcast", 4), "pair": direct("allreduce", 2),
    "word": ring("broadcast", 2, root=0),
}  # fmt: skip

COUNTS = (1000, 2**31 - 1, 2**31 + 1, 2**33 + 7, 2**40 + 3)


def built(mpi: Mpi, folder: Path, *flags: str) -> Path:
    target = MpiC(library="pod")
    made = [target.emit(attrs.evolve(program, name=name))[0] for name, program in PROGRAMS.items()]
    for artifact in target.join(made):
        (folder / artifact.filename).write_text(artifact.text)
    seen = "-DCOLLC_LETTER_BYTES=0"  # the program sees messages of the MPI
    compile_c(mpi, [SOURCE, folder / "pod.c"], folder / "large", (*STRICT, f"-I{folder}", "-O1", seen, *flags))
    return folder / "large"


@pytest.mark.parametrize(("which", "flags"), [("mpich", ()), ("mpich", ("-DCOLLC_LARGE_COUNTS=0",)), ("openmpi", ())])
def test_any_count(which: str, flags: tuple[str, ...], request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Every message is as long as its receiver expects, and all together are what the collective needs."""
    mpi: Mpi = request.getfixturevalue(which)
    lines = launch(mpi, 4, [str(built(mpi, tmp_path, *flags)), "virtual"], 120, tmp_path).splitlines()
    assert lines[-1] == "large-end failures=0", lines
    # A vector in twelve chunks has small messages for longer than one in a single chunk; there are both.
    large = {tuple(line.split()[:2]) for line in lines if line.endswith("large")}
    assert len(lines) == 5 * len(COUNTS) + 1 and ("news", str(2**33 + 7)) in large and ("sums", "1000") not in large
    assert {name for name, _ in large} == {"sums", "pieces", "rows", "swap", "news"}


@pytest.mark.skipif(not os.environ.get("COLLC_EXHAUSTIVE"), reason="moves 2 GiB; set COLLC_EXHAUSTIVE=1")
@pytest.mark.parametrize("which", ["mpich", "openmpi"])
def test_two_gibibytes(which: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    mpi: Mpi = request.getfixturevalue(which)
    output = launch(mpi, 2, [str(built(mpi, tmp_path, "-O2")), "real", str(2**31 + 7)], 600, tmp_path)
    assert output.splitlines() == ["large-end failures=0"]


def test_real_bytes_in_small_messages(mpich: Mpi, tmp_path: Path) -> None:
    binary = built(mpich, tmp_path, "-DCOLLC_MESSAGE_MAX=100")
    assert launch(mpich, 2, [str(binary), "real", "100003"], 60, tmp_path).splitlines() == ["large-end failures=0"]


# ---- arithmetic

EDGES = """\
#include "pod.c"
#include <stdio.h>

__extension__ typedef __int128 wide;

/* Edges of chunks against arithmetic of 128 bits, for counts up to the largest that is let through. */
int main(void)
{
    static const struct plan plan = {4, -1, 0, 0, 0, 1, NULL};
    struct call call;
    uint64_t seed = 1;
    int wrong = 0, refused = 0, k;

    memset(&call, 0, sizeof call);
    call.plan = &plan;
    for (k = 0; k < 200000; k++) {
        int64_t chunk, from, to;

        seed = seed * 6364136223846793005u + 1442695040888963407u;
        call.count = (int64_t)(seed >> (1 + seed % 60));
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        call.chunks = (int64_t)(seed >> 33) % ((int64_t)1 << (1 + seed % 20)) + 1;
        call.element.extent = call.element.true_extent = 1 + (int64_t)(seed >> 60);
        if (!countable(&call)) {
            refused++;
            wrong += (wide)call.count * 4 * call.element.extent < (wide)INT64_MAX / 5;
            continue;
        }
        wrong += (wide)call.count * 4 * call.element.extent > INT64_MAX;
        divide(&call);
        chunk = (int64_t)(seed >> 20) % (4 * call.chunks);
        from = edge(&call, chunk), to = edge(&call, chunk + 1);
        wrong += from != (int64_t)((wide)(chunk / call.chunks) * call.count +
                                   (wide)(chunk % call.chunks) * call.count / call.chunks);
        wrong += to - from > cell(&call) || to < from || cell(&call) * call.chunks < call.count;
    }
    printf("%d wrong, %s refused\\n", wrong, refused > 1000 ? "many" : "few");
    return 0;
}
"""


def test_edges_of_chunks_are_exact(mpich: Mpi, tmp_path: Path) -> None:
    built(mpich, tmp_path, "-O0")
    (tmp_path / "edges.c").write_text(EDGES)
    compile_c(mpich, [tmp_path / "edges.c"], tmp_path / "edges", ("-O1", f"-I{tmp_path}"))
    done = subprocess.run([tmp_path / "edges"], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "0 wrong, many refused\n"
