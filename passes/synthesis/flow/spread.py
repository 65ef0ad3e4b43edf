"""Bounds on all-to-all rates of networks of any size, in whole numbers: the same on every machine.

From above: no routing uses fewer links than all shortest paths, so f is at most the number of links over the sum of
distances. From below: data spread over all shortest paths, which reaches a rate whatever its quality.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from collc.ir.arrays import Array
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
    n = topology.num_nodes
    network = Network.of(n, topology.src.astype(np.int64), topology.dst.astype(np.int64))
    # bit s of row v: whether v is at most this number of hops after s
    reached = np.zeros((n, -(-n // 64) * 8), dtype=np.uint8)
    reached[np.arange(n), np.arange(n) // 8] = 1 << (np.arange(n) % 8)
    known = reached.view(np.uint64)
    total, count = 0, n
    while count < n * n:
        total += n * n - count
        larger = known.copy()
        for slot in range(network.tails.shape[1]):
            larger |= known[network.tails[:, slot]]
        known, count = larger, int(np.bitwise_count(larger).sum())
    return Fraction(int((topology.src != topology.dst).sum()), total)


def spread_rate(commodities: Commodities) -> Fraction:
    """Return the rate of the best of a few routings over all shortest paths; every node wants a unit of every source.

    A node takes what it needs and forwards over its links from nodes nearer to the source, by weights of the links. The
    next routing has lower weights for busy links. Weights are floats, multiplied and divided only.
    """
    nodes, sources = commodities.network.num_nodes, commodities.sources
    width = max(1, _WORK // nodes)
    weights = np.full(commodities.classes, _DEAREST, dtype=np.int64)
    capacity, best = commodities.capacity.tolist(), Fraction(0)
    rounds = max(1, min(_ROUNDS, _MOST_WORK // commodities.work))
    for _ in range(rounds):
        load = np.zeros(commodities.classes, dtype=np.int64)
        for first in range(0, len(sources), width):
            _add_loads(load, commodities, slice(first, first + width), weights)
        most = max(Fraction(x, c * _UNITS) for x, c in zip(load.tolist(), capacity, strict=True))
        best = max(best, 1 / most)
        lighter = weights * (commodities.capacity / np.maximum(load, 1))
        weights = np.maximum(lighter * (_DEAREST / lighter.max()), 1).astype(np.int64)
    return best


def _add_loads(load: Array, commodities: Commodities, part: slice, weights: Array) -> None:
    """Add the loads of the data of some sources, in units, for all sources that these represent."""
    network, count = commodities.network, commodities.count[part]
    tails, links = network.tails, network.links
    kind = commodities.link_class[np.maximum(links, 0)]
    hops = _hops(network, commodities.sources[part])
    columns = hops.shape[1]
    flat = hops.ravel()
    order = np.argsort(flat, kind="stable")
    start = np.searchsorted(flat[order], np.arange(1, int(flat.max()) + 2))
    flow = np.full(flat.shape, _UNITS, dtype=np.int64)
    for step in range(len(start) - 1, 0, -1):
        at = order[start[step - 1] : start[step]]
        node, column = np.divmod(at, columns)
        before = tails[node] * columns + column[:, None]
        usable = (flat[before] == step - 1) & (links[node] >= 0)
        weight = weights[kind[node]] * usable
        share = flow[at][:, None] * weight // weight.sum(axis=1)[:, None]
        share[np.arange(len(at)), usable.argmax(axis=1)] += flow[at] - share.sum(axis=1)
        row, slot = np.nonzero(share)
        amount = share[row, slot]
        np.add.at(flow, before[row, slot], amount)
        np.add.at(load, kind[node[row], slot], amount * count[column[row]])


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
