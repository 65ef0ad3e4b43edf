"""Numbers of chunks: what goes together lies together, where numbers mean nothing."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import collc as api
from collc.frontends import coll
from collc.ir.collective import Collective
from collc.ir.cost import cost
from collc.ir.diagnostic import CollcError
from collc.ir.program import Opcode
from collc.ir.spec import Problem
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.verify import verify_program, verify_schedule
from collc.passes.base import remarks
from collc.passes.coalesce import Coalesce
from collc.passes.discretize import Discretize
from collc.passes.lower import Lower
from collc.passes.paths import heavy_path, weight
from collc.passes.renumber import FREE, Renumber
from collc.passes.synthesis.bfb import BFB
from collc.passes.synthesis.torus.bucket import Bucket
from collc.passes.synthesis.torus.doubling import Rabenseifner
from collc.passes.synthesis.torus.ring import Ring
from collc.passes.synthesis.torus.swing import Swing

from .nets import hypercube, one_way_ring, torus
from .strategies import connected, schedules

KINDS = ("allgather", "reduce-scatter", "allreduce", "broadcast", "reduce")


def made(topology, scheduler, kind="allreduce"):
    schedule = scheduler.run(Problem(topology, Collective(kind, topology.num_ranks)))
    schedule = Discretize().run(schedule)
    return schedule.unfold() if isinstance(schedule, SymmetricSchedule) else schedule


def messages(schedule):
    program = Coalesce().run(Lower().run(schedule))
    return int(np.isin(program.opcode, [Opcode.SEND]).sum())


# ---- what stays


@settings(max_examples=40)
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


@settings(max_examples=20)
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


# ---- what is gained


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


def test_swing_on_a_4x4_torus_in_few_instructions():
    text = "topology t = torus(4, 4); collective c = allreduce on t; schedule c using swing;"
    result = api.compile_source(text, target="msccl-xml")
    program = result.program
    assert program.num_instructions / program.num_ranks <= 80
    assert any(text.startswith("renumber: 512 messages") for text in result.collectives["c"].remarks)


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
