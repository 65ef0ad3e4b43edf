"""Small networks with switches and bandwidths of all kinds, and what trying every set of nodes says about them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations

from hypothesis import strategies as st

from collc.ir.topology import LinkClass, Topology


def bandwidths() -> st.SearchStrategy[Fraction]:
    return st.builds(Fraction, st.integers(1, 12), st.sampled_from([1, 1, 2, 3, 7]))


@st.composite
def switched(draw: st.DrawFn, max_ranks: int = 5, balanced: bool | None = None) -> Topology:
    """Strongly connected, up to 3 switches, parallel links and loops; balanced: as much into every node as out of it.

    A closed walk of one bandwidth through all nodes, and then more of them (balanced) or any links (not).
    """
    ranks, switches = draw(st.integers(2, max_ranks)), draw(st.integers(0, 3))
    nodes = list(range(ranks + switches))
    walks = [(draw(st.permutations(nodes)), draw(bandwidths()))]
    links = list[tuple[int, int, LinkClass]]()
    if draw(st.booleans()) if balanced is None else balanced:
        some = st.lists(st.sampled_from(nodes), min_size=1, max_size=len(nodes), unique=True)
        walks += draw(st.lists(st.tuples(some, bandwidths()), max_size=5))
    else:
        node = st.sampled_from(nodes)
        extra = draw(st.lists(st.tuples(node, node, bandwidths()), max_size=8))
        links += [(a, b, LinkClass(width)) for a, b, width in extra]
    for walk, width in walks:
        links += [(a, b, LinkClass(width)) for a, b in zip(walk, [*walk[1:], walk[0]], strict=True)]
    return Topology.from_links("switched", ranks, draw(st.permutations(links)), switches)


@st.composite
def supplies(draw: st.DrawFn, topology: Topology) -> list[int]:
    """One for every rank, one for the root alone, or anything."""
    ranks = topology.num_ranks
    root = draw(st.integers(0, ranks - 1))
    some = st.lists(st.integers(0, 3), min_size=ranks, max_size=ranks)
    return draw(st.just([1] * ranks) | st.just([int(r == root) for r in range(ranks)]) | some)


def all_sets(num_nodes: int, sinks: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All sets of nodes that leave out a sink, but for the empty one."""
    for size in range(1, num_nodes + 1):
        for chosen in combinations(range(num_nodes), size):
            if not set(sinks) <= set(chosen):
                yield chosen


def out_of(topology: Topology, nodes: Sequence[int]) -> list[Fraction]:
    """The bandwidths of all links out of a set, one by one."""
    return [
        topology.bandwidth(link)
        for link, (a, b) in enumerate(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))
        if a in nodes and b not in nodes
    ]


def sent(topology: Topology, supply: Sequence[int], nodes: Sequence[int]) -> int:
    return sum(supply[node] for node in nodes if node < topology.num_ranks)


def slow_ratio(topology: Topology, supply: Sequence[int], sinks: Sequence[int]) -> Fraction:
    """The largest ratio of what a set has to send to the bandwidth out of it."""
    found = [Fraction(0)]
    for nodes in all_sets(topology.num_nodes, sinks):
        if what := sent(topology, supply, nodes):
            found.append(what / sum(out_of(topology, nodes), Fraction(0)))
    return max(found)
