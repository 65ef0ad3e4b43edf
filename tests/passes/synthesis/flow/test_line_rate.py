"""What the all-to-all of a base says about its line graph's, and flows that learn, against exact rates."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from nets import complete, de_bruijn, generalized_kautz, one_way_ring
from nets import torus as plain_torus
from sampling import EXHAUSTIVE, every, examples
from strategies import connected, regular

from collc.frontends.coll.families.cayley import circulant, complete_bipartite
from collc.frontends.coll.families.operators import line, power
from collc.frontends.coll.families.searched import diamond
from collc.ir.topology import LinkClass, Topology
from collc.passes.expansion.line import line_graph
from collc.passes.synthesis.flow import columns, rate
from collc.passes.synthesis.flow.columns import Commodities, column_rate, good_prices
from collc.passes.synthesis.flow.levelling import level
from collc.passes.synthesis.flow.line_rate import base_of, line_graph_prices, pairs_between
from collc.passes.synthesis.flow.paths import Network
from collc.passes.synthesis.flow.rate import alltoall_rate
from collc.passes.synthesis.flow.regret import SourceRoutes, learn


def plain(topology: Topology, wanted: np.ndarray) -> Commodities:
    """All sources, and each link a class of its own: nothing is said of symmetry. Loops have class 0, and no say."""
    n, src, dst = topology.num_ranks, topology.src.astype(np.int64), topology.dst.astype(np.int64)
    useful = src != dst
    number = np.maximum(np.cumsum(useful) - 1, 0)
    ones = np.ones(n, dtype=np.int64)
    return Commodities(Network.of(n, src, dst), wanted, np.arange(n), ones, number, np.ones(useful.sum(), dtype=int))


def everyone(topology: Topology) -> np.ndarray:
    return np.ones((topology.num_ranks, 1), dtype=np.int64)


def bases() -> st.SearchStrategy[Topology]:
    return regular(max_ranks=6, max_degree=3).filter(lambda g: (g.degree or 0) > 1)


def limit(base: Topology) -> Fraction:
    """The theorem: the least that 1/f of L(G) can be."""
    degree, ranks = base.degree or 0, base.num_links
    most = column_rate(plain(base, pairs_between(base).T), Fraction(0), 150).upper
    return (1 / most + ranks - 1) / degree


# ---- bases


@given(bases())
def test_bases_are_found_and_give_the_line_graph_back(base: Topology) -> None:
    graph = line_graph(base)
    found = base_of(graph)
    assert found is not None and found.num_ranks == base.num_ranks
    again = line_graph(found)
    assert sorted(zip(graph.src, graph.dst, strict=True)) == sorted(zip(again.src, again.dst, strict=True))


def test_other_networks_have_no_base() -> None:
    for topology in (complete(4), one_way_ring(5), plain_torus(4, 4), generalized_kautz(3, 10), de_bruijn(3, 1)):
        assert base_of(topology) is None, topology.name
    kautz = generalized_kautz(2, 6)
    assert base_of(kautz) is not None  # L(K_3)
    mixed = Topology(
        "mixed", 6, kautz.src, kautz.dst, link_class=[0, 1] * 6, classes=(LinkClass(), LinkClass(Fraction(2)))
    )
    assert base_of(mixed) is None


@given(bases())
def test_passing_counts_pairs_of_ranks(base: Topology) -> None:
    pairs = np.zeros((base.num_ranks, base.num_ranks), dtype=int)
    for a in range(base.num_links):
        for b in range(base.num_links):
            x, y = int(base.dst[a]), int(base.src[b])
            pairs[x, y] += a != b and x != y
    assert (pairs_between(base) == pairs).all()


# ---- the bound


@pytest.mark.slow
@settings(max_examples=examples(30))
@given(bases())
def test_no_line_graph_beats_its_base(base: Topology) -> None:
    graph = line_graph(base)
    assume(base.num_links <= 18)
    assert 1 / alltoall_rate(graph).upper >= limit(base) * (1 - Fraction(1, 10**5))


@settings(max_examples=examples(30))
@given(bases(), st.data())
def test_prices_of_the_base_prove_it(base: Topology, data: st.DataObject) -> None:
    """Any prices of G, lifted, prove on L(G) what the theorem says of them, or more where loops are no neighbours."""
    graph, ranks, degree = line_graph(base), base.num_links, base.degree or 0
    loops = base.src == base.dst
    prices = np.array(data.draw(st.lists(st.integers(1, 9), min_size=ranks, max_size=ranks))) * ~loops
    what, over = plain(base, pairs_between(base).T), plain(graph, everyone(graph))
    routed = what.route(prices[~loops])
    raised = line_graph_prices(graph, lambda found, pairs: prices)
    assert raised is not None
    proved, _ = over.bound(raised[graph.src != graph.dst].astype(np.int64))
    assert proved == Fraction(routed.cost + (ranks - 1) * int(prices.sum()), degree * int(prices.sum()))


def test_equality_on_products_and_bipartite_graphs() -> None:
    known = ((complete_bipartite(4), Fraction(2, 35)), (power(diamond(), 2), Fraction(12, 3319)))
    for base, found in every(2, known):
        assert 1 / limit(base) == found
    assert alltoall_rate(line(complete_bipartite(4))).value == Fraction(2, 35)


def test_hops_alone_keep_circulants_below_a_printed_rate() -> None:
    """Table 7 prints 8.12e-4 for L^3(C(16,{3,4})): all links together carry too little for it, for all such offsets."""
    graph = line(circulant(16, {3, 4}), 3)
    assert (graph.num_ranks, graph.diameter) == (1024, 6)
    assert hops(graph) == Fraction(64, 79063) < Fraction(8115, 10**7)
    others = {k: hops(line(circulant(16, {3, k}), 3)) for k in (1, 2, 5, 6, 7)}
    assert max(others, key=lambda k: others[k]) == 2
    if EXHAUSTIVE:
        assert alltoall_rate(line(circulant(16, {2, 3}), 3)).upper < Fraction(8, 10**4)


def hops(topology: Topology) -> Fraction:
    """The rate if all paths were shortest and all links equally busy: none exceeds it."""
    return Fraction(topology.num_links, int(topology.distances.sum()))


def test_a_rank_sends_nothing_to_itself() -> None:
    """Were data from a rank to itself counted, what L(K_{4,4}) reaches would be beyond the bound."""
    base = complete_bipartite(4)
    careless = (16 / alltoall_rate(base).upper + 31) / 4
    assert careless == Fraction(71, 4) > Fraction(35, 2) == 1 / alltoall_rate(line(base)).upper


def test_it_is_no_equality() -> None:
    """Not every flow of a base turns evenly at its nodes."""
    graph = line(de_bruijn(2, 3))
    base = base_of(graph)
    assert base is not None and limit(base) < 1 / alltoall_rate(graph).upper


# ---- flows that learn


@settings(max_examples=examples(30))
@given(connected(min_ranks=2, max_ranks=7, extra=12), st.data())
def test_flows_are_kept_whole(topology: Topology, data: st.DataObject) -> None:
    """Whatever the splits, what enters a place is what it wants and what leaves it."""
    what = plain(topology, everyone(topology))
    prices = np.array(data.draw(st.lists(st.integers(0, 9), min_size=what.classes, max_size=what.classes)))
    routes = SourceRoutes.of(what.network, what.sources, what.wanted, kinds(what), prices)
    seed = np.random.default_rng(data.draw(st.integers(0, 99)))
    split = routes.open * seed.random(routes.open.shape)
    split /= np.maximum(split.sum(axis=1, keepdims=True), 1e-9)
    flow = routes.flow(split)
    assert not flow[~routes.open].any() and (flow == np.floor(flow)).all() and flow.min(initial=0) >= 0
    out = np.append(flow.ravel(), 0)[routes.after].sum(axis=1)
    inner = slice(int(routes.start[1]), None)
    assert (flow.sum(axis=1)[inner] == (routes.own + out)[inner]).all()
    assert out[: routes.start[1]].sum() == routes.own.sum()


def kinds(what: Commodities) -> np.ndarray:
    return what.link_class[np.maximum(what.network.links, 0)]


@settings(max_examples=examples(10))
@given(regular(max_ranks=7))
def test_learning_comes_near_the_rate(topology: Topology) -> None:
    what, exact = plain(topology, everyone(topology)), alltoall_rate(topology)
    prices = good_prices(what, Fraction(1, 100), 20)
    whole = np.rint(prices * (2**20 / prices.max())).astype(np.int64)
    routes = SourceRoutes.of(what.network, what.sources, what.wanted, kinds(what), whole)
    learned = learn(routes, what.count, what.capacity, prices, 80)
    assert 1 / learned.value <= exact.upper <= 1 / learned.value * Fraction(3, 2)


def test_large_line_graphs_get_a_narrow_bracket(monkeypatch: pytest.MonkeyPatch) -> None:
    for topology in every(2, (line(complete_bipartite(3)), line(power(diamond(), 2)), line(generalized_kautz(3, 10)))):
        exact = alltoall_rate(topology)
        with monkeypatch.context() as patch:
            patch.setattr(columns, "_MOST_LOADS", 0)
            patch.setattr(rate, "_SMALL", 0)
            found = alltoall_rate(topology)
        assert found.lower <= exact.lower <= exact.upper <= found.upper
        assert found.upper <= found.lower * Fraction(101, 100), topology.name


def test_level_flows_reach_the_bound() -> None:
    """Where the base's prices prove the rate, and where they do not: no flow is better than the rate."""
    for base, tight in ((complete_bipartite(3), True), (de_bruijn(2, 3), False)):
        graph = line(base)
        exact, found = alltoall_rate(graph), []
        what = plain(graph, everyone(graph))
        prices = line_graph_prices(
            graph, lambda over, pairs: good_prices(plain(over, pairs.T), Fraction(0), 150)[links_of(over)]
        )
        assert prices is not None
        prices = prices[graph.src != graph.dst]
        whole = np.rint(prices * (2**20 / prices.max())).astype(np.int64)
        bound, _ = what.bound(whole)
        routes = SourceRoutes.of(what.network, what.sources, what.wanted, kinds(what), whole)
        found = [level(routes, what.count, what.capacity, whole.astype(float), bound, rounds) for rounds in (1, 250)]
        assert found[0] >= found[1] >= 1 / exact.upper
        assert (found[1] <= bound * Fraction(1001, 1000)) == tight


def links_of(topology: Topology) -> np.ndarray:
    """The class of every link in :func:`plain`."""
    return np.maximum(np.cumsum(topology.src != topology.dst) - 1, 0)
