"""Routings on generalized Kautz digraphs by intervals of links, and over shortest paths: against every walk itself."""

from __future__ import annotations

from fractions import Fraction
from itertools import product as every_tuple

import numpy as np
import pytest
from lp import lp3
from nets import generalized_kautz

from collc.frontends import coll
from collc.ir.topology import Topology
from collc.passes.synthesis.flow.columns import Commodities
from collc.passes.synthesis.flow.rate import commodities_of
from collc.passes.synthesis.flow.spread import _UNITS, _Paths, distance_bound, spread_rate
from collc.passes.synthesis.flow.walks import _Walks, kautz_degree, kautz_rate


def walks_of(nodes: int, degree: int, length: int) -> dict[tuple[int, int], list[list[int]]]:
    """Return the links of every walk of this length, by its ends; link k of node x has the number d x + k - 1."""
    found: dict[tuple[int, int], list[list[int]]] = {}
    for start, turns in every_tuple(range(nodes), every_tuple(range(degree), repeat=length)):
        at, links = start, []
        for turn in turns:
            links.append(degree * at + turn)
            at = (-degree * at - turn - 1) % nodes
        found.setdefault((start, at), []).append(links)
    return found


def hops_between(nodes: int, degree: int) -> dict[tuple[int, int], int]:
    hops: dict[tuple[int, int], int] = {}
    for length in range(nodes):
        if len(hops) == nodes * nodes:
            break
        for pair in walks_of(nodes, degree, length):
            hops.setdefault(pair, length)
    return hops


@pytest.mark.parametrize(("nodes", "degree"), [(3, 2), (5, 2), (9, 2), (12, 2), (4, 3), (11, 3), (17, 4), (20, 4)])
def test_interval_loads_are_the_loads_of_every_walk(nodes: int, degree: int) -> None:
    found, hops = _Walks.of(nodes, degree), hops_between(nodes, degree)
    assert sum(hops.values()) == int((found.hops * found.size).sum())
    for by_hops in (True, False):
        loads = np.zeros((found.longest + 1, nodes * degree), dtype=np.int64)
        for length in range(1, found.longest + 1) if by_hops else [found.longest]:
            for pair, walks in walks_of(nodes, degree, length).items():
                if hops[pair] == length or (not by_hops and hops[pair]):
                    for walk in walks:
                        np.add.at(loads[hops[pair]], walk, found.unit // len(walks))
        assert np.array_equal(loads, found.loads(by_hops)), by_hops


@pytest.mark.parametrize(("degree", "nodes"), [(2, 7), (2, 11), (3, 10), (3, 14), (4, 13)])
def test_rates_of_routings_are_below_the_optimum(degree: int, nodes: int) -> None:
    topology = generalized_kautz(degree, nodes)
    optimum = lp3(topology)
    for rate in (kautz_rate(nodes, degree), spread_rate(commodities_of(topology))):
        assert optimum * 0.6 <= float(rate) <= optimum * (1 + 1e-7)
    assert float(distance_bound(topology)) >= optimum * (1 - 1e-7)


def test_only_generalized_kautz_digraphs_are_taken_for_such() -> None:
    topology = coll.topology("generalized_kautz(3, 20)")
    assert kautz_degree(topology) == 3
    heads = topology.dst.copy()
    heads[[4, 5]] = heads[[5, 4]]
    assert kautz_degree(Topology("other", 20, topology.src, heads)) is None
    assert kautz_degree(coll.topology("torus(3, 3)")) is None


def test_even_shortest_paths_reach_the_optimum_of_a_symmetric_graph() -> None:
    graph = coll.topology('distance_regular("petersen")')
    assert spread_rate(commodities_of(graph)) == distance_bound(graph) == Fraction(30, 150)


def spread_loads(topology: Topology, commodities: Commodities, weights: list[int]) -> list[int]:
    """Return the loads of the classes of links, place by place: each node takes what it needs, and divides the rest."""
    loads = [0] * commodities.classes
    network, hops = commodities.network, topology.distances
    for source, count in zip(commodities.sources.tolist(), commodities.count.tolist(), strict=True):
        flow = [_UNITS] * topology.num_nodes
        for node in sorted(range(topology.num_nodes), key=lambda v: -int(hops[source][v])):
            slots = [
                (int(tail), int(commodities.link_class[link]))
                for tail, link in zip(network.tails[node], network.links[node], strict=True)
                if link >= 0 and hops[source][tail] + 1 == hops[source][node]
            ]
            shares = [flow[node] * weights[k] // sum(weights[k] for _, k in slots) for _, k in slots]
            if shares:
                shares[0] += flow[node] - sum(shares)
            for (tail, k), share in zip(slots, shares, strict=True):
                flow[tail] += share
                loads[k] += share * count
    return loads


@pytest.mark.parametrize(
    "text",
    ["generalized_kautz(3, 26)", "inserted(circulant(14, {1, 4}), {0 <-> 1, 3 <-> 7})", "line(complete(4))",
     "polycirculant(24, {5, 7}, {1})"],
)  # fmt: skip
def test_spread_loads_are_those_of_each_place(text: str) -> None:
    topology = coll.topology(text)
    commodities = commodities_of(topology)
    weights = [1 + 37 * k % 11 for k in range(commodities.classes)]
    found = np.zeros(commodities.classes, dtype=np.int64)
    for first in range(0, len(commodities.sources), 5):
        _Paths.of(commodities, slice(first, first + 5)).add_loads(found, np.array(weights))
    assert found.tolist() == spread_loads(topology, commodities, weights)


def test_distances_are_counted_as_they_are() -> None:
    for text in ("debruijn(2, 4)", "generalized_kautz(3, 70)", "torus(3, 5)", "line(complete(4), 2)"):
        topology = coll.topology(text)
        ranks = range(topology.num_ranks)
        hops = sum(int(topology.distances[s][t]) for s in ranks for t in ranks)
        links = int((topology.src != topology.dst).sum())
        assert distance_bound(topology) == Fraction(links, hops), text
