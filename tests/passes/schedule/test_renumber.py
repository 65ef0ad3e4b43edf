"""Numbers of chunks: what goes together lies together, where numbers mean nothing."""

from __future__ import annotations

from itertools import permutations

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nets import hypercube, one_way_ring, torus
from sampling import every, examples
from strategies import connected, schedules

import collc as api
from collc.frontends import coll
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.diagnostic import CollcError
from collc.ir.opcodes import SENDS
from collc.ir.program import Buffer, Opcode, Program
from collc.ir.schedule import Forest
from collc.ir.spec import Problem
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.verify import verify_program, verify_schedule
from collc.passes.analysis import paths
from collc.passes.analysis.hazards import synchronize
from collc.passes.analysis.paths import heavy_path, weight
from collc.passes.base import remarks
from collc.passes.lowering.lower import Lower, instructions
from collc.passes.program.coalesce import Coalesce, count_messages, least_messages
from collc.passes.schedule import renumber
from collc.passes.schedule.discretize import Discretize
from collc.passes.schedule.renumber import FREE, Renumber
from collc.passes.synthesis.breadth_first.bfb import BFB
from collc.passes.synthesis.torus.bucket import Bucket
from collc.passes.synthesis.torus.doubling import Rabenseifner
from collc.passes.synthesis.torus.ring import Ring
from collc.passes.synthesis.torus.swing import Swing
from collc.registry.classes import pass_class

KINDS = ("allgather", "reduce-scatter", "allreduce", "broadcast", "reduce")


def made(topology, scheduler, kind="allreduce"):
    schedule = scheduler.run(Problem(topology, Collective(kind, topology.num_ranks)))
    schedule = Discretize().run(schedule)
    return schedule.unfold() if isinstance(schedule, SymmetricSchedule) else schedule


def messages(schedule):
    program = Coalesce().run(Lower().run(schedule))
    return int(np.isin(program.opcode, [Opcode.SEND]).sum())


# ---- what stays


@pytest.mark.slow
@settings(max_examples=examples(40))
@given(schedules(kinds=(*KINDS, "alltoall", "gather", "scatter")))
def test_every_schedule_stays_right_and_costs_the_same(schedule):
    """Random trees, switches, roots: same steps and bandwidth; collectives whose shards are somebody's are not
    touched."""
    before = Discretize().run(schedule)
    after = Renumber().run(before)
    assert verify_schedule(after).ok
    assert verify_program(Lower().run(after), fifo_depth=2).failed == ()
    a, b = cost(before), cost(after)
    assert (a.T_L, a.T_B, a.time_per_byte, a.parts) == (b.T_L, b.T_B, b.time_per_byte, b.parts)
    assert schedule.collective.kind in FREE or after is before


@settings(max_examples=examples(20))
@given(connected(max_ranks=5, extra=6), st.sampled_from(sorted(FREE)))
def test_never_more_messages(topology, kind):
    """Counted in programs after `coalesce`; and where nothing is said, nothing is changed."""
    root = 0 if kind in ("broadcast", "reduce") else None
    before = Discretize().run(BFB().run(Problem(topology, Collective(kind, topology.num_ranks, root=root))))
    before = before.unfold() if isinstance(before, SymmetricSchedule) else before
    with remarks() as told:
        after = Renumber().run(before)
    assert messages(after) <= messages(before)
    assert bool(told) == (after is not before)


def lowered(schedule):
    """Return the messages of the program itself."""
    program = Coalesce(pack="never").run(Lower().run(schedule))
    return int(SENDS[program.opcode].sum())


@pytest.mark.slow
@settings(max_examples=examples(40))
@given(schedules(kinds=(*KINDS, "alltoall", "gather", "scatter")))
def test_messages_are_counted_without_a_program(schedule):
    """Exactly as many as are left after lowering and joining, before and after chunks get new numbers."""
    whole = Discretize().run(schedule)
    for numbered in (whole, Renumber().run(whole)):
        number = count_messages(*instructions(numbered))
        assert number == lowered(numbered)
        assert least_messages(instructions(numbered)[0]) <= number
        intervals = renumber._Intervals.of(numbered)
        assert intervals is None or renumber._least(numbered, intervals) <= number


@pytest.mark.parametrize(("crossing", "messages"), [(False, 1), (True, 2)])
def test_what_would_wait_for_itself_is_not_joined(crossing, messages):
    """Two blocks of copies, each of which reads with its second what the other writes with its first: only one of both
    can be joined, so that only messages without waits are."""
    scratch = Buffer.SCRATCH

    def copies(*ends):
        return [(Opcode.COPY, scratch, a, scratch, b, 1, ()) for a, b in ends]

    blocks = [(0, -1, -1, 0), (0, -1, -1, 0), (0, 1, -1, 0), (1, -1, 0, 0)]
    rows = [
        copies((0, 5), (1, 6)), copies((4, 1), (5, 2)) if crossing else copies((3, 4)),
        [(Opcode.SEND, scratch, at, Buffer.INPUT, 0, 1, ()) for at in (5, 6)],
        [(Opcode.RECV, Buffer.INPUT, 0, scratch, at, 1, ()) for at in (0, 1)],
    ]  # fmt: skip
    program = Program.build(Collective("allgather", 2), 1, [7, 2], blocks, rows)
    order = [0, 2, 1, 3, *range(4, 8)] if crossing else list(range(program.num_instructions))
    place = np.argsort(order)
    joined = Coalesce(pack="never").run(synchronize(program, place))
    assert count_messages(program, place) == int(SENDS[joined.opcode].sum()) == messages


NETS = ("torus(3, 3, 2)", "torus(4, 4)", "hypercube(3)", "uniring(5)", "biring(6)", "complete(5)", "mesh(3, 3)")
SCHEDULERS = (
    "bfb", "swing", "recursive-doubling", "rabenseifner", "bucket", "ring", "bine", "pat", "trivance",
    "double-binary-tree", "flow", "forest",
)  # fmt: skip


@pytest.mark.parametrize(("net", "scheduler"), every(7, [(n, s) for n in NETS for s in SCHEDULERS]))
def test_messages_of_all_schedulers_are_counted(net, scheduler):
    """Exchanges set arrivals aside, trees send piece after piece, parallel links have connections of their own."""
    topology = coll.topology(net)
    for kind in (*KINDS, "alltoall"):
        root = 0 if kind in ("broadcast", "reduce") else None
        try:
            found = pass_class(scheduler)().run(Problem(topology, Collective(kind, topology.num_ranks, root=root)))
        except CollcError:
            continue  # not every scheduler does every collective on every network
        steps = found.to_steps(2) if isinstance(found, Forest) else found
        whole = Discretize().run(steps.unfold() if isinstance(steps, SymmetricSchedule) else steps)
        for numbered in (whole, shuffled(whole)):
            number = count_messages(*instructions(numbered))
            assert number == lowered(numbered)
            assert least_messages(instructions(numbered)[0]) <= number
            intervals = renumber._Intervals.of(numbered)
            assert intervals is None or renumber._least(numbered, intervals) <= number


def shuffled(schedule):
    """Return a schedule whose chunks of a shard go in another order, one by one."""
    chunks = int(schedule.parts)
    row = np.repeat(np.arange(len(schedule)), (schedule.hi - schedule.lo).astype(np.int64))
    nth = np.arange(len(row)) - np.repeat(np.searchsorted(row, np.arange(len(schedule))), schedule.hi - schedule.lo)
    place = np.random.default_rng(chunks).permutation(chunks)[schedule.lo[row] + nth]
    columns = {c: getattr(schedule, c)[row] for c in ("step", "action", "shard", "route")}
    return attrs.evolve(schedule, **columns, lo=place, hi=place + 1)


# ---- what is gained


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "scheduler"),
    [
        ((8,), Swing()), ((16,), Swing()), ((4, 4), Swing()), ((8, 4), Swing()), ((2, 2, 2), Swing()),
        ((8,), Rabenseifner()), ((4, 4), Rabenseifner()), ((4, 4), Bucket()),
    ],
    ids=lambda value: type(value).__name__.lower() if not isinstance(value, tuple) else "x".join(map(str, value)),
)  # fmt: skip
def test_halving_exchanges_send_one_run_a_message(shape, scheduler):
    """Sets within sets, in powers of two: every transfer of a step and link is one interval, in one instruction but
    where a rank of it has no sum yet."""
    after = Renumber().run(made(torus(*shape), scheduler))
    assert verify_schedule(after).ok
    whole = after.shard.astype(np.int64) * after.parts
    for step in range(after.num_steps):
        rows = np.flatnonzero(after.step == step)
        for route in np.unique(after.route[rows]):
            mine = rows[after.route[rows] == route]
            low, high = np.sort(whole[mine] + after.lo[mine]), np.sort(whole[mine] + after.hi[mine])
            assert np.array_equal(low[1:], high[:-1])


@pytest.mark.slow
def test_swing_on_a_4x4_torus_in_few_instructions():
    text = "topology t = torus(4, 4); collective c = allreduce on t; schedule c using swing;"
    result = api.compile_source(text, target="msccl-xml")
    program = result.program
    assert program.num_instructions / program.num_ranks <= 80
    assert any(text.startswith("renumber: 512 messages") for text in result.collectives["c"].remarks)


@pytest.mark.slow
@pytest.mark.parametrize(("net", "scheduler"), [(one_way_ring(8), Ring()), (hypercube(3), BFB())], ids=["ring", "bfb"])
def test_what_lies_together_already_stays(net, scheduler):
    before = made(net, scheduler)
    assert messages(Renumber().run(before)) <= messages(before)
    ring = made(one_way_ring(8), Ring())
    assert Renumber().run(ring) is ring


def test_symmetric_templates_stay_where_no_program_follows():
    """`collc cost` of a large torus needs no numbers; a program does, and a plan says so."""
    text = "topology t = torus(40, 40); collective c = allreduce on t; schedule c using bfb;"
    result = api.compile_source(text)
    assert isinstance(result.schedule, SymmetricSchedule)


def test_it_needs_whole_chunks():
    topology = coll.topology("torus(3, 3)")
    with pytest.raises(CollcError) as caught:
        api.compile_source(
            "topology t = torus(3, 3); collective c = allreduce on t;", passes="bfb,renumber,lower", target="ir"
        )
    assert caught.value.diagnostics[0].code == "C0012" and topology.num_ranks == 9


@given(st.lists(st.sets(st.integers(0, 6), min_size=1), min_size=1, max_size=12))
def test_pairs_in_messages_are_counted_alike_one_by_one_and_by_matrices(sets):
    kind = np.array([k for one in sets for k in sorted(one)])
    message = np.array([number for number, one in enumerate(sets) for _ in one])
    mixed = np.random.default_rng(len(kind)).permutation(len(kind))
    due = [[sum(a in one and b in one for one in sets) for b in range(7)] for a in range(7)]
    found = []
    for dense, at_once in ((1 << 20, 1), (0, 1), (0, 1 << 18)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(renumber, "_DENSE", dense)
            patch.setattr(renumber, "_PAIRS_AT_ONCE", at_once)
            found.append(renumber._shared(kind[mixed], 3 * message[mixed], 7).tolist())
    assert found == [due, due, due]


@given(st.lists(st.sets(st.integers(0, 300), max_size=4), min_size=1, max_size=12))
def test_chunks_of_the_same_messages_are_of_one_kind(sets):
    """Kinds are numbered as their sorted lists of messages are."""
    interval = np.array([number for number, one in enumerate(sets) for _ in one], dtype=np.int64)
    message = np.array([m for one in sets for m in sorted(one, reverse=True)], dtype=np.int64)
    kind, number = renumber._alike(interval, message, len(sets))
    listed = [sorted(one) for one in sets]
    kinds = sorted({tuple(one) for one in listed})
    assert number == len(kinds) and kind.tolist() == [kinds.index(tuple(one)) for one in listed]


@given(st.integers(2, 7), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_what_a_segment_adds_elsewhere_is_the_weight_of_its_new_neighbours(number, length, seed):
    random = np.random.default_rng(seed)
    weights = random.integers(0, 9, (number, number))
    placed = paths._Placed(weights + weights.T, random.permutation(number))
    w, p = placed.weights, placed.node
    high = max(number - length + 2, 2)
    if length > number:
        return
    for _ in ("by the table", "without it"):
        forth, back = paths._added(placed, 1, high, length)
        for i, a in enumerate(range(1, high)):
            b = a + length - 1
            for k in range(number + 1):
                old = w[p[k], p[k + 1]]
                inside = a - 1 <= k <= b
                assert forth[i, k] == (placed.never if inside else w[p[k], p[a]] + w[p[b], p[k + 1]] - old)
                assert back[i, k] == (placed.never if inside else w[p[k], p[b]] + w[p[a], p[k + 1]] - old)
        placed.change(p)


@given(st.integers(3, 12), st.integers(0, 2**32 - 1))
def test_weights_of_any_size_give_one_path(number, seed):
    random = np.random.default_rng(seed)
    weights = random.integers(0, 9, (number, number))
    weights += weights.T
    start = random.permutation(number)
    assert heavy_path(weights, start).tolist() == heavy_path(weights << 40, start).tolist()


SYMMETRIC = [
    "torus(3, 4)", "torus(2, 2, 3)", "biring(7)", "hypercube(3)", "cayley(metacyclic(4, 2, -1), {1, 2})",
    "cayley(metacyclic(7, 3, 2), {1, 3})",
]  # fmt: skip


@pytest.mark.parametrize("network", SYMMETRIC)
@pytest.mark.parametrize("kind", ["as made", "planted"])
def test_the_messages_of_one_rank_tell_how_many_carry_two_chunks(network, kind):
    """As all messages tell, one by one; a message of rank 0 more than the others would be counted for all ranks."""
    topology = coll.topology(network)
    template = Discretize().run(BFB(template=True).run(Problem(topology, Collective("allreduce", topology.num_ranks))))
    assert isinstance(template, SymmetricSchedule)
    schedule = template.unfold()
    intervals = renumber._Intervals.of(schedule)
    order = np.random.default_rng(3).permutation(intervals.number)
    place = np.argsort(order)
    sender = schedule.src[intervals.row]
    if kind == "planted":
        rows = np.flatnonzero((sender == 0) & (intervals.message == intervals.message[np.argmax(sender == 0)]))
        intervals = attrs.evolve(intervals, interval=np.where(
            np.isin(np.arange(len(sender)), rows[:1]), (intervals.interval + 1) % intervals.number, intervals.interval
        ))  # fmt: skip
    by_image = renumber._shared_by_images(intervals, renumber._Images(template.symmetry, sender), order)
    one_by_one = renumber._shared(place[intervals.interval], intervals.message, intervals.number)
    assert np.array_equal(by_image, one_by_one) == (kind == "as made")


# ---- heavy paths


@given(st.integers(2, 6), st.data())
def test_a_path_through_few_nodes_is_no_worse_than_given_and_near_the_best(number, data):
    values = data.draw(st.lists(st.integers(0, 9), min_size=number * number, max_size=number * number))
    weights = np.array(values).reshape(number, number)
    weights = np.triu(weights, 1) + np.triu(weights, 1).T
    start = np.array(data.draw(st.permutations(range(number))))
    path = heavy_path(weights, start)
    assert sorted(path.tolist()) == list(range(number))
    best = max(weight(weights, np.array(p)) for p in permutations(range(number)))
    assert weight(weights, start) <= weight(weights, path) <= best
    assert 2 * weight(weights, path) >= best
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "_BATCH", 1)
        one_by_one = paths._joined(weights)
    assert paths._joined(weights).tolist() == one_by_one.tolist()


@given(st.recursive(st.just(None), lambda inner: st.lists(inner, min_size=2, max_size=3), max_leaves=14))
def test_sets_within_sets_all_become_runs(tree):
    """Any tree of sets: the path enters and leaves each once."""
    sets, number = [], 0

    def leaves(node):
        nonlocal number
        if node is None:
            number += 1
            return [number - 1]
        mine = [leaf for child in node for leaf in leaves(child)]
        sets.append(mine)
        return mine

    leaves(tree)
    mixed = np.random.default_rng(number).permutation(number)
    weights = np.zeros((number, number), dtype=np.int64)
    for mine in sets:
        weights[np.ix_(mixed[mine], mixed[mine])] += 1
    path = heavy_path(weights, np.arange(number))
    place = np.argsort(path)
    for mine in sets:
        at = np.sort(place[mixed[mine]])
        assert at[-1] - at[0] == len(mine) - 1
