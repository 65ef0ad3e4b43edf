"""Requests of a library of several collectives, on both MPIs: see ``mpi_c_requests.c``."""

from __future__ import annotations

import shutil
from pathlib import Path

import attrs
import programs
import pytest
from built_programs import direct, ring
from mpi_c_output import complaints
from mpi_fixtures import STRICT
from places import the

from collc.backends.mpi_c import MpiC
from collc.backends.mpi_c.launch import launch
from collc.backends.mpi_c.toolchain import Mpi, compile_c
from collc.ir.program import Program

pytestmark = pytest.mark.needs("mpi")

SOURCE = the("mpi_c_requests.c")

PROGRAMS = {
    "sums": ring("allreduce", 4), "pieces": ring("reduce-scatter", 4), "all": ring("allgather", 4),
    "swap": programs.alltoall(4, 2), "news": direct("broadcast", 4, root=1), "total": ring("reduce", 4, root=2),
    "heap": direct("gather", 4), "deal": direct("scatter", 4, root=3), "pair": ring("allreduce", 2),
}  # fmt: skip

#: calls wait for each other, messages of more than five elements count as large, tags run out
SCARCE = ("-DCOLLC_MESSAGE_MAX=5", "-DCOLLC_AT_ONCE=2", "-DCOLLC_TAG_MAX=9")
SCARCER = ("-DCOLLC_MESSAGE_MAX=5", "-DCOLLC_AT_ONCE=1", "-DCOLLC_TAG_MAX=1")


def library(folder: Path, collectives: dict[str, Program]) -> Path:
    """Write the library `pod` of some programs; return its source."""
    target = MpiC(library="pod")
    made = [target.emit(attrs.evolve(program, name=name))[0] for name, program in collectives.items()]
    for artifact in target.join(made):
        (folder / artifact.filename).write_text(artifact.text)
    return folder / "pod.c"


def built(mpi: Mpi, folder: Path, *flags: str) -> Path:
    source = library(folder, PROGRAMS)
    strict = ("-Wconversion", *STRICT, f"-I{folder}", "-pthread", "-g", "-O1")
    compile_c(mpi, [SOURCE, source], folder / "requests", (*strict, *flags))
    return folder / "requests"


@pytest.fixture(scope="module")
def binary(mpich: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(mpich, tmp_path_factory.mktemp("requests"))


def test_requests(mpich: Mpi, binary: Path, tmp_path: Path) -> None:
    assert launch(mpich, 4, [str(binary)], 240, tmp_path).splitlines() == ["requests-end failures=0"]


def test_requests_on_a_second_mpi(openmpi: Mpi, tmp_path: Path) -> None:
    output = launch(openmpi, 4, [str(built(openmpi, tmp_path))], 240, tmp_path)
    assert output.splitlines() == ["requests-end failures=0"]


@pytest.mark.parametrize(("which", "flags"), [("mpich", SCARCE), ("openmpi", SCARCER)])
def test_few_tags_and_small_messages(
    which: str, flags: tuple[str, ...], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    mpi: Mpi = request.getfixturevalue(which)
    output = launch(mpi, 4, [str(built(mpi, tmp_path, *flags)), "without-errors"], 240, tmp_path)
    assert output.splitlines() == ["requests-end failures=0"]


# ---- memory


def test_memory_is_right_and_freed(mpich: Mpi, binary: Path, tmp_path: Path) -> None:
    """Four ranks, the first of them under valgrind: nothing that it says is about generated code."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        pytest.skip("there is no valgrind here")
    log = tmp_path / "valgrind.log"
    watch = [valgrind, "--leak-check=full", "--show-leak-kinds=definite,indirect", "-q", f"--log-file={log}"]
    rest = [":", "-n", "3", str(binary), "without-errors"]
    output = launch(mpich, 1, [*watch, str(binary), "without-errors", *rest], 240, tmp_path)
    assert output.splitlines() == ["requests-end failures=0"]
    assert complaints(log.read_text(errors="replace")) == []


def test_a_complaint_would_be_seen() -> None:
    """What valgrind says where dispose() does not free a context, and where MPI_Init leaks."""
    lost = "==7== 152 bytes in 1 blocks are definitely lost in loss record 2 of 9\n"
    ours = f"{lost}==7==    at 0x48: calloc (in /usr/v.so)\n==7==    by 0x10: create_context (pod.c:388)\n==7== \n"
    theirs = f"{lost}==7==    at 0x48: malloc (in /usr/v.so)\n==7==    by 0x12: main (mpi_c_requests.c:413)\n==7== \n"
    assert [theirs in record or "create_context" in record for record in complaints(theirs + ours)] == [True]
    assert complaints(theirs) == []
