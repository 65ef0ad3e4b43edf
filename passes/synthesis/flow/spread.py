"""Bounds on all-to-all rates of networks of any size, in whole numbers: the same on every machine.

From above: no routing uses fewer links than all shortest paths, so f is at most the number of links over the sum of
distances. From below: data spread over all shortest paths, which reaches a rate whatever its quality.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.graph.balls import ball_sizes
from collc.ir.ragged import starts
from collc.ir.topology import Topology

from .columns import Commodities
from .paths import Network

__all__ = ["distance_bound", "spread_rate"]

_UNITS = 2**14  # parts of the data for one node
_DEAREST = 2**10
_WORK = 1 << 22  # nodes times sources that are routed at once
_ROUNDS, _MOST_WORK = 12, 1 << 23  # rounds of new weights, and the most of nodes times sources times slots for all


def distance_bound(topology: Topology) -> Fraction:
    """Return the number of links that are no loops over the sum of distances between nodes.

    The topology is strongly connected, direct and has links of one bandwidth.

    >>> distance_bound(Topology("ring", 4, [0, 1, 2, 3], [1, 2, 3, 0]))
    Fraction(1, 6)
    """
    pairs = topology.num_nodes**2
    total = pairs - topology.num_nodes  # pairs at least one hop apart, at least two, ..
    for sizes in ball_sizes(topology.num_nodes, topology.src.astype(np.int64), topology.dst.astype(np.int64)):
        total += pairs - int(sizes.sum())
    return Fraction(int((topology.src != topology.dst).sum()), total)


def spread_rate(commodities: Commodities) -> Fraction:
    """Return the rate of the best of a few routings over all shortest paths; every node wants a unit of every source.

    A node takes what it needs and forwards over its links from nodes nearer to the source, by weights of the links. The
    next routing has lower weights for busy links. Weights are floats, multiplied and divided only.
    """
    sources = len(commodities.sources)
    width = max(1, _WORK // commodities.network.num_nodes)
    parts = [slice(first, first + width) for first in range(0, sources, width)]
    kept = [_Paths.of(commodities, part) for part in parts] if len(parts) == 1 else []  # all that fit at once
    weights = np.full(commodities.classes, _DEAREST, dtype=np.int64)
    alike = [(int(one), commodities.capacity == one) for one in np.unique(commodities.capacity)]
    best = Fraction(0)
    rounds = max(1, min(_ROUNDS, _MOST_WORK // commodities.work))
    for _ in range(rounds):
        load = np.zeros(commodities.classes, dtype=np.int64)
        for paths in kept or (_Paths.of(commodities, part) for part in parts):
            paths.add_loads(load, weights)
        most = max(Fraction(int(load[own].max()), capacity * _UNITS) for capacity, own in alike)
        best = max(best, 1 / most)
        lighter = weights * (commodities.capacity / np.maximum(load, 1))
        weights = np.maximum(lighter * (_DEAREST / lighter.max()), 1).astype(np.int64)
    return best


@attrs.frozen(eq=False)
class _Hop:
    """The last hops of shortest paths of one length: the places ``at`` which they end, a row for each.

    A place is a node and a source. By link, ``row`` is its row, ``before`` the place that it leaves, ``kind`` its
    class, ``count`` how many sources the source represents. ``first`` is the first link of each row.
    """

    at: Array
    row: Array
    before: Array
    kind: Array
    count: Array
    first: Array


@attrs.frozen(eq=False)
class _Paths:
    """The shortest paths from some sources to all nodes, longest first."""

    hops: Sequence[_Hop]
    places: int

    @classmethod
    def of(cls, commodities: Commodities, part: slice) -> _Paths:
        """Return the paths from a part of the sources."""
        network, count = commodities.network, commodities.count[part]
        tails, links = network.tails.astype(np.int32), network.links
        kind = commodities.link_class.astype(np.int32)[np.maximum(links, 0)]
        hops = _hops(network, commodities.sources[part])
        columns, flat = hops.shape[1], hops.ravel()
        order = np.argsort(flat, kind="stable")
        start = np.searchsorted(flat[order], np.arange(1, int(flat.max()) + 2))
        shortest = [(hops[tails[:, k]] + 1 == hops) & (links[:, k] >= 0)[:, None] for k in range(tails.shape[1])]
        usable = np.stack(shortest, axis=2).reshape(len(flat), -1)[order]
        first = starts(usable.sum(axis=1))
        row, slot = (side.astype(np.int32) for side in np.nonzero(usable))
        node, column = np.divmod(order.astype(np.int32)[row], np.int32(columns))
        before, kind, count = tails[node, slot] * columns + column, kind[node, slot], count[column]
        found = []
        for least, most in reversed(list(pairwise(start.tolist()))):
            own = slice(*first[[least, most]].tolist())
            at, opens = order[least:most], first[least:most] - first[least]
            found.append(_Hop(at, row[own] - least, before[own], kind[own], count[own], opens))
        return cls(found, flat.size)

    def add_loads(self, load: Array, weights: Array) -> None:
        """Add the loads of the sources' data, in units, for all sources that these represent."""
        flow = np.full(self.places, _UNITS, dtype=np.int64)
        for hop in self.hops:
            amount, weight = flow[hop.at], weights[hop.kind]
            total = np.add.reduceat(weight, hop.first)
            share = amount[hop.row] * weight // total[hop.row]
            share[hop.first] += amount - np.add.reduceat(share, hop.first)
            np.add.at(flow, hop.before, share)
            np.add.at(load, hop.kind, share * hop.count)


def _hops(network: Network, sources: Array) -> Array:
    """Return the hops from every source to every node, shape (nodes, sources)."""
    hops = np.full((network.num_nodes, len(sources)), -1, dtype=np.int16)
    hops[sources, np.arange(len(sources))] = 0
    step, front = 0, hops == 0
    while front.any():
        step += 1
        reached = np.zeros_like(front)
        for slot in range(network.tails.shape[1]):
            reached |= front[network.tails[:, slot]]
        front = reached & (hops < 0)
        hops[front] = step
    return hops
