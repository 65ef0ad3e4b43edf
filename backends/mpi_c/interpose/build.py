"""Builds a library for LD_PRELOAD: compiled with an MPI's header, linked without any MPI."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from collc.ir.diagnostic import error

from ...processes import run
from ..toolchain import OPEN_MPI, Mpi, compile_c

__all__ = ["COMPILING", "LINKING", "abi", "build"]

_SECONDS = 60.0

#: the compiler's defaults could prevent loading the library into programs without an MPI
LINKING = ("-shared", "-Wl,-z,lazy")

#: a preloaded library is there when the program starts, so its threads' variables need no function to be found
COMPILING = ("-fPIC", "-c", "-ftls-model=initial-exec")


def abi(mpi: Mpi) -> str:
    """Return the name of an MPI's binary interface: ``openmpi``, or ``mpich`` for MPICH and compatible ones."""
    return "openmpi" if mpi.vendor == OPEN_MPI else "mpich"


def build(mpi: Mpi, text: str, output: Path, flags: Sequence[str] = ()) -> None:
    """Compile and link the text of a library to ``output`` in an existing folder; on failure, leave no file.

    ``flags`` are more options of the compiler, behind those of collc.

    Raises C0702, C0703 as :func:`~collc.backends.mpi_c.toolchain.compile_c` does, C0732 if linking fails.
    """
    with tempfile.TemporaryDirectory(prefix=".building-", dir=output.parent) as folder:
        source, compiled, library = (Path(folder) / name for name in ("library.c", "library.o", "library.so"))
        source.write_text(text, encoding="utf-8")
        expected = f"-DCOLLC_OPEN_MPI={int(mpi.vendor == OPEN_MPI)}"
        compile_c(mpi, [source], compiled, (*COMPILING, expected, *flags))
        _link(mpi, compiled, library)
        os.replace(library, output)


def _link(mpi: Mpi, compiled: Path, output: Path) -> None:
    """Link with the compiler behind ``mpicc``; ``mpicc`` itself would bind the library to its MPI."""
    command = [_compiler(mpi), *LINKING, "-o", str(output), str(compiled), "-ldl"]
    done = _run(command, mpi)
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines()[:8]
        raise error("C0732", f"`{command[0]}` did not link the library", notes=lines, hint="see `collc explain C0732`")


def _compiler(mpi: Mpi) -> str:
    done = _run([str(mpi.mpicc), "-show"], mpi)
    words = shlex.split(done.stdout.decode(errors="replace")) if done.returncode == 0 else []
    return words[0] if words else os.environ.get("CC", "cc")


def _run(command: list[str], mpi: Mpi) -> subprocess.CompletedProcess[bytes]:
    try:
        return run(command, _SECONDS, env=mpi.environment(os.environ))
    except (OSError, subprocess.TimeoutExpired) as reason:
        raise error("C0732", f"`{command[0]}` does not run: {reason}", hint="install a C compiler") from None
