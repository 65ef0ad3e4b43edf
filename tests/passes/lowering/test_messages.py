"""Programs of messages of networks without a group: one message a step and connection, executed on all ranks."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from message_programs import KINDS, listed_schedule, message_program
from strategies import connected
from template_programs import instructions_of

from collc.frontends.coll import topology as parsed
from collc.ir.collective import Collective
from collc.ir.program import Program
from collc.ir.schedule import Schedule
from collc.ir.spec import Problem
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.symmetric_program import SymmetricProgram
from collc.ir.symmetries import Identity
from collc.ir.topology import Topology
from collc.ir.verify import verify
from collc.ir.verify.connections import strayed
from collc.passes.lowering.lower import Lower
from collc.passes.lowering.template import _Atoms, _Cuts, lower_messages
from collc.passes.schedule.discretize import Discretize
from collc.passes.synthesis.trees.double_binary_tree import DoubleBinaryTree


@given(connected(min_ranks=2), st.sampled_from(KINDS))
def test_a_message_is_what_one_step_sends_over_one_connection(network: Topology, kind: str) -> None:
    schedule, program = listed_schedule(network, kind), message_program(network, kind)
    assert verify(program).ok
    sends = int(np.count_nonzero(program.batched.sends))
    assert sends == len(np.unique(np.stack([schedule.step, schedule.route]), axis=1).T)
    assert not strayed(program.unfold(), schedule)


@given(connected(min_ranks=2), st.sampled_from(KINDS))
def test_messages_have_the_transfers_of_the_program_of_instructions(network: Topology, kind: str) -> None:
    program = message_program(network, kind)
    assert instructions_of(program.unfold()) == instructions_of(Lower().run(listed_schedule(network, kind)))


def forest_steps(network: Topology, pieces: int, chunks: int) -> Schedule:
    """Return a discrete allreduce whose trees carry intervals of the whole vector, which cross shards."""
    problem = Problem(network, Collective("allreduce", network.num_ranks))
    found = DoubleBinaryTree(pipeline=pieces).run(problem)
    return Discretize(max_chunks=chunks).run(found)


def runs_and_neighbours(program: SymmetricProgram) -> tuple[int, int]:
    """Return the runs of all messages, and how many of them continue the run before in the same buffers."""
    seed = program.seed
    near = program.joined[1:].astype(bool)
    for end in ("src", "dst"):
        used = seed.uses(end)[1:]
        buffer, offset = (getattr(seed, f"{end}_{what}").astype(np.int64) for what in ("buffer", "offset"))
        near = near & (~used | ((buffer[1:] == buffer[:-1]) & (offset[:-1] + seed.count[:-1] == offset[1:])))
    return seed.num_instructions, int(near.sum())


@given(connected(min_ranks=2), st.integers(1, 4), st.integers(1, 5))
def test_neighbours_of_different_shards_are_one_run(network: Topology, pieces: int, chunks: int) -> None:
    schedule = forest_steps(network, pieces, chunks)
    program = lower_messages(schedule)
    assert program is not None and program.fixed and verify(program).ok
    assert runs_and_neighbours(program)[1] == 0
    assert not strayed(program.unfold(), schedule)


def test_runs_of_intervals_are_fewer_than_transfers() -> None:
    """An interval of the vector that several shards have is one run at either end."""
    schedule = forest_steps(parsed("double_binary_tree(12)"), 3, 6)
    program = lower_messages(schedule)
    assert program is not None and program.seed.num_instructions < 1.1 * len(schedule) < 2 * len(schedule)
    assert int(program.batched.num_instructions) == program.seed.num_instructions  # all messages are one run


@given(connected(min_ranks=2), st.integers(0, 1 << 20), st.sampled_from(["src_offset", "dst_offset", "count"]))
def test_a_run_at_other_places_is_found(network: Topology, drawn: int, name: str) -> None:
    program = lower_messages(forest_steps(network, 2, 4))
    assert program is not None
    seed, column = program.seed, getattr(program.seed, name).astype(np.int64)
    used = np.flatnonzero(seed.uses(name[:3]) if name.endswith("offset") else column >= 0)
    row = int(used[drawn % len(used)])
    column[row] = (column[row] + 1) % (seed.num_ranks * seed.chunks) if name != "count" else column[row] + 1
    assert not verify(attrs.evolve(program, seed=attrs.evolve(seed, **{name: column}))).ok


def test_an_all_to_all_of_one_transfer_a_message_is_lowered_to_messages() -> None:
    """The program of messages has no tables of all ranks and shards; other collectives gain nothing."""
    network = parsed("complete(7)")
    one, other = (listed_schedule(network, kind) for kind in ("alltoall", "allgather"))
    assert len(one) == len(other) == 42
    assert isinstance(Lower(listed=20).run(one), SymmetricProgram)
    assert isinstance(Lower(listed=20).run(other), Program)


@given(connected(min_ranks=2))
def test_scratch_of_an_all_to_all_is_used_again(network: Topology) -> None:
    schedule, program = listed_schedule(network, "alltoall"), message_program(network, "alltoall")
    ranks = network.num_ranks
    passing = schedule.dst != schedule.shard.astype(np.int64) % ranks
    pairs = np.unique(np.stack([schedule.dst, schedule.shard])[:, passing], axis=1)
    shards = np.bincount(pairs[0].astype(np.int64), minlength=ranks)
    assert (program.seed.scratch <= shards * schedule.parts).all()


def test_a_place_is_free_after_the_last_step_of_its_shard() -> None:
    program = message_program("generalized_kautz(2, 24)", "alltoall")
    listed = Lower().run(listed_schedule("generalized_kautz(2, 24)", "alltoall"))
    assert isinstance(listed, Program)
    assert int(program.seed.scratch.sum()) < int(listed.scratch.sum())


@given(connected(min_ranks=2), st.sampled_from(KINDS), st.integers(0, 1 << 20))
def test_a_schedule_without_a_transfer_makes_a_wrong_program(network: Topology, kind: str, drawn: int) -> None:
    schedule = listed_schedule(network, kind)
    missing = schedule.rows(np.delete(np.arange(len(schedule)), drawn % len(schedule)))
    program = lower_messages(missing)
    assert program is None or not verify(program).ok


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_instruction_is_found(kind: str) -> None:
    program = message_program("generalized_kautz(2, 9)", kind)
    for name in ("src_offset", "dst_offset", "count", "opcode"):
        column = getattr(program.seed, name).astype(np.int64)
        used = np.flatnonzero(program.seed.uses(name[:3]) if name.endswith("offset") else column >= 0)
        row = int(used[len(used) // 2])
        column[row] = (column[row] + 1) % 9 if name != "count" else column[row] + 1
        seed = attrs.evolve(program.seed, **{name: column})
        assert not verify(attrs.evolve(program, seed=seed)).ok, name


def test_most_dependencies_prevent_a_race() -> None:
    program = message_program("generalized_kautz(2, 9)", "allgather")
    seed, found = program.seed, list[bool]()
    for row in range(len(seed.deps)):
        needs = seed.num_dependencies.astype(np.int64)
        needs[seed.dependent[row]] -= 1
        starts = np.append(0, np.cumsum(needs))
        fewer = attrs.evolve(seed, deps=np.delete(seed.deps, row), dep_start=starts)
        found.append(verify(attrs.evolve(program, seed=fewer)).ok)
    assert found.count(False) > found.count(True)  # some also follow from others


def test_up_to_a_number_of_transfers_programs_list_instructions() -> None:
    schedule = listed_schedule("generalized_kautz(4, 64)", "allgather")
    assert isinstance(Lower(listed=len(schedule)).run(schedule), Program)
    assert isinstance(Lower(listed=len(schedule) - 1).run(schedule), SymmetricProgram)


def test_a_ring_and_other_collectives_keep_instructions() -> None:
    ring = listed_schedule("circulant(6, {1})", "allgather")
    assert isinstance(Lower(listed=0).run(ring), Program)
    assert lower_messages(attrs.evolve(ring, collective=Collective("broadcast", 6, 0))) is None


@given(st.lists(st.tuples(*(st.integers(0, most) for most in (3, 9, 9))), max_size=12))
def test_an_atom_sent_in_the_step_of_its_arrival_is_seen(rows: list[tuple[int, ...]]) -> None:
    """Rows are (step, sent atom, received atom), in any order of steps."""
    step, sent, received = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    schedule = listed_schedule("circulant(6, {1})", "allgather")
    blank = np.zeros(len(rows), dtype=np.int64)
    seed = attrs.evolve(
        schedule, step=step, action=blank, lo=blank, hi=blank + 1, shard=blank, route=blank,
    )  # fmt: skip
    none, first = np.zeros(0, dtype=np.int64), np.zeros(10, dtype=np.int64)
    one = SymmetricSchedule(seed, Identity(schedule.topology))
    cuts = _Cuts.of(one)
    atoms = _Atoms(np.arange(len(rows)), blank, sent, received, blank, none, first, 9, none, cuts)
    arrive = {(row[0], row[2]) for row in rows}
    assert atoms.exchange(one) == any((row[0], row[1]) in arrive for row in rows)
