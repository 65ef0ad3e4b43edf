"""Generated C on a real MPI: every element of every call on every rank is checked by the driver."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path

import attrs
import programs
import pytest
from built_programs import direct, ring
from mpi_c_builds import SYNTHESIZED, by_hand, right, synthesized
from mpi_c_programs import relay
from mpi_fixtures import Built
from nets import circulant, complete, de_bruijn, generalized_kautz, hypercube, torus
from sampling import EXHAUSTIVE, every

from collc.backends.mpi_c.run import build, emit_all, run
from collc.backends.mpi_c.toolchain import Mpi
from collc.ir.diagnostic import CollcError
from collc.ir.program import Program
from collc.ir.topology import Topology

pytestmark = pytest.mark.needs("mpi")


# ---- what the compiler makes

#: those before the last five are compiled in a way of their own
TOPOLOGIES: dict[str, Callable[[], Topology]] = {
    "complete(4)": lambda: complete(4),
    "torus(2, 3)": lambda: torus(2, 3),
    "kautz(2, 7)": lambda: generalized_kautz(2, 7),
    "hypercube(3)": lambda: hypercube(3),
    "de_bruijn(2, 3)": lambda: de_bruijn(2, 3),
    "torus(3, 3)": lambda: torus(3, 3),
    "circulant(12, 3, 4)": lambda: circulant(12, 3, 4),
    "torus(3, 3, 2)": lambda: torus(3, 3, 2),
}


@pytest.mark.parametrize("name", [*list(TOPOLOGIES)[:3], *every(2, list(TOPOLOGIES)[3:], 1)])
def test_compiled_collectives(name: str, mpich: Mpi, tmp_path: Path) -> None:
    topology = TOPOLOGIES[name]()
    # Each way of compiling is seen on some topology, with each collective.
    level = {4: 0, 6: 1, 7: 3}.get(topology.num_ranks, 2)
    built = Built(mpich, [synthesized(topology, kind, level) for kind in SYNTHESIZED], tmp_path, library=True)
    # Types matter to no schedule: all of them are seen on the smallest network.
    dtypes = ("int32", "float64", "strided") if topology.num_ranks == 4 or EXHAUSTIVE else ("float64", "strided")
    counts = (0, 1, 7, 1000) if topology.num_ranks == 4 or EXHAUSTIVE else (0, 7, 1000)
    # An allgather is run once for each type, the others with each operation that the type has.
    assert right(built.run(counts=counts, dtypes=dtypes, ops=("sum", "user"))) == len(counts) * 2 * (
        len(dtypes) + 2 * (len(dtypes) * 2 - 1)
    )
    # Blocks that the MPI does not buffer: half a MiB and more.
    large = 1_000_000 if EXHAUSTIVE else 800_000 // topology.num_ranks
    assert right(built.run(counts=(large,), dtypes=("float64",), ops=("max",))) == 6


def test_every_way_of_compiling(mpich: Mpi, tmp_path: Path) -> None:
    programs = [synthesized(torus(2, 2), *way) for way in itertools.product(SYNTHESIZED, range(4))]
    built = Built(mpich, programs, tmp_path, ["-O0"])
    assert right(built.run(counts=(5, 1001), ops=("sum", "user"), dtypes=("int32",))) == 4 * 2 * 5 * 2


# ---- what is written by hand


@pytest.mark.parametrize(("ranks", "chunks"), [(1, 2), (2, 3), (3, 2), (4, 3)])
def test_every_collective(ranks: int, chunks: int, mpich: Mpi, tmp_path: Path) -> None:
    # A file for each of two ranks, a library of all of the others.
    built = Built(mpich, by_hand(ranks, chunks), tmp_path, ["-O0"], library=ranks != 2)
    assert right(built.run(counts=(0, 1, 7, 1000), dtypes=("int64", "strided"), ops=("sum", "user"))) > 100
    if ranks in (2, 4):
        large = built.run(counts=(100_003,), dtypes=("float64",), ops=("min",))
        assert right(large) == 2 * len(built.sources)


def test_every_type_and_operation(mpich: Mpi, tmp_path: Path) -> None:
    built = Built(mpich, [ring("allreduce", 3, 2), ring("reduce-scatter", 3), direct("allreduce", 3)], tmp_path)
    dtypes, ops = ("int32", "int64", "float32", "float64", "strided"), ("sum", "max", "min", "prod", "user")
    result = built.run(counts=(1, 100), dtypes=dtypes, ops=ops)
    assert right(result) == 3 * 2 * (4 * 5 + 1) * 2
    assert {(row.dtype, row.op) for row in result.rows} >= set(itertools.product(dtypes[:-1], ops))


def test_messages_of_more_elements_than_an_int_holds(mpich: Mpi, tmp_path: Path) -> None:
    # The limit is lowered instead: messages, copies and reductions of more than 11 elements go in pieces.
    built = Built(mpich, by_hand(4, 3), tmp_path, ["-O0", "-DCOLLC_MESSAGE_MAX=11"], library=True)
    assert right(built.run(counts=(22, 1003), dtypes=("int32", "strided"), ops=("user",))) > 100


def test_memory_errors_and_undefined_behaviour(mpich: Mpi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Leaks are the MPI's own; ranks preload a library that lets them sleep.
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0:verify_asan_link_order=0")
    flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover"]
    try:
        built = Built(mpich, [*by_hand(3, 2)[::3], relay([3, 1, 0, 2, 5, 4], 3, 2)], tmp_path, flags, True)
    except CollcError as reason:
        pytest.skip(f"no sanitizers here: {reason}")
    assert right(built.run(counts=(0, 7, 100), dtypes=("strided",), ops=("user",))) == len(built.sources) * 6


def test_times_are_compared_with_the_mpis_own(mpich: Mpi) -> None:
    result = run(ring("allreduce", 2), sizes=[1000], repeats=3, compare=True, mpi=mpich)
    assert result.ok and "builtin" in result.table() and "ratio" in result.table()
    for row in result.rows:
        assert len(row.times) == len(row.builtin_times) == 3 and 0 < row.least <= row.median


def test_a_run_has_sizes_of_its_own(mpich: Mpi) -> None:
    result = run(direct("scatter", 2), repeats=1, mpi=mpich)
    assert [row.count for row in result.rows if row.in_place] == [0, 1, 7, 1000, 500_000]
    result.require()


# ---- a mistake is found


def broken(mpich: Mpi, program: Program, folder: Path, edit: Callable[[str], str]) -> Built:
    """Build a program whose emitted C was edited."""
    built = Built.__new__(Built)
    sources = {}
    for name, (collective, artifact) in emit_all([program]).items():
        text = edit(artifact.text)
        assert text != artifact.text
        sources[name] = (collective, attrs.evolve(artifact, text=text))
    built.mpi, built.sources = mpich, sources
    built.collectives = {name: collective for name, (collective, _) in sources.items()}
    built.binary = build(mpich, sources, folder)
    return built


def table(name: str, old: str, new: str) -> Callable[[str], str]:
    """Return an edit that replaces the first match of ``old`` among the entries of a table."""
    return lambda text: re.sub(
        rf"({name}\[\] = {{)([^}}]*)", lambda m: m[1] + re.sub(old, new, m[2], count=1), text, count=1
    )


def test_one_wrong_entry_of_a_table_is_noticed(mpich: Mpi, tmp_path: Path) -> None:
    program = programs.alltoall(3, 2)
    # Rank 0's first message, meant for rank 1, is now rank 2's.
    assert program.src_offset[0] == 2 or program.src_offset[1] == 2
    built = broken(mpich, program, tmp_path, table("step_src", r"\b2\b", "4"))
    result = built.run(counts=(1, 10), dtypes=("int32",), in_place=(False,))
    assert not result.ok
    small, large = result.rows
    assert re.fullmatch(r"rank 1, receive element 0: found -?\d+, expected -?\d+", small.detail)
    assert large.detail.startswith("rank 1, receive element 0: ")
    with pytest.raises(CollcError) as caught:
        result.require()
    assert [d.code for d in caught.value.diagnostics] == ["C0708", "C0708"]


def test_a_write_past_the_buffer_is_noticed(mpich: Mpi, tmp_path: Path) -> None:
    edit = table("step_dst", r"\b1\b", "3")
    built = broken(mpich, ring("allgather", 3), tmp_path, edit)
    (row,) = built.run(counts=(4,), dtypes=("float32",), in_place=(False,), repeats=1).rows
    assert re.search(r"receive element|past the receive buffer", row.detail)


def test_a_changed_send_buffer_is_noticed(mpich: Mpi, tmp_path: Path) -> None:
    def edit(text: str) -> str:
        done = "        error = await(&it);\n"
        return text.replace(done, done + "    if (error == MPI_SUCCESS) it.call.base[INPUT][0] ^= 1;\n")

    built = broken(mpich, direct("allgather", 2), tmp_path, edit)
    (row,) = built.run(counts=(4,), dtypes=("int32",), in_place=(False,), repeats=1).rows
    assert row.detail.startswith("rank 0, send element 0: ")


def test_a_deadlock_ends_at_the_time_limit(mpich: Mpi, tmp_path: Path) -> None:
    """Without the copies that the compiler asked for, ranks that swap in place do wait for each other for ever."""
    program = programs.alltoall(2)
    built = broken(mpich, program, tmp_path, table("step_code", r"\b33\b", "1"))
    assert built.run(counts=(1_000_000,), in_place=(False,), repeats=1).ok
    with pytest.raises(CollcError) as caught:
        built.run(counts=(1_000_000,), in_place=(True,), repeats=1, timeout=1.0)
    assert caught.value.diagnostics[0].code == "C0707"
    assert Built(mpich, [program], tmp_path).run(counts=(1_000_000,), in_place=(True,), repeats=1).ok


def test_a_rank_that_dies_is_one_message(mpich: Mpi, tmp_path: Path) -> None:
    def edit(text: str) -> str:
        begin = "static int execute(struct engine *engine, int *moved)\n{\n"
        return text.replace(begin, begin + "    if (engine->call->rank == 1) abort();\n")

    built = broken(mpich, ring("allgather", 3), tmp_path, edit)
    with pytest.raises(CollcError) as caught:
        built.run(counts=(10,), repeats=1, timeout=60.0)
    (found,) = caught.value.diagnostics
    assert found.code == "C0706" and "3 ranks" in found.message and found.notes


def test_a_rank_whose_call_fails_is_one_message(mpich: Mpi, tmp_path: Path) -> None:
    """Rank 0 gives up, the others wait for it: that ends, and long before the time limit."""

    def edit(text: str) -> str:
        return text.replace(
            " error = advance(engine);", " error = engine->call->rank ? advance(engine) : MPI_ERR_OTHER;"
        )

    built = broken(mpich, ring("allgather", 3), tmp_path, edit)
    with pytest.raises(CollcError) as caught:
        built.run(counts=(10,), repeats=1, timeout=60.0)
    (found,) = caught.value.diagnostics
    assert found.code == "C0706" and any("rank 0 returned error" in note for note in found.notes)


def test_c_that_does_not_compile_is_one_message(mpich: Mpi, tmp_path: Path) -> None:
    with pytest.raises(CollcError) as caught:
        broken(mpich, ring("allgather", 3), tmp_path, lambda text: text + "nonsense\n")
    (found,) = caught.value.diagnostics
    assert found.code == "C0703" and any("nonsense" in note for note in found.notes)


def test_a_missing_compiler_is_one_message(mpich: Mpi, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MPICH_CC", "OMPI_CC", "I_MPI_CC"):
        monkeypatch.setenv(name, "no-such-compiler")
    with pytest.raises(CollcError) as caught:
        run(ring("allgather", 2), sizes=[1], mpi=mpich)
    assert caught.value.diagnostics[0].code == "C0702"
