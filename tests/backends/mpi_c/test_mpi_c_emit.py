"""MPI-C without running it: names, tables, determinism, what is refused."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import attrs
import programs
import pytest
from built_programs import direct, edited, find, ring, swapped
from hypothesis import given
from hypothesis import strategies as st
from mpi_fixtures import STRICT
from places import HELPERS
from sampling import every

from collc.backends.mpi_c import MpiC
from collc.backends.mpi_c.codes import CODES
from collc.backends.mpi_c.names import chosen, comment, identifier
from collc.backends.mpi_c.toolchain import Mpi
from collc.ir.collective import KINDS, Collective
from collc.ir.diagnostic import CollcError
from collc.ir.program import Buffer, Opcode, Program

_C_KEYWORDS = ("int", "for", "while", "static", "inline", "restrict", "switch", "class")


def _named(program: Program, name: str, scheduler: str = "") -> Program:
    return attrs.evolve(program, name=name, scheduler=scheduler)


def _refusal(program: Program, **options: str) -> str:
    with pytest.raises(CollcError) as caught:
        MpiC(**options).emit(program)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code in CODES
    return str(diagnostic)


def test_files_are_named_after_the_function() -> None:
    source, header = MpiC().emit(_named(ring("allreduce", 4), "grads"))
    assert (source.filename, header.filename) == ("grads.c", "grads.h")
    for artifact in (source, header):
        assert re.search(r"^int grads\(const void \*send, void \*recv, int count,", artifact.text, re.MULTILINE)
        assert artifact.text.isascii() and artifact.text.endswith("\n")
    assert "#include <mpi.h>" in header.text and "collc.h" not in source.text


@pytest.mark.parametrize("kind", KINDS)
def test_header_says_what_the_buffers_are(kind: str) -> None:
    _, header = MpiC().emit(direct(kind, 3))
    assert kind in header.text and "@" not in header.text and "`count`" in header.text


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_every_collective_is_emitted_the_same_every_time(kind: str, ranks: int) -> None:
    program = direct(kind, ranks)
    assert MpiC().emit(program) == MpiC().emit(program)


@pytest.mark.slow
def test_output_does_not_depend_on_the_hash_seed() -> None:
    code = "import programs; from collc.backends.mpi_c import MpiC; print(MpiC().emit(programs.alltoall(5))[0].text)"
    texts = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, cwd=HELPERS,
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }  # fmt: skip
    assert len(texts) == 1


# ---- names


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("reduce-scatter", "reduce_scatter"), ("3d", "collc_3d"), ("", "collc_"), ("_x", "collc_x"),
        ("int", "collc_int"),
        ("free", "collc_free"), ("main", "collc_main"), ("MPI_Allreduce", "collc_MPI_Allreduce"),
        ("perform", "collc_perform"),
        ("element", "collc_element"), ("naïve", "na_ve"), ("a*/b", "a__b"), ("grads", "grads"), ("data", "data"),
    ],
)  # fmt: skip
def test_names_become_identifiers(name: str, function: str) -> None:
    assert MpiC().emit(_named(ring("allgather", 2), name))[0].filename == f"{function}.c"


@given(st.text(max_size=12))
def test_any_name_becomes_an_identifier_that_could_be_chosen(name: str) -> None:
    function = identifier(name, frozenset())
    assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", function)
    assert chosen(function, frozenset()) == function


@pytest.mark.parametrize(
    "name", ["a b", "1st", "free", "send", "MPI_Bcast", "pmpi_x", "_hidden", "perform", "x;", *_C_KEYWORDS]
)
def test_a_chosen_name_that_c_cannot_use_is_refused(name: str) -> None:
    message = _refusal(ring("allgather", 2), function=name)
    assert f"`{name}`" in message and "[C0705]" in message


def test_a_chosen_name_is_used() -> None:
    assert MpiC(function="my_sum").emit(ring("allreduce", 2))[0].filename == "my_sum.c"


@given(st.text(max_size=40))
def test_nothing_ends_a_comment(text: str) -> None:
    safe = comment(text)
    assert not re.search(r'\*/|/\*|\\|\n|\r|\?|"', safe) and safe.isascii() and len(safe) == len(text)


def test_a_scheduler_name_cannot_inject_code() -> None:
    evil = 'x */ int main(void) { return system("true"); } /* ??/\n#include "/etc/passwd"\n\\'

    def code(scheduler: str) -> list[str]:
        emitted = MpiC().emit(_named(ring("allgather", 2), "f", scheduler))
        return [re.sub(r"/\*.*?\*/", "", artifact.text, flags=re.DOTALL) for artifact in emitted]

    assert code(evil) == code("")
    assert code("") != [artifact.text for artifact in MpiC().emit(_named(ring("allgather", 2), "f"))]


def test_endless_names_are_cut() -> None:
    assert len(MpiC().emit(_named(ring("allgather", 2), "x" * 1000))[0].filename) <= 128


# ---- tables


def _table(text: str, name: str) -> tuple[str, list[int]]:
    match = re.search(rf"static const (\w+)_t {name}\[\] = \{{([^}}]*)\}};", text)
    assert match
    return match[1], [int(x) for x in match[2].replace("\n", " ").split(",") if x.strip()]


@pytest.mark.slow
def test_tables_have_the_smallest_types() -> None:
    text = MpiC().emit(programs.ring_allgather(300))[0].text
    assert _table(text, "step_code")[0] == "uint8"
    assert _table(text, "block_send_peer")[0] == "uint16"
    assert _table(text, "block_steps")[0] == "uint32"
    assert _table(MpiC().emit(programs.broadcast_chain(3))[0].text, "block_send_peer") == ("int8", [1, 2, -1])
    assert max(map(len, text.splitlines())) <= 120


def test_waits_name_the_block_and_step_within_the_rank() -> None:
    program = programs.recursive_doubling_allgather(4)
    text = MpiC().emit(program)[0].text
    waits = [d for i in range(program.num_instructions) for d in program.dependencies(i)]
    assert _table(text, "wait_block")[1] == [int(program.block_id[program.block[d]]) for d in waits]
    assert _table(text, "wait_step")[1] == [int(program.step[d]) for d in waits]


def test_a_program_without_instructions_has_no_empty_table() -> None:
    empty = Program.build(Collective("broadcast", 1, 0), 1, [0], [], [])
    assert "{\n};" not in MpiC().emit(empty)[0].text


# ---- what cannot be carried


def test_writing_to_the_input_is_refused() -> None:
    program = direct("allgather", 2)
    copy = int((program.opcode == Opcode.COPY).argmax())
    message = _refusal(edited(program, copy, dst_buffer=int(Buffer.INPUT), dst_offset=0))
    assert "writes to the input" in message and program.place(copy) in message and "[C0704]" in message


def test_more_channels_than_tags_are_refused() -> None:
    message = _refusal(attrs.evolve(ring("allgather", 2), channel=[40000, 40000]))
    assert "40001 channels" in message and "[C0704]" in message


def test_a_chunk_of_another_size_is_refused() -> None:
    program = direct("allgather", 2, chunks=2)
    send = find(program, 0, 0, 0)
    assert Opcode(program.opcode[send]) in (Opcode.SEND, Opcode.COPY)
    single = attrs.evolve(program, count=[1] * program.num_instructions)
    sends = [i for i in range(program.num_instructions) if program.opcode[i] == Opcode.SEND]
    message = _refusal(edited(single, sends[0], src_offset=1))
    assert "a chunk of another size" in message and "[C0704]" in message


def test_a_deadlock_is_refused() -> None:
    program = programs.alltoall(2)
    rows = [(r, find(program, r, 1 - r, 0)) for r in (0, 1)]  # SEND, RECV with the other rank: now RECV, SEND
    for _, send in rows:
        assert Opcode(program.opcode[send]) is Opcode.SEND
        program = swapped(program, send, send + 1)
    message = _refusal(program)
    assert "deadlocks" in message and program.place(rows[0][1]) in message and "[C0704]" in message


# ---- the compiler's opinion


@pytest.mark.needs("mpi")
@pytest.mark.parametrize("flags", [("-std=c99", "-O2"), ("-std=c11", "-O0", "-Wshadow")])
def test_it_compiles_without_a_warning(
    flags: tuple[str, ...], mpich: Mpi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MPICH_CC")  # what collc ships is for -O2
    names = []
    several = [*(direct(kind, 3, 2) for kind in KINDS), ring("allreduce", 1), ring("allgather", 1)]
    for n, program in enumerate(every(2 if "-O2" in flags else 1, several)):
        for artifact in MpiC().emit(_named(program, f"f{n}")):
            (tmp_path / artifact.filename).write_text(artifact.text)
        names.append(f"f{n}")
    user = [f'#include "{n}.h"' for n in names * 2] + ["int main(void) { return " + " + ".join(f"!{n}" for n in names)]
    (tmp_path / "user.c").write_text("\n".join(user) + "; }\n")
    sources = ["user.c", *(f"{n}.c" for n in names)]
    done = subprocess.run(
        [str(mpich.mpicc), *flags, *STRICT, "-Wno-address", "-o", "user", *sources],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and done.stderr == "", done.stderr
