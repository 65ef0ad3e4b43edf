"""What callers may rely on beyond right results, on both MPIs: see ``mpi_c_manners.c``."""

from __future__ import annotations

from pathlib import Path

import programs
import pytest
from built_programs import direct, ring
from mpi_fixtures import STRICT
from places import the

from collc.backends.mpi_c import MpiC
from collc.backends.mpi_c.launch import launch
from collc.backends.mpi_c.toolchain import Mpi, compile_c

pytestmark = pytest.mark.needs("mpi")

PROGRAMS = {
    "sums": ring("allreduce", 4), "pieces": ring("reduce-scatter", 4), "all": ring("allgather", 4),
    "swap": programs.alltoall(4, 2), "news": direct("broadcast", 4, root=1), "total": ring("reduce", 4, root=2),
    "heap": direct("gather", 4), "deal": direct("scatter", 4, root=3),
}  # fmt: skip


@pytest.mark.parametrize("which", ["mpich", "openmpi"])
def test_manners(which: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    mpi: Mpi = request.getfixturevalue(which)
    sources = [the("mpi_c_manners.c")]
    for name, program in PROGRAMS.items():
        for artifact in MpiC(function=name).emit(program):
            (tmp_path / artifact.filename).write_text(artifact.text)
        sources.append(tmp_path / f"{name}.c")
    compile_c(mpi, sources, tmp_path / "manners", [*STRICT, f"-I{tmp_path}", "-O1" if which == "mpich" else "-O0"])
    output = launch(mpi, 5, [str(tmp_path / "manners")], 120, tmp_path).splitlines()
    assert output == ["manners-end checks=69 failures=0"], output
