"""Diamond and the modified de Bruijn graphs: what Table 9 of the direct-connect paper says of them."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations
from math import isclose

import highspy
import networkx as nx
import numpy as np
import pytest

from collc.frontends.coll.families.operators import line
from collc.frontends.coll.families.searched import _cycle, diamond, modified_debruijn, modified_debruijn_size
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.diagnostic import CollcError
from collc.ir.spec import Problem
from collc.ir.topology import Topology
from collc.ir.verify import verify_schedule
from collc.passes.synthesis.breadth_first.bfb import BFB
from collc.passes.synthesis.exact.scheduler import Exact
from collc.passes.synthesis.flow.rate import alltoall_rate

#: graph, ranks, degree, steps, whether it is isomorphic to its transpose
TABLE_9 = [
    (diamond(), 8, 2, 3, False),
    (modified_debruijn(2, 3), 8, 2, 4, True),
    (modified_debruijn(2, 4), 16, 2, 5, False),
    (modified_debruijn(3, 2), 9, 3, 3, False),
    (modified_debruijn(4, 2), 16, 4, 3, False),
]


def digraph(t: Topology) -> nx.DiGraph:
    return nx.DiGraph(list(zip(t.src.tolist(), t.dst.tolist(), strict=True)))


@pytest.mark.parametrize(("topology", "ranks", "degree", "steps", "turns"), TABLE_9)
def test_table_9(topology: Topology, ranks: int, degree: int, steps: int, turns: bool) -> None:
    graph = digraph(topology)
    assert (topology.num_ranks, topology.degree, graph.number_of_edges()) == (ranks, degree, ranks * degree)
    assert nx.number_of_selfloops(graph) == 0
    assert nx.is_isomorphic(graph, graph.reverse()) == turns


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["allgather", "reduce-scatter"])
@pytest.mark.parametrize(("topology", "ranks", "degree", "steps", "turns"), TABLE_9)
def test_bandwidth_optimal_but_not_breadth_first(
    topology: Topology, ranks: int, degree: int, steps: int, turns: bool, kind: str
) -> None:
    problem = Problem(topology, Collective(kind, ranks))
    schedule = Exact(steps=steps, proof=True).run(problem)
    assert verify_schedule(schedule).ok
    best = cost(schedule)
    assert (best.T_L, best.T_B) == (steps, Fraction(ranks - 1, ranks))
    first = cost(BFB().run(problem)).T_B
    assert first is not None and first > best.T_B


def test_three_steps_are_too_few_for_the_smallest_modified_de_bruijn_graph() -> None:
    t = modified_debruijn(2, 3)
    assert t.diameter == 3
    schedule = Exact(steps=3, chunks=2, proof=True).run(Problem(t, Collective("allgather", 8)))
    assert cost(schedule).T_B == Fraction(10, 8)


def rate(t: Topology) -> float:
    """The greatest rate at which every rank can send to every other at once: LP (3) of the paper."""
    n, links = t.num_ranks, t.num_links
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    for _ in range(n * links):
        model.addVar(0, highspy.kHighsInf)
    model.addVar(0, highspy.kHighsInf)
    for source in range(n):
        for rank in set(range(n)) - {source}:
            inward = [source * links + k for k in np.flatnonzero(t.dst == rank).tolist()]
            outward = [source * links + k for k in np.flatnonzero(t.src == rank).tolist()]
            index = [*inward, *outward, n * links]
            value = [1.0] * len(inward) + [-1.0] * len(outward) + [-1.0]
            model.addRow(0, highspy.kHighsInf, len(index), np.array(index), np.array(value))
        for k in np.flatnonzero(t.dst == source).tolist():
            model.changeColBounds(source * links + k, 0, 0)
    for k in range(links):
        model.addRow(0, 1, n, np.arange(n) * links + k, np.ones(n))
    model.changeColCost(n * links, -1)
    model.run()
    return -model.getObjectiveValue()


@pytest.mark.parametrize(("topology", "published"), [(diamond(), 0.0187), (modified_debruijn(2, 4), 0.00294)])
def test_all_to_all_rates_of_the_squares_are_those_of_table_7(topology: Topology, published: float) -> None:
    """In a Cartesian square every copy carries the demand of all others, so the rate is the graph's over its ranks."""
    assert isclose(rate(topology) / topology.num_ranks, published, rel_tol=3e-3)


@pytest.mark.slow
def test_the_line_graph_of_table_7_has_the_published_rate() -> None:
    found = alltoall_rate(line(modified_debruijn(4, 2)), Fraction(1, 3000))
    assert f"{float(found.lower):.2e}" == f"{float(found.upper):.2e}" == "2.21e-02"


def test_graphs_that_keep_a_link_of_the_2_cycle_have_the_published_rate() -> None:
    """Of (2,4): all orders of the four words 0000, 0101, 1010 and 1111."""
    for order in permutations([5, 10, 15]):
        cycle = [0, *order]
        graph = with_cycle(2, 4, cycle)
        keeps = any({a, b} == {5, 10} for a, b in zip(cycle, [*order, 0], strict=True))
        assert (alltoall_rate(graph).value == Fraction(7, 149)) == keeps
        assert nx.is_isomorphic(digraph(graph), digraph(graph).reverse()) != keeps


def with_cycle(d: int, n: int, cycle: list[int]) -> Topology:
    plain = {(x, (d * x + a) % d**n) for x in range(d**n) for a in range(d)}
    kept = {(a, b) for a, b in plain if (b, a) not in plain}
    return Topology.from_links("modified", d**n, sorted(kept | set(zip(cycle, [*cycle[1:], cycle[0]], strict=True))))


@pytest.mark.parametrize("d", [2, 3, 5, 9, 16])
def test_other_sizes_have_one_cycle_and_no_link_twice(d: int) -> None:
    for n in (2, 3):
        t = modified_debruijn(d, n)
        assert (t.num_ranks, t.num_links) == modified_debruijn_size(d, n)
        links = set(zip(t.src.tolist(), t.dst.tolist(), strict=True))
        assert t.degree == d and len(links) == t.num_links
        assert not (t.src == t.dst).any() and t.is_connected
        plain = {(x, (d * x + a) % d**n) for x in range(d**n) for a in range(d)}
        new = nx.DiGraph([*links - plain, *((a, b) for a, b in links & plain if (b, a) in plain)])
        assert len(new) == d * d and nx.is_strongly_connected(new)
        assert {degree for _, degree in new.out_degree()} == {1}
        pairs = {(a, b) for a, b in plain if a < b and (b, a) in plain}
        assert all(((a, b) in links) != ((b, a) in links) for a, b in pairs) or (d, n) == (2, 2)
        assert len(pairs) == d * (d - 1) // 2


def test_words_of_one_letter() -> None:
    with pytest.raises(CollcError, match="C0330"):
        modified_debruijn_size(3, 1)


def test_a_cycle_that_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    every = {a * 4 + b for a in range(4) for b in range(4)}
    loops = {word: word for word in range(4)}
    assert _cycle(loops, every - {0 * 4 + 1}, 4) is None
    assert _cycle(loops, every - {2, 9, 7, 12}, 4) == [0, 2, 1, 3]
    assert _cycle({0: 0, 1: 3, 2: 2, 3: 1}, every - {1, 3, 14, 8, 6}, 4) == [0, 1, 3, 2]
    assert _cycle({0: 0, 1: 3, 2: 2, 3: 1}, every - {2, 9, 7}, 4) is None
    monkeypatch.setattr("collc.frontends.coll.families.searched._cycle", lambda *_: None)
    with pytest.raises(CollcError, match="C0331"):
        modified_debruijn(2, 3)
