"""Mixes of trees: cheapest trees against all subsets of links, mixes against programs of all trees, proofs judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product

import attrs
import highspy
import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sampling import examples
from strategies import connected

import collc
from collc.ir.collective import ROOTED, Collective
from collc.ir.graph.members import inside
from collc.ir.spec import Problem
from collc.ir.topology import Topology
from collc.ir.verify import verify
from collc.passes import PASSES
from collc.passes.synthesis.groups import mixture as mixture_module
from collc.passes.synthesis.groups import together as together_module
from collc.passes.synthesis.groups.applied import scheduled
from collc.passes.synthesis.groups.classes import classes_of
from collc.passes.synthesis.groups.commodities import Commodity, Market, commodities_of
from collc.passes.synthesis.groups.division import joint_bound
from collc.passes.synthesis.groups.forests import forest_of
from collc.passes.synthesis.groups.mixture import Mixture, Priced, mixture
from collc.passes.synthesis.groups.partitions import priced_partitions
from collc.passes.synthesis.groups.steiner import Network, arborescence, distances, hops, spanning_tree, trees
from collc.passes.synthesis.groups.together import planned, time_together, together

pytestmark = pytest.mark.slow

FOREST = PASSES.load("forest")()
TREES = ("allgather", "reduce-scatter", "allreduce", "broadcast", "reduce")
ROUTES = ("gather", "scatter", "alltoall")


def commodities(problems: Sequence[Problem]) -> list[Commodity]:
    return [one for group, problem in enumerate(problems)
            for one in commodities_of(group, problem.collective, Fraction(problem.collective.size or 0))]  # fmt: skip


def mixed(problems: Sequence[Problem]) -> Mixture:
    networks = [inside(problem.topology, problem.collective) for problem in problems]
    found = mixture(problems[0].topology, networks, commodities(problems))
    assert found is not None
    return found


def market(problems: Sequence[Problem]) -> Market:
    networks = [inside(problem.topology, problem.collective) for problem in problems]
    return Market(problems[0].topology, networks, commodities(problems))


@st.composite
def several(draw: st.DrawFn, kinds: Sequence[str], most: int = 4) -> list[Problem]:
    topology = draw(connected(3, most, extra=3))
    n, found = topology.num_ranks, []
    for _ in range(draw(st.integers(1, 2))):
        members = tuple(sorted(draw(st.sets(st.integers(0, n - 1), min_size=2))))
        kind, size = draw(st.sampled_from(kinds)), draw(st.sampled_from([60, 120]))
        root = members[-1] if kind in ROOTED else None
        found.append(Problem(topology, Collective(kind, n, root, members=members, size=size)))
    return found


# ---- cheapest trees


def subsets(topology: Topology, root: int, members: Sequence[int], inward: bool) -> Iterator[tuple[int, ...]]:
    """Yield every set of links over which what a rank has reaches all members, or what they have reaches it."""
    ends = list(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))
    for chosen in product((False, True), repeat=len(ends)):
        links = [link for link, used in enumerate(chosen) if used]
        reached, grown = {root}, True
        while grown:
            more = {ends[link][not inward] for link in links if ends[link][inward] in reached}
            grown = not more <= reached
            reached |= more
        if reached.issuperset(members):
            yield tuple(links)


@settings(max_examples=examples(40), deadline=None)
@given(connected(3, 4, extra=3), st.data())
def test_cheapest_trees_are_those_of_all_subsets_of_links(topology: Topology, data: st.DataObject) -> None:
    assume(topology.num_links <= 10)
    n, inward = topology.num_ranks, data.draw(st.booleans())
    members = sorted(data.draw(st.sets(st.integers(0, n - 1), min_size=2)))
    prices = np.array(data.draw(st.lists(st.integers(1, 9), min_size=topology.num_links, max_size=topology.num_links)))
    network = Network.of(topology, np.array([members]), np.ones((1, topology.num_nodes), dtype=bool), inward)
    cost = trees(network, prices)
    for root in range(n):
        least = min(int(prices[list(links)].sum()) for links in subsets(topology, root, members, inward))
        assert cost[root, 0, -1] == least
        found = hops(network, prices, cost, 0, root)
        assert sum(int(prices[list(links)].sum()) for _, _, links in found) == least
        assert {root, *(child for _, child, _ in found)} >= set(members)
    assert (distances(network, prices)[:, 0] == cost[:, 0, [1 << place for place in range(len(members))]]).all()


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(2, 5), st.data())
def test_spanning_trees_are_the_least_of_all(n: int, data: st.DataObject) -> None:
    weights = np.array(
        data.draw(st.lists(st.lists(st.integers(1, 20), min_size=n, max_size=n), min_size=n, max_size=n))
    )
    root = data.draw(st.integers(0, n - 1))
    parent = arborescence(weights.tolist(), root)
    assert parent[root] == -1
    graph = nx.DiGraph(
        [(a, b, {"weight": int(weights[a, b])}) for a in range(n) for b in range(n) if b not in (a, root)]
    )
    least = nx.minimum_spanning_arborescence(graph)
    price = sum(int(weights[above, node]) for node, above in enumerate(parent) if above >= 0)
    assert price == least.size(weight="weight")
    assert nx.is_arborescence(nx.DiGraph([(above, node) for node, above in enumerate(parent) if above >= 0]))
    both = np.minimum(weights, weights.T)
    undirected = nx.Graph([(a, b, {"weight": int(both[a, b])}) for a in range(n) for b in range(a)])
    assert spanning_tree(both) == nx.minimum_spanning_tree(undirected).size(weight="weight")


def test_switches_do_not_copy() -> None:
    """Three ranks on a switch: the root sends a copy to each of the others through it."""
    star = Topology.from_links("star", 3, [(0, 3), (3, 0), (1, 3), (3, 1), (2, 3), (3, 2)], num_switches=1)
    network = Network.of(star, np.array([[0, 1, 2]]), np.ones((1, 4), dtype=bool), False)
    cost = trees(network, np.ones(6, dtype=np.int64))
    assert cost[0, 0, -1] == 4
    assert sorted(hops(network, np.ones(6, dtype=np.int64), cost, 0, 0)) == [(0, 1, (0, 3)), (0, 2, (0, 5))]


# ---- mixes


def least_time(
    columns: Sequence[tuple[int, dict[int, float]]], needs: Sequence[float], widths: Sequence[float]
) -> float:
    """Return the least time of mixes of columns (commodity, loads of links) by a program of all of them."""
    solver, infinity = highspy.Highs(), highspy.kHighsInf
    solver.setOptionValue("output_flag", False)
    rows = len(widths) + len(needs)
    solver.addVar(0, infinity)
    solver.changeColCost(0, 1.0)
    for _ in columns:
        solver.addVar(0, infinity)
    for link, width in enumerate(widths):
        using = [(place + 1, loads[link]) for place, (_, loads) in enumerate(columns) if link in loads]
        index, value = [0, *(place for place, _ in using)], [-width, *(load for _, load in using)]
        solver.addRow(-infinity, 0.0, len(index), np.array(index), np.array(value))
    for commodity, amount in enumerate(needs):
        index = [place + 1 for place, (own, _) in enumerate(columns) if own == commodity]
        solver.addRow(amount, infinity, len(index), np.array(index), np.ones(len(index)))
    assert solver.getNumRow() == rows
    solver.run()
    return float(solver.getObjectiveValue())


def all_columns(
    topology: Topology, one: Commodity, number: int, members: Sequence[int]
) -> Iterator[tuple[int, dict[int, float]]]:
    """Yield every tree of a commodity, not only those without needless links."""
    for root in [one.root] if one.root >= 0 else range(topology.num_ranks):
        outward = list(subsets(topology, root, members, False)) if one.outward else [()]
        inward = list(subsets(topology, root, members, True)) if one.inward else [()]
        few = [[links for links in half if not any(set(other) < set(links) for other in half)]
               for half in (outward, inward)]  # fmt: skip
        for out, into in product(*few):
            links = [*out, *into]
            yield number, {link: float(links.count(link)) for link in links}


@settings(max_examples=examples(25), deadline=None)
@given(several(TREES))
def test_a_mix_is_the_best_of_all_trees(problems: list[Problem]) -> None:
    topology = problems[0].topology
    assume(topology.num_links <= 9)
    found = mixed(problems)
    columns = [
        column for number, one in enumerate(found.commodities)
        for column in all_columns(topology, one, number, problems[one.group].collective.ranks.tolist())
    ]  # fmt: skip
    widths = [float(topology.bandwidth(link)) for link in range(topology.num_links)]
    least = least_time(columns, [float(one.planned) for one in found.commodities], widths)
    assert found.proved is not None
    assert float(found.time) == pytest.approx(least, rel=0.006)
    assert float(found.proved.value) == pytest.approx(least, rel=1e-6)
    assert found.proved.value <= found.time
    assert found.general is None or found.general.value <= found.proved.value
    assert judged(found.proved, problems)


def flow_time(problems: Sequence[Problem]) -> float:
    """Return the least time of routes: a flow for each pair of ranks with data, one program."""
    topology = problems[0].topology
    ends = list(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))
    solver, infinity = highspy.Highs(), highspy.kHighsInf
    solver.setOptionValue("output_flag", False)
    solver.addVar(0, infinity)
    solver.changeColCost(0, 1.0)
    on_link: list[list[int]] = [[] for _ in ends]
    for source, target, amount in pairs(problems):
        first = solver.getNumCol()
        for link in range(len(ends)):
            solver.addVar(0, infinity)
            on_link[link].append(first + link)
        for node in range(topology.num_nodes):
            index = [first + link for link, (a, b) in enumerate(ends) if node in (a, b)]
            value = [1.0 if a == node else -1.0 for a, b in ends if node in (a, b)]
            net = amount * ((node == source) - (node == target))
            solver.addRow(net, net, len(index), np.array(index), np.array(value))
    for link, columns in enumerate(on_link):
        value = [*([1.0] * len(columns)), -float(topology.bandwidth(link))]
        solver.addRow(-infinity, 0.0, len(value), np.array([*columns, 0]), np.array(value))
    solver.run()
    return float(solver.getObjectiveValue())


def pairs(problems: Sequence[Problem]) -> Iterator[tuple[int, int, float]]:
    for problem in problems:
        what = problem.collective
        share = float(what.size or 0) / what.num_members
        ranks = what.ranks.tolist()
        match what.kind:
            case "alltoall":
                yield from ((a, b, share) for a in ranks for b in ranks if a != b)
            case "gather":
                yield from ((a, int(what.root or 0), share) for a in ranks if a != what.root)
            case _:
                yield from ((int(what.root or 0), b, share) for b in ranks if b != what.root)


@settings(max_examples=examples(25), deadline=None)
@given(several(ROUTES, 5))
def test_routes_of_a_mix_are_the_multi_commodity_flow(problems: list[Problem]) -> None:
    found, least = mixed(problems), flow_time(problems)
    assert found.proved is not None and found.general is not None
    assert float(found.time) == pytest.approx(least, rel=0.006)
    assert float(found.general.value) == pytest.approx(least, rel=1e-6)
    assert judged(found.proved, problems)


@settings(max_examples=examples(20), deadline=None)
@given(several(TREES, 5))
def test_forests_of_a_mix_are_right_and_as_fast(problems: list[Problem]) -> None:
    found, topology = mixed(problems), problems[0].topology
    levels = [forest_of(topology, one.collective, found, group) for group, one in enumerate(problems)]
    for level in levels:
        assert level is not None
        assert verify(level).ok
    time, _ = time_together([level for level in levels if level], [one.collective.size or 0 for one in problems])
    assert time == found.time


@settings(max_examples=examples(30), deadline=None)
@given(several((*TREES, *ROUTES), 5), st.data())
def test_any_prices_prove_a_bound(problems: list[Problem], data: st.DataObject) -> None:
    topology, found = problems[0].topology, mixed(problems)
    prices = np.array(data.draw(st.lists(st.integers(0, 9), min_size=topology.num_links, max_size=topology.num_links)))
    paid = sum((topology.bandwidth(link) * price for link, price in enumerate(prices.tolist())), Fraction(0))
    sold = market(problems)
    assert sold.cost(prices) <= found.time * paid
    assert (sold.general(prices) or 0) <= sold.cost(prices)


def test_trees_through_relays_that_copy() -> None:
    """Rank 0 sends to 2 and 3 through relay 1, which copies: half the bandwidth that routes would take."""
    line = Topology.from_links("fork", 4, [(0, 1), (1, 2), (1, 3), (2, 1), (3, 1), (1, 0)])
    problem = Problem(line, Collective("broadcast", 4, 0, members=(0, 2, 3), size=12))
    found = mixed([problem])
    assert found.time == 12
    assert found.proved is not None and found.proved.value == 12


def test_an_allreduce_without_relays_has_a_bound_of_all_schedules() -> None:
    """The strength of a complete graph of 4: 6 links both ways over 3."""
    problem = Problem(collc.topology("complete(4)"), Collective("allreduce", 4, size=60))
    found = mixed([problem])
    assert found.general is not None
    assert found.time == found.general.value == 30


@settings(max_examples=examples(30), deadline=None)
@given(several(("allreduce",), 6), st.data())
def test_partitions_by_any_prices_have_members_and_prove_a_bound(problems: list[Problem], data: st.DataObject) -> None:
    topology = problems[0].topology
    prices = data.draw(st.lists(st.integers(0, 9), min_size=topology.num_links, max_size=topology.num_links))
    for problem in problems:
        network = inside(topology, problem.collective)
        for parts in priced_partitions(network, prices):
            assert sorted(node for part in parts for node in part) == list(range(network.topology.num_nodes))
            assert all(min(part) < network.topology.num_ranks for part in parts)
            assert len(parts) > 1
    networks, collectives = zip(*((inside(topology, one.collective), one.collective) for one in problems), strict=True)
    classes = classes_of(topology, networks, collectives)
    sizes = [Fraction(one.size or 0) for one in collectives]
    without = joint_bound(topology, networks, sizes, classes)
    found = joint_bound(topology, networks, sizes, classes, None, prices)
    assert without.value <= found.value <= mixed(problems).time


def test_prices_suggest_the_partition_that_columns_of_a_torus_wait_for() -> None:
    """Every row is a part: 2 * 3 vectors of each of 4 columns cross 32 links."""
    torus = collc.topology("torus(4, 4)")
    rows = [(tuple(range(first, first + 4)), 16) for first in range(0, 16, 4)]
    columns = [(tuple(range(first, 16, 4)), 64) for first in range(4)]
    problems = [Problem(torus, Collective("allreduce", 16, members=m, size=size)) for m, size in rows + columns]
    assert together(problems).bound.value == Fraction(6 * 4 * 64, 32)


def test_a_mean_of_cheapest_trees_where_the_program_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixture_module, "_PROGRAM", 10**9)
    problems = random_groups("allreduce")
    found, topology = mixed(problems), problems[0].topology
    assert found.proved is not None
    assert found.proved.value <= found.time <= found.proved.value * Fraction(5, 4)
    levels = [forest_of(topology, one.collective, found, group) for group, one in enumerate(problems)]
    assert all(level is not None and verify(level).ok for level in levels)


def test_too_little_effort_finds_no_mix() -> None:
    problem = Problem(collc.topology("complete(4)"), Collective("allreduce", 4, size=60))
    networks = [inside(problem.topology, problem.collective)]
    assert mixture(problem.topology, networks, commodities([problem]), effort=1000) is None


# ---- groups


def random_groups(kind: str) -> list[Problem]:
    torus = collc.topology("torus(4, 4)")
    groups = ((1, 5, 11, 14), (0, 3, 9, 10), (2, 6, 7, 13), (4, 8, 12, 15))
    return [Problem(torus, Collective(kind, 16, members=members, size=1 << 20)) for members in groups]


@pytest.mark.parametrize("kind", ["allreduce", "alltoall"])
def test_groups_without_symmetry_are_near_their_bound(kind: str) -> None:
    problems = random_groups(kind)
    groups = together(problems)
    proved = groups.tree_bound or groups.bound
    levels = planned(groups, [PASSES.load("flow")() if kind == "alltoall" else FOREST] * len(problems))
    assert all(verify(level).ok for level in levels)
    time, _ = time_together(levels, [1 << 20] * len(problems))
    assert proved.value <= time <= proved.value * Fraction(102, 100)
    assert groups.bound.value <= proved.value
    if kind == "alltoall":
        assert time == proved.value


def test_large_programs_take_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together_module, "MOST_EXACT", 0)
    problems = random_groups("allgather")
    groups = together(problems)
    assert isinstance(groups.bound, Priced)
    assert groups.tree_bound is None
    levels = planned(groups, [FOREST] * len(problems))
    assert time_together(levels, [1 << 20] * 4)[0] == groups.bound.value  # three eighths of the vector over a link
    for link in range(64):
        used = sum((one.shares[link] for one in groups.problems if one.shares is not None), Fraction(0))
        assert used <= problems[0].topology.bandwidth(link)


def test_other_schedulers_take_the_shares_of_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together_module, "MOST_EXACT", 0)
    groups = together(random_groups("allreduce"))
    for options in ({"k": 2}, {"via": "reduce"}):
        level = scheduled(PASSES.load("forest")(**options), groups.problems[0])
        assert verify(level).ok


def test_the_same_groups_give_the_same_plan() -> None:
    first, second = (mixed(random_groups("allreduce")) for _ in range(2))
    assert (first.columns, first.units, first.time) == (second.columns, second.units, second.time)


# ---- planted faults


def judged(proof: Priced, problems: Sequence[Problem]) -> bool:
    """Return whether a proof's sums are those of its prices, by networkx: groups of ranks without switches."""
    topology = problems[0].topology
    paid = sum((topology.bandwidth(link) * price for link, price in enumerate(proof.prices)), Fraction(0))
    carried = sum(
        (_price(topology, one, proof.prices, problems[one.group]) for one in commodities(problems)), Fraction(0)
    )
    return min(proof.prices) >= 0 and (carried, paid) == (proof.carried, proof.paid)


def _price(topology: Topology, one: Commodity, prices: Sequence[int], problem: Problem) -> Fraction:
    graph = nx.DiGraph()
    for link, (a, b) in enumerate(zip(topology.src.tolist(), topology.dst.tolist(), strict=True)):
        if not graph.has_edge(a, b) or graph[a][b]["price"] > prices[link]:
            graph.add_edge(a, b, price=prices[link])
    ranks = problem.collective.ranks.tolist()
    if one.targets is not None:
        used = graph.reverse() if one.inward else graph
        least = nx.single_source_dijkstra_path_length(used, one.root, weight="price")
        return one.needed * sum(int(least[ranks[place]]) * units for place, _, units in one.targets)
    roots = [one.root] if one.root >= 0 else range(topology.num_ranks)
    halves = [side for side, needed in ((graph, one.outward), (graph.reverse(), one.inward)) if needed]
    return one.needed * min(sum(_steiner(side, root, frozenset(ranks) - {root}) for side in halves) for root in roots)


def _steiner(graph: nx.DiGraph, root: int, ends: frozenset[int]) -> int:
    """Return the price of the cheapest tree, over all choices of its inner nodes."""
    if not ends:
        return 0
    others, best = [node for node in graph if node != root and node not in ends], -1
    for chosen in product((False, True), repeat=len(others)):
        nodes = [root, *ends, *(node for node, used in zip(others, chosen, strict=True) if used)]
        part = graph.subgraph(nodes).copy()
        part.remove_edges_from(list(part.in_edges(root)))
        if set(nx.descendants(part, root)) == set(nodes) - {root}:
            price = nx.minimum_spanning_arborescence(part, attr="price").size(weight="price")
            best = int(price) if best < 0 or price < best else best
    return best


def test_a_wrong_price_is_found() -> None:
    problems = [Problem(collc.topology("biring(4)"), Collective("allgather", 4, members=m, size=12))
                for m in ((0, 1, 2), (1, 3))]  # fmt: skip
    proof = mixed(problems).proved
    assert proof is not None
    assert judged(proof, problems)
    for link, price in enumerate(proof.prices):
        wrong = (*proof.prices[:link], price + 1, *proof.prices[link + 1 :])
        assert not judged(attrs.evolve(proof, prices=wrong), problems)


def test_a_share_that_is_too_large_is_found() -> None:
    problems = random_groups("allreduce")
    found, topology = mixed(problems), problems[0].topology
    for place in range(0, len(found.units), 7):
        units = [unit + (number == place) for number, unit in enumerate(found.units)]
        wrong = attrs.evolve(found, units=tuple(units))
        group = found.commodities[found.columns[place].commodity].group
        level = forest_of(topology, problems[group].collective, wrong, group)
        assert level is not None
        assert not verify(level).ok


@pytest.mark.parametrize("kind", ["allgather", "allreduce"])
def test_a_tree_that_misses_a_member_is_found(kind: str) -> None:
    """Of an allreduce some roots are relays."""
    problems = random_groups(kind)
    found, topology = mixed(problems), problems[0].topology
    for place in range(0, len(found.columns), 9):
        column = found.columns[place]
        group = found.commodities[column.commodity].group
        columns = [*found.columns]
        columns[place] = attrs.evolve(column, outward=column.outward[:-1])
        level = forest_of(topology, problems[group].collective, attrs.evolve(found, columns=tuple(columns)), group)
        assert level is not None
        assert not verify(level).ok
