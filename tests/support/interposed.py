"""Programs under a preloaded library, and what they print."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import attrs
from built_programs import direct, ring
from places import the

from collc.backends.mpi_c.interpose import Served, interposed
from collc.backends.mpi_c.interpose.build import abi, build
from collc.backends.mpi_c.interpose.report import Report, read_report
from collc.backends.mpi_c.source import Function
from collc.backends.mpi_c.toolchain import Mpi, compile_c
from collc.ir.collective import KINDS
from collc.ir.program import Program

PROGRAM = the("interposed_program.c")

#: a library's C, and the programs, give no warning
STRICT = ("-Wall", "-Wextra", "-Werror")


def functions(*programs: Program) -> list[Served]:
    return [Served(Function(f"f{n}", ((None, program),))) for n, program in enumerate(programs)]


def everything(ranks: int) -> list[Served]:
    """One algorithm for every collective; an allreduce over a ring, where ranks pass on what others sent."""
    made = [direct(kind, ranks, 2) for kind in KINDS if kind != "allreduce"]
    return functions(*made, ring("allreduce", ranks, 2))


def preloads(mpi: Mpi, library: Path) -> str:
    """Return what ranks preload: the library, and what lets them sleep while they wait."""
    return ":".join(filter(None, [str(library), mpi.environment({}).get("LD_PRELOAD")]))


@attrs.frozen
class Ran:
    status: int
    out: str
    err: str
    report: Report

    @property
    def all_right(self) -> bool:
        """Whether the program checked something and found nothing wrong."""
        return self.status == 0 and bool(re.search(r"^checks [1-9]\d+ failures 0$", self.out, re.MULTILINE))


def with_fault(preloaded: Preloaded, folder: Path, sound: str, faulty: str) -> Path:
    """Return a library like the one of ``preloaded`` in which one place of the text differs."""
    assert preloaded.text.count(sound) == 1
    library = folder / "faulty.so"
    build(preloaded.mpi, preloaded.text.replace(sound, faulty), library, ("-O0",))
    return library


#: libraries of this process by compiler, text and options: many modules want that of ``everything(4)``
_LIBRARIES: dict[tuple[Path, str, tuple[str, ...]], Path] = {}


def build_once(mpi: Mpi, text: str, library: Path, flags: tuple[str, ...] = ()) -> None:
    """Build a library, or copy one of the same text that this process has built for the MPI."""
    key = mpi.mpicc, text, flags
    if key not in _LIBRARIES:
        build(mpi, text, library, flags)
        _LIBRARIES[key] = library
    elif _LIBRARIES[key] != library:
        shutil.copy(_LIBRARIES[key], library)


class Preloaded:
    """A library and the program for one MPI."""

    def __init__(
        self, mpi: Mpi, folder: Path, served: list[Served], strict: bool = True, program: Path = PROGRAM,
        optimized: bool = True,
    ):  # fmt: skip
        self.mpi, self.folder, self.library = mpi, folder, folder / f"lib.{abi(mpi)}.so"
        self.text = interposed("lib", served)
        build_once(mpi, self.text, self.library, (*(STRICT if strict else ()), "-O2" if optimized else "-O1"))
        self.program = folder / "program"
        compile_c(mpi, [program], self.program, (*STRICT, "-pthread"))

    def run(
        self, ranks: int, *arguments: object, library: Path | None = None, seconds: float = 120, **variables: str
    ) -> Ran:
        report = self.folder / "report"
        report.write_text("")
        given = {
            "LD_PRELOAD": preloads(self.mpi, library or self.library),
            "COLLC_LAUNCH_REPORT": str(report),
            **variables,
        }
        option = "-x" if abi(self.mpi) == "openmpi" else "-env"
        words = [[option, f"{k}={v}"] if option == "-x" else [option, k, v] for k, v in given.items()]
        command = [str(self.mpi.mpiexec), *(word for one in words for word in one), "-n", str(ranks)]
        done = subprocess.run(
            [*command, str(self.program), *map(str, arguments)], capture_output=True, text=True, check=False,
            env=self.mpi.environment(os.environ), timeout=seconds, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        return Ran(done.returncode, done.stdout, done.stderr, read_report(report.read_text()))
