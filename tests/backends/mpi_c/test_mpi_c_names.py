"""Names of C functions and files: whatever a collective is called, the C compiles and hides nothing of the system's."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import attrs
import pytest
from built_programs import ring
from commands import Ran
from mpi_fixtures import STRICT
from sampling import EXHAUSTIVE, every

from collc.backends.mpi_c import MpiC
from collc.backends.mpi_c.interpose import interposing
from collc.backends.mpi_c.names import REQUEST_FORMS, chosen, forms, identifier, require_stem
from collc.backends.mpi_c.reserved import HEADERS, KEYWORDS, LIBRARY, PREDEFINED
from collc.backends.mpi_c.source import taken
from collc.backends.mpi_c.toolchain import Mpi
from collc.files import naming
from collc.ir.diagnostic import CollcError

MPI = ["MPI", "mpi", "Mpi", "MPI_Init", "mpi_init", "PMPI_Send", "MPIX_x", "MPI_COMM_WORLD", "pmpi", "mpix"]
# Of these a form is taken: `sem_wait`, `make_request`, `on_free`.
FORMS = ["sem", "make", "on", "atomic", "pthread_cond", "pthread_mutex"]
TAKEN = sorted({*KEYWORDS, *PREDEFINED, *LIBRARY, *HEADERS, *taken(), *MPI, *FORMS} - {"mpi-ext", "stdc-predef"})

PROGRAM = attrs.evolve(ring("allreduce", 2), name="")

C_HEADERS = """
assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdarg stdatomic stdbool stddef
stdint stdio stdlib string tgmath threads time uchar wchar wctype dirent dlfcn fcntl fnmatch ftw glob grp iconv langinfo
libgen mqueue netdb nl_types poll pthread pwd regex sched search semaphore spawn strings syslog termios unistd utime
utmpx wordexp arpa/inet net/if netinet/in sys/mman sys/msg sys/resource sys/select sys/sem sys/shm sys/socket sys/stat
sys/statvfs sys/time sys/times sys/types sys/uio sys/un sys/utsname sys/wait
"""
NO_C89 = {"threads", "stdatomic", "tgmath"}
NO_CPP = {"complex", "stdatomic", "tgmath", "threads", "iso646"}


def compiled(compiler: str, *flags: str, text: str, suffix: str, folder: Path) -> None:
    (folder / f"names{suffix}").write_text(text)
    done = subprocess.run(
        [compiler, *flags, "-fsyntax-only", f"names{suffix}"], cwd=folder, capture_output=True, text=True, check=False
    )  # fmt: skip
    if "unrecognized command" in done.stderr or "invalid value" in done.stderr:
        pytest.skip(f"{compiler} does not know {flags}")
    assert done.returncode == 0, done.stderr[:3000]


def declared(names: Iterable[str]) -> str:
    return "".join(f"int {name}(const void *a);\n" for name in sorted(names))


def all_forms(names: Iterable[str]) -> set[str]:
    found = {identifier(name, taken()) for name in names}
    return {form for name in found for form in (*forms(name), *(f"{name}_{other}" for other in REQUEST_FORMS))}


# ---- functions


@pytest.mark.parametrize("name", every(40, TAKEN))
def test_a_name_that_is_taken_is_changed_or_refused(name: str) -> None:
    made = identifier(name, taken())
    assert made != name and chosen(made, taken()) == made
    with pytest.raises(CollcError) as refused:
        chosen(name, taken())
    assert refused.value.diagnostics[0].code == "C0705"


def test_no_name_that_is_taken_stays_in_any_form() -> None:
    everything = {*KEYWORDS, *PREDEFINED, *LIBRARY, *taken()}
    assert all_forms(TAKEN) & everything == set()
    assert not [form for form in all_forms(TAKEN) if form.upper().startswith(("MPI_", "PMPI_", "MPIX_"))]


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags", ["c gnu89", "c gnu99", "c gnu11", "c gnu2x", "c++ gnu++98", "c++ gnu++17", "c++ gnu++20"]
)
def test_names_mean_nothing_else_after_any_standard_header(flags: str, tmp_path: Path) -> None:
    """Functions of all names that were made of taken ones, declared after all headers of C and POSIX."""
    language, standard = flags.split()
    compiler = shutil.which("gcc" if language == "c" else "g++")
    if compiler is None:
        pytest.skip(f"there is no compiler for {language} here")
    left_out = NO_CPP if language == "c++" else NO_C89 if standard == "gnu89" else set()
    included = "".join(
        f"#if __has_include(<{header}.h>)\n#include <{header}.h>\n#endif\n"
        for header in C_HEADERS.split() if header not in left_out
    )  # fmt: skip
    suffix = ".c" if language == "c" else ".cpp"
    text = included + declared(all_forms(TAKEN))
    compiled(compiler, f"-std={standard}", "-w", "-D_GNU_SOURCE", text=text, suffix=suffix, folder=tmp_path)


@pytest.mark.needs("mpi")
def test_the_generated_c_compiles_under_any_name(mpich: Mpi, tmp_path: Path) -> None:
    """Functions and libraries named like a keyword, a macro, a header, a function, MPI, the engine."""
    some = ["int", "linux", "errno", "main", "restrict", "mpi", "sem", "make", "perform", "class", "a", "h", "NUMBER"]
    most = [name for n, name in enumerate(TAKEN) if name not in LIBRARY or n % 20 == 0]
    for n, name in enumerate(most if EXHAUSTIVE else some):
        program = attrs.evolve(PROGRAM, name=name)
        files = [*MpiC().emit(program)]
        library = MpiC(library=identifier(name, taken()))
        if n % 3 == 0:
            files += library.join([library.emit(program)[0], library.emit(attrs.evolve(program, name="wait"))[0]])
        for file in files:
            path = tmp_path / f"{n}{Path(file.filename).suffix}"
            path.write_text(file.text)
            standard = ("gnu99", "gnu11", "gnu17")[n % 3]
            done = subprocess.run(
                [str(mpich.mpicc), f"-std={standard}", *STRICT, "-fsyntax-only", "-x", "c", str(path)],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert (done.returncode, done.stderr) == (0, ""), (name, done.stderr)


def test_a_library_to_preload_has_no_name_of_its_own_text() -> None:
    for name in every(12, sorted(interposing() - taken() - KEYWORDS - LIBRARY - PREDEFINED)):
        if name.isupper() or name.startswith("_"):
            continue
        with pytest.raises(CollcError):
            _ = MpiC(library=name, interpose=True).shared
    assert MpiC(interpose=True).shared == "collc_interpose"


def test_a_name_of_300_characters_compiles(mpich: Mpi, tmp_path: Path) -> None:
    for file in (*MpiC(function="x" * 300).emit(PROGRAM), *MpiC().emit(attrs.evolve(PROGRAM, name="y" * 300))):
        (tmp_path / "a.c").write_text(file.text)
        done = subprocess.run(
            [str(mpich.mpicc), "-std=c99", *STRICT, "-fsyntax-only", "a.c"], cwd=tmp_path, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")


# ---- files


@pytest.mark.parametrize("stem", [*every(12, sorted(HEADERS)), "String", "STDIO", "mpi", "Time"])
def test_no_header_is_called_like_one_of_the_system_s(stem: str) -> None:
    with pytest.raises(CollcError) as caught:
        naming.main_paths([("x", MpiC())], "pod", f"out/{stem}.c")
    assert "C0721" in str(caught.value) and f"<{stem.casefold()}.h>" in str(caught.value)
    assert naming.main_paths([("x", MpiC())], "pod", f"out/collc_{stem}.c") == [f"out/collc_{stem}.c"]
    assert naming.main_paths([("x", MpiC(interpose=True))], "pod", f"{stem}.c") == [f"{stem}.c"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["string.coll"], "sums"), (["a.coll", "-o", "String.c"], "sums"), (["a.coll", "-o", "out/"], "errno"),
        (["a.coll", "-t", "mpi-c{library=time}"], "sums"), (["a.coll", "-o", "x/mpi.c"], "sums"),
    ],
)  # fmt: skip
def test_the_command_refuses_such_a_header_before_any_work(
    collc: Callable[..., Ran], arguments: list[str], text: str
) -> None:
    Path(arguments[0]).write_text(f"topology r = biring(2);\ncollective {text} = allreduce on r;\n")
    Path("x").mkdir()
    done = collc(*arguments, *(() if "-t" in arguments else ("-t", "mpi-c")))
    assert done.status in (1, 2) and ("C0721" in done.err or "C0705" in done.err)
    assert sorted(p.name for p in Path().iterdir()) == [arguments[0], "x"]


def test_a_header_is_found_by_its_own_name(mpich: Mpi, tmp_path: Path) -> None:
    """A fault on purpose: what the refusal prevents."""
    if shutil.which("gcc") is None:
        pytest.skip("there is no gcc here")
    (tmp_path / "string.h").write_text(MpiC().emit(PROGRAM)[1].text)
    (tmp_path / "a.c").write_text('#include <string.h>\nint main(void) { return (int)strlen(""); }\n')
    done = subprocess.run(
        [str(mpich.mpicc), "-Werror=implicit-function-declaration", "-I.", "-fsyntax-only", "a.c"], cwd=tmp_path,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1 and "strlen" in done.stderr
    with pytest.raises(CollcError):
        require_stem("string")


def test_a_device_or_a_pipe_gets_no_header_beside_it(collc: Callable[..., Ran], ring: str) -> None:
    os.mkfifo("pipe")
    for path in ("/dev/null", "pipe", "/dev/stdout", "-"):
        files = naming.name_files([("x", MpiC(), MpiC().emit(PROGRAM))], "pod", path)
        assert [file.path for file in files] == [path]
        done = collc(ring, "-t", "mpi-c", "-o", path, "-MD")
        assert done.status == 2 and "name a file with -MF" in done.err
    assert collc(ring, "-t", "mpi-c", "-o", "/dev/null").status == 0
    assert sorted(p.name for p in Path().iterdir()) == ["pipe", ring]


def test_a_name_from_a_printed_ir_stays_in_its_folder() -> None:
    assert naming.main_paths([("../a/b", MpiC())], "pod", "out/") == ["out/.._a_b.c"]


def test_a_file_name_that_is_too_long_is_told_before_any_work(collc: Callable[..., Ran]) -> None:
    Path("a.coll").write_text(f"topology r = biring(2);\ncollective {'x' * 300} = allreduce on r;\n")
    done = collc("a.coll", "-t", "mpi-c", "-o", "out/")
    assert done.status == 1 and "the name has more than 255 bytes" in done.err and "shorter" in done.err
    assert collc("a.coll", "-t", "mpi-c").status == 0
    done = collc("a.coll", "-t", "msccl-xml")
    assert done.status == 0 and f'name="{"x" * 63}"' in Path("a.xml").read_text()
