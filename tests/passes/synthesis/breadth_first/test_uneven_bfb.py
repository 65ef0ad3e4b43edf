"""Breadth-first schedules of shards that differ in size, against LP (1) as a maximum over sets of links."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lp import jobs
from sampling import examples
from strategies import connected, regular
from uneven_runs import collective, runs_right, weights

import collc
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.schedule import Schedule
from collc.ir.spec import Problem
from collc.ir.topology import Topology
from collc.ir.verify import verify
from collc.passes.base import remarks
from collc.passes.expansion.isomorphic import Transpose
from collc.passes.lowering.lower import Lower
from collc.passes.schedule.discretize import Discretize
from collc.passes.synthesis.breadth_first.bfb import BFB


def least_time(net: Topology, sizes: tuple[int, ...]) -> Fraction:
    """Return LP (1)'s time: by step the most weight confined to some in-links of a node, over their number."""
    total = Fraction(0)
    for step in range(1, (net.diameter or 0) + 1):
        worst = Fraction(0)
        for node in range(net.num_ranks):
            masks, slots = jobs(net, node, step)
            shards = [v for v in range(net.num_ranks) if net.distances[v, node] == step]
            for count in range(1, slots + 1):
                for links in combinations(range(slots), count):
                    inside = sum(1 << link for link in links)
                    confined = sum(sizes[v] for v, mask in zip(shards, masks, strict=True) if not mask & ~inside)
                    worst = max(worst, Fraction(confined, count))
        total += worst
    return total


@given(st.data(), connected(min_ranks=2, max_ranks=5, extra=6) | regular(max_ranks=6))
@settings(max_examples=examples(60), deadline=None)
def test_steps_take_the_time_of_lp_1(data: st.DataObject, net: Topology) -> None:
    sizes = data.draw(weights(net.num_ranks))
    there = BFB().run(Problem(net, collective("allgather", net.num_ranks, sizes)))
    back = BFB().run(Problem(net, collective("reduce-scatter", net.num_ranks, sizes)))
    for schedule, network in ((there, net), (back, net.transpose())):
        assert verify(schedule).ok
        found = cost(schedule)
        assert found.T_L == net.diameter
        assert found.time_per_byte == least_time(network, sizes) / sum(sizes)


@pytest.mark.parametrize("name", ["torus(3, 3)", "kautz(2, 2)", "mi250(1)", "debruijn(2, 3)"])
def test_equal_weights_are_those_of_an_even_collective(name: str) -> None:
    net = collc.topology(name)
    for kind in ("allgather", "reduce-scatter"):
        even = cost(BFB(relax=False).run(Problem(net, Collective(kind, net.num_ranks))))
        same = cost(BFB().run(Problem(net, collective(kind, net.num_ranks, [6] * net.num_ranks))))
        assert (even.time_per_byte, even.T_L) == (same.time_per_byte, same.T_L)


@pytest.mark.parametrize("kind", ["allgather", "reduce-scatter"])
def test_the_program_is_right_for_all_counts(kind: str) -> None:
    net = collc.topology("torus(3, 3)")
    schedule = BFB(chunks=6).run(Problem(net, collective(kind, 9, (5, 0, 0, 2, 3, 9, 1, 0, 4))))
    program = Lower().run(Discretize().run(schedule))
    assert program.chunks <= 6
    for counts in ((5, 0, 0, 2, 3, 9, 1, 0, 4), (0, 7, 1, 0, 0, 30, 0, 2, 0), (8,) * 9):
        assert runs_right(program, counts)


def test_links_that_differ_are_balanced_by_time() -> None:
    net = collc.topology("dgx1_v100()")
    sizes = (5, 0, 1, 2, 3, 0, 4, 6)
    schedule = BFB().run(Problem(net, collective("allgather", 8, sizes)))
    assert verify(schedule).ok
    even = BFB().run(Problem(net, Collective("allgather", 8)))
    same = BFB().run(Problem(net, collective("allgather", 8, [2] * 8)))
    assert cost(same).time_per_byte == cost(even).time_per_byte


def test_long_weights_are_rounded_and_it_is_remarked() -> None:
    net = collc.topology("torus(3, 3)")
    sizes = (999_983, 999_979, 999_961, 999_959, 999_953, 999_931, 999_917, 999_907, 999_883)
    with remarks() as texts:
        schedule = BFB().run(Problem(net, collective("allgather", 9, sizes)))
    assert len(texts) == 1 and "rounded" in texts[0] and verify(schedule).ok
    least = least_time(net, sizes) / sum(sizes)
    assert least <= cost(schedule).time_per_byte < least * (1 + Fraction(1, 10**6))


@pytest.mark.parametrize("name", ["debruijn(2, 3)", "torus(3, 3)", "uniring(5)"])
def test_weights_move_with_their_shards_in_a_transpose(name: str) -> None:
    net = collc.topology(name)
    sizes = [(v * v + 3) % 7 for v in range(net.num_ranks)]
    schedule = BFB().run(Problem(net, collective("allgather", net.num_ranks, sizes)))
    assert isinstance(schedule, Schedule)
    back = Transpose().run(schedule)
    assert verify(back).ok and back.collective.name == "reduce-scatterv"
    assert sorted(back.collective.weights or ()) == sorted(sizes)
    assert cost(back).time_per_byte == cost(schedule).time_per_byte
