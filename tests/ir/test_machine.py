"""The machine against a simulator that does one primitive at a time, in any order that is possible."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest
from built_programs import direct, find, random_program, ring, with_deps
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from collc.ir.collective import Collective
from collc.ir.machine import connections, execute, partners, primitives, smallest_depth, smallest_split
from collc.ir.program import Buffer, Opcode, Program
from collc.ir.verify.program import verify_form

IN, OUT, SCRATCH = Buffer
PROGRAMS = st.builds(
    random_program, st.integers(0, 10**6), st.integers(2, 4), st.integers(0, 12), tangled=st.booleans()
)
DEPTHS = st.sampled_from([None, 0, 1, 2, 3, 8])
SPLITS = st.sampled_from([None, 1, 2, 3, 100])


class Simulator:
    """The semantics, as plainly as possible: ``possible`` says whether a block can do its next primitive now."""

    def __init__(self, program: Program, depth: int | None, split: int | None):
        self.program, self.depth = program, depth
        self.size = [1 if split is None else max(1, -(-int(c) // split)) for c in program.count]
        self.at = [(int(i), 0) for i in program.block_start[:-1]]
        self.done: set[int] = set()
        self.fifo: dict[tuple[int, int, int], int] = {}
        self.performed: list[tuple[int, int]] = []

    def ends(self, block: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        p = self.program
        rank, channel = int(p.block_rank[block]), int(p.channel[block])
        return (int(p.recv_peer[block]), rank, channel), (rank, int(p.send_peer[block]), channel)

    def possible(self, block: int) -> bool:
        i, _ = self.at[block]
        if i >= self.program.block_start[block + 1]:
            return False
        op, (source, sink) = Opcode(int(self.program.opcode[i])), self.ends(block)
        return (
            all(d in self.done for d in self.program.dependencies(i))
            and (not op.receives or self.fifo.get(source, 0) > 0)
            and (not op.sends or self.depth is None or self.fifo.get(sink, 0) < self.depth)
        )

    def perform(self, block: int) -> None:
        i, primitive = self.at[block]
        op, (source, sink) = Opcode(int(self.program.opcode[i])), self.ends(block)
        if op.receives:
            self.fifo[source] -= 1
        if op.sends:
            self.fifo[sink] = self.fifo.get(sink, 0) + 1
        self.performed.append((i, primitive))
        last = primitive + 1 == self.size[i]
        self.at[block] = (i + 1, 0) if last else (i, primitive + 1)
        if last:
            self.done.add(i)

    def run(self, seed: int) -> None:
        draw = random.Random(seed)
        while ready := [b for b in range(self.program.num_blocks) if self.possible(b)]:
            self.perform(draw.choice(ready))


@given(PROGRAMS, DEPTHS, SPLITS, st.integers(0, 100))
@settings(deadline=None)
def test_every_execution_does_the_same(program, depth, split, seed):
    simulator = Simulator(program, depth, split)
    simulator.run(seed)
    execution = execute(program, depth, split)
    assert sorted(simulator.performed) == sorted(map(tuple, execution.order.tolist()))
    complete = len(simulator.performed) == sum(simulator.size)
    assert (execution.deadlock is None) == complete


@given(PROGRAMS, DEPTHS, SPLITS)
@settings(deadline=None)
def test_the_order_is_one_that_all_waits_allow(program, depth, split):
    execution = execute(program, depth, split)
    simulator = Simulator(program, execution.depth, split)
    for i, primitive in execution.order.tolist():
        block = int(program.block[i])
        assert simulator.at[block] == (i, primitive) and simulator.possible(block)
        simulator.perform(block)
    assert [i for i in execution.finished.tolist() if i not in simulator.done] == []
    assert sorted(execution.finished.tolist()) == sorted(simulator.done)


@given(PROGRAMS, SPLITS)
@settings(deadline=None)
def test_the_least_depth_is_least(program, split):
    least = smallest_depth(program, split)
    completes = [execute(program, k, split).deadlock is None for k in range(40)]
    assert completes == [least is not None and k >= least for k in range(40)]


@given(PROGRAMS, DEPTHS, SPLITS)
@settings(deadline=None)
def test_waits_of_a_deadlock_are_real_and_close(program, depth, split):
    execution = execute(program, depth, split)
    if not (deadlock := execution.deadlock):
        return
    finished = set(execution.finished.tolist())
    done = np.bincount(execution.order[:, 0], minlength=program.num_instructions)
    for wait in deadlock.waits:
        assert wait.instruction not in finished
        assert wait.on not in finished
        if wait.kind == "dependency":
            assert wait.on in program.dependencies(wait.instruction)
    blocks = [int(program.block[w.instruction]) for w in deadlock.cycle]
    for wait, following in zip(deadlock.cycle, blocks[1:] + blocks[:1], strict=True):
        assert int(program.block[wait.on]) == following
    assert done.sum() < primitives(program, split).sum()
    assert deadlock.describe(program).count("rank") >= 2


def _exchange(count: int, receive_first: bool = False) -> Program:
    """Two ranks that each send ``count`` chunks to the other before they receive."""
    send = (Opcode.SEND, IN, 0, IN, 0, count, ())
    receive = (Opcode.RECV, IN, 0, OUT, 0, count, ())
    rows = [receive, send] if receive_first else [send, receive]
    blocks = [(0, 1, 1, 0), (1, 0, 0, 0)]
    return Program.build(Collective("allgather", 2), count, [0, 0], blocks, [rows, rows])


def test_a_send_of_many_primitives_needs_as_many_slots():
    program = _exchange(4)
    assert smallest_depth(program) == 1
    assert [smallest_depth(program, split) for split in (1, 2, 3, 4)] == [4, 2, 2, 1]
    assert execute(program, 2, 2).deadlock is None
    deadlock = execute(program, 2, 1).deadlock
    assert deadlock is not None
    assert deadlock.describe(program) == (
        "cycle of 2 waits: rank 0, threadblock 0, step 0 waits for a free slot to rank 1, freed by the receive at "
        "rank 1, threadblock 0, step 1; rank 1, threadblock 0, step 0 waits for a free slot to rank 0, freed by the "
        "receive at rank 0, threadblock 0, step 1"
    )


def test_receiving_before_sending_never_completes():
    program = _exchange(1, receive_first=True)
    assert smallest_depth(program) is None
    deadlock = execute(program).deadlock
    assert deadlock is not None and [w.kind for w in deadlock.cycle] == ["data", "data"]


def test_what_is_never_sent_or_received_is_said_so():
    program = _exchange(1)
    short = Program.build(
        program.collective, 1, [0, 0], [(0, 1, 1, 0), (1, 0, 0, 0)],
        [[(Opcode.RECV, IN, 0, OUT, 0, 1, ())] * 2, [(Opcode.SEND, IN, 0, IN, 0, 1, ())]],
    )  # fmt: skip
    deadlock = execute(short).deadlock
    assert deadlock is not None and not deadlock.cycle
    assert deadlock.describe(short) == "rank 0, threadblock 0, step 1 waits for data from rank 1, never sent"


def test_a_fused_instruction_waits_for_data_and_slot_at_once():
    for ranks in (3, 4, 7):
        for chunks in (1, 2, 5):
            assert smallest_depth(ring("allreduce", ranks, chunks)) == 2


def test_connections_and_partners():
    program = ring("allgather", 3)
    links = connections(program)
    assert list(zip(links.src, links.dst, links.channel, strict=True)) == [(0, 1, 0), (1, 2, 0), (2, 0, 0)]
    assert links.sender.tolist() == [0, 1, 2] and links.receiver.tolist() == [1, 2, 0]
    assert partners(program).tolist() == [-1, -1, 9, 10, -1, -1, 1, 2, -1, -1, 5, 6]


def test_nothing_at_all():
    empty = Program.build(Collective("allreduce", 3), 1, [0, 0, 0], [], [])
    execution = execute(empty)
    assert execution.deadlock is None and execution.depth == 0
    assert execution.order.shape == (0, 2) and len(execution.finished) == 0


@pytest.mark.parametrize(("depth", "split"), [(-1, None), (None, 0), (2, -3)])
def test_senseless_arguments_are_refused(depth, split):
    with pytest.raises(ValueError, match=r"fifo_depth|split"):
        execute(_exchange(1), depth, split)


def test_a_cycle_of_dependencies_among_many_blocks_is_found():
    program = direct("allreduce", 12)
    early = find(program, rank=5, block=1, step=0)
    late = find(program, rank=5, block=2, step=1)
    assert execute(with_deps(program, early, [late])).deadlock is None
    tied = with_deps(with_deps(program, early, [late]), late - 1, [early + 1])
    deadlock = execute(tied).deadlock
    assert deadlock is not None and len(deadlock.waits) > 2
    assert {w.instruction for w in deadlock.cycle} == {early, late - 1}
    assert "rank 5, threadblock 1, step 0 waits for rank 5, threadblock 2, step 1 to finish" in deadlock.describe(tied)


@pytest.mark.slow
def test_a_hundred_thousand_instructions_take_well_under_seconds():
    program = ring("allreduce", 224)
    start = time.process_time()
    execution = execute(program, 2)
    assert execution.deadlock is None and len(execution.finished) == program.num_instructions > 100_000
    assert time.process_time() - start < 5


@settings(max_examples=examples(200))
@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(1, 10), st.booleans(), st.integers(1, 3))
def test_what_completes_with_short_primitives_completes_with_longer_ones(
    seed: int, ranks: int, messages: int, tangled: bool, depth: int
) -> None:
    """The theorem behind ``smallest_split``, where both ends of messages have equal counts, fused or not."""
    program = random_program(seed, ranks, messages, size=6, widest=6, tangled=tangled)
    if not verify_form(program).ok:
        return
    free = [execute(program, depth, split).deadlock is None for split in range(1, 8)]
    assert free == sorted(free)
    assert smallest_split(program, depth, range(1, 8)) == (free.index(True) + 1 if any(free) else None)


def test_the_size_of_primitives_can_decide() -> None:
    """Random programs do get stuck with short primitives only: the theorem is not about nothing."""
    mixed = 0
    for seed in range(400):
        program = random_program(seed, 3, 8, size=6, widest=6, tangled=True)
        if verify_form(program).ok:
            mixed += smallest_split(program, 2, range(1, 8)) not in (None, 1)
    assert mixed > 0
