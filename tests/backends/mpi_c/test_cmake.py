"""The CMake function and the Make rule that ship with collc: a C program is built with them, run, and built again."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from commands import COMMAND, spawn

from collc.backends.mpi_c.launch import launch
from collc.backends.mpi_c.toolchain import Mpi

pytestmark = pytest.mark.needs("mpi")

SPEC = """\
include "net.coll";
collective grads = allreduce on net;
collective weights = allgather on net;
"""

MAIN = """\
#include <stdio.h>
#include "pod.h"
int main(int argc, char **argv)
{
    int mine, sum = 0, all[4] = {0}, wrong = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &mine);
    wrong += pod_grads(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) != MPI_SUCCESS || sum != 6;
    wrong += pod_weights(&mine, all, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD) != MPI_SUCCESS || all[3] != 3;
    if (mine == 0)
        puts(wrong ? "wrong" : "right");
    MPI_Finalize();
    return wrong;
}
"""

CMAKE = """\
cmake_minimum_required(VERSION 3.20)
project(app C)
find_package(collc REQUIRED CONFIG)
collc_add_library(pod SPEC spec/pod.coll {options})
add_executable(app main.c)
target_link_libraries(app PRIVATE pod)
"""

MAKE = """\
COLLC_SPECS := pod.coll
include {share}/collc.mk
app: main.c pod.c pod.h
\t$(CC) -O1 -o $@ main.c pod.c
"""


@pytest.fixture
def share(tmp_path: Path) -> str:
    found = spawn("--cmake-dir", cwd=tmp_path)
    assert (found.returncode, found.stderr) == (0, "")
    return found.stdout.strip()


def required(*names: str) -> None:
    for name in names:
        if shutil.which(name) is None:
            pytest.skip(f"there is no {name} here")


def built(mpi: Mpi, folder: Path, *command: str) -> str:
    """Run a build tool; return what it printed."""
    environ = {**mpi.environment(os.environ), "CC": str(mpi.mpicc)}
    done = subprocess.run(
        command, cwd=folder, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def written(folder: Path, where: str) -> None:
    (folder / where).mkdir(exist_ok=True)
    (folder / where / "pod.coll").write_text(SPEC)
    (folder / where / "net.coll").write_text("topology net = torus(2, 2);\n")
    (folder / "main.c").write_text(MAIN)


def touched(path: Path, newer_than: Path) -> None:
    """Give a file a time after another's, whatever the clock's steps are."""
    later = newer_than.stat().st_mtime + 2
    os.utime(path, (later, later))


@pytest.mark.parametrize(
    ("kind", "generator", "tool"), [("STATIC", "Unix Makefiles", "make"), ("SHARED", "Ninja", "ninja")]
)
def test_cmake(kind: str, generator: str, tool: str, share: str, mpich: Mpi, tmp_path: Path) -> None:
    required("cmake", tool)
    written(tmp_path, "spec")
    (tmp_path / "CMakeLists.txt").write_text(CMAKE.format(options=kind))
    define = [f"-Dcollc_DIR={share}", f"-DCOLLC_EXECUTABLE={COMMAND}", f"-DMPI_C_COMPILER={mpich.mpicc}"]
    built(mpich, tmp_path, "cmake", "-S", ".", "-B", "build", "-G", generator, *define)
    assert "Compiling collectives pod.c" in built(mpich, tmp_path, "cmake", "--build", "build")
    assert launch(mpich, 4, [str(tmp_path / "build" / "app")], 60, tmp_path) == "right\n"
    assert "Compiling collectives" not in built(mpich, tmp_path, "cmake", "--build", "build")
    source = tmp_path / "build" / "pod.collc" / "pod.c"
    touched(tmp_path / "spec" / "net.coll", source)  # only included
    assert "Compiling collectives" in built(mpich, tmp_path, "cmake", "--build", "build")


def test_cmake_says_what_is_missing(share: str, tmp_path: Path) -> None:
    required("cmake", "make")
    (tmp_path / "CMakeLists.txt").write_text(
        f'cmake_minimum_required(VERSION 3.20)\nproject(app NONE)\ninclude("{share}/collc.cmake")\n'
        "collc_add_library(pod SOURCES x)\n"
    )
    done = subprocess.run(["cmake", "."], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0 and "collc_add_library(pod): unknown argument SOURCES" in done.stderr


def test_make(share: str, mpich: Mpi, tmp_path: Path) -> None:
    required("make")
    written(tmp_path, ".")
    (tmp_path / "Makefile").write_text(MAKE.format(share=share))
    make = ["make", f"COLLC={COMMAND}", "app"]
    assert "mpi-c{library=pod}" in built(mpich, tmp_path, *make)
    assert launch(mpich, 4, [str(tmp_path / "app")], 60, tmp_path) == "right\n"
    assert "up to date" in built(mpich, tmp_path, *make)
    touched(tmp_path / "net.coll", tmp_path / "app")
    assert built(mpich, tmp_path, *make, "-n").count("mpi-c{library=pod}") == 1
