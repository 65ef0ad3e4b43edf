"""Passes on schedules and programs: what each promises, on networks of any shape."""

from __future__ import annotations

from fractions import Fraction

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nets import complete, generalized_kautz, hypercube, one_way_ring, torus
from sampling import examples
from strategies import connected

from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.diagnostic import CollcError
from collc.ir.machine import execute
from collc.ir.program import Buffer, Opcode, Program
from collc.ir.schedule import Action, Schedule
from collc.ir.spec import Problem
from collc.ir.topology import Topology
from collc.ir.validate import structure
from collc.ir.verify import verify_program, verify_schedule
from collc.passes.analysis.hazards import sequential_order, synchronize
from collc.passes.lowering.lower import Lower
from collc.passes.program.coalesce import Coalesce
from collc.passes.program.threadblocks import BalanceThreadblocks
from collc.passes.program.unfuse import Unfuse
from collc.passes.schedule.compose import Compose, compose
from collc.passes.schedule.discretize import Discretize, round_parts
from collc.passes.schedule.reverse import Reverse, reverse
from collc.passes.synthesis.breadth_first.bfb import BFB

KINDS = ("allgather", "reduce-scatter", "allreduce", "broadcast", "reduce")


def bfb(topology, kind="allgather", root=0):
    rooted = kind in ("broadcast", "reduce")
    return BFB().run(Problem(topology, Collective(kind, topology.num_ranks, root=root if rooted else None)))


def lowered(topology, kind="allgather", root=0):
    return Lower().run(Discretize().run(bfb(topology, kind, root)))


def code_of(work):
    with pytest.raises(CollcError) as caught:
        work()
    return caught.value.diagnostics[0].code


def assert_right(program, **machine):
    assert structure(program) == []
    assert verify_program(program, **machine).failed == ()


def hand_made(topology, collective, rows):
    """A discrete schedule of rows (step, action, shard, link), whole shards."""
    table = np.array([(s, a, k, 0, 1, r) for s, a, k, r in rows]).T
    return Schedule(topology, collective, 1, **dict(zip(Schedule.COLUMNS, table, strict=True)), discrete=True)


# ---- reverse and compose


@given(connected(max_ranks=6, extra=10), st.sampled_from(KINDS))
def test_reversing_twice_gives_the_schedule_back(topology, kind):
    """Theorem 1 both ways; the reverse is right on the transpose, with the same T_L and T_B."""
    s = bfb(topology, kind)
    back = reverse(s)
    assert verify_schedule(back).ok
    assert (cost(s).T_L, cost(s).time_per_byte) == (cost(back).T_L, cost(back).time_per_byte)
    assert s == attrs.evolve(reverse(back), topology=topology)


@given(connected(max_ranks=5, extra=4))
def test_the_reverse_pass_needs_two_way_links(topology):
    """On a network that equals its transpose the reverse runs on the network itself; elsewhere it is refused."""
    s = bfb(topology)
    if topology.reverse_links is None:
        assert "C0505" == code_of(lambda: Reverse().run(s))
        return
    back = Reverse().run(s)
    assert topology == back.topology and verify_schedule(back).ok


@pytest.mark.parametrize("kind", ["allgather", "reduce-scatter"])
def test_compose_makes_an_allreduce_of_either_half(kind):
    half = bfb(torus(3, 4), kind)
    whole = Compose().run(half)
    assert verify_schedule(whole).ok and "allreduce" == whole.collective.kind
    assert 2 * cost(half).T_B == cost(whole).T_B


def test_what_does_not_compose():
    broadcast, gather = bfb(torus(3), "broadcast"), bfb(torus(3))
    assert "C0506" == code_of(lambda: Compose().run(broadcast))
    assert "C0506" == code_of(lambda: compose(gather, gather))
    assert "C0505" == code_of(lambda: Compose().run(bfb(one_way_ring(3))))


# ---- discretize


@given(connected(max_ranks=6, extra=10), st.sampled_from(KINDS), st.integers(1, 9))
def test_rounding_to_any_number_of_chunks_stays_correct(topology, kind, chunks):
    """One map of ends that does not decrease keeps every schedule right; no link gains more than a chunk a piece."""
    s = bfb(topology, kind)
    rounded = round_parts(s, chunks)
    assert verify_schedule(rounded).ok
    exact, found = cost(s), cost(rounded)
    pieces = max((int(np.bincount(s.route[s.step == t]).max()) for t in range(s.num_steps)), default=0)
    bound = exact.time_per_byte + Fraction(pieces * s.num_steps, chunks * topology.num_ranks)
    assert found.time_per_byte <= bound


@pytest.mark.parametrize("topology", [hypercube(5), torus(3, 3, 2), generalized_kautz(3, 20)], ids=lambda t: t.name)
@pytest.mark.parametrize("chunks", [1, 2, 4, 7])
def test_the_loss_of_few_chunks_is_within_theorem_20(topology, chunks):
    """T_B <= T_B(optimal for P chunks) + d (d^D - 1) / ((d - 1) P N); here against the still lower T_B of the LP."""
    exact, found = cost(bfb(topology)), cost(Discretize(max_chunks=chunks).run(bfb(topology)))
    d, n = topology.degree, topology.num_ranks
    loss = Fraction(d * (d**topology.diameter - 1), (d - 1) * chunks * n)
    assert found.T_B <= exact.T_B + loss
    assert found.parts <= chunks


def test_without_a_limit_nothing_is_lost():
    """The LCM of the denominators: 4 chunks for a 4x4 torus, and no more when parts are written finer than needed."""
    s = bfb(torus(4, 4))
    fine = attrs.evolve(s, parts=s.parts * 6, lo=s.lo * 6, hi=s.hi * 6)
    found = Discretize().run(fine)
    assert (s.parts, True) == (found.parts, found.discrete)
    assert cost(s).T_B == cost(found).T_B
    assert "C0507" == code_of(lambda: Discretize(max_chunks=0).run(s))


# ---- lower


@given(connected(max_ranks=6, extra=10), st.sampled_from(KINDS), st.data())
def test_lowered_programs_are_right_at_any_fifo_depth(topology, kind, data):
    """In place and out of place, at depth 1 and with chunks sent one by one: sends and receives have blocks of
    their own."""
    root = data.draw(st.integers(0, topology.num_ranks - 1))
    program = lowered(topology, kind, root)
    assert_right(program)
    assert_right(program, fifo_depth=1, split=1)


def test_an_exchange_does_not_wait_for_itself():
    """Recursive doubling: each rank sends a shard and receives into it in one step; the arrival waits in scratch."""
    net = hypercube(3)
    link = {(int(a), int(b)): i for i, (a, b) in enumerate(zip(net.src, net.dst, strict=True))}
    rows = [(s, Action.REDUCE, k, link[r, r ^ 1 << s]) for s in range(3) for r in range(8) for k in range(8)]
    s = hand_made(net, Collective("allreduce", 8), rows)
    assert verify_schedule(s).ok
    program = Lower().run(s)
    assert_right(program, fifo_depth=1, split=1)
    joined = Coalesce().run(program)
    assert_right(joined, fifo_depth=1, split=1)


def test_shards_that_pass_through_rest_in_scratch():
    """A reduce-scatter may not write the input out of place, so partial sums lie in scratch; a gather's too."""
    program = lowered(torus(5), "reduce-scatter")
    assert (program.scratch > 0).all()
    net = one_way_ring(4)
    rows = [(s, Action.COPY, k, (k + s) % 4) for k in range(1, 4) for s in range(4 - k)]
    gather = hand_made(net, Collective("gather", 4, root=0), sorted(rows))
    assert verify_schedule(gather).ok
    program = Lower().run(gather)
    assert [0, 0, 1, 2] == program.scratch.tolist()
    assert_right(program)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_an_alltoall_over_a_complete_network(n):
    """Every block goes straight to its rank; in place, a block is received only where its own has been sent."""
    net = complete(n)
    link = {(int(a), int(b)): i for i, (a, b) in enumerate(zip(net.src, net.dst, strict=True))}
    rows = [(0, Action.COPY, a * n + b, link[a, b]) for a in range(n) for b in range(n) if a != b]
    table = np.array([(s, a, k, 0, 1, r) for s, a, k, r in rows], dtype=int).reshape(-1, 6).T
    s = Schedule(net, Collective("alltoall", n), 1, **dict(zip(Schedule.COLUMNS, table, strict=True)), discrete=True)
    assert verify_schedule(s).ok
    assert_right(Lower().run(s), fifo_depth=1)


# ---- coalesce


@given(connected(max_ranks=6, extra=10), st.sampled_from(KINDS), st.none() | st.integers(1, 6))
def test_coalescing_keeps_programs_right(topology, kind, most):
    """No more messages than before, none longer than the limit (but for those that were), the same data moved."""
    before = lowered(topology, kind)
    after = Coalesce(max_count=most).run(before)
    assert_right(after)
    assert_right(after, fifo_depth=1, split=1)
    assert after.num_instructions <= before.num_instructions
    assert int(before.count.sum()) == int(after.count.sum())
    if most is not None:
        assert int(after.count.max(initial=0)) <= max(most, int(before.count.max(initial=0)))


def test_contiguous_chunks_travel_together():
    """A broadcast down a path: 6 shards, one message a link."""
    path = Topology.from_links("path", 6, [(i, i + 1) for i in range(5)] + [(i + 1, i) for i in range(5)])
    program = Coalesce().run(lowered(path, "broadcast"))
    assert 5 == int((program.opcode == Opcode.SEND).sum())
    assert [6] == sorted(set(program.count.tolist()))


# ---- balance-threadblocks and unfuse


@given(
    connected(min_ranks=2, max_ranks=6, extra=12), st.sampled_from(KINDS), st.integers(1, 3), st.integers(4, 40),
    st.none() | st.integers(1, 3), st.booleans(),
)  # fmt: skip
@settings(deadline=None)
def test_balanced_programs_fit_and_stay_right(topology, kind, channels, steps, most, fused):
    """Within the steps asked for, at FIFO depth 2 with chunks one by one, whatever the limits; or a C0509."""
    program = Coalesce().run(lowered(topology, kind))
    balance = BalanceThreadblocks(
        channels=channels, max_steps=steps, max_threadblocks=14, max_count=most, fifo_depth=2, fused=fused
    )
    try:
        after = balance.run(program)
    except CollcError as refused:
        assert "C0509" == refused.diagnostics[0].code
        return
    if not fused:
        after = Unfuse().run(after)
        assert not np.isin(after.opcode, [Opcode.RECV_REDUCE_COPY]).any()
    assert_right(after, fifo_depth=2, split=1)
    assert int(np.diff(after.rank_blocks).max()) <= 14
    waits = np.maximum(np.diff(after.dep_start.astype(int)), 1)
    assert max(np.bincount(after.block, weights=waits), default=0) <= steps
    if most is not None:
        assert int(after.count.max(initial=0)) <= most


def test_streams_share_bytes_evenly():
    """Two channels for every link of a torus: each gets half the chunks, give or take a message."""
    program = lowered(torus(4, 4), "allgather")
    after = BalanceThreadblocks(channels=2).run(program)
    load = np.zeros(after.num_blocks, dtype=int)
    np.add.at(load, after.block, after.count)
    sends = after.send_peer >= 0
    pairs = {}
    for rank, peer, chunks in zip(after.block_rank[sends], after.send_peer[sends], load[sends], strict=True):
        pairs.setdefault((int(rank), int(peer)), []).append(int(chunks))
    assert all(2 == len(p) and max(p) - min(p) <= int(program.count.max()) for p in pairs.values())
    assert_right(after)


def test_few_threadblocks_are_shared_by_sends_and_receives():
    """24 neighbours each way and 25 threadblocks: every send block takes a receive block in."""
    program = lowered(complete(25), "allgather")
    after = BalanceThreadblocks(max_threadblocks=25, fifo_depth=2).run(program)
    assert 25 == int(np.diff(after.rank_blocks).max())
    assert_right(after, fifo_depth=2, split=1)
    assert "C0509" == code_of(lambda: BalanceThreadblocks(max_threadblocks=23).run(program))


@pytest.mark.parametrize("kind", ["allgather", "reduce-scatter", "allreduce"])
def test_a_single_rank_only_copies(kind):
    """No peers, no channels: one threadblock that copies input to output, through all passes."""
    program = Coalesce().run(lowered(Topology.from_links("one", 1, []), kind))
    after = Unfuse().run(BalanceThreadblocks(max_steps=64, max_threadblocks=64, max_channels=32).run(program))
    assert [Opcode.COPY] == after.opcode.tolist()
    assert_right(after)


def test_limits_that_cannot_be_met_are_named():
    program = lowered(torus(4, 4), "allreduce")
    assert "C0509" == code_of(lambda: BalanceThreadblocks(max_steps=1).run(program))
    assert "C0509" == code_of(lambda: BalanceThreadblocks(max_steps=5, max_channels=1).run(program))
    assert "C0508" == code_of(lambda: BalanceThreadblocks(max_steps=0).run(program))
    assert "C0508" == code_of(lambda: Coalesce(max_count=0).run(program))


def test_balancing_comes_before_fusing():
    """A chain of three whose middle passes on what it receives: its block cannot be divided."""
    i, o = Buffer.INPUT, Buffer.OUTPUT
    chain = Program.build(
        Collective("broadcast", 3, root=0), 1, [0, 0, 0], [(0, 1, -1, 0), (1, 2, 0, 0), (2, -1, 1, 0)],
        [
            [(Opcode.SEND, i, 0, i, 0, 3, ()), (Opcode.COPY, i, 0, o, 0, 3, ())],
            [(Opcode.RECV_COPY_SEND, i, 0, o, 0, 3, ())],
            [(Opcode.RECV, i, 0, o, 0, 3, ())],
        ],
    )  # fmt: skip
    assert_right(chain)
    assert "C0510" == code_of(lambda: BalanceThreadblocks().run(chain))
    assert_right(Unfuse().run(chain))


# ---- hazards


@pytest.mark.slow
@given(connected(min_ranks=2, max_ranks=5, extra=8), st.data())
@settings(max_examples=examples(50))
def test_every_wait_is_needed(topology, data):
    """Take one wait away: the program races (its detail names it), unless another wait implies it."""
    program = lowered(topology, "allreduce")
    if not len(program.deps):
        return
    gone = data.draw(st.integers(0, len(program.deps) - 1))
    owner = int(np.searchsorted(program.dep_start, gone, side="right")) - 1
    start = program.dep_start.astype(int).copy()
    start[owner + 1 :] -= 1
    less = attrs.evolve(program, dep_start=start, deps=np.delete(program.deps, gone))
    report = verify_program(less)
    order = sequential_order(less)
    assert not report.ok or len(synchronize(less, order).deps) == len(program.deps)


def test_waits_do_not_deadlock_a_large_torus():
    """64 ranks with depth-1 FIFOs and one chunk at a time."""
    program = Coalesce().run(lowered(torus(8, 8), "allreduce"))
    assert execute(program, fifo_depth=1, split=1).deadlock is None
