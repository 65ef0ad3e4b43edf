"""One library of several collectives, algorithms and ranges of sizes: names, symbols, build flags, from C and C++."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import attrs
import pytest
from built_programs import direct, ring
from commands import spawn
from mpi_fixtures import STRICT

import collc as compiler
from collc.backends.base import Artifact, Window
from collc.backends.mpi_c import MpiC
from collc.backends.mpi_c.launch import launch
from collc.backends.mpi_c.toolchain import Mpi, compile_c
from collc.ir.collective import KINDS
from collc.ir.diagnostic import CollcError
from collc.ir.program import Program

POD = MpiC(library="pod")
FORMS = ("", "_c", "_begin", "_init")
REQUESTS = ("attach", "free", "start", "test", "wait", "waitall")
CLEAN = ("-std=c99", "-Wconversion", "-Wsign-conversion", "-Wshadow", *STRICT)


def named(program: Program, name: str) -> Program:
    return attrs.evolve(program, name=name)


def joined(*programs: Program) -> list[Artifact]:
    return list(POD.join([POD.emit(program)[0] for program in programs]))


def put(folder: Path, *artifacts: Artifact) -> None:
    for artifact in artifacts:
        (folder / artifact.filename).write_text(artifact.text)


def run(folder: Path, *command: str | Path) -> str:
    done = subprocess.run([str(c) for c in command], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout


def exports(folder: Path, library: str) -> set[str]:
    """Return the names that a shared library defines for others."""
    if shutil.which("nm") is None:
        pytest.skip("there is no nm here")
    lines = run(folder, "nm", "-D", "--defined-only", library).splitlines()
    return {line.split()[-1] for line in lines if line.split()[-2] in "TDBR"} - {"_init", "_fini"}


# ---- names


def test_one_source_and_header_for_all() -> None:
    source, header = joined(named(ring("allreduce", 4), "sums"), named(direct("allgather", 3), "rows"))
    assert (source.filename, header.filename) == ("pod.c", "pod.h")
    for text in (source.text, header.text):
        for name in ("pod_sums", "pod_rows"):
            assert re.search(rf"^int {name}\(const void \*send, void \*recv, int count,", text, re.MULTILINE)
        assert text.isascii() and text.count("typedef struct pod_operation *pod_request;") == 1
        assert "@" not in text and "PREFIX" not in text and "NUMBER" not in text
    assert " *   pod_rows: allgather for communicators of 3 ranks\n" in header.text
    assert max(map(len, header.text.splitlines())) <= 120


def test_the_order_and_the_text_are_those_of_the_collectives() -> None:
    programs = [named(direct(kind, 2), f"x_{kind}") for kind in KINDS]
    assert joined(*programs) == joined(*programs)
    names = re.findall(r"^int (pod_x_\w+?)\(", joined(*programs)[1].text, re.MULTILINE)
    assert names == [f"pod_x_{kind.replace('-', '_')}{form}" for kind in KINDS for form in FORMS]


def test_no_name_is_anothers_form() -> None:
    programs = [named(ring("allgather", 2), name) for name in ("wait", "x", "x_c", "x", "x_2", "request")]
    names = re.findall(r"^int (pod_\w+?)\(const", joined(*programs)[1].text, re.MULTILINE)
    assert len(names) == len(set(names)) == 6 * len(FORMS)
    assert names[:: len(FORMS)] == ["pod_wait_2", "pod_x", "pod_x_c_2", "pod_x_2", "pod_x_2_2", "pod_request_2"]


def test_a_function_and_a_library_are_two_wishes() -> None:
    with pytest.raises(CollcError, match=r"\[C0720\]"):
        MpiC(library="pod", function="sum").emit(ring("allreduce", 2))
    with pytest.raises(CollcError, match=r"`free` is a name of the C library.*\[C0705\]"):
        MpiC(library="free").emit(ring("allreduce", 2))


# ---- from the command and the API

TEXT = """\
topology net = torus(2, 2);
collective sums = allreduce on net;
schedule sums using auto { sizes: all };
collective rows = allgather on net;
collective pair = allreduce on biring(2);
"""


@pytest.mark.slow
def test_the_command_writes_one_library(tmp_path: Path) -> None:
    (tmp_path / "net.coll").write_text(TEXT)
    done = spawn("net.coll", "-t", "mpi-c{library=pod}", "-MD", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert {p.name for p in tmp_path.iterdir()} == {"net.coll", "pod.c", "pod.h", "pod.d"}
    assert (tmp_path / "pod.d").read_text().startswith("pod.c pod.h:")
    header = (tmp_path / "pod.h").read_text()
    assert all(f"int pod_{name}(" in header for name in ("sums", "rows", "pair"))
    assert "const char *pod_sums_algorithm(MPI_Count count, MPI_Datatype type);" in header
    assert "pod_rows_algorithm" not in header
    files = compiler.compile_source(TEXT, target="mpi-c{library=pod}").files
    assert {name: file.text for name, file in files.items()} == {
        "pod.c": (tmp_path / "pod.c").read_text(), "pod.h": header,
    }  # fmt: skip
    both = spawn("net.coll", "-t", "mpi-c{library=pod,function=f}", cwd=tmp_path)
    assert both.returncode == 2 and "[C0720]" in both.stderr
    named_file = spawn("net.coll", "-t", "mpi-c{library=pod}", "-o", "other.c", cwd=tmp_path)
    assert named_file.returncode == 0 and (tmp_path / "other.h").read_text() == header


@pytest.mark.needs("mpi")
def test_algorithms_of_a_library_are_chosen_by_size(mpich: Mpi, tmp_path: Path) -> None:
    """Two collectives of two algorithms each: every one tells its own names, on both sides of its own edge."""
    low, high = Window("few, small", 1, 99, "small"), Window("many, large", 100, None, "large")
    sums = [(low, named(direct("allreduce", 2), "sums")), (high, named(ring("allreduce", 2), "sums"))]
    rows = [(attrs.evolve(low, algorithm="a", high=39), named(direct("allgather", 2), "rows")),
            (attrs.evolve(high, algorithm="b"), named(ring("allgather", 2), "rows"))]  # fmt: skip
    put(tmp_path, *POD.join([POD.emit_selected(sums)[0], POD.emit_selected(rows)[0]]))
    asked = ["sums_algorithm(99", "sums_algorithm(100", "rows_algorithm(19", "rows_algorithm(20"]
    lines = ["#include <stdio.h>", '#include "pod.h"', "int main(void)", "{", "    MPI_Init(NULL, NULL);"]
    lines += [f"    puts(pod_{call}, MPI_BYTE));" for call in asked] + ["    MPI_Finalize();", "    return 0;", "}", ""]
    (tmp_path / "main.c").write_text("\n".join(lines))
    compile_c(mpich, [tmp_path / "main.c", tmp_path / "pod.c"], tmp_path / "main", CLEAN)
    said = launch(mpich, 1, [str(tmp_path / "main")], 60, tmp_path).splitlines()
    assert said == ["few, small", "many, large", "a", "b"]


# ---- symbols


@pytest.mark.needs("mpi")
def test_a_library_exports_its_functions_and_no_more(mpich: Mpi, tmp_path: Path) -> None:
    put(tmp_path, *joined(*(named(direct(kind, 2), kind) for kind in KINDS)))
    shared = ("-O0", "-shared", "-fPIC", "-fvisibility=hidden")
    run(tmp_path, mpich.mpicc, *CLEAN, *shared, "-o", "libpod.so", "pod.c")
    functions = {f"pod_{kind.replace('-', '_')}{form}" for kind in KINDS for form in FORMS}
    assert exports(tmp_path, "libpod.so") == functions | {f"pod_{name}" for name in REQUESTS}


@pytest.mark.needs("mpi")
def test_sources_without_a_library_go_together_too(mpich: Mpi, tmp_path: Path) -> None:
    names = []
    for kind in KINDS[:3]:
        put(tmp_path, *MpiC(function=f"f_{kind.replace('-', '_')}").emit(direct(kind, 2)))
        names.append(f"f_{kind.replace('-', '_')}")
    put(tmp_path, *joined(named(ring("allreduce", 2), "sums")))
    sources = [f"{name}.c" for name in (*names, "pod")]
    run(tmp_path, mpich.mpicc, *CLEAN, "-O0", "-shared", "-fPIC", "-fvisibility=hidden", "-o", "all.so", *sources)
    found = exports(tmp_path, "all.so")
    assert found == {f"{name}_{form}" for name in (*names, "pod") for form in REQUESTS} | {
        f"{name}{form}" for name in (*names, "pod_sums") for form in FORMS
    }


@pytest.mark.needs("mpi")
def test_the_header_serves_cpp(mpich: Mpi, tmp_path: Path) -> None:
    if shutil.which("g++") is None:
        pytest.skip("there is no C++ compiler here")
    put(tmp_path, *joined(named(ring("allreduce", 2), "sums")))
    calls = "pod_request r = nullptr; return pod_sums_begin(nullptr, nullptr, 0, MPI_INT, MPI_SUM, MPI_COMM_SELF, &r);"
    (tmp_path / "user.cpp").write_text(f'#include "pod.h"\n#include "pod.h"\nint f() {{ {calls} }}\n')
    flags = ("-std=c++17", *STRICT, "-c", "-DMPICH_SKIP_MPICXX", "-I", str(mpich.folder.parent / "include"))
    run(tmp_path, "g++", *flags, "user.cpp")
    assert "pod_sums_begin" in run(tmp_path, "nm", "user.o") and "_Z1fv" in run(tmp_path, "nm", "user.o")
