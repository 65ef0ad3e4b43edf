"""Functions for which some ranks of the communicator only relay: read back, executed, and run on both MPIs."""

from __future__ import annotations

from pathlib import Path

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpi_c_builds import right
from mpi_fixtures import STRICT, Built
from places import the
from program_judge import judge_program
from relayed_programs import ALL_KINDS, among, compiled, program_of, requested
from sampling import EXHAUSTIVE, every, examples
from strategies import connected

import collc
from collc.backends.base import Window
from collc.backends.mpi_c import MpiC
from collc.backends.mpi_c.compare import shortages
from collc.backends.mpi_c.decode import IN_PLACE, decode
from collc.backends.mpi_c.launch import launch
from collc.backends.mpi_c.members import among_members, ranks_of
from collc.backends.mpi_c.progress import allowance
from collc.backends.mpi_c.reader import read_source
from collc.backends.mpi_c.run import Cases, build, emit_all, execute
from collc.backends.mpi_c.toolchain import Mpi, compile_c
from collc.cli.launch import _served
from collc.driver.compile import compile_collective
from collc.driver.result import Settings
from collc.ir.collective import UNEVEN
from collc.ir.diagnostic import CollcError
from collc.ir.program import Buffer, Program
from collc.ir.topology import Topology
from collc.ir.verify import verify_program
from collc.running.over_mpi import seated
from collc.testbed.mpi import Inside

SOURCE = the("mpi_c_relays.c")
#: members have links to ranks that relay only, and all of these are needed
NETWORK, MEMBERS = "relabel(complete_bipartite(3), {0, 3, 1, 4, 2, 5})", (0, 2, 4)
#: calls wait for each other, messages of more than five elements count as large, tags run out
SCARCE = ("-DCOLLC_MESSAGE_MAX=5", "-DCOLLC_AT_ONCE=2", "-DCOLLC_TAG_MAX=9")
#: functions of the library in `mpi_c_relays.c`
NAMES = {
    "all": "allgather", "sums": "allreduce", "pieces": "reduce-scatter", "news": "broadcast", "total": "reduce",
    "heap": "gather", "deal": "scatter", "swap": "alltoall", "some": "alltoallv",
}  # fmt: skip


def relayed(kind: str, placed: bool = False) -> Program:
    """Return a program on the network, or as ``placed`` for its communicator."""
    program = program_of(NETWORK, kind, MEMBERS)
    return among_members([program])[0] if placed else program


# ---- files


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_a_function_of_the_collective_is_read_back(kind: str) -> None:
    program = relayed(kind)
    source, header = MpiC().emit(program)
    assert MpiC().check(program, [source, header]).ok
    assert f"{kind} " in header.text and "for communicators of 6 ranks, 3 of which only relay" in header.text
    assert "this order: 0, 2, 4, 1, 3, 5.\n" in header.text
    assert "The first 3 ranks of the communicator have data: RANKS is 3. The others only relay." in header.text
    for text, other in (("3 ranks of", "4 ranks of"), ("3 of which", "2 of which"), ("4, 1, 3, 5", "4, 1, 5, 3")):
        assert text in header.text
        wrong = attrs.evolve(header, text=header.text.replace(text, other))
        assert not MpiC().check(program, [source, wrong]).ok
    wrong = attrs.evolve(source, text=source.text.replace("{3, ", "{6, ", 1))
    assert wrong.text != source.text and not MpiC().check(program, [wrong, header]).ok


@settings(max_examples=examples(40), deadline=None)
@given(connected(2), st.sampled_from(ALL_KINDS), st.data())
def test_programs_of_random_networks_and_members(topology: Topology, kind: str, data: st.DataObject) -> None:
    members = tuple(sorted(data.draw(st.sets(st.integers(0, topology.num_ranks - 1), min_size=2))))
    found = compiled(topology, among(kind, topology.num_ranks, members), "mpi-c")  # reads the files back
    assert found.made is not None
    (program,) = among_members([found.made])
    assert judge_program(program, 2) == ""
    ranks = ranks_of([found.made])
    if ranks is not None:
        assert ranks[: len(members)] == members
        assert set(ranks[len(members) :]) == set(found.made.block_rank.tolist()) - set(members)


def test_several_algorithms_have_one_communicator() -> None:
    """The relays of all algorithms call all of them."""
    near, far = (program_of("torus(3, 3)", "broadcast", (0, 4, 8), name) for name in ("bine", "recursive-doubling"))
    low, high = Window("a", 0, 999, "low"), Window("b", 1000, None, "high")
    parts = [(low, near), (high, far)]
    assert ranks_of([near]) == (0, 4, 8, 2, 7) and ranks_of([far]) == (0, 4, 8, 1, 3, 5, 7)
    ranks = ranks_of([near, far])
    assert ranks == (0, 4, 8, 1, 2, 3, 5, 7)
    files = MpiC().emit_selected(parts)
    assert MpiC().check_selected(parts, files).ok
    assert f"communicators of {len(ranks)} ranks, {len(ranks) - 3} of which only relay" in files[1].text


def test_a_library_may_have_functions_without_relays() -> None:
    target = MpiC(library="pod")
    programs = [relayed("allgather"), attrs.evolve(program_of("complete(3)", "reduce", (0, 1, 2)), name="plain")]
    mains = [target.emit(program)[0] for program in programs]
    files = target.join(mains)
    assert target.check_joined(mains, files).ok
    assert "{3, -1, 0, 0, 0, 1, 3, bind_allgather}" in files[0].text
    assert "{3, 2, 1, 0, 1, 1, 0, bind_reduce}" in files[0].text
    plain = target.join(mains[1:])
    assert "relay" not in plain[0].text + plain[1].text


def test_unmodified_programs_have_no_ranks_that_relay() -> None:
    assert MpiC().takes_relays and not MpiC(interpose=True).takes_relays


def test_a_launched_program_calls_with_the_members_only() -> None:
    one = requested(collc.topology("dgx_a100(2)"), among("allreduce", 16, (0, 8), size=1 << 26), "forest")
    served = _served([compile_collective(one, [MpiC(interpose=True)], Settings())])
    assert [one.calls for one in served] == [("allreduce", 2, None)]


def test_ranks_of_a_testbed_stand_on_their_nodes() -> None:
    testbed = Inside(Path(), "MPICH", "5.0.2", hosts=tuple("abcdef"))
    placed = seated(testbed, relayed("allgather"))
    assert isinstance(placed, Inside) and placed.hosts == tuple("acebdf")
    assert seated(testbed, program_of("complete(3)", "reduce", (0, 1, 2))) is testbed


# ---- planted faults


def scratch_user(program: Program) -> int:
    """Return an instruction with which a relay writes to its scratch."""
    (ready,) = among_members([program])
    rows = [
        row for row in range(ready.num_instructions)
        if ready.rank[row] >= 3 and ready.writes_dst[row] and ready.dst_buffer[row] == Buffer.SCRATCH
    ]  # fmt: skip
    return rows[0]


def test_a_relay_that_writes_to_a_buffer_is_seen_in_the_program() -> None:
    (program,) = among_members([relayed("allgather")])
    row = scratch_user(program)
    buffers = program.dst_buffer.copy()
    buffers[row] = Buffer.OUTPUT
    wrong = attrs.evolve(program, dst_buffer=buffers)
    assert not verify_program(wrong).ok
    assert judge_program(wrong, 1) != ""
    try:
        files = MpiC().emit(wrong)
    except CollcError:
        return
    assert not MpiC().check(wrong, files).ok


@pytest.mark.needs("mpi")
def test_a_relay_that_writes_to_a_buffer_is_seen_in_a_run(mpich: Mpi, tmp_path: Path) -> None:
    sources = emit_all([relayed("allgather")])
    ((name, (collective, artifact)),) = sources.items()
    before = "    if (only_relays(call))\n        return MPI_SUCCESS;\n    call->in_place"
    assert before in artifact.text
    after = before.replace("return", "return recv ? memset(recv, 1, 1), MPI_SUCCESS :")
    wrong = attrs.evolve(artifact, text=artifact.text.replace(before, after))
    binary = build(mpich, {name: (collective, wrong)}, tmp_path)
    rows = execute(mpich, binary, {name: collective}, Cases((10,), repeats=1, warmup=0), 60).rows
    assert [row.in_place for row in rows if not row.correct] == [False]
    assert rows[0].detail.startswith("rank 3, receive element 0")


# ---- copies of sends


@pytest.mark.parametrize("kind", ["allgather", "allreduce", "alltoall", "reduce", "broadcast"])
def test_a_relay_copies_the_same_sends_in_and_out_of_place(kind: str) -> None:
    program = relayed(kind, placed=True)
    found = allowance(program)
    assert not [row for row in found.copied_in_place if program.rank[row] >= 3]
    (one,) = decode(read_source(MpiC().emit(program)[0].text, "c.c"))[0]
    assert list(shortages(one)) == []
    copied = np.where(one.program.sends & (one.program.rank >= 3), IN_PLACE, one.copied)
    enough = one.sends * 0 + one.slots.max() + 8
    (wrong,) = shortages(attrs.evolve(one, copied=copied, slots=enough, slot_chunks=enough * 100))
    assert "its rank only relays" in wrong


# ---- runs


@pytest.mark.needs("mpi")
@pytest.mark.parametrize("which", ["mpich", "openmpi"])
def test_every_element_of_every_call(which: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    mpi: Mpi = request.getfixturevalue(which)
    even = [relayed(kind, placed=True) for kind in ALL_KINDS if kind not in UNEVEN.values()]
    (tmp_path / "even").mkdir(), (tmp_path / "uneven").mkdir()
    built = Built(mpi, even, tmp_path / "even", library=True)
    found = built.run(counts=(0, 1, 7, 1000), dtypes=("int32", "strided"), ops=("sum", "user"))
    assert right(found) == 4 * 2 * (5 * 2 + 3 * 3)
    uneven = Built(mpi, [relayed(kind, placed=True) for kind in UNEVEN.values()], tmp_path / "uneven", library=True)
    assert right(uneven.run(counts=(0, 100), dtypes=("int32", "strided"), ops=("sum",))) == 2 * 2 * 9
    if which == "mpich":
        assert right(built.run("all_allreduce", "all_gather", counts=(100_003,), compare=True)) == 4


@pytest.mark.needs("mpi")
@pytest.mark.parametrize("seed", range(6) if EXHAUSTIVE else every(3, range(6), 1))
def test_networks_on_an_mpi(seed: int, mpich: Mpi, tmp_path: Path) -> None:
    networks = ("torus(3, 3)", "uniring(5)", "mesh(2, 3)", "kautz(2, 2)", "debruijn(2, 3)", "hypercube(3)")
    members = ((0, 4, 8), (0, 2), (0, 2, 4), (1, 2, 5), (0, 7), (0, 3, 5))
    programs = [program_of(networks[seed], kind, members[seed]) for kind in every(4, ALL_KINDS[:8], seed)]
    assert any(ranks_of([program]) != program.collective.members for program in programs)
    for program in programs:
        assert right(Built(mpich, [program], tmp_path, ["-O0"]).run(counts=(0, 7, 1000), dtypes=("float64",))) == 6


@pytest.mark.needs("mpi")
@pytest.mark.parametrize(("which", "scarce"), [("mpich", ()), ("openmpi", ()), ("mpich", SCARCE)])
def test_all_forms(which: str, scarce: tuple[str, ...], request: pytest.FixtureRequest, tmp_path: Path) -> None:
    mpi: Mpi = request.getfixturevalue(which)
    target = MpiC(library="pod")
    made = [target.emit(attrs.evolve(relayed(kind), name=name))[0] for name, kind in NAMES.items()]
    for artifact in target.join(made):
        (tmp_path / artifact.filename).write_text(artifact.text)
    flags = (*STRICT, "-Wconversion", f"-I{tmp_path}", "-O1", "-DRANKS=6", "-DMEMBERS=3", "-DROOT=2", *scarce)
    compile_c(mpi, [SOURCE, tmp_path / "pod.c"], tmp_path / "relays", flags)
    assert launch(mpi, 6, [str(tmp_path / "relays")], 120, tmp_path).splitlines() == ["relays-end failures=0"]
