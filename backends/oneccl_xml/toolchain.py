"""The oneCCL on this machine, and the executor built with it."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path

import attrs

from collc.ir.diagnostic import CollcError, error

from ..processes import run

__all__ = ["OneCcl", "build", "built", "find"]

_COMPILING_SECONDS = 600.0
_COMPILERS = ("c++", "g++", "clang++")
_INSTALL = "`pip install 'collc[oneccl]' && pip install --no-deps oneccl-devel==2022.1.2` brings one"


@attrs.frozen
class OneCcl:
    """One oneCCL: the folder with ``include/oneapi`` and ``lib/ccl/cpu/lib/libccl.a``, and the folder of libhwloc.

    ``libfabric`` is the libfabric to load; if it is None, oneCCL finds one itself.
    """

    root: Path
    hwloc: Path
    libfabric: Path | None

    def __str__(self) -> str:
        return f"oneCCL {self.version}".strip()

    @property
    def version(self) -> str:
        """The version in its headers; empty if unknown."""
        path = self.root / "include" / "oneapi" / "ccl" / "config.h"
        text = path.read_text(errors="replace") if path.is_file() else ""
        found = [re.search(rf"#define CCL_{name}_VERSION\s+(\d+)", text) for name in ("MAJOR", "MINOR", "UPDATE")]
        return ".".join(match[1] for match in found if match)

    @property
    def library(self) -> Path:
        """The static CPU library."""
        return _library(self.root)


def _library(root: Path) -> Path:
    return root / "lib" / "ccl" / "cpu" / "lib" / "libccl.a"


def find(prefix: str | os.PathLike[str] | None = None, environ: Mapping[str, str] | None = None) -> OneCcl:
    """Return the oneCCL at ``prefix``, or the one that CCL_ROOT names, or the one beside this Python. Raises C0760."""
    environ = os.environ if environ is None else environ
    tried = []
    for root in _roots(prefix, environ):
        lacks = [str(p.relative_to(root)) for p in (_library(root), root / "include/oneapi/ccl.hpp") if not p.is_file()]
        if lacks:
            tried.append(f"{root} has no {' and no '.join(lacks)}")
            continue
        hwloc = next((f for f in _folders(root) if (f / "libhwloc.so.15").exists()), None)
        if hwloc is None:
            raise error(
                "C0760", f"the oneCCL in `{root}` lacks libhwloc.so.15", hint="`pip install tcmlib==1.6.0` has it"
            )
        fabric = (f / name / "libfabric.so.1" for f in _folders(root) for name in ("mpich", ""))
        return OneCcl(root, hwloc, next((path for path in fabric if path.exists()), None))
    where = f"at `{os.fspath(prefix)}`" if prefix is not None else "in CCL_ROOT or beside this Python"
    raise error("C0760", f"no oneCCL found {where}", notes=tried[:4], hint=_INSTALL)


def _roots(prefix: str | os.PathLike[str] | None, environ: Mapping[str, str]) -> Iterator[Path]:
    if prefix is not None:
        yield Path(prefix).expanduser().absolute()
        return
    if environ.get("CCL_ROOT"):
        yield Path(environ["CCL_ROOT"]).absolute()
    yield Path(sys.prefix)


def _folders(root: Path) -> Iterator[Path]:
    """Yield the possible folders of libraries that oneCCL loads: its own, or those of this Python."""
    yield from (root / "lib", Path(sys.prefix) / "lib")


# ---- building


def built(oneccl: OneCcl, environ: Mapping[str, str] | None = None) -> Path:
    """Return the executor for this oneCCL, compiled at first use and kept.

    It is kept in COLLC_CACHE, else XDG_CACHE_HOME/collc, else ~/.cache/collc; if that is not writable, in a folder of
    this process. A change of the executor, the library or the compiler is another file. Raises C0761.
    """
    environ = os.environ if environ is None else environ
    kept = _cache(environ) / f"oneccl-{_digest(oneccl, environ)}"
    program = kept / "collc-oneccl"
    if program.is_file():
        return program
    aside = Path(tempfile.mkdtemp(prefix="oneccl-", dir=kept.parent))
    try:
        build(oneccl, aside)
        with contextlib.suppress(OSError):  # another process was faster
            os.rename(aside, kept)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return program


def _cache(environ: Mapping[str, str]) -> Path:
    base = environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = Path(environ.get("COLLC_CACHE") or os.path.join(base, "collc")).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return _own_folder()
    return folder


@cache
def _own_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="collc-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _digest(oneccl: OneCcl, environ: Mapping[str, str]) -> str:
    """Return a name for the executor's inputs."""
    status = oneccl.library.stat()
    parts = [*map(str, (_compiler(environ), *attrs.astuple(oneccl), status.st_size, status.st_mtime_ns))]
    found = hashlib.sha256("\0".join(parts).encode())
    with as_file(files(__package__).joinpath("executor")) as sources:
        for path in sorted(sources.iterdir()):
            found.update(path.name.encode() + path.read_bytes())
    found.update(files(__package__).joinpath("toolchain.py").read_bytes())
    return found.hexdigest()[:16]


def build(oneccl: OneCcl, folder: Path, flags: Sequence[str] = ()) -> Path:
    """Compile the executor into ``folder``; return the program. Raises C0761."""
    compiler = _compiler(os.environ)
    program = folder / "collc-oneccl"
    with as_file(files(__package__).joinpath("executor")) as sources:
        compiled = [
            "-std=c++17",
            "-O2",
            *flags,
            f"-I{sources}",
            "-isystem",
            str(oneccl.root / "include"),
            *_places(oneccl),
        ]
        linked = [str(oneccl.library), str(oneccl.hwloc / "libhwloc.so.15"), f"-Wl,-rpath,{oneccl.hwloc}"]
        _compile([compiler, *compiled, "-o", str(program), str(sources / "all.cpp"), *linked, "-ldl", "-lpthread"])
    return program


def _places(oneccl: OneCcl) -> list[str]:
    """Return the variables with the folders of libraries for the executor and its ranks."""
    if oneccl.libfabric is None:
        return []
    return [f'-DCOLLC_ONECCL_ROOT="{oneccl.root}"', f'-DCOLLC_LIBFABRIC="{oneccl.libfabric}"']


def _compiler(environ: Mapping[str, str]) -> str:
    for name in (environ.get("CXX") or "", *_COMPILERS):
        if name and (found := shutil.which(name)):
            return found
    hint = "install one, for example with the system's package `g++`, or name one in CXX"
    raise error("C0761", "no C++ compiler found", notes=[f"tried CXX, {', '.join(_COMPILERS)}"], hint=hint)


def _compile(command: Sequence[str]) -> None:
    try:
        done = run(command, _COMPILING_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as reason:
        raise error("C0761", f"`{command[0]}` does not run: {reason}") from None
    if done.returncode != 0:
        raise _refused(command[0], (done.stderr + done.stdout).decode(errors="replace"))


def _refused(compiler: str, text: str) -> CollcError:
    lines = [line for line in text.splitlines() if line.strip()]
    wrong = [line for line in lines if "error" in line or "undefined" in line] or lines
    return error("C0761", f"`{compiler}` refused the executor's sources", notes=wrong[:8])
