"""Programs in Fortran under a preloaded library: on the names of Open MPI, and on MPICH's way over the C names."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
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

CONVENTIONS, F08 = the("fortran_conventions.c"), the("f08_conventions.c")
PROGRAM, REQUESTS = the("fortran_program.f90"), the("fortran_requests.f90")
IN_PLACE = '"mpi_fortran_in_place_", '


def made(mpi: Mpi, folder: Path, text: str, program: Path | None = None, flags: Sequence[str] = ()) -> Preloaded:
    """Return a library of this text, whose program is to be compiled."""
    library = Preloaded.__new__(Preloaded)
    library.mpi, library.folder, library.library = mpi, folder, folder / "lib.so"
    library.text, library.program = text, program or folder / "program"
    build(mpi, text, library.library, flags)
    return library


def with_fault(mpi: Mpi, folder: Path, program: Path, sound: str, faulty: str) -> Preloaded:
    text = interposed("lib", everything(4))
    assert text.count(sound) == 1
    return made(mpi, folder, text.replace(sound, faulty), program, ("-O0",))


def calling(mpi: Mpi, source: Path, folder: Path) -> Path:
    """A program that calls functions by the conventions of Fortran, beside the library that has them."""
    compile_c(mpi, [source], folder / "libfortran.so", ("-DLIBRARY", "-shared", "-fPIC", "-Wall", "-Werror"))
    flags = ("-Wall", "-Werror", f"-L{folder}", f"-Wl,-rpath,{folder}")
    compile_c(mpi, [source, folder / "libfortran.so"], folder / "program", flags)
    return folder / "program"


@pytest.fixture(scope="module")
def conventions(openmpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return calling(openmpi, CONVENTIONS, tmp_path_factory.mktemp("conventions"))


def test_the_names_of_open_mpi_are_served(openmpi: Mpi, conventions: Path, tmp_path: Path) -> None:
    library = made(openmpi, tmp_path, interposed("lib", [*everything(4), near()]))
    library.program = conventions
    ran = library.run(4, COLLC_UNEVEN="1", COLLC_NONBLOCKING="1")
    assert ran.status == 0, ran.err
    # The MPI's own functions got the call by its pmpi_ name alone: two buffers.
    assert ran.out.count("wrong 0 own 2\n") == 4, ran.out + ran.err
    assert ran.report.ranks == 4 and not ran.report.missing
    assert {end for _, end in ran.report.calls} == {"served"}
    assert len({name for (name, _) in ran.report.calls}) == 19 + 2 * 19
    assert ran.report.served == 4 * (25 + 2 * 19)
    left = library.run(4, COLLC_DISABLE="1", KEEP_HANDLES="1")
    assert left.status == 0 and left.out.count("wrong 0 ") == 4, left.out + left.err


def test_a_wrong_place_is_seen(openmpi: Mpi, conventions: Path, tmp_path: Path) -> None:
    """A library that does not know MPI_IN_PLACE of Fortran takes it for a buffer: the program sees wrong sums."""
    ran = with_fault(openmpi, tmp_path, conventions, IN_PLACE, '"mpi_fortran_nothing_", ').run(4, KEEP_HANDLES="1")
    assert ran.out.count("wrong ") == 4 and "wrong 0" not in ran.out


@pytest.mark.parametrize(
    ("sound", "faulty"),
    [
        ("*request = cip_fortran_Request_number(handle);\n    if (error", "*request = 0;\n    if (error"),
        ("    call->in.data = cip_fortran_buffer(call->in.data);\n", "    call->in.data = call->out.data;\n"),
        ("CIP_FORTRAN_EACH(a, b, c, d), CIP_FORTRAN_ONE(e, f, g))\nCIP_FORTRAN_UNEVEN(NEIGHBOR_ALLGATHER,",
         "CIP_FORTRAN_EACH(a, b, b, d), CIP_FORTRAN_ONE(e, f, g))\nCIP_FORTRAN_UNEVEN(NEIGHBOR_ALLGATHER,"),
        ("            *next++ = cip_fortran_Type(numbers[k]);\n", "            *next++ = MPI_BYTE;\n"),
        ("    int code = cip_start_one(&handle);\n", "    int code = MPI_SUCCESS;\n"),
    ],
)  # fmt: skip
def test_faults_are_seen(sound: str, faulty: str, openmpi: Mpi, conventions: Path, tmp_path: Path) -> None:
    library = with_fault(openmpi, tmp_path, conventions, sound, faulty)
    ran = library.run(4, COLLC_UNEVEN="1", COLLC_NONBLOCKING="1")
    assert ran.out.count("wrong 0 ") < 4


def test_f08_of_mpich(mpich: Mpi, tmp_path: Path) -> None:
    """Its functions without buffers call PMPI_ names, so the library has them too."""
    program = calling(mpich, F08, tmp_path)
    ran = made(mpich, tmp_path, interposed("lib", everything(4)), program, ("-O0",)).run(4, COLLC_NONBLOCKING="1")
    assert ran.status == 0 and ran.out.count("wrong 0\n") == 4, ran.out + ran.err
    assert (ran.report.ranks, ran.report.served, ran.report.left) == (4, 8, 0)
    faulty = with_fault(mpich, tmp_path, program, "cip_welcome(cip_fortran_Comm(*(made)));", ";")
    assert faulty.run(4, COLLC_NONBLOCKING="1").status != 0  # left to the MPI, which must not cancel them


def near() -> Served:
    """The neighbours on a ring."""
    specification = "topology t = biring(4); collective near = neighbours on t;"
    return Served(Function("near", ((None, collc.compile_source(specification, target="ir").program),)))


@pytest.mark.parametrize("interface", ["FH", "F90", "F08"])
@pytest.mark.parametrize("name", ["openmpi", "mpich"])
def test_programs_in_fortran(name: str, interface: str, tmp_path: Path) -> None:
    compiler, launcher = shutil.which(f"mpif90.{name}"), shutil.which(f"mpiexec.{name}")
    if not (compiler and launcher):
        pytest.skip(f"no MPI with Fortran here: needs mpif90.{name} and mpiexec.{name} (wheels have no Fortran)")
    library = made(mpi_of(launcher, os.environ), tmp_path, interposed("lib", [*everything(4), near()]))
    options = {"COLLC_NONBLOCKING": "1", "COLLC_UNEVEN": "1"}
    for program, variables, served in ((PROGRAM, {}, 132), (REQUESTS, options, 4 * (4 + 2 + 5))):
        flags = ["-w", "-fallow-argument-mismatch", "-cpp", f"-D{interface}", *["-DMPIX"] * (name == "openmpi")]
        words = [compiler, *flags, str(program), "-o", str(library.program)]
        done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert done.returncode == 0, done.stderr
        ran = library.run(4, **variables)
        assert ran.status == 0 and ran.out.count("wrong 0") == 4, ran.out + ran.err
        assert (ran.report.ranks, ran.report.served, ran.report.left) == (4, served, 0)
        assert not re.search("collc", ran.err)
