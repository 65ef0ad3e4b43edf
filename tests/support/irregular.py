"""Networks without symmetry: regular ones with dead links or ranks, random ones, links of unequal bandwidths."""

from __future__ import annotations

import random
from fractions import Fraction

import networkx as nx
import numpy as np

import collc
from collc.ir.topology import LinkClass, Topology

__all__ = ["random_regular", "sparse", "with_dead_links", "with_widths", "without_rank"]

Pair = tuple[int, int]


def pairs(net: Topology) -> list[Pair]:
    """Return the ends of every link, smaller first, so that both directions are one pair."""
    return [(min(a, b), max(a, b)) for a, b in zip(net.src.tolist(), net.dst.tolist(), strict=True)]


def with_dead_links(expression: str, count: int, seed: int = 1) -> Topology:
    """Return a network without ``count`` of its two-way links, still connected."""
    net, rng = collc.topology(expression), random.Random(seed)
    known = sorted(set(pairs(net)))
    while True:
        gone = {*rng.sample(known, count)}
        kept = np.array([pair not in gone for pair in pairs(net)])
        found = Topology(f"{expression} - {count}", net.num_ranks, net.src[kept], net.dst[kept])
        if found.is_connected:
            return found


def without_rank(expression: str, rank: int = 5) -> Topology:
    """Return a network without a rank and its links; later ranks are renumbered."""
    net = collc.topology(expression)
    kept = (net.src != rank) & (net.dst != rank)
    new = np.arange(net.num_ranks) - (np.arange(net.num_ranks) > rank)
    return Topology(f"{expression} without a rank", net.num_ranks - 1, new[net.src[kept]], new[net.dst[kept]])


def with_widths(expression: str, seed: int = 1) -> Topology:
    """Return a network whose two-way links have one of three bandwidths."""
    net, rng = collc.topology(expression), random.Random(seed)
    kind: dict[Pair, int] = {}
    classes = (LinkClass(Fraction(1)), LinkClass(Fraction(2)), LinkClass(Fraction(3, 2)))
    chosen = [kind.setdefault(pair, rng.randrange(3)) for pair in pairs(net)]
    return Topology(f"{expression} of widths", net.num_ranks, net.src, net.dst, link_class=chosen, classes=classes)


def both_ways(edges: list[Pair], ranks: int, name: str) -> Topology:
    """Return the network with both directions of these edges."""
    links = sorted([*edges, *((b, a) for a, b in edges)])
    return Topology.from_links(name, ranks, links)


def random_regular(ranks: int, degree: int, seed: int = 1) -> Topology:
    """Return a random network with two-way links, ``degree`` at each rank, connected."""
    rng = random.Random(seed)
    while True:
        edges = list(nx.random_regular_graph(degree, ranks, seed=rng.randrange(1 << 30)).edges)
        found = both_ways(edges, ranks, f"regular({ranks}, {degree})")
        if found.is_connected:
            return found


def sparse(ranks: int, seed: int = 1) -> Topology:
    """Return a path with random edges beside it, at most three at a rank."""
    rng = random.Random(seed)
    edges = {(a, a + 1) for a in range(ranks - 1)}
    free = [r for r in range(ranks) for _ in range(2 if r in (0, ranks - 1) else 1)]
    rng.shuffle(free)
    edges |= {(min(a, b), max(a, b)) for a, b in zip(free[::2], free[1::2], strict=False) if a != b}
    return both_ways(sorted(edges), ranks, f"sparse({ranks})")
