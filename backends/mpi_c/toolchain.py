"""The MPI on this machine: its folder, its vendor, and its settings for more ranks than cores."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from collc.ir.diagnostic import CollcError, error

from ..processes import run

__all__ = ["NAMES", "Mpi", "compile_c", "find", "folders_of"]

INTEL, MPICH, OPEN_MPI, UNKNOWN = "Intel MPI", "MPICH", "Open MPI", "MPI"

#: names of `--mpi` -> vendor that the launcher reports
NAMES = {"mpich": MPICH, "openmpi": OPEN_MPI, "impi": INTEL}

#: the output of `mpiexec --version`, with the version as a group
_VENDORS = (
    (INTEL, r"Intel\(R\) MPI Library.*?Version ([\w.]+)"),
    (OPEN_MPI, r"(?:Open MPI|OpenRTE|Open RTE)\)? v?([\d.]+)"),
    (MPICH, r"HYDRA build details:\s+Version:\s+([\w.]+)"),
)

_ASKING_SECONDS = 60.0
_COMPILING_SECONDS = 600.0


@attrs.frozen
class Mpi:
    """One MPI: the folder of its ``mpicc`` and ``mpiexec``, its vendor and version."""

    folder: Path
    vendor: str = UNKNOWN
    version: str = ""

    def __str__(self) -> str:
        return f"{self.vendor} {self.version}".strip()

    @property
    def mpicc(self) -> Path:
        """The path of its compiler command."""
        return self.folder / "mpicc"

    @property
    def mpiexec(self) -> Path:
        """The path of its launcher."""
        return self.folder / "mpiexec"

    def command(self, ranks: int, program: Sequence[str]) -> list[str]:
        """Return the command line that runs ``program`` on ``ranks`` ranks."""
        return [str(self.mpiexec), "-n", str(ranks), *program]

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """Return the environment for builds and runs: ``base``, with settings for oversubscribed runs.

        It keeps every variable of ``base``.
        """
        return {**_additions(self), **base}


def _additions(mpi: Mpi) -> dict[str, str]:
    match mpi.vendor:
        case "MPICH":
            # Its shared-memory collectives spin without yielding: with more ranks than cores an allreduce of 4 MiB
            # takes 20 seconds, and the barrier before each timing would exceed the timed call.
            return {"MPIR_CVAR_DEVICE_COLLECTIVES": "none", "MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}
        case "Open MPI":
            values = {
                "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
                "OMPI_MCA_rmaps_base_oversubscribe": "1",
                "OMPI_MCA_mpi_yield_when_idle": "1",
            }
            if hasattr(os, "geteuid") and os.geteuid() == 0:
                values |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
            return values
        case "Intel MPI":
            return {"I_MPI_ROOT": str(mpi.folder.parent)}
        case _:
            return {}


# ---- finding


def find(prefix: str | os.PathLike[str] | None = None, environ: Mapping[str, str] | None = None) -> Mpi:
    """Return the MPI at ``prefix``, or the first one found beside this Python or on PATH.

    ``prefix`` may be an installation (``/opt/openmpi``), its ``bin`` or its ``mpicc``. Raises C0701.
    """
    environ = os.environ if environ is None else environ
    half: list[str] = []
    for folder in folders_of(prefix, environ):
        found = [name for name in ("mpicc", "mpiexec") if _is_program(folder / name)]
        if len(found) == 2:
            return _identify(folder, environ)
        half += [f"{folder} has only {name}" for name in found]
    raise _not_found(prefix, half)


def folders_of(prefix: str | os.PathLike[str] | None, environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the folders in which :func:`find` looks for an MPI, in order."""
    if prefix is not None:
        here = Path(prefix).expanduser().absolute()
        yield from (here / "bin", here, here.parent) if here.name == "mpicc" else (here / "bin", here)
        return
    yield Path(sys.prefix) / "bin"
    yield Path(sys.executable).parent
    yield from (Path(entry) for entry in environ.get("PATH", "").split(os.pathsep) if entry)


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _not_found(prefix: str | os.PathLike[str] | None, half: list[str]) -> CollcError:
    where = f"at `{os.fspath(prefix)}`" if prefix is not None else "beside this Python or on PATH"
    hint = "`pip install 'collc[mpi]'` brings one; `--mpi PREFIX` names another"
    return error("C0701", f"no MPI found {where}: collc needs `mpicc` and `mpiexec`", notes=half, hint=hint)


def _identify(folder: Path, environ: Mapping[str, str]) -> Mpi:
    """Ask the launcher for its vendor; if it does not report one, the vendor is unknown."""
    mpi = Mpi(folder)
    # As root, some launchers need a permission even to print their version.
    asking = {**_additions(Mpi(folder, OPEN_MPI)), **_additions(Mpi(folder, INTEL)), **environ}
    try:
        answer = subprocess.run(
            [str(mpi.mpiexec), "--version"], env=asking, stdin=subprocess.DEVNULL, capture_output=True,
            timeout=_ASKING_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as reason:
        raise error(
            "C0701", f"`{mpi.mpiexec}` does not run: {reason}", hint="name another MPI with `--mpi PREFIX`"
        ) from None
    text = (answer.stdout + answer.stderr).decode(errors="replace")
    for vendor, pattern in _VENDORS:
        match = re.search(pattern, text, re.DOTALL)
        if match:
            return Mpi(folder, vendor, match[1])
    return mpi


# ---- compiling


def compile_c(mpi: Mpi, sources: Sequence[Path], output: Path, flags: Sequence[str] = ()) -> None:
    """Compile and link C files with ``mpicc``; raise C0702 if no compiler runs, C0703 if it refuses the files."""
    command = [str(mpi.mpicc), "-std=c99", "-O2", *flags, "-o", str(output), *map(str, sources)]
    try:
        done = run(command, _COMPILING_SECONDS, env=mpi.environment(os.environ), cwd=output.parent)
    except (OSError, subprocess.TimeoutExpired) as reason:
        raise error("C0702", f"`{mpi.mpicc}` does not run: {reason}", hint=_COMPILER_HINT) from None
    if done.returncode == 0:
        return
    text = (done.stderr + done.stdout).decode(errors="replace").strip()
    lines = [line for line in text.splitlines() if line.strip("- ")]
    if done.returncode in (126, 127) or "unable to find the specified compiler" in text:
        raise error("C0702", f"`{mpi.mpicc}` found no C compiler", notes=lines[:3], hint=_COMPILER_HINT)
    raise error("C0703", f"`{mpi.mpicc}` refused the generated C", notes=lines[:12])


_COMPILER_HINT = "install a C compiler, for example with the system's package `gcc`"
