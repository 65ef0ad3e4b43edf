"""Calls for which a rank has no memory end alike on all ranks, whichever allocation fails: see ``mpi_c_memory.c``."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import attrs
import programs
import pytest
from built_programs import direct, ring
from mpi_c_output import complaints
from mpi_fixtures import STRICT
from places import the
from sampling import EXHAUSTIVE

from collc.backends.base import Window
from collc.backends.mpi_c import MpiC
from collc.backends.mpi_c.launch import launch
from collc.backends.mpi_c.toolchain import Mpi, compile_c
from collc.ir.diagnostic import CollcError

pytestmark = pytest.mark.needs("mpi")

SOURCE = the("mpi_c_memory.c")

PROGRAMS = {
    "sums": ring("allreduce", 4), "pieces": direct("reduce-scatter", 4, 2), "swap": programs.alltoall(4, 2),
    "heap": direct("gather", 4),
}  # fmt: skip

#: the generated file, with an allocator that can fail
SCARCE = """\
#include <stdlib.h>
#include <string.h>
#include <stdint.h>
void *scarce_malloc(size_t bytes);
void *scarce_calloc(size_t number, size_t bytes);
void scarce_free(void *memory);
#define malloc scarce_malloc
#define calloc scarce_calloc
#define free scarce_free
#include "pod.c"
"""

#: sequences of calls; a sample makes every so many-th allocation of one fail
FORMS = {"blocking": 2, "begun": 9, "persistent": 12, "mixed": 2, "threads": 3}
SANITIZED = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")
#: what the MPI leaks is not ours; what generated code does, the program counts
ENVIRONMENT = {"ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0:allocator_may_return_null=1"}


def library(folder: Path) -> str:
    target = MpiC(library="pod")
    made = [target.emit(attrs.evolve(program, name=name))[0] for name, program in PROGRAMS.items()]
    parts = (
        (Window("few", 1, 99, "few"), direct("allreduce", 4)),
        (Window("ring", 100, None, "ring"), ring("allreduce", 4, 2)),
    )
    made.append(target.emit_selected([(window, attrs.evolve(program, name="chosen")) for window, program in parts])[0])
    for artifact in target.join(made):
        (folder / artifact.filename).write_text(artifact.text)
    return (folder / "pod.c").read_text()


def built(mpi: Mpi, folder: Path, *flags: str, changed: Callable[[str], str] = str) -> Path:
    (folder / "pod.c").write_text(changed(library(folder)))
    (folder / "scarce.c").write_text(SCARCE)
    sources = [SOURCE, folder / "scarce.c"]
    compile_c(mpi, sources, folder / "memory", (*STRICT, f"-I{folder}", "-pthread", "-g", "-O1", *flags))
    return folder / "memory"


def run(mpi: Mpi, binary: Path, form: str, step: int, folder: Path, seconds: float = 240) -> int:
    """Return how many allocations were made to fail."""
    lines = launch(mpi, 4, [str(binary), form, str(step)], seconds, folder).splitlines()
    found = re.fullmatch(r"memory-end tried=(\d+) failures=0", lines[-1])
    assert found and len(lines) == 1, lines[:20]
    return int(found[1])


@pytest.fixture(scope="module")
def sanitized(mpich: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program under the compiler's own checks, or without them where they do not work."""
    folder = tmp_path_factory.mktemp("memory")
    try:
        return built(mpich, folder, *SANITIZED)
    except CollcError:
        return built(mpich, folder)


@pytest.mark.parametrize("form", FORMS)
def test_every_allocation(
    form: str, mpich: Mpi, sanitized: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    tried = run(mpich, sanitized, form, 1 if EXHAUSTIVE else FORMS[form], tmp_path)
    assert tried >= 2


def test_every_allocation_on_a_second_mpi(openmpi: Mpi, tmp_path: Path) -> None:
    binary = built(openmpi, tmp_path)
    for form, step in FORMS.items() if EXHAUSTIVE else [("mixed", 2)]:
        assert run(openmpi, binary, form, 1 if EXHAUSTIVE else step, tmp_path) >= 2


def test_valgrind_says_nothing_of_generated_code(mpich: Mpi, tmp_path: Path) -> None:
    """Four ranks, the first of them under valgrind, whose allocations fail in turn as the others' do."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        pytest.skip("there is no valgrind here")
    binary, log = built(mpich, tmp_path), tmp_path / "valgrind.log"
    watch = [valgrind, "--leak-check=full", "--show-leak-kinds=definite,indirect", "-q", f"--log-file={log}"]
    for form, step in FORMS.items() if EXHAUSTIVE else [("mixed", 6)]:
        words = [str(binary), form, str(1 if EXHAUSTIVE else step)]
        lines = launch(mpich, 1, [*watch, *words, ":", "-n", "3", *words], 300, tmp_path).splitlines()
        assert re.fullmatch(r"memory-end tried=\d+ failures=0", lines[-1])
        assert complaints(log.read_text(errors="replace")) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("free(context->lanes[k].memory);", "continue;"),  # leaks
        ("MPI_INT, MPI_MIN,", "MPI_INT, MPI_MAX,"),  # the rank that has no memory is outvoted
    ],
)
def test_a_fault_is_seen(before: str, after: str, mpich: Mpi, tmp_path: Path) -> None:
    def changed(text: str) -> str:
        assert before in text
        return text.replace(before, after)

    binary = built(mpich, tmp_path, changed=changed)
    with pytest.raises((AssertionError, CollcError)):
        run(mpich, binary, "mixed", 2, tmp_path, 30)
