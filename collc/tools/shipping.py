"""The library of a launch in a folder that every host has, for hosts that do not share the cache."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from collc.ir.diagnostic import CollcError, error

from .launching import folder_flaw

__all__ = ["place_library"]


def place_library(built: Path, folder: str) -> Path:
    """Copy a library into a folder and return its path there; a program never sees half of it.

    Raises C0085 for a folder that LD_PRELOAD cannot name, that others can write, or that cannot be written.
    """
    target = Path(folder).absolute()
    flaw = folder_flaw(target)
    if flaw is not None:
        raise _unusable(folder, flaw)
    try:
        number, aside = tempfile.mkstemp(prefix=".making-", dir=target)
        os.close(number)
        shutil.copyfile(built, aside)
        os.chmod(aside, 0o755)
        os.replace(aside, target / built.name)
    except OSError as problem:
        raise _unusable(folder, (problem.strerror or str(problem)).lower()) from None
    return target / built.name


def _unusable(folder: str, why: str) -> CollcError:
    return error("C0085", f"`{folder}` cannot hold the library: {why}", hint="name another folder with --library-dir")
