"""The library of the engine: compiled by the C compiler of the machine at its first use, and kept in the user's cache.

The engine is only faster than messages over gloo. So a machine without a compiler gets a reason, not an error.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources

from ..files.caches import LIBRARIES, launch_folder
from ..files.trust import is_private, is_sealed, make_folder, seal

__all__ = ["library"]

_SECONDS = 60.0
#: a product and a sum stay two operations, as in torch
_FLAGS = ("-std=gnu99", "-O3", "-ffp-contract=off", "-fPIC", "-shared")
_NAME = "torch.so"


def library() -> ctypes.CDLL | str:
    """Return the loaded library, or why there is none."""
    return _library(
        tuple(sorted((name, os.environ.get(name, "")) for name in ("CC", "HOME", "PATH", "XDG_CACHE_HOME")))
    )


@lru_cache(1)
def _library(environment: tuple[tuple[str, str], ...]) -> ctypes.CDLL | str:
    text = resources.files(__package__).joinpath("engine.c").read_text(encoding="utf-8")
    command = _compiler(dict(environment))
    if command is None:
        return "no C compiler"
    try:
        return _cached(text, command)
    except OSError:
        pass  # the cache cannot be used
    except ValueError as problem:
        return str(problem)
    try:
        with tempfile.TemporaryDirectory(prefix="collc-torch-") as folder:
            path = os.path.join(folder, _NAME)
            _build(text, command, path)
            return ctypes.CDLL(path)  # stays loaded without its file
    except (OSError, ValueError) as problem:
        return str(problem)


def _compiler(environ: Mapping[str, str]) -> list[str] | None:
    """Return the command of the C compiler: ``CC``, else ``cc`` or ``gcc``; None without one."""
    for words in (shlex.split(environ["CC"]), ["cc"], ["gcc"]):
        found = shutil.which(words[0], path=environ["PATH"]) if words else None
        if found is not None:
            return [found, *words[1:]]
    return None


def _cached(text: str, command: list[str]) -> ctypes.CDLL:
    """Return the library from the user's cache, built if it is missing or not as it was sealed."""
    root = launch_folder(os.environ)
    os.makedirs(root, mode=0o700, exist_ok=True)
    if not is_private(os.stat(root)):
        raise PermissionError(root)
    path = os.path.join(make_folder(root, LIBRARIES, _key(text, command)), _NAME)
    if not is_sealed(path, root):
        _build(text, command, path)
        seal(path)
    return ctypes.CDLL(path)


def _key(text: str, command: list[str]) -> str:
    """Return the hash of all inputs of the library."""
    found = os.stat(command[0])
    parts = [text, *_FLAGS, *command, found.st_size, found.st_mtime_ns, platform.machine()]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def _build(text: str, command: list[str], path: str) -> None:
    """Compile to a path in an existing folder; raise ValueError if the compiler fails, OSError without the folder."""
    with tempfile.TemporaryDirectory(prefix=".building-", dir=os.path.dirname(path)) as folder:
        source, built = os.path.join(folder, "engine.c"), os.path.join(folder, _NAME)
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        try:
            done = subprocess.run(
                [*command, *_FLAGS, "-o", built, source], capture_output=True, timeout=_SECONDS, check=False,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as problem:
            raise ValueError(f"`{command[0]}` does not run: {problem}") from None
        if done.returncode:
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            raise ValueError(f"`{command[0]}` failed: {lines[0] if lines else done.returncode}")
        os.replace(built, path)
