"""What the finder says BFB costs is what the real schedule costs: on Cayley digraphs, line graphs, and any digraph."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import attrs
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sampling import examples

import collc
from collc.frontends.coll.families.operators import line
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.diagnostic import CollcError
from collc.ir.group import Group, parse_group
from collc.ir.spec import Problem
from collc.ir.topology import LinkClass, Topology
from collc.ir.verify import verify_schedule
from collc.passes.finder.database import parse_rows, shipped
from collc.passes.finder.evaluate import (
    Evaluator,
    bfb_cost,
    busiest,
    cayley_cost,
    cayley_heads,
    load_unit,
    node_loads,
)
from collc.passes.finder.found import Found, dominates, pareto
from collc.passes.finder.lines import _Base, _near, _walks, line_cost, line_cost_cayley
from collc.passes.synthesis.breadth_first.balance import balance
from collc.passes.synthesis.breadth_first.bfb import BFB

pytestmark = pytest.mark.slow

GROUPS = [
    "cyclic(5)", "cyclic(12)", "abelian(2, 2, 2)", "abelian(4, 3)", "metacyclic(3, 2, 2)", "metacyclic(8, 2, 3)",
    "metacyclic(7, 3, 2)", "metacyclic(4, 4, 3, 2)", "alternating(4)", "symmetric(4)", "dicyclic(3)",
    "semidirect(abelian(2, 2), 3, 0, 1, 1, 1)", "direct(metacyclic(3, 2, 2), cyclic(3))",
    "psl(2, 4)", "sl(2, 3)",
]  # fmt: skip

#: what is known to be reached at degree 4: nodes, T_L, T_B and where
REACHED = [
    (16, 2, "1", "cayley(metacyclic(8, 2, 7), {1, 3, 4, 6})"),
    (32, 3, "31/32", "cayley(metacyclic(16, 2, 7), {6, 7, 8, 17})"),
    (64, 3, "17/16", "line(cayley(metacyclic(8, 2, 7), {1, 3, 4, 6}))"),
    (64, 4, "63/64", "cayley(metacyclic(16, 4, 5), {4, 7, 35, 57})"),
    (64, 4, "63/64", "line(cayley(cyclic(16), {1, 3, 5, 9}))"),
    (128, 4, "127/128", "line(cayley(metacyclic(8, 4, 3), {6, 7, 9, 13}))"),
    (256, 4, "69/64", "line(cayley(metacyclic(8, 2, 7), {1, 3, 4, 6}), 2)"),
    (256, 5, "255/256", "cayley(metacyclic(32, 8, 3), {24, 25, 55, 69})"),
    (256, 5, "255/256", "line(cayley(metacyclic(16, 4, 3), {3, 5, 7, 11}))"),
    (512, 5, "1", "line(cayley(metacyclic(8, 4, 7), {3, 7, 10, 12}), 2)"),
    (512, 6, "511/512", "line(cayley(metacyclic(16, 8, 3), {8, 29, 54, 87}))"),
    (1024, 5, "277/256", "line(cayley(metacyclic(8, 2, 7), {1, 3, 4, 6}), 3)"),
    (1024, 6, "1023/1024",
     "line(cayley(semidirect(abelian(2, 2, 2, 2, 2), 8, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 1, 0, "
     "0, 0, 0, 0, 1, 1), {11, 89, 132, 189}))"),
]  # fmt: skip


def cayley(group: Group, generators: Sequence[int], symmetric: bool = True) -> Topology:
    heads = cayley_heads(group, generators)
    tails = np.repeat(np.arange(group.order), len(generators))
    return Topology("net", group.order, tails, heads.ravel(), symmetry=group if symmetric else None)


def scheduled(topology: Topology) -> tuple[int, Fraction | None]:
    """Return T_L and T_B of the schedule that BFB builds, once it is verified."""
    schedule = BFB(relax=False).run(Problem(topology, Collective("allgather", topology.num_ranks)))
    verify_schedule(schedule)
    real = cost(schedule)
    return real.T_L, real.T_B


@st.composite
def digraphs(draw: st.DrawFn, most: int = 6) -> tuple[Group, list[int]]:
    """Draw a group and generators without repeats."""
    group = parse_group(draw(st.sampled_from(GROUPS)))
    elements = st.integers(1, group.order - 1)
    return group, sorted(draw(st.sets(elements, min_size=1, max_size=most)))


@st.composite
def regular(draw: st.DrawFn, most: int = 7) -> Topology:
    """Draw a strongly connected digraph with d links into and out of every rank; loops and parallel links may occur."""
    ranks = draw(st.integers(2, most))
    rounds = draw(st.lists(st.permutations(range(ranks)), min_size=1, max_size=3))
    links = [(i, heads[i]) for i in range(ranks) for heads in rounds]
    net = Topology.from_links("net", ranks, links)
    assume(net.is_connected)
    return net


# ---- loads


@given(
    st.integers(1, 6).flatmap(
        lambda d: st.tuples(st.just(d), st.dictionaries(st.integers(1, 2**d - 1), st.integers(1, 9), min_size=1))
    )
)
def test_the_busiest_link_carries_what_the_exact_balance_says(drawn: tuple[int, dict[int, int]]) -> None:
    degree, histogram = drawn
    counts = np.zeros((1 << degree, 1), dtype=np.int64)
    counts[list(histogram), 0] = list(histogram.values())
    expected = balance(tuple(sorted(histogram.items()))).load
    assert expected == Fraction(int(busiest(counts, degree)[0]), load_unit(degree))


@given(digraphs(most=5))
def test_listed_masks_give_the_loads_of_the_tables(drawn: tuple[Group, list[int]]) -> None:
    """Nodes of more than 16 links go another way: seen here by giving the same masks 17 links."""
    group, generators = drawn
    hops, masks = Evaluator(group).search(np.array([generators]), group.order)
    assume((hops >= 0).all())
    few = node_loads(hops, masks, len(generators)) * (load_unit(17) // load_unit(len(generators)))
    assert few.tolist() == node_loads(hops, masks.astype(np.int64), 17).tolist()


# ---- Cayley digraphs


@given(digraphs())
@settings(max_examples=examples(60))
def test_one_node_of_a_cayley_digraph_tells_the_cost_of_its_schedule(drawn: tuple[Group, list[int]]) -> None:
    """Theorem 19 read as a formula, at one node only."""
    group, generators = drawn
    net = cayley(group, generators)
    found = cayley_cost(group, generators)
    assert (found is not None) == net.is_connected
    if found is not None:
        assert found == scheduled(net) == bfb_cost(net) == bfb_cost(attrs.evolve(net, symmetry=None))


def test_sets_evaluated_together_cost_what_each_costs_alone() -> None:
    group = parse_group("metacyclic(16, 4, 3)")
    sets = np.array([row for row in np.random.default_rng(0).integers(1, 64, (300, 4)) if len(set(row)) == 4])
    costs = Evaluator(group).costs(sets, 64)
    for i, row in enumerate(sets):
        expected = cayley_cost(group, row.tolist())
        assert expected == (None if costs.steps[i] < 0 else (costs.steps[i], costs.T_B(i)))
        assert costs.sizes[i].sum() == 64 or expected is None


def test_sets_of_more_steps_than_the_limit_have_no_cost() -> None:
    evaluator = Evaluator(parse_group("cyclic(16)"))
    sets = np.array([[1, 2], [1, 4], [2, 4]])
    assert [8, 6, -1] == evaluator.costs(sets, 16).steps.tolist()
    cut = evaluator.costs(sets, 6)
    assert [-1, 6, -1] == cut.steps.tolist() and [13, 16, 8] == cut.sizes.sum(axis=1).tolist()


def test_nodes_of_sixteen_and_more_links() -> None:
    group = parse_group("metacyclic(7, 3, 2)")
    for degree in (16, 18):
        generators = list(range(1, degree + 1))
        assert cayley_cost(group, generators) == scheduled(cayley(group, generators)) == (2, Fraction(20, 21))


# ---- any digraph


@given(regular())
@settings(max_examples=examples(60))
def test_the_cost_of_any_regular_digraph_is_that_of_its_schedule(net: Topology) -> None:
    assert scheduled(net) == bfb_cost(net)


def test_the_cost_of_large_topologies_of_the_library() -> None:
    for text in ("torus(5, 4, 3)", "generalized_kautz(4, 77)", "hypercube(6)", "debruijn(3, 3)"):
        net = collc.topology(text)
        assert scheduled(net) == bfb_cost(net)


@pytest.mark.parametrize("broken", ["degrees", "switch", "links"])
def test_networks_without_one_degree_are_refused(broken: str) -> None:
    net = collc.topology("biring(4)")
    if broken == "degrees":
        net = Topology.from_links("net", 3, [(0, 1), (1, 2), (2, 0), (0, 2)])
    elif broken == "switch":
        net = Topology.from_links("net", 2, [(0, 2), (2, 1), (1, 2), (2, 0)], num_switches=1)
    else:
        net = Topology.from_links("net", 2, [(0, 1, LinkClass(Fraction(2))), (1, 0, LinkClass(Fraction(1)))])
    for refuse in (bfb_cost, lambda net: line_cost(net, 1)):
        with pytest.raises(CollcError) as caught:
            refuse(net)
        assert ["C0575"] == [d.code for d in caught.value.diagnostics]


# ---- line graphs


@given(digraphs(most=3), st.integers(1, 3))
@settings(max_examples=examples(60))
def test_the_cost_of_line_graphs_of_cayley_digraphs(drawn: tuple[Group, list[int]], times: int) -> None:
    group, generators = drawn
    net = cayley(group, generators)
    assume(group.order * len(generators) ** times <= 300)
    found = line_cost_cayley(Evaluator(group), np.array(generators), times)
    assert (found is not None) == net.is_connected
    if found is not None:
        real = line(net, times)
        assert found == line_cost(net, times) == line_cost(attrs.evolve(net, symmetry=None), times) == bfb_cost(real)


@given(regular(5), st.integers(1, 3))
@settings(max_examples=examples(60))
def test_the_cost_of_line_graphs_of_any_digraph(net: Topology, times: int) -> None:
    """Self-loops, parallel links, and walks that overlap themselves included. T_L and Theorem 7 with them."""
    found = line_cost(net, times)
    assert bfb_cost(line(net, times)) == found
    base, degree = bfb_cost(net), net.degree or 0
    series = sum(Fraction(1, net.num_ranks * degree**i) for i in range(times))
    assert found[0] == base[0] + (times if degree > 1 else 0) and found[1] <= base[1] + series


@given(regular(4), st.integers(1, 4))
def test_walks_are_counted_by_the_shifts_between_them(net: Topology, times: int) -> None:
    """Against the definition: the least shift after which one walk goes on as the other begins."""
    degree = net.degree or 0
    assume(net.num_ranks * degree**times <= 120)
    every = [_walks(net, root, times) for root in range(net.num_ranks)]
    walks = [walk for ends, links in every for walk in zip(ends.tolist(), links.tolist(), strict=True)]
    start, order = net.in_links
    slots = np.empty(net.num_links, dtype=np.int64)
    slots[order] = np.arange(net.num_links) - start[net.dst[order]]
    for ends, links in every:
        near, fresh = _near(_Base(degree, ends[0], ends[0], ends, links, slots[links]))
        for i, (nodes, taken) in enumerate(zip(ends.tolist(), links.tolist(), strict=True)):
            count = np.zeros((times + 1, degree), dtype=np.int64)
            for there, before in walks:
                fits = [
                    s for s in range(times + 1)
                    if before[s:] == taken[: times - s] and there[-1] == nodes[times - s]
                ]  # fmt: skip
                if fits:
                    count[fits[0], slots[before[fits[0] - 1]] if fits[0] else 0] += 1
            assert count.sum(axis=1).tolist() == fresh[i].tolist()
            assert count[1:].max(axis=1).tolist() == near[i].tolist()


def test_the_cost_of_a_line_graph_is_that_of_its_schedule() -> None:
    net = collc.topology("cayley(metacyclic(8, 2, 3), {1, 2, 5})")
    assert scheduled(line(net, 2)) == line_cost(net, 2)


def test_a_line_graph_can_cost_less_than_theorem_10_says() -> None:
    """A base of (3, 31/32) at 32 whose line graph is (4, 127/128), not (4, 1)."""
    net = collc.topology("cayley(metacyclic(8, 4, 3), {6, 7, 9, 13})")
    assert (3, Fraction(31, 32)) == bfb_cost(net)
    assert (4, Fraction(127, 128)) == line_cost(net, 1) == scheduled(line(net))


# ---- what is reached


@pytest.mark.parametrize(("nodes", "steps", "bandwidth", "expression"), REACHED)
def test_points_known_to_be_reached(nodes: int, steps: int, bandwidth: str, expression: str) -> None:
    net = collc.topology(expression)
    assert (nodes, 4) == (net.num_ranks, net.degree)
    found = bfb_cost(net)
    if net.origin is not None and net.origin.name == "line":
        base, *times = net.origin.arguments
        assert found == line_cost(base, *(times or [1]))
    assert (steps, Fraction(bandwidth)) == found


# ---- frontiers


def point(steps: int, bandwidth: str, text: str = "a", rate: str | None = None) -> Found:
    return Found(text, 8, 2, steps, Fraction(bandwidth), steps, False, None if rate is None else Fraction(rate))


def test_a_frontier_holds_what_nothing_dominates() -> None:
    rows = [point(3, "1"), point(4, "7/8"), point(4, "1"), point(5, "7/8"), point(3, "9/8")]
    assert [(3, Fraction(1)), (4, Fraction(7, 8))] == [(p.T_L, p.T_B) for p in pareto(rows)]
    assert dominates(rows[0], rows[2]) and not dominates(rows[0], rows[1]) and not dominates(rows[0], rows[0])


def test_of_equals_a_frontier_keeps_the_shortest_then_the_first() -> None:
    rows = [point(3, "1", "bb"), point(3, "1", "ccc"), point(3, "1", "aa")]
    assert ["aa"] == [p.expression for p in pareto(rows)] == [p.expression for p in pareto(rows[::-1])]


def test_the_rate_of_alltoall_is_a_third_objective() -> None:
    rows = [point(3, "1", "a", "1/9"), point(3, "1", "b", "1/8"), point(4, "7/8", "c"), point(5, "1", "d", "1/7")]
    assert ["b", "c", "d"] == [p.expression for p in pareto(rows, alltoall=True)]
    assert ["b", "c"] == [p.expression for p in pareto(rows)]
    assert not dominates(rows[1], rows[3], alltoall=True)


# ---- the least bandwidth time


def at_each_distance(topology: Topology) -> np.ndarray:
    """Return how many ranks each rank receives from over 1, 2, .. hops, shape (ranks, steps)."""
    distances = topology.distances
    return np.stack([(distances == step).sum(axis=0) for step in range(1, int(distances.max()) + 1)], axis=1)


@given(regular())
@settings(max_examples=examples(200))
def test_bandwidth_time_is_at_least_the_sum_of_the_most_ranks_at_each_distance(network: Topology) -> None:
    """So it is the least only if all ranks have equally many others at each distance."""
    number, bandwidth = at_each_distance(network), bfb_cost(network)[1]
    least = Fraction(network.num_ranks - 1, network.num_ranks)
    assert bandwidth >= Fraction(int(number.max(axis=0).sum()), network.num_ranks) >= least
    if bandwidth == least:
        assert (number == number[0]).all()


@pytest.mark.parametrize("degree", [3, 4, 6])
def test_shipped_networks_of_the_least_bandwidth_time_have_ranks_alike(degree: int) -> None:
    rows = [row for row in parse_rows(shipped(degree) or "", degree, "shipped")
            if row.bidirectional and row.T_B == Fraction(row.nodes - 1, row.nodes) and "polycirculant" in row.expression
            and row.nodes <= 2000]  # fmt: skip
    for row in rows[:: len(rows) // 4]:
        number = at_each_distance(collc.topology(row.expression))
        assert (number == number[0]).all()
