"""Why a preloaded library reported nothing: what its processes say, else what the program's file shows."""

from __future__ import annotations

import os
import re
import shutil
import stat
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["reasons"]

#: words of ``statistics.c`` for a process that called none of the library's functions -> what that means
_LOADED = {
    "no MPI_Init": "loaded an MPI but did not call MPI_Init",
    "no call": "loaded an MPI but called none of the functions that the library has",
    "past": "called MPI past the library: by PMPI_ names, or by an interface whose functions the library does not have",
}

#: launchers of schedulers, which load the library as their ranks do
_SCHEDULERS = ("srun", "flux")
#: what srun takes for its option ``--export``
_EXPORTS = ("SRUN_EXPORT_ENV", "SLURM_EXPORT_ENV")

_MPI = re.compile(rb"\0P?MPI_Init(_thread)?\0")
_INTERPRETER = 3  # PT_INTERP: the program asks for a dynamic linker


def reasons(processes: Sequence[tuple[str, str]], command: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """Return the reasons that are known, at least one.

    ``processes`` are the names of programs that loaded the library, each with what it had of MPI.
    """
    files = {path.name: path for path in _programs(command, environ)}
    launcher = os.path.basename(command[0])
    if launcher in _SCHEDULERS:  # loads the library itself, and does nothing with it
        processes = [one for one in processes if one[0] != launcher]
    if not processes and launcher == "srun" and (exported := _not_exported(command, environ)):
        return [f"no rank loaded the library: `{exported}` does not pass on LD_PRELOAD, `--export=ALL` does"]
    if not processes:
        notes = [note for path in files.values() for note in _of_file(path)]
        return notes or [
            "no process loaded the library: the launcher does not pass on LD_PRELOAD, or the ranks ran on other hosts "
            "that cannot reach the cache or the temporary folder of this one"
        ]
    notes = [f"`{name}` {_LOADED[what]}" for name, what in processes if what in _LOADED]
    return notes or [_without(name, files) for name, _ in processes[:4]]


def _not_exported(command: Sequence[str], environ: Mapping[str, str]) -> str:
    """Return srun's option or variable that keeps LD_PRELOAD from the ranks; an empty text if there is none."""
    found = {f"{name}={environ[name]}": environ[name] for name in _EXPORTS if environ.get(name)}
    for word, after in zip(command, (*command[1:], ""), strict=True):
        if word == "--export" or word.startswith("--export="):
            value = word.partition("=")[2] or after
            found = {f"srun --export={value}": value}
            break
    for shown, value in found.items():
        names = value.split(",")
        if "ALL" not in names and not any(name.partition("=")[0] == "LD_PRELOAD" for name in names):
            return shown
    return ""


def _without(name: str, files: Mapping[str, Path]) -> str:
    """Return the reason for a process without a shared MPI."""
    path = files.get(name)
    if path is not None and _MPI.search(_read(path)):
        return f"`{name}` links its MPI statically, which no library can be loaded before"
    return f"`{name}` uses no MPI"


def _programs(command: Sequence[str], environ: Mapping[str, str]) -> list[Path]:
    """Return the files of the command's words that are programs in machine language."""
    found = [shutil.which(word, path=environ.get("PATH")) for word in dict.fromkeys(command[1:] or command)]
    return [Path(path) for path in found if path is not None and _read(Path(path), 4) == b"\x7fELF"]


def _read(path: Path, most: int = -1) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(most)
    except OSError:
        return b""


def _of_file(path: Path) -> list[str]:
    """Return why a program cannot load the library."""
    if os.stat(path).st_mode & (stat.S_ISUID | stat.S_ISGID):
        return [f"`{path.name}` is setuid or setgid, so the system ignores LD_PRELOAD"]
    if not _asks_for_linker(_read(path)):
        return [f"`{path.name}` is linked statically, so it loads no library"]
    return []


def _asks_for_linker(data: bytes) -> bool:
    """Whether an ELF file of 64 bits has an interpreter; others count as if they had one."""
    if len(data) < 64 or data[4] != 2:
        return True
    order = "<" if data[5] == 1 else ">"
    (table,) = struct.unpack_from(f"{order}Q", data, 32)
    size, number = struct.unpack_from(f"{order}HH", data, 54)
    places = [table + k * size for k in range(number)]
    kinds = [struct.unpack_from(f"{order}I", data, at)[0] for at in places if at + 4 <= len(data)]
    return _INTERPRETER in kinds
