"""Bounds on an allreduce from prices: the dual of the program, in fractions.

Take any potentials p(t, v) >= 0 of ranks v for sinks t, zero at the sink itself. Data of v that travel to t pay the
descent of the potential. The tolls of the links between a pair of ranks must cover what the pair earns from all sinks.
Then no allreduce has more bandwidth than the tolls of the bandwidths of all links, over the least sum of a rank's
potentials. A solver's prices give the best bound, and rounding them costs little.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from collc.ir.arrays import Array

from .allreduce_network import Half, Net
from .allreduce_rounding import whole

__all__ = ["price_bound"]
Potentials = list[list[list[int]]]

_DENOMINATORS = (12, 100, 1000, 20_000)


def price_bound(net: Net, potentials: list[list[Array]], tolls: Array) -> Fraction:
    """Return the best bound that rounded prices prove: potentials per half and first rank, one toll per budget.

    Small denominators recover the solver's fractions; large denominators stay near its values.
    """
    found = [bound for most in _DENOMINATORS for bound in _bounds(net, potentials, tolls, most)]
    flat = [[[int(v != t) for v in range(net.num_ranks)] for t in net.first.tolist()] for _ in net.halves]
    return min([*found, *_proved(net, flat, [1] * len(net.width))])


def _bounds(net: Net, potentials: list[list[Array]], tolls: Array, most: int) -> Iterator[Fraction]:
    highest = max(float(p.max(initial=0)) for half in potentials for p in half) or 1.0
    heights, _ = whole([p / highest for half in potentials for p in half], most)
    sinks = len(net.first)
    halves = [heights[i : i + sinks] for i in range(0, len(heights), sinks)]
    (paid,), _ = whole([tolls / (float(tolls.max(initial=0)) or 1.0)], most)
    yield from _proved(net, halves, paid)


def _proved(net: Net, potentials: Potentials, tolls: list[int]) -> Iterator[Fraction]:
    """Yield the bound of whole prices, unless potentials vanish or tolls do not cover a pair."""
    kinds = net.kind.tolist()
    least = [0] * len(net.first)
    for half in potentials:
        for p in half:
            for kind, height in zip(kinds, p, strict=True):
                least[kind] += height
    worth = min(Fraction(total, count) for total, count in zip(least, net.count.tolist(), strict=True))
    earned = [_earned(half, p) for half, p in zip(net.halves, potentials, strict=True)]
    needed = _covering(net, earned) if net.is_direct else _scaled(net, earned, tolls)
    if worth and needed:
        yield sum((toll * width for toll, width in zip(needed, net.width, strict=True)), Fraction(0)) / worth


def _earned(half: Half, potentials: list[list[int]]) -> list[int]:
    """Return the total earnings of all pairs of every kind: the descents, over all sinks."""
    earned = [0] * (int(half.pair_kind.max()) + 1)
    tails, heads, kinds = half.pairs[0].tolist(), half.pairs[1].tolist(), half.pair_kind.tolist()
    for p in potentials:
        for tail, head, kind in zip(tails, heads, kinds, strict=True):
            if p[tail] > p[head]:
                earned[kind] += p[tail] - p[head]
    return earned


def _covering(net: Net, earned: list[list[int]]) -> list[Fraction]:
    """Return the least tolls if every pair is a link: the most that a link of any kind in the budget earns."""
    tolls = [Fraction(0)] * len(net.width)
    for half, paid in zip(net.halves, earned, strict=True):
        links = np.bincount(half.pair_kind).tolist()
        for kind, budget in set(zip(half.pair_kind.tolist(), half.budget.tolist(), strict=True)):
            tolls[budget] = max(tolls[budget], Fraction(paid[kind], links[kind]))
    return tolls


def _scaled(net: Net, earned: list[list[int]], tolls: list[int]) -> list[Fraction]:
    """Return the tolls, scaled so that the cheapest routes through switches cover what pairs earn."""
    factor = Fraction(0)
    for half, paid in zip(net.halves, earned, strict=True):
        covered = [0] * len(paid)
        for rank, count in zip(net.first.tolist(), net.count.tolist(), strict=True):
            length = _cheapest(half, rank, net, tolls)
            for pair in np.flatnonzero(half.pairs[0] == rank).tolist():
                covered[half.pair_kind[pair]] += count * length[int(half.pairs[1][pair])]
        for earning, cover in zip(paid, covered, strict=True):
            if earning and not cover:
                return []
            factor = max(factor, Fraction(earning, cover) if earning else factor)
    return [factor * toll for toll in tolls]


def _cheapest(half: Half, source: int, net: Net, tolls: list[int]) -> dict[int, int]:
    """Return the tolls of the cheapest route from one rank to every node (Dijkstra's algorithm)."""
    out: dict[int, list[tuple[int, int]]] = {}
    for arc in half.usable_arcs(source, net.num_ranks).tolist():
        out.setdefault(int(half.arcs[0][arc]), []).append((int(half.arcs[1][arc]), tolls[half.budget[arc]]))
    length: dict[int, int] = {}
    queue = [(0, source)]
    while queue:
        paid, node = heapq.heappop(queue)
        if node not in length:
            length[node] = paid
            for head, toll in out.get(node, ()):
                heapq.heappush(queue, (paid + toll, head))
    return length
