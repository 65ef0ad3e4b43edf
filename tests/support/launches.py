"""Launches in this process, for an MPI that is two scripts, and libraries that no compiler makes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
from commands import Ran

from collc.backends.mpi_c.interpose import build
from collc.backends.mpi_c.toolchain import Mpi
from collc.cli import launch as compiling

__all__ = ["SPEC", "Site", "site"]

SPEC = """param n = 4;
topology net = biring(n);
collective sums = allreduce on net;
schedule sums using bfb;
"""

#: programs that tell what they were given: the words without the name of the report, and the environment
_PROGRAM = """#!/bin/sh
if [ "$1" = --version ]; then echo "HYDRA build details:"; echo "    Version: {version}"; exit; fi
echo "$@" | sed 's/[^ ]*.report//' > "{folder}/told"
env -u LD_PRELOAD sh -c 'env | grep -E "^(COLLC_[CDST]|MSCCL|RCCL)" | sort' >> "{folder}/told"
"""


@attrs.define
class Site:
    """A folder with ``net.coll``, an MPI and a cache; ``compiled`` counts what was compiled, ``built`` libraries."""

    folder: Path
    collc: Callable[..., Ran]
    compiled: int = 0
    built: int = 0

    @property
    def spec(self) -> Path:
        return self.folder / "net.coll"

    @property
    def cache(self) -> Path:
        return self.folder / "cache"

    @property
    def entries(self) -> list[Path]:
        return sorted((self.cache / "launches").glob("*.json"))

    @property
    def library(self) -> Path:
        (found,) = (self.cache / "interpose").glob("*/*.so")
        return found

    @property
    def programs(self) -> Path:
        return self.folder / "programs"

    def install(self, version: str = "5.0") -> None:
        """Write the MPI and other programs."""
        self.programs.mkdir(exist_ok=True)
        for name in ("mpicc", "mpiexec", "torchrun", "app"):
            (self.programs / name).write_text(_PROGRAM.format(version=version, folder=self.folder))
            (self.programs / name).chmod(0o755)

    @property
    def told(self) -> str:
        """What the last program that ran was given; it is forgotten then."""
        text = (self.folder / "told").read_text()
        (self.folder / "told").unlink()
        return text

    def __call__(self, *arguments: object, program: str = "mpiexec", file: object = None) -> Ran:
        """Launch a program with one argument, with the cache of the site."""
        given = (self.spec if file is None else file, f"--cache={self.cache}", *arguments, "--")
        return self.collc("launch", *map(str, given), str(self.programs / program), "argument")

    def compiles(self, *arguments: object, **more: object) -> bool:
        """Launch; return whether that compiled anything."""
        before = self.compiled
        ran = self(*arguments, **more)  # type: ignore[arg-type]
        assert ran.status == 0, ran.err
        return self.compiled > before


@pytest.fixture
def site(tmp_path: Path, collc: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> Site:
    """Return a site whose compilations and builds are counted."""
    for name in [name for name in os.environ if name.startswith("COLLC_")]:
        monkeypatch.delenv(name)
    site = Site(tmp_path, collc)
    site.spec.write_text(SPEC)
    site.install()
    prepare, replace = compiling.prepare, os.replace

    def counted(*given: object) -> object:
        site.compiled += 1
        return prepare(*given)  # type: ignore[arg-type]

    def built(mpi: Mpi, text: str, output: Path) -> None:
        site.built += 1
        aside = output.with_name(f".{os.getpid()}")
        aside.write_text(text)
        aside.chmod(0o755)
        replace(aside, output)

    monkeypatch.setattr(compiling, "prepare", counted)
    monkeypatch.setattr(build, "build", built)
    return site
