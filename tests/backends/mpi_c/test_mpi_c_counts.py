"""Functions that take a count for each shard, against the MPI's own, on both MPIs: see ``mpi_c_counts.c``."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
from built_programs import direct
from counted_programs import around, counted, directly, library_of_counts, relayed, weighted
from hypothesis import given, settings
from hypothesis import strategies as st
from mpi_c_builds import right
from mpi_c_output import complaints
from mpi_fixtures import STRICT, Built
from places import the
from sampling import EXHAUSTIVE, every, examples

import collc
from collc.backends.base import Window
from collc.backends.mpi_c import MpiC
from collc.backends.mpi_c.launch import launch
from collc.backends.mpi_c.run import Cases, emit_all
from collc.backends.mpi_c.scratch import lay_out
from collc.backends.mpi_c.toolchain import Mpi, compile_c
from collc.ir.collective import CUSTOM, KINDS, UNEVEN, Collective
from collc.ir.diagnostic import CollcError
from collc.ir.program import Program
from collc.ir.verify import verify_program

SOURCE = the("mpi_c_counts.c")

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

#: calls wait for each other, messages of more than five elements count as large, tags run out
FEW_TAGS = ("-DCOLLC_MESSAGE_MAX=5", "-DCOLLC_AT_ONCE=2", "-DCOLLC_TAG_MAX=9")
SANITIZED = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def library(folder: Path, programs: dict[str, Program]) -> None:
    """Write the library `pod` of some programs."""
    target = MpiC(library="pod")
    made = [target.emit(attrs.evolve(program, name=name))[0] for name, program in programs.items()]
    artifacts = target.join(made)
    report = target.check_joined(made, artifacts)
    assert report.ok, report.failed
    for artifact in artifacts:
        (folder / artifact.filename).write_text(artifact.text)
    (folder / "scarce.c").write_text(SCARCE)


def built(
    mpi: Mpi, folder: Path, *flags: str, relays: bool = True, pieces: int = 2, ranks: int = 4, source: str = "pod.c",
    changed: Callable[[str], str] = str,
) -> Path:  # fmt: skip
    """Build the test program with a library of the five collectives."""
    library(folder, library_of_counts(ranks, relays, pieces))
    (folder / "pod.c").write_text(changed((folder / "pod.c").read_text()))
    strict = ("-Wconversion", *STRICT, f"-I{folder}", "-g", "-O1", f"-DRANKS={ranks}")
    compile_c(mpi, [SOURCE, folder / source], folder / "counts", (*strict, *flags))
    return folder / "counts"


def run(mpi: Mpi, binary: Path, *words: str, seconds: float = 240, ranks: int = 4) -> None:
    lines = launch(mpi, ranks, [str(binary), *words], seconds, binary.parent).splitlines()
    assert lines == ["counts-end failures=0 moved=1"], lines[:20]


# ---- on an MPI


@pytest.mark.needs("mpi")
@pytest.mark.parametrize(("which", "ranks", "pieces"), [("mpich", 3, 2), ("openmpi", 4, 1)])
def test_random_counts(which: str, ranks: int, pieces: int, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    mpi: Mpi = request.getfixturevalue(which)
    run(mpi, built(mpi, tmp_path, pieces=pieces, ranks=ranks), "300", ranks=ranks)


@pytest.mark.needs("mpi")
@pytest.mark.parametrize(
    ("flags", "relays", "pieces"),
    [(SANITIZED, True, 3), *every(2, [(FEW_TAGS, True, 3), ((), False, 2), (FEW_TAGS, False, 1)], 1)],
)
def test_other_programs_and_limits(
    flags: tuple[str, ...], relays: bool, pieces: int, mpich: Mpi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0:verify_asan_link_order=0")  # leaks are the MPI's own
    try:
        binary = built(mpich, tmp_path, *flags, relays=relays, pieces=pieces)
    except CollcError as reason:
        pytest.skip(f"no sanitizers here: {reason}")
    run(mpich, binary, "300" if EXHAUSTIVE else "25")


@pytest.mark.needs("mpi")
@pytest.mark.parametrize("which", ["mpich", "openmpi"])
def test_calls_without_memory_end_alike(which: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    mpi: Mpi = request.getfixturevalue(which)
    binary = built(mpi, tmp_path, source="scarce.c")
    run(mpi, binary, "0", "1" if EXHAUSTIVE else "29")


@pytest.mark.needs("mpi")
def test_valgrind_says_nothing_of_generated_code(mpich: Mpi, tmp_path: Path) -> None:
    """Four ranks, the first of them under valgrind."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        pytest.skip("there is no valgrind here")
    binary, log = built(mpich, tmp_path), tmp_path / "valgrind.log"
    watch = [valgrind, "--leak-check=full", "--show-leak-kinds=definite,indirect", "-q", f"--log-file={log}"]
    words = [str(binary), "300" if EXHAUSTIVE else "3", "0"]
    output = launch(mpich, 1, [*watch, *words, ":", "-n", "3", *words], 240, tmp_path)
    assert output.splitlines() == ["counts-end failures=0 moved=1"]
    assert complaints(log.read_text(errors="replace")) == []


@pytest.mark.needs("mpi")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        *every(
            3,
            [
                ("call->ledger[side->first + k * side->stride] = size_of(call, side, k);", "call->ledger[k] = 1;"),
                ("found - found % call->grain", "found - found % (call->grain + call->rank)"),  # ranks cut differently
                ("extent->spot = units;", "extent->spot = 0;"),
                ("side->apart |=", "side->apart &="),
            ],
            1,
        )
    ],
)
def test_a_fault_is_seen(before: str, after: str, mpich: Mpi, tmp_path: Path) -> None:
    def changed(text: str) -> str:
        assert text.count(before) == 1
        return text.replace(before, after)

    binary = built(mpich, tmp_path, changed=changed)
    with pytest.raises((AssertionError, CollcError)):
        run(mpich, binary, "20", seconds=8)


@pytest.mark.needs("mpi")
def test_run_checks_planned_and_random_counts(mpich: Mpi, tmp_path: Path) -> None:
    programs = list(library_of_counts(3, True, 2).values())
    ran = Built(mpich, programs, tmp_path)
    assert right(ran.run(counts=(1000,), dtypes=("strided",), ops=("user",))) == 5 * 2
    rows = ran.run("alltoallv", counts=(5000,), compare=True).rows
    assert all(row.kind == "alltoallv" and row.bytes == 20000 and len(row.builtin_times) == 1 for row in rows)


@pytest.mark.needs("mpi")
def test_run_finds_what_only_random_counts_show(mpich: Mpi, tmp_path: Path) -> None:
    """A function that is right for the planned counts only."""
    program = relayed("gather", 3)
    ran = Built(mpich, [program], tmp_path)
    text = (tmp_path / "gatherv.c").read_text()
    broken = text.replace("origin = extent->spot;", "origin = buffer == OUTPUT ? (int64_t)offset : extent->spot;")
    assert broken != text
    (tmp_path / "gatherv.c").write_text(broken)
    compile_c(mpich, [tmp_path / "gatherv.c", tmp_path / "collc-driver.c"], ran.binary, ("-O1",))
    rows = ran.run(counts=(0,), in_place=(False,)).rows
    assert [row.correct for row in rows] == [False] and rows[0].detail.endswith("(of random counts)")


# ---- without one


@pytest.mark.parametrize("kind", UNEVEN)
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_files_are_read_back(kind: str, ranks: int) -> None:
    straight = kind == "reduce-scatter" or ranks == 1
    program = (directly if straight else relayed)(kind, ranks, 2)
    assert verify_program(program).ok
    artifacts = MpiC().emit(program)
    report = MpiC().check(program, artifacts)
    assert report.ok, report.failed
    source, header = artifacts
    name = UNEVEN[kind].replace("-", "_")
    assert f"bind_{name}, NULL, NULL}}," in source.text and "#if COUNTS" not in source.text + header.text
    for form in ("", "_c", "_begin", "_begin_c", "_init", "_init_c"):
        assert f"\nint {name}{form}(" in header.text


def test_a_file_of_another_collective_is_refused() -> None:
    pair = [relayed("gather", 3), relayed("gather", 3, 2), counted(direct("gather", 3, 1, root=1)), direct("gather", 3)]
    for wanted in pair:
        for emitted in pair:
            named = attrs.evolve(emitted, name=wanted.name)
            assert MpiC().check(wanted, MpiC().emit(named)).ok == (emitted is wanted)


def test_files_without_counts_have_nothing_of_them() -> None:
    for artifact in MpiC().emit(direct("allgather", 3)):
        for word in ("#if COUNTS", "#if EVEN", "struct side", "ledger", "recvcounts", "MPI_ERR_ROOT"):
            assert word not in artifact.text


def test_a_library_has_functions_with_counts_and_without() -> None:
    target = MpiC(library="pod")
    made = [
        target.emit(attrs.evolve(p, name=n))[0]
        for n, p in {"a": direct("allgather", 3), "b": relayed("gather", 3)}.items()
    ]
    artifacts = target.join(made)
    assert target.check_joined(made, artifacts).ok
    assert "int pod_a(const void *send" in artifacts[1].text and "int pod_b(const void *sendbuf" in artifacts[1].text


def test_several_algorithms_are_chosen_by_the_bytes_of_all_shards() -> None:
    parts = [
        (Window("few", 1, 99, "few"), relayed("gather", 3)),
        (Window("many", 100, None, "many"), relayed("gather", 3, 2)),
    ]
    artifacts = MpiC().emit_selected(parts)
    assert MpiC().check_selected(parts, artifacts).ok
    assert "algorithm_bytes[] = {\n    99, 0,\n}" in artifacts[0].text
    wrong = [(attrs.evolve(parts[0][0], high=98), parts[0][1]), parts[1]]
    assert not MpiC().check_selected(wrong, artifacts).ok


def test_messages_are_of_one_shard() -> None:
    """Shards of any size need not lie side by side: an instruction that moves several is split between them."""
    program = counted(direct("scatter", 3, 2, root=0))
    together = attrs.evolve(program, collective=Collective("scatter", 3, 0))
    for one in (program, together):
        assert verify_program(lay_out(one)[0]).ok
    for kind in UNEVEN:
        laid, _ = lay_out(directly(kind, 3, 2))
        for side in ("src", "dst"):
            rows = laid.reads_src if side == "src" else laid.writes_dst
            first = getattr(laid, f"{side}_offset").astype(int)[rows]
            assert (first // 2 == (first + laid.count.astype(int)[rows] - 1) // 2).all()


@pytest.mark.parametrize(
    "how", ["allgatherv on t { weights: {5, 0, 1, 2} }", "gatherv on t { weights: {5, 0, 1, 2}, root: 2 }"]
)
def test_collectives_of_the_language(how: str) -> None:
    text = f"topology t = torus(2, 2); collective parts = {how}; emit parts as mpi-c;"
    result = collc.compile_source(text, target="mpi-c")
    assert sorted(result.files) == ["parts.c", "parts.h"]
    assert "NULL, 4, bind_" in result.files["parts.c"].text


def test_what_it_does_not_take_is_refused() -> None:
    with pytest.raises(CollcError, match="C0731"):
        MpiC(interpose=True).require(weighted("gather", 3))
    with pytest.raises(CollcError, match="C0709"):
        emit_all([direct("gather", 3), relayed("gather", 3)])


# ---- members


def among(program: Program, members: tuple[int, ...], ranks: int) -> Program:
    """Return the program as one of a collective among some ranks of a larger network."""
    c, place = program.collective, [*members, -1]
    root = None if c.root is None else members[c.root]
    scratch = [0] * ranks
    for member, cells in zip(members, program.scratch.tolist(), strict=True):
        scratch[member] = cells
    columns = {name: [place[r] for r in getattr(program, name).tolist()] for name in ("send_peer", "recv_peer")}
    return attrs.evolve(
        program, collective=attrs.evolve(c, num_ranks=ranks, root=root, members=members), scratch=scratch,
        block_rank=[members[r] for r in program.block_rank.tolist()], **columns,
    )  # fmt: skip


@pytest.mark.parametrize("kind", [*KINDS, *UNEVEN.values()])
def test_members_are_ranks_of_a_communicator(kind: str) -> None:
    even = next((e for e, uneven in UNEVEN.items() if uneven == kind), kind)
    plain = counted(direct(even, 3, 2, root=1)) if kind in UNEVEN.values() else direct(even, 3, 2, root=1)
    program = among(plain, (0, 3, 4), 6)
    assert verify_program(program).ok
    artifacts = MpiC().emit(program)
    assert MpiC().check(program, artifacts).ok
    assert artifacts[0] == attrs.evolve(MpiC().emit(plain)[0], part=artifacts[0].part, model=artifacts[0].model)
    assert "this order: 0, 3, 4.\n" in artifacts[1].text.replace("\n * ", " ")
    assert not MpiC().check(program, [artifacts[0], MpiC().emit(plain)[1]]).ok
    assert not MpiC().check(among(plain, (0, 3, 5), 6), artifacts).ok


def test_many_members_take_several_lines() -> None:
    program = among(direct("broadcast", 40), tuple(range(100, 140)), 200)
    artifacts = MpiC().emit(program)
    assert MpiC().check(program, artifacts).ok
    assert max(map(len, artifacts[1].text.splitlines())) <= 120


def test_data_of_a_rank_that_is_no_member_are_seen() -> None:
    program = among(direct("allgather", 3), (0, 1, 2), 4)
    wrong = attrs.evolve(program, collective=attrs.evolve(program.collective, members=(0, 1)))
    assert not MpiC().check(wrong, MpiC().emit(wrong)).ok


@pytest.mark.needs("mpi")
def test_members_run(mpich: Mpi, tmp_path: Path) -> None:
    programs = [among(direct(kind, 3, 2, root=1), (0, 3, 4), 6) for kind in ("allgather", "alltoall", "reduce")]
    named = [attrs.evolve(program, name=f"of_{program.collective.kind}") for program in programs]
    assert right(Built(mpich, named, tmp_path).run(counts=(0, 100))) == 12


# ---- conditions of their own


def custom(ranks: int, pairs: list[tuple[int, tuple[int, ...]]], pieces: int = 1) -> Program:
    """Return a program around a ring for shards with these ranks before and after."""
    pre, post = tuple(a for a, _ in pairs), tuple(b for _, b in pairs)
    return around(Collective(CUSTOM, ranks, pre=pre, post=post), pieces)


@given(st.data(), st.integers(2, 4), st.integers(1, 3))
@settings(max_examples=examples(16), deadline=None)
def test_any_conditions_are_read_back(data: st.DataObject, ranks: int, pieces: int) -> None:
    rank = st.integers(0, ranks - 1)
    pairs = data.draw(st.lists(st.tuples(rank, st.sets(rank).map(lambda r: tuple(sorted(r)))), min_size=1, max_size=6))
    program = custom(ranks, pairs, pieces)
    artifacts = MpiC().emit(program)
    report = MpiC().check(program, artifacts)
    assert report.ok, report.failed
    other = custom(ranks, [*pairs, (0, ())], pieces)
    assert not MpiC().check(other, artifacts).ok


def test_faults_in_lists_of_shards_are_found() -> None:
    program = custom(3, [(0, (1, 2)), (2, (0,)), (0, (2,))])
    source, header = MpiC().emit(program)
    for table in ("begins_0", "listed_0"):
        begin = source.text.index(f"{table}[]") + len(f"{table}[] = {{")
        numbers = list(re.finditer("[0-9]+", source.text[begin : source.text.index("}", begin)]))
        assert len(numbers) > 5
        for found in numbers:
            at = begin + found.start()
            text = source.text[:at] + str(int(found[0]) + 1) + source.text[begin + found.end() :]
            assert not MpiC().check(program, [attrs.evolve(source, text=text), header]).ok


@pytest.mark.needs("mpi")
def test_custom_collectives_run(mpich: Mpi, tmp_path: Path) -> None:
    pairs = [(0, (1, 2)), (2, (0, 1, 3)), (2, (2,)), (3, ()), (1, (0, 3))]
    named = [attrs.evolve(custom(4, pairs, pieces), name=f"pieces_{pieces}") for pieces in (1, 3)]
    ran = Built(mpich, named, tmp_path)
    assert right(ran.run(counts=(0, 1000), dtypes=("int32", "strided"))) == 8
    for cases in ({"compare": True}, {"in_place": (True,)}):
        with pytest.raises(CollcError, match="C0709"):
            Cases(counts=(1,), **cases).require_for(ran.collectives.values())  # type: ignore[arg-type]  # each its own
