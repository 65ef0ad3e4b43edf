"""Small messages through shared memory, and what becomes of calls where there is none: see ``mpi_c_letters.c``."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import attrs
import pytest
from built_programs import direct, ring
from mpi_fixtures import STRICT
from places import the

from collc.backends.mpi_c import MpiC
from collc.backends.mpi_c.launch import launch
from collc.backends.mpi_c.toolchain import Mpi, compile_c
from collc.ir.diagnostic import CollcError

pytestmark = pytest.mark.needs("mpi")

SOURCE = the("mpi_c_letters.c")
PROGRAMS = {"sums": ring("allreduce", 4), "all": direct("allgather", 4), "news": direct("broadcast", 4, root=1)}

#: functions that fail, or find something else, on one rank
_HEAD = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
static int letters_rank(void)
{
    const char *rank = getenv("PMI_RANK");
    return atoi(rank != NULL ? rank : getenv("OMPI_COMM_WORLD_RANK"));
}
"""
_OTHER_STAT = """
static int other_stat(const char *path, struct stat *found)
{
    return stat(path[6] == 's' && letters_rank() == 1 ? "/proc" : path, found);
}
#define stat(path, found) other_stat(path, found)
"""
_OTHER_FILE = """
static int other_file(const char *path, int flags)
{
    struct stat found;
    int right = open(path, flags), other;
    if (letters_rank() != 2)
        return right;
    fstat(right, &found);
    close(right);
    other = memfd_create("other", 0);
    return ftruncate(other, found.st_size) == 0 ? other : -1;
}
#define open(path, flags) other_file(path, flags)
"""
FAULTS = {
    "no memory file": "#define memfd_create(name, flags) (letters_rank() == 0 ? -1 : memfd_create(name, flags))\n",
    "no space": "#define ftruncate(file, bytes) (letters_rank() == 0 ? -1 : ftruncate(file, bytes))\n",
    "no map": "#define mmap(a, b, c, d, e, f) (letters_rank() == 2 ? MAP_FAILED : mmap(a, b, c, d, e, f))\n",
    "no /proc": "#define readlink(a, b, c) (letters_rank() == 3 ? -1 : readlink(a, b, c))\n",
    "no right to open": "#define open(a, b) (letters_rank() == 1 ? -1 : open(a, b))\n",
    "another network": _OTHER_STAT,
    "another file of that size": _OTHER_FILE,
}


def built(mpi: Mpi, folder: Path, before: str = "", changes: tuple[tuple[str, str], ...] = (), *flags: str) -> Path:
    """Compile the program with a library, whose text is changed."""
    target = MpiC(library="pod")
    made = [target.emit(attrs.evolve(program, name=name))[0] for name, program in PROGRAMS.items()]
    for artifact in target.join(made):
        text = artifact.text
        if artifact.filename == "pod.c":
            for old, new in changes:
                assert old in text
                text = text.replace(old, new)
            text = before + text
        (folder / artifact.filename).write_text(text)
    compile_c(
        mpi,
        [SOURCE, folder / "pod.c"],
        folder / "letters",
        (*(() if changes else STRICT), f"-I{folder}", "-g", "-O1", *flags),
    )
    return folder / "letters"


def ran(mpi: Mpi, program: Path, *words: str) -> list[str]:
    return launch(mpi, 4, [str(program), *words], 120, program.parent).splitlines()


@pytest.fixture(scope="module")
def plain(mpich: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(mpich, tmp_path_factory.mktemp("letters"))


def test_small_messages_are_letters(mpich: Mpi, plain: Path) -> None:
    assert ran(mpich, plain, "1") == ["small: letters", "letters-end"]


@pytest.mark.slow
def test_small_messages_are_letters_on_a_second_mpi(openmpi: Mpi, tmp_path: Path) -> None:
    assert ran(openmpi, built(openmpi, tmp_path), "1") == ["small: letters", "letters-end"]


@pytest.mark.slow
def test_without_shared_memory_they_are_messages(mpich: Mpi, plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLC_SHARED_MEMORY", "0")
    assert ran(mpich, plain, "0") == ["small: messages", "letters-end"]


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_where_one_rank_cannot_have_it_none_has(fault: str, mpich: Mpi, tmp_path: Path) -> None:
    program = built(mpich, tmp_path, _HEAD + FAULTS[fault])
    assert ran(mpich, program, "0") == ["small: messages", "letters-end"]


@pytest.mark.slow
@pytest.mark.parametrize(("bytes_", "way"), [(0, "messages"), (100, "letters"), (20000, "letters")])
def test_letters_of_other_sizes(bytes_: int, way: str, mpich: Mpi, tmp_path: Path) -> None:
    program = built(mpich, tmp_path, "", (), f"-DCOLLC_LETTER_BYTES={bytes_}")
    assert ran(mpich, program, str(int(way == "letters"))) == [f"small: {way}", "letters-end"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "way"),
    [
        ("MOST_RANKS = 1 << 10", "MOST_RANKS = 3", "messages"),
        ("MOST_SHARED = 1 << 28", "MOST_SHARED = 1 << 17", "letters"),
        ("MOST_SHARED = 1 << 28", "MOST_SHARED = 1 << 12", "messages"),
    ],
)  # fmt: skip
def test_the_memory_of_letters_is_bounded(old: str, new: str, way: str, mpich: Mpi, tmp_path: Path) -> None:
    program = built(mpich, tmp_path, "", ((old, new),))
    assert ran(mpich, program, str(int(way == "letters"))) == [f"small: {way}", "letters-end"]


@pytest.mark.slow
def test_numbers_of_letters_start_again(mpich: Mpi, tmp_path: Path) -> None:
    """With numbers of 8 bits, as after 2^32 letters."""
    changes = (
        ("uint32_t turn, bytes;", "uint8_t turn; uint32_t bytes;"), ("uint32_t turn", "uint8_t turn"),
        ("uint32_t *turn", "uint8_t *turn"), ("uint32_t *sent", "uint8_t *sent"), ("(uint32_t *)", "(uint8_t *)"),
        ("uint32_t number", "uint8_t number"),
    )  # fmt: skip
    assert ran(mpich, built(mpich, tmp_path, "", changes), "1") == ["small: letters", "letters-end"]


@pytest.mark.slow
def test_a_letter_of_another_size_is_an_error(mpich: Mpi, plain: Path) -> None:
    assert ran(mpich, plain, "1", "size") == ["small: letters", "letters-end"]


def _living(program: Path) -> list[str]:
    """Return the processes of a program."""
    found = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if str(program) in Path(f"/proc/{process}/cmdline").read_text():
                found.append(process)
    return found


@pytest.mark.slow
def test_a_killed_rank_leaves_nothing_behind(mpich: Mpi, plain: Path) -> None:
    """The memory has no name, so it ends with the processes, and these end with the launcher."""
    names = set(os.listdir("/dev/shm"))
    with pytest.raises(CollcError) as ended:
        ran(mpich, plain, "1", "kill")
    assert ended.value.diagnostics[0].code == "C0706"
    until = time.monotonic() + 20
    while _living(plain) and time.monotonic() < until:
        time.sleep(0.1)
    assert not _living(plain)
    assert not [name for name in set(os.listdir("/dev/shm")) - names if "collc" in name]


_ASKING = "MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, call->comm, &any_there, MPI_STATUS_IGNORE)"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        (((_ASKING, "(any_there = 0)"),), "failed: all"),
        ((("madvise(base, it->bytes, MADV_DONTFORK)", "(void)base"),), "WEXITSTATUS(status) == 0"),
        ((("close_letters(&context->mail);", ""),), "mapped() == before"),
        ((("    if (descriptor >= 0)\n        close(descriptor);\n", ""),), "opened() == files"),
    ],
    ids=["others", "child", "map", "descriptor"],
)  # fmt: skip
def test_faults_are_found(changes: tuple[tuple[str, str], ...], complaint: str, mpich: Mpi, tmp_path: Path) -> None:
    lines = ran(mpich, built(mpich, tmp_path, "", changes), "1")
    assert any("failed" in line and complaint in line for line in lines), lines[:5]
