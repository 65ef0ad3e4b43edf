"""Polycirculants and inserted nodes in the finder: exact costs by bits, and what a search promises."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction
from random import Random

import attrs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import collc
from collc.ir.collective import Collective
from collc.ir.costs.bounds import moore_graph_steps
from collc.ir.costs.cost import cost
from collc.ir.diagnostic import CollcError
from collc.ir.spec import Problem
from collc.ir.topology import Topology
from collc.ir.verify import verify
from collc.passes.finder.bits import Balls, balls, bits_cost, period_of
from collc.passes.finder.database import Row
from collc.passes.finder.evaluate import bfb_cost
from collc.passes.finder.exclude import Excluded
from collc.passes.finder.found import dominates
from collc.passes.finder.inserted import search_inserted
from collc.passes.finder.measure import bfb_costs, row_mistakes
from collc.passes.finder.polycirculants import Lift, best_lifts, draw, periods, search_polycirculants, shaped, turned
from collc.passes.finder.shapes import PERIODS, shapes
from collc.passes.finder.turns import turns
from collc.passes.synthesis.breadth_first.bfb import BFB

# ---- exact costs


@st.composite
def digraphs(draw: st.DrawFn) -> Topology:
    """Return a digraph whose ranks have d links in and out: d permutations, loops and parallel links among them."""
    nodes, degree = draw(st.integers(2, 14)), draw(st.integers(1, 5))
    heads = [draw(st.permutations(range(nodes))) for _ in range(degree)]
    return Topology.from_links("drawn", nodes, sorted((x, own[x]) for own in heads for x in range(nodes)))


@given(digraphs())
def test_bits_and_tables_give_the_same_cost(net: Topology) -> None:
    assume(net.is_connected)
    assert bfb_cost(net) == bits_cost(net)


@given(st.sampled_from([(12, 2), (12, 3), (18, 3), (20, 4), (15, 5)]), st.integers(3, 5), st.integers(0, 999))
def test_a_period_tells_the_cost_of_all_ranks(size: tuple[int, int], degree: int, seed: int) -> None:
    nodes, period = size
    assume(nodes * degree % 2 == 0)
    lift = draw(nodes, period, degree, Random(seed))
    assume(lift.neighbours is not None)
    net = collc.topology(lift.expression)
    assume(net.is_connected)
    assert period == period_of(net) and (nodes, degree) == (net.num_ranks, net.degree)
    assert bfb_cost(net) == bits_cost(net) == bits_cost(attrs.evolve(net, origin=None))


@pytest.mark.parametrize("expression", ["jellyfish(300, 4, 1)", "polycirculant(300, {1, 7, 26}, {40})"])
def test_networks_without_a_group_are_measured_by_bits(expression: str) -> None:
    net = collc.topology(expression)
    assert bfb_cost(net) == bfb_costs(net)


def test_a_network_that_is_not_connected_is_refused() -> None:
    with pytest.raises(CollcError, match="C0301"):
        bits_cost(collc.topology("polycirculant(12, {2}, {4})"))


def test_loads_have_a_lower_bound_and_a_limit() -> None:
    lift = next(one for seed in range(99) if (one := draw(60, 4, 3, Random(seed))).neighbours)
    found = balls(lift.neighbours or [], 60, 3, 60)
    load = found.load()
    assert load is not None and found.least_load <= load
    assert (load, None) == (found.load(load), found.load(load - 1))


def test_a_link_left_out_of_a_search_is_seen() -> None:
    """A planted fault: without one tail the balls of the node are others, and so is the cost."""
    net = collc.topology("polycirculant(20, {1, 3, 9}, {})")
    tails = net.src[net.in_links[1].reshape(20, -1)[:2]].tolist()
    whole = balls(tails, 20, 3, 20)
    broken = balls([tails[0][:-1] + tails[0][:1], tails[1]], 20, 3, 20)

    def seen(one: Balls) -> tuple[int, int, int | None]:
        return one.unreached, one.steps, one.load()

    assert seen(whole) != seen(broken)


# ---- lifts


@given(st.integers(6, 60), st.integers(3, 6), st.integers(0, 999))
def test_drawn_lifts_are_regular_and_can_be_written(nodes: int, degree: int, seed: int) -> None:
    assume(nodes * degree % 2 == 0 and periods(nodes))
    for period in periods(nodes):
        lift = draw(nodes, period, degree, Random(seed))
        if lift.neighbours is None:
            continue
        net = collc.topology(lift.expression)
        assert (nodes, degree) == (net.num_ranks, net.degree)
        heads = net.dst.reshape(nodes, -1)[:period]
        assert [sorted(own) for own in lift.neighbours] == [sorted(own) for own in heads.tolist()]


@pytest.mark.parametrize(
    ("nodes", "degree", "steps", "bandwidth"),
    [(10, 3, 2, "9/10"), (100, 3, 8, "99/100"), (100, 4, 5, "99/100"), (201, 4, 7, "1"), (100, 6, 4, "99/100")],
)
def test_a_search_reaches_known_costs(nodes: int, degree: int, steps: int, bandwidth: str) -> None:
    found = search_polycirculants(nodes, degree, evaluations=1500)
    assert any(one.T_L <= steps and one.T_B <= Fraction(bandwidth) for one in found)
    for one in found:
        net = collc.topology(one.expression)
        assert bfb_cost(net) == (one.T_L, one.T_B) and net.reverse_links is not None
        assert moore_graph_steps(nodes, degree) <= one.T_L
    assert not any(dominates(one, two) for one in found for two in found)


@given(st.sampled_from(PERIODS), st.integers(3, 8), st.integers(3, 9), st.integers(0, 999))
def test_classes_of_shapes_are_all_alike(period: int, degree: int, copies: int, seed: int) -> None:
    for shape in shapes(period, degree):
        ends = [sorted(end for link in shape for end in link if a in link) for a in range(period)]
        assert {degree} == {sum(link.count(a) for link in shape) for a in range(period)}
        assert 1 == len({len(own) for own in ends})
        lift = shaped(period * copies, period, shape, Random(seed))
        if lift.neighbours is not None:
            assert degree == collc.topology(lift.expression).degree


def test_shapes_give_odd_sizes_networks_of_the_least_bandwidth_time() -> None:
    """57 nodes are three times 19, and have no other groups of use."""
    best = best_lifts(57, 4, evaluations=3000, seed=0)
    steps, (_, lift) = min((steps, one) for steps, one in best.items() if one[0] == 3 * 56)
    assert 4 == steps and 3 == lift.period
    assert (4, Fraction(56, 57)) == bfb_cost(collc.topology(lift.expression))


@given(st.integers(3, 40), st.integers(1, 12), st.integers(3, 6))
def test_a_turn_has_its_order_on_places_and_classes(copies: int, m: int, degree: int) -> None:
    for turn in turns(copies, m, degree):
        nodes, images = copies * m, list(range(copies * m))
        for _ in range(turn.order):
            images = [turn.image(node, nodes) for node in images]
        assert images == list(range(nodes)) and turn.order == multiplicative_order(turn.times, copies)
        assert sorted(turn.next) == list(range(m))


def multiplicative_order(unit: int, copies: int) -> int:
    return next(order for order in range(1, copies + 1) if pow(unit, order, copies) == 1)


@given(st.sampled_from([(12, 3), (18, 4), (20, 6), (33, 4), (35, 4), (45, 4), (40, 5)]), st.integers(0, 999))
def test_a_turn_keeps_its_lifts(drawn: tuple[int, int], seed: int) -> None:
    nodes, degree = drawn
    for m in periods(nodes):
        for turn in turns(nodes // m, m, degree):
            lift = turned(nodes, degree, turn, (), Random(seed))
            if lift is None or lift.neighbours is None:
                continue
            links = {(a, b) for a in range(nodes) for b in neighbours_of(lift, a)}
            assert links == {(turn.image(a, nodes), turn.image(b, nodes)) for a, b in links}
            assert links == {(b, a) for a, b in links} and len(links) == nodes * degree
            again = turned(nodes, degree, turn, lift.some, Random(seed + 1))
            assert again is not None and again.links == lift.links  # its cycles give all


def neighbours_of(lift: Lift, node: int) -> list[int]:
    first = node % lift.period
    assert lift.neighbours is not None
    return [(head + node - first) % lift.nodes for head in lift.neighbours[first]]


def test_turns_give_sizes_of_few_groups_networks_of_little_bandwidth_time() -> None:
    """1,245 = 3 * 5 * 83 nodes: all groups are cyclic, and the fastest circulant takes 25 steps."""
    best = best_lifts(1245, 4, evaluations=2000, seed=0)
    load, lift = best[min(steps for steps, (load, _) in best.items() if load * 4 <= 1245 * 12 * Fraction(101, 100))]
    assert lift.turn is not None and (10, Fraction(load * 4, 12 * 1245)) >= bfb_cost(collc.topology(lift.expression))


@pytest.mark.parametrize(("nodes", "degree"), [(53, 4), (34, 3), (47, 6)])
def test_nodes_are_inserted_where_no_period_divides(nodes: int, degree: int) -> None:
    found = search_inserted(nodes, degree, evaluations=400)
    assert found
    for one in found:
        net = collc.topology(one.expression)
        assert (nodes, degree) == (net.num_ranks, net.degree) and net.reverse_links is not None
        assert bfb_cost(net) == (one.T_L, one.T_B)
    assert not row_mistakes(Row.of(found[0]), collc.topology)
    wrong = attrs.evolve(Row.of(found[0]), T_B=found[0].T_B - Fraction(1, nodes))
    assert "T_B" in row_mistakes(wrong, collc.topology)[0]


def test_a_compiled_allgather_costs_what_the_search_says() -> None:
    for one in (*search_polycirculants(24, 3, evaluations=200), *search_inserted(23, 4, evaluations=200)):
        net = collc.topology(one.expression)
        schedule = BFB().run(Problem(net, Collective("allgather", net.num_ranks)))
        assert verify(schedule).ok
        assert (one.T_L, one.T_B) == (cost(schedule).T_L, cost(schedule).T_B)


@pytest.mark.parametrize(("nodes", "degree"), [(101, 4), (15, 3), (100, 2), (100, 9), (5, 4)])
def test_where_there_is_none_nothing_is_found(nodes: int, degree: int) -> None:
    assert not search_polycirculants(nodes, degree, evaluations=50)


def test_excluded_names_are_not_searched() -> None:
    assert not search_polycirculants(100, 4, evaluations=50, exclude=Excluded(frozenset({"polycirculant"})))
    for name in ("polycirculant", "inserted"):
        assert not search_inserted(101, 4, evaluations=50, exclude=Excluded(frozenset({name})))


def test_no_more_is_evaluated_than_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    from collc.passes.finder import polycirculants

    count = 0

    def counted(*arguments: object) -> Balls:
        nonlocal count
        count += 1
        return balls(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(polycirculants, "balls", counted)
    search_polycirculants(120, 4, evaluations=500)
    assert 100 < count <= 500


def test_the_seed_decides_and_nothing_else() -> None:
    script = (
        "from collc.passes.finder.inserted import search_inserted\n"
        "from collc.passes.finder.polycirculants import search_polycirculants\n"
        "print(search_polycirculants(60, 3, evaluations=300), search_inserted(23, 4, evaluations=300))"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", script], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(texts) == 1 and "polycirculant" in texts.pop()
    assert search_polycirculants(60, 3, evaluations=300) != search_polycirculants(60, 3, evaluations=300, seed=1)


@pytest.mark.parametrize(
    "links",
    [
        ((0, 1), (0, 1), (0, 2), (1, 3), (1, 6)),  # the same link twice
        ((0, 1), (0, 19), (0, 1)), ((0, 0), (0, 1), (1, 3)),  # and as its reverse; a loop
        ((0, 1), (0, 2)),  # too few
    ],
)  # fmt: skip
def test_lifts_with_parallel_links_loops_or_too_few_links_are_refused(links: tuple[tuple[int, int], ...]) -> None:
    assert Lift(20, 3, 2, links).neighbours is None
    assert Lift(20, 3, 2, ((0, 1), (0, 2), (1, 5))).neighbours == [[1, 2, 18], [0, 5, 17]]
