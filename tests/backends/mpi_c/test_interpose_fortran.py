"""Programs in Fortran under a preloaded library: on the names of Open MPI, and on MPICH's way over the C names."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from interposed import Preloaded, everything
from places import the

import collc
from collc.backends.mpi_c.interpose import Served, interposed
from collc.backends.mpi_c.interpose.build import build
from collc.backends.mpi_c.source import Function
from collc.backends.mpi_c.toolchain import Mpi, compile_c
from collc.tools.launching import mpi_of

pytestmark = pytest.mark.needs("mpi")

CONVENTIONS, PROGRAM = the("fortran_conventions.c"), the("fortran_program.f90")
IN_PLACE = '"mpi_fortran_in_place_", '


def made(mpi: Mpi, folder: Path, text: str) -> Preloaded:
    """Return a library of this text, whose program is to be compiled."""
    library = Preloaded.__new__(Preloaded)
    library.mpi, library.folder, library.library, library.program = mpi, folder, folder / "lib.so", folder / "program"
    build(mpi, text, library.library)
    return library


@pytest.fixture(scope="module")
def conventions(openmpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that calls functions by the conventions of Fortran, beside the library that has them."""
    folder = tmp_path_factory.mktemp("conventions")
    compile_c(openmpi, [CONVENTIONS], folder / "libfortran.so", ("-DLIBRARY", "-shared", "-fPIC", "-Wall", "-Werror"))
    flags = ("-Wall", "-Werror", f"-L{folder}", f"-Wl,-rpath,{folder}")
    compile_c(openmpi, [CONVENTIONS, folder / "libfortran.so"], folder / "program", flags)
    return folder / "program"


def test_the_names_of_open_mpi_are_served(openmpi: Mpi, conventions: Path, tmp_path: Path) -> None:
    near = collc.compile_source(
        "topology t = biring(4); collective near = neighbours on t;", target="ir", collective="near"
    ).program
    served = [*everything(4), Served(Function("near", ((None, near),)))]
    library = made(openmpi, tmp_path, interposed("lib", served))
    library.program = conventions
    ran = library.run(4, COLLC_UNEVEN="1", COLLC_NONBLOCKING="1")
    assert ran.status == 0, ran.err
    # The MPI's own functions got the call by its pmpi_ name alone: two buffers.
    assert ran.out.count("wrong 0 own 2\n") == 4, ran.out + ran.err
    assert ran.report.ranks == 4 and not ran.report.missing
    assert {end for _, end in ran.report.calls} == {"served"}
    assert len({name for (name, _) in ran.report.calls}) == 17 + 14
    assert ran.report.served == 4 * (23 + 14)
    left = library.run(4, COLLC_DISABLE="1", KEEP_HANDLES="1")
    assert left.status == 0 and left.out.count("wrong 0 ") == 4, left.out + left.err


def test_a_wrong_place_is_seen(openmpi: Mpi, conventions: Path, tmp_path: Path) -> None:
    """A library that does not know MPI_IN_PLACE of Fortran takes it for a buffer: the program sees wrong sums."""
    text = interposed("lib", everything(4))
    library = made(openmpi, tmp_path, text.replace(IN_PLACE, '"mpi_fortran_nothing_", '))
    assert text.count(IN_PLACE) == 1
    library.program = conventions
    ran = library.run(4)
    assert ran.out.count("wrong ") == 4 and "wrong 0" not in ran.out


@pytest.mark.parametrize(
    ("sound", "faulty"),
    [
        ("        *request = number(handle);\n", "        *request = number(MPI_REQUEST_NULL);\n"),
        ("uneven->in.data = cip_fortran_buffer(uneven->in.data);", "uneven->in.data = uneven->out.data;"),
        ("CIP_FORTRAN_EACH(a, b, c, d), CIP_FORTRAN_ONE(e, f, g))\nCIP_FORTRAN_UNEVEN(NEIGHBOR_ALLGATHER,",
         "CIP_FORTRAN_EACH(a, b, b, d), CIP_FORTRAN_ONE(e, f, g))\nCIP_FORTRAN_UNEVEN(NEIGHBOR_ALLGATHER,"),
    ],
)  # fmt: skip
def test_faults_are_seen(sound: str, faulty: str, openmpi: Mpi, conventions: Path, tmp_path: Path) -> None:
    text = interposed("lib", everything(4))
    assert text.count(sound) == 1
    library = made(openmpi, tmp_path, text.replace(sound, faulty))
    library.program = conventions
    ran = library.run(4, COLLC_UNEVEN="1", COLLC_NONBLOCKING="1")
    assert ran.out.count("wrong 0 ") < 4


@pytest.mark.parametrize("interface", ["FH", "F90", "F08"])
@pytest.mark.parametrize("name", ["openmpi", "mpich"])
def test_a_program_in_fortran(name: str, interface: str, tmp_path: Path) -> None:
    compiler, launcher = shutil.which(f"mpif90.{name}"), shutil.which(f"mpiexec.{name}")
    if not (compiler and launcher):
        pytest.skip(f"no MPI with Fortran here: needs mpif90.{name} and mpiexec.{name} (wheels have no Fortran)")
    library = made(mpi_of(launcher, os.environ), tmp_path, interposed("lib", everything(4)))
    words = [compiler, "-w", "-fallow-argument-mismatch", "-cpp", f"-D{interface}", str(PROGRAM), "-o", library.program]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    ran = library.run(4)
    assert ran.status == 0 and ran.out.count("wrong 0") == 4, ran.err
    assert (ran.report.ranks, ran.report.served, ran.report.left) == (4, 132, 0)
    assert not re.search("collc", ran.err)
