"""Passes on Programs: results stay, finite FIFOs suffice, and each gains what it is for."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from built_programs import direct, ring
from hypothesis import given, settings
from hypothesis import strategies as st
from nets import complete, hypercube, one_way_ring, torus
from programs import alltoall, recursive_doubling_allgather, ring_allreduce, scratch_sum
from sampling import examples
from strategies import connected, schedules

import collc as api
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.diagnostic import CollcError
from collc.ir.machine import execute, smallest_depth
from collc.ir.program import Buffer, Opcode, Program
from collc.ir.spec import Problem
from collc.ir.validate import structure
from collc.ir.verify import verify_program
from collc.passes.analysis.hazards import conflicts, sequential_order, synchronize
from collc.passes.analysis.timing import duration, play
from collc.passes.base import Solver, remark, remarks, solving
from collc.passes.lowering.lower import Lower
from collc.passes.program.channels import AssignChannels
from collc.passes.program.coalesce import Coalesce
from collc.passes.program.copies import EliminateCopies
from collc.passes.program.fuse import STRATEGIES, Fuse
from collc.passes.program.limits import steps
from collc.passes.program.merging import merge
from collc.passes.program.pairing import flows
from collc.passes.program.prune import PruneDependencies
from collc.passes.program.reorder import ReorderFifo
from collc.passes.program.replicate import Replicate
from collc.passes.program.scratch import ReuseScratch
from collc.passes.program.threadblocks import BalanceThreadblocks
from collc.passes.program.unfuse import Unfuse
from collc.passes.schedule.discretize import Discretize
from collc.passes.synthesis.breadth_first.bfb import BFB
from collc.passes.synthesis.torus.doubling import RecursiveDoubling
from collc.passes.synthesis.torus.ring import Ring

KINDS = ("allgather", "reduce-scatter", "allreduce", "broadcast", "reduce")

#: passes whose result must do what was done before, whatever the program
PASSES = {
    "coalesce": Coalesce(),
    "fuse": Fuse(),
    "fuse flow": Fuse(strategy="flow"),
    "fuse few": Fuse(strategy="few"),
    "fuse few, deep": Fuse(strategy="few", fifo_depth=8),
    "unfuse": Unfuse(),
    "eliminate-copies": EliminateCopies(),
    "prune-dependencies": PruneDependencies(),
    "balance-threadblocks": BalanceThreadblocks(channels=2),
    "assign-channels": AssignChannels(),
    "replicate": Replicate(instances=3),
    "reorder-fifo": ReorderFifo(),
    "reuse-scratch": ReuseScratch(),
}
#: what may run before: programs of few and many messages, with and without scratch of their own
BEFORE = {
    "lowered": (),
    "coalesced": (Coalesce(),),
    "plain": (Unfuse(),),
    "in pieces": (Coalesce(), BalanceThreadblocks(channels=2, max_count=2)),
}


def lowered(topology, kind="allgather"):
    rooted = kind in ("broadcast", "reduce")
    problem = Problem(topology, Collective(kind, topology.num_ranks, root=0 if rooted else None))
    return Lower().run(Discretize().run(BFB().run(problem)))


def made(topology, scheduler, kind="allreduce"):
    schedule = scheduler.run(Problem(topology, Collective(kind, topology.num_ranks)))
    return Coalesce().run(Lower().run(Discretize().run(schedule)))


def assert_right(program, depth=2):
    assert structure(program) == []
    assert verify_program(program, fifo_depth=depth, split=1).failed == ()
    assert verify_program(program, fifo_depth=depth).failed == ()


def most(program):
    """The most threadblocks of a rank and steps of a threadblock."""
    return int(np.diff(program.rank_blocks).max()), int(steps(program).max())


# ---- all passes


@pytest.mark.slow
@pytest.mark.parametrize("name", PASSES)
@settings(max_examples=examples(12))
@given(connected(max_ranks=5, extra=6), st.sampled_from(KINDS), st.sampled_from(sorted(BEFORE)))
def test_a_pass_keeps_what_is_computed(name, topology, kind, before):
    """In place and out of place, with FIFOs of 2 messages, whole and chunk by chunk."""
    program = lowered(topology, kind)
    for earlier in BEFORE[before]:
        program = earlier.run(program)
    pass_ = PASSES[name]
    assert_right(pass_.run(program), depth=getattr(pass_, "fifo_depth", None) or 2)


@pytest.mark.slow
@settings(max_examples=examples(40))
@given(schedules(kinds=(*KINDS, "alltoall", "gather", "scatter")), st.data())
def test_passes_in_any_order_keep_what_is_computed(schedule, data):
    """Random trees, switches, roots; after fusing, what takes no fused instructions is left out."""
    program = Lower().run(Discretize().run(schedule))
    for name in data.draw(st.lists(st.sampled_from(sorted(PASSES)), min_size=2, max_size=4)):
        if name == "balance-threadblocks" and np.isin(program.opcode, [5, 7, 8]).any():
            continue
        program = PASSES[name].run(program)
        assert structure(program) == []
    assert_right(program, depth=8)


@pytest.mark.slow
@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize(
    "program",
    [
        ring_allreduce(5, 2, fused=False), ring_allreduce(4), recursive_doubling_allgather(4), scratch_sum(),
        alltoall(4), ring("broadcast", 4, 2), ring("reduce", 3), direct("gather", 3), direct("alltoall", 4),
        Program.build(Collective("allreduce", 1), 1, [0], [], []),
    ],
    ids=lambda p: f"{p.name}{p.num_ranks}",
)  # fmt: skip
def test_programs_written_by_hand(name, program):
    """Blocks that already send and receive, fused instructions, scratch; and a program of nothing."""
    verdict = verify_program(program)
    try:
        after = PASSES[name].run(program)
    except CollcError as refused:
        assert refused.diagnostics[0].code == "C0510"
        return
    assert structure(after) == []
    assert [c.name for c in verify_program(after).failed] == [c.name for c in verdict.failed]
    assert smallest_depth(after, 1) is not None


# ---- fuse


@pytest.mark.parametrize("ranks", [3, 5, 8])
def test_a_ring_is_the_classic_one(ranks):
    """Allreduce round a ring: one threadblock of 2R - 1 steps, that sends, passes on sums, then results, and ends."""
    program = Fuse().run(made(one_way_ring(ranks), Ring()))
    assert most(program) == (1, 2 * ranks - 1)
    mine = [Opcode(x) for x in program.opcode[: 2 * ranks - 1]]
    passed = [Opcode.RECV_REDUCE_SEND] * (ranks - 2) + [Opcode.RECV_REDUCE_COPY_SEND]
    assert mine == [Opcode.SEND, *passed, *[Opcode.RECV_COPY_SEND] * (ranks - 2), Opcode.RECV]
    assert not len(program.deps)
    assert_right(program)


@pytest.mark.parametrize("ranks", [3, 8])
def test_a_ring_without_fused_instructions(ranks):
    """A receive, a sum, a send for every step: what need not be stored is not, and the rest as by hand."""
    program = Unfuse().run(Fuse(fused=False).run(made(one_way_ring(ranks), Ring())))
    assert program.num_instructions == ring_allreduce(ranks, fused=False).num_instructions
    assert_right(program)


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_allpairs_takes_a_threadblock_a_peer(ranks):
    program = Fuse().run(made(complete(ranks), BFB()))
    assert most(program)[0] == ranks - 1
    assert program.num_instructions <= ranks * 4 * (ranks - 1)
    assert_right(program)


def test_the_chosen_strategy_is_reported():
    program = made(torus(3, 3), BFB())
    with remarks() as told:
        chosen = Fuse().run(program)
    assert len(told) == 2 and told[0].startswith("fuse: strategy ")
    assert all(f"{name} " in told[0] for name in STRATEGIES)
    name = told[0].split()[2]
    assert chosen == (program if name == "apart" else Fuse(strategy=name).run(program))


def test_more_joined_blocks_are_not_tried_where_fewer_are_hopeless():
    """On a large torus the blocks that ``flow`` joins take over twice the time, and ``few`` joins more."""
    program = made(torus(6, 6), BFB())
    unit = (1 << 24) // (program.chunks * 36)
    with remarks() as told:
        assert Fuse().run(program) == program
    assert "flow (" in told[0] and "few (" not in told[0]
    apart, flow, few = (duration(Fuse(strategy=s).run(program), 1 << 16, unit, 2) for s in STRATEGIES)
    assert 2 * apart < flow < few


def test_no_strategy_takes_an_eighth_more_than_the_fastest():
    for topology in (torus(3, 3), hypercube(3), complete(5)):
        program = made(topology, BFB())
        unit = (1 << 24) // (program.chunks * topology.num_ranks)
        times = [duration(Fuse(strategy=s).run(program), 1 << 16, unit, 2) for s in STRATEGIES]
        assert 8 * duration(Fuse().run(program), 1 << 16, unit, 2) <= 9 * min(times)


def test_exchanges_of_large_messages_do_not_wait_for_each_other():
    """Both sides send 4 chunks before they receive: in one threadblock they would fill FIFOs of 2 and wait for ever.

    So one of them receives first, or they stay apart.
    """
    program = made(complete(2), RecursiveDoubling())
    assert int(program.count.max()) > 2
    assert_right(Fuse(strategy="few").run(program))
    # the bug that is watched for: threadblocks joined in program order deadlock
    blocks = np.flatnonzero(program.send_peer >= 0)
    finished = execute(program).finished
    order = play(program, 1, 4, lambda: finished).places(finished)
    host = np.arange(program.num_blocks)
    host[blocks + 1] = blocks
    alone = np.full(program.num_instructions, -1)
    for depth, first in ((10**6, [Opcode.SEND, Opcode.SEND]), (2, [Opcode.SEND, Opcode.RECV])):
        merged = merge(program, None, lambda: order, conflicts(program, order), alone, host, depth)
        assert merged is not None
        assert (merged.host == host).all()
        messages = [i for i in merged.order.tolist() if program.opcode[i] in (Opcode.SEND, Opcode.RECV)]
        starts = [next(i for i in messages if host[program.block[i]] == b) for b in blocks.tolist()]
        assert first == sorted(program.opcode[i] for i in starts)


def test_limits_of_steps_keep_blocks_apart():
    """With 7 steps where 9 are needed, nothing is joined; channels are not exceeded either."""
    program = made(one_way_ring(5), Ring())
    assert most(Fuse(strategy="few", max_steps=9).run(program)) == (1, 9)
    limited = Fuse(strategy="few", max_steps=8).run(program)
    assert int(steps(limited).max()) <= 8
    assert_right(limited)


def test_a_send_that_others_wait_for_is_not_fused():
    """Of two sends of what was received neither is fused: the other would wait until it is sent."""
    i, o = Buffer.INPUT, Buffer.OUTPUT
    fork = Program.build(
        Collective("broadcast", 4, root=0), 1, [0] * 4,
        [(0, 1, -1, 0), (1, -1, 0, 0), (1, 2, -1, 0), (1, 3, -1, 0), (2, -1, 1, 0), (3, -1, 1, 0)],
        [
            [(Opcode.SEND, i, 0, i, 0, 4, ()), (Opcode.COPY, i, 0, o, 0, 4, ())], [(Opcode.RECV, i, 0, o, 0, 4, ())],
            [(Opcode.SEND, o, 0, i, 0, 4, (2,))], [(Opcode.SEND, o, 0, i, 0, 4, (2,))],
            [(Opcode.RECV, i, 0, o, 0, 4, ())], [(Opcode.RECV, i, 0, o, 0, 4, ())],
        ],
    )  # fmt: skip
    assert_right(fork)
    assert len(flows(fork, conflicts(fork, sequential_order(fork)))[0]) == 2
    after = Fuse(strategy="flow").run(fork)
    assert not np.isin(after.opcode, [Opcode.RECV_COPY_SEND]).any()
    chain = attrs.evolve(fork, opcode=fork.opcode)  # a chain has one send: it is fused
    assert_right(chain)


# ---- prune-dependencies


@given(connected(min_ranks=2, max_ranks=5, extra=8), st.sampled_from(KINDS))
def test_every_wait_that_is_left_is_needed(topology, kind):
    """Each that is left out makes a race, or is one that only the conflicts asked for by another access imply."""
    program = lowered(topology, kind)
    after = PruneDependencies().run(program)
    assert len(after.deps) <= len(program.deps)
    again = PruneDependencies().run(after)
    assert (again.deps == after.deps).all() and (again.dep_start == after.dep_start).all()


def test_waits_are_pruned_across_threadblocks():
    """Block 2 waits for block 1, which has waited for block 0: it need not wait for block 0."""
    i, s = Buffer.INPUT, Buffer.SCRATCH
    rows = [[(Opcode.COPY, i, 0, s, 0, 1, ())], [(Opcode.COPY, s, 0, s, 1, 1, (0,))]]
    rows.append([(Opcode.COPY, s, 1, s, 0, 1, (0, 1)), (Opcode.COPY, s, 0, Buffer.OUTPUT, 0, 1, (1,))])
    program = Program.build(Collective("allreduce", 1), 1, [2], [(0, -1, -1, 0)] * 3, rows)
    assert PruneDependencies().run(program).deps.tolist() == [0, 1]
    assert_right(PruneDependencies().run(program))


# ---- replicate, assign-channels


@pytest.mark.parametrize("kind", KINDS)
def test_instances_share_every_chunk(kind):
    program = Coalesce().run(lowered(torus(3), kind))
    after = Replicate(instances=4).run(program)
    assert after.chunks == 4 * program.chunks and after.num_channels == 4 * program.num_channels
    assert most(after)[0] == 4 * most(program)[0]
    if kind in ("allreduce", "broadcast", "reduce"):
        assert (np.sort(after.count) == np.sort(np.tile(program.count, 4))).all()
    assert_right(after)


def test_instances_beyond_a_limit_are_refused():
    program = lowered(torus(3))
    for limited in (Replicate(instances=3, max_channels=2), Replicate(instances=3, max_threadblocks=14)):
        with pytest.raises(CollcError) as caught:
            limited.run(program)
        assert caught.value.diagnostics[0].code == "C0509" and "at most 2 instances" in caught.value.diagnostics[0].hint


def test_channels_are_few_and_flows_keep_theirs():
    """Instances numbered 0, 1, 2, 3 times two that parallel links need; holes are closed, parallel links keep apart."""
    program = Replicate(instances=2).run(Coalesce().run(lowered(torus(4, 2))))
    holes = attrs.evolve(program, channel=program.channel.astype(int) * 5 + 3)
    after = AssignChannels().run(holes)
    assert after.num_channels == program.num_channels
    assert_right(after)
    with pytest.raises(CollcError) as caught:
        AssignChannels(max_channels=1).run(holes)
    assert caught.value.diagnostics[0].code == "C0509"


# ---- reorder-fifo, reuse-scratch, eliminate-copies


def test_what_goes_further_is_sent_first():
    """A path of 3: what rank 1 has to pass on goes before what it keeps, at both ends of the connection."""
    i, o, s = Buffer
    scatter = Program.build(
        Collective("scatter", 3, root=0), 1, [0, 1, 0],
        [(0, 1, -1, 0), (0, -1, -1, 0), (1, 2, -1, 0), (1, -1, 0, 0), (2, -1, 1, 0)],
        [
            [(Opcode.SEND, i, 1, i, 0, 1, ()), (Opcode.SEND, i, 2, i, 0, 1, ())], [(Opcode.COPY, i, 0, o, 0, 1, ())],
            [(Opcode.SEND, s, 0, i, 0, 1, (5,))],
            [(Opcode.RECV, i, 0, o, 0, 1, ()), (Opcode.RECV, i, 0, s, 0, 1, ())], [(Opcode.RECV, i, 0, o, 0, 1, ())],
        ],
    )  # fmt: skip
    assert_right(scatter)
    after = ReorderFifo().run(scatter)
    assert after.src_offset[:2].tolist() == [2, 1] and after.dst_buffer[4:6].tolist() == [s, o]
    assert_right(after)
    assert duration(after, 1, 4, 2) < duration(scatter, 1, 4, 2)


def test_scratch_is_reused_where_its_use_is_over():
    """An exchange of four chunks one by one: each is added before the next comes, so one place is enough."""
    program = Lower().run(Discretize().run(RecursiveDoubling().run(Problem(complete(2), Collective("allreduce", 2)))))
    assert program.scratch.tolist() == [4, 4]
    after = ReuseScratch().run(program)
    assert after.scratch.tolist() == [1, 1] and len(after.deps) == len(program.deps)
    assert_right(after)


def test_scratch_in_use_is_kept():
    """Two sums that wait for nobody may be there at the same time."""
    i, o, s = Buffer
    rows = [[(Opcode.COPY, i, k, s, k, 1, ()), (Opcode.COPY, s, k, o, k, 1, ())] for k in range(2)]
    collective = Collective("broadcast", 2, root=0)
    program = Program.build(collective, 1, [2, 0], [(0, -1, -1, 0)] * 2, rows)
    assert ReuseScratch().run(program).scratch.tolist() == [2, 0]
    assert (
        ReuseScratch().run(Program.build(collective, 1, [2, 0], [(0, -1, -1, 0)], [rows[0] + rows[1]])).scratch[0] == 1
    )


def test_copies_through_scratch_vanish():
    program = scratch_sum()
    waste = Replicate(instances=1).run(program)
    assert waste is program
    i, o, s = Buffer
    rows = [
        [(Opcode.COPY, i, 0, s, 0, 2, ()), (Opcode.SEND, s, 0, i, 0, 2, ()), (Opcode.COPY, s, 0, o, 0, 2, ())],
        [(Opcode.RECV, i, 0, s, 0, 2, ()), (Opcode.COPY, s, 0, o, 0, 2, ())],
    ]
    detour = Program.build(Collective("broadcast", 2, root=0), 1, [2, 2], [(0, 1, -1, 0), (1, -1, 0, 0)], rows)
    assert_right(detour)
    after = EliminateCopies().run(detour)
    assert after.opcode.tolist() == [Opcode.SEND, Opcode.COPY, Opcode.RECV]
    assert_right(after)
    assert ReuseScratch().run(after).scratch.tolist() == [0, 0]


def test_copies_that_are_needed_stay():
    """What is overwritten before it is read must be saved: an alltoall in place."""
    program = lowered(complete(3), "allgather")
    assert (EliminateCopies().run(program).opcode == Opcode.COPY).sum() == (program.opcode == Opcode.COPY).sum()
    i, o, s = Buffer
    rows = [
        [(Opcode.COPY, i, 1, s, 0, 1, ()), (Opcode.RECV, i, 0, o, 1, 1, ()), (Opcode.SEND, s, 0, i, 0, 1, ())],
        [(Opcode.SEND, i, 0, i, 0, 1, ()), (Opcode.RECV, i, 0, o, 0, 1, ())],
    ]
    rows[0].append((Opcode.COPY, i, 0, o, 0, 1, ()))
    rows[1].append((Opcode.COPY, i, 1, o, 1, 1, ()))
    swap = Program.build(Collective("alltoall", 2), 1, [1, 0], [(0, 1, 1, 0), (1, 0, 0, 0)], rows)
    assert_right(swap)
    assert (EliminateCopies().run(swap).dst_buffer == s).sum() == 1


# ---- what all of them rest on


def test_copies_that_are_none_in_place_are_waited_for_out_of_place():
    """The copy of input to output moves nothing in place; out of place who reads the output must wait for it."""
    i, o, s = Buffer
    rows = [[(Opcode.COPY, i, 0, o, 0, 1, ())], [(Opcode.COPY, o, 0, s, 0, 1, ()), (Opcode.COPY, s, 0, o, 0, 1, ())]]
    program = Program.build(Collective("allreduce", 1), 1, [1], [(0, -1, -1, 0)] * 2, rows)
    assert verify_program(program).failed
    assert_right(synchronize(program, np.arange(3)))


def test_the_machine_agrees_with_merging():
    """What merging says completes, completes: at depths 1 to 4, whole and chunk by chunk."""
    program = made(torus(3, 3), BFB())
    for depth in (1, 2, 4):
        after = Fuse(strategy="few", fifo_depth=depth).run(program)
        assert execute(after, depth, 1).deadlock is None
        assert execute(after, depth).deadlock is None


# ---- what passes say


def test_rounding_says_what_it_costs():
    """With one chunk a shard links are not balanced: a schedule takes longer, and it is said by how much."""
    problem = Problem(torus(3, 3, 2), Collective("allgather", 18))
    schedule = BFB().run(problem)
    with remarks() as told, solving(Solver(lambda chunks: BFB(chunks=chunks).run(problem))):
        exact = Discretize().run(schedule)
        rounded = Discretize(max_chunks=1).run(schedule)
    found, least = cost(rounded).T_B, cost(exact).T_B
    assert found is not None and least is not None
    assert told == [
        f"discretize: 1 chunk per shard, the best of 1 to 1; {exact.parts} would be exact, but `max-chunks` is 1; "
        f"{found - least} M/B ({float(found / least - 1):.3%}) more than exactly; scheduled again for whole chunks"
    ]


def test_who_listens_inside_does_not_keep_it_from_who_listens_outside():
    with remarks() as outside:
        with remarks() as inside:
            remark("chosen")
        remark("later")
    assert (inside, outside) == (["chosen"], ["chosen", "later"])
    remark("to nobody")


@pytest.mark.parametrize("topology", ["torus(2, 2)", "biring(5)"])
def test_an_alltoall_is_fused_or_left_alone(topology: str) -> None:
    """Its messages hold more chunks than FIFOs do, and wait for each other across blocks."""
    text = f"collective g = alltoall on {topology};\nschedule g using flow;"
    for runtime in ("executor", "rccl", "msccl"):
        assert api.compile_source(text, target=f"msccl-xml{{runtime={runtime}}}").artifacts
