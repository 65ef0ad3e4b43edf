"""Building a library for LD_PRELOAD: compiled with an MPI's header, linked without any MPI."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from collc.ir.diagnostic import error

from ...processes import run
from ..toolchain import OPEN_MPI, Mpi, compile_c

__all__ = ["abi", "build"]

_SECONDS = 60.0

#: nothing of the compiler's own choosing may keep the library from loading into programs without an MPI
_FLAGS = ("-shared", "-Wl,-z,lazy")


def abi(mpi: Mpi) -> str:
    """Return the name of an MPI's binary interface: ``openmpi``, or ``mpich``, which its relatives share."""
    return "openmpi" if mpi.vendor == OPEN_MPI else "mpich"


def build(mpi: Mpi, text: str, output: Path) -> None:
    """Compile and link the text of a library to ``output``, whose folder exists; nothing stays where that fails.

    Raises C0702, C0703 as :func:`~collc.backends.mpi_c.toolchain.compile_c` does, C0732 where linking fails.
    """
    with tempfile.TemporaryDirectory(prefix=".building-", dir=output.parent) as folder:
        source, made, library = (Path(folder) / name for name in ("library.c", "library.o", "library.so"))
        source.write_text(text, encoding="utf-8")
        expected = f"-DCOLLC_OPEN_MPI={int(mpi.vendor == OPEN_MPI)}"
        compile_c(mpi, [source], made, ("-fPIC", "-c", expected))
        _link(mpi, made, library)
        os.replace(library, output)


def _link(mpi: Mpi, made: Path, output: Path) -> None:
    """Link with the compiler that ``mpicc`` stands for: as a linker it would bind the library to its MPI."""
    command = [_compiler(mpi), *_FLAGS, "-o", str(output), str(made), "-ldl"]
    done = _run(command, mpi)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()[:8]
        raise error("C0732", f"`{command[0]}` did not link the library", notes=lines, hint="see `collc explain C0732`")


def _compiler(mpi: Mpi) -> str:
    done = _run([str(mpi.mpicc), "-show"], mpi)
    words = shlex.split(done.stdout) if done.returncode == 0 else []
    return words[0] if words else os.environ.get("CC", "cc")


def _run(command: list[str], mpi: Mpi) -> subprocess.CompletedProcess[Any]:
    try:
        return run(command, _SECONDS, env=mpi.environment(os.environ), text=True, errors="replace")
    except (OSError, subprocess.TimeoutExpired) as reason:
        raise error("C0732", f"`{command[0]}` does not run: {reason}", hint="install a C compiler") from None
