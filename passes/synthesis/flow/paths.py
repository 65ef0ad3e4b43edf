"""Cheapest paths from many sources, or at many prices, at once: integers and array operations only."""

from __future__ import annotations

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.ragged import group_starts

__all__ = ["Network", "Trees", "cheapest"]


@attrs.frozen(eq=False)
class Network:
    """The links into every node, in slots: row v has the tails and the link numbers, padded with the node itself, -1.

    Shapes (nodes, slots). Self-loops are left out.
    """

    tails: Array
    links: Array

    @classmethod
    def of(cls, num_nodes: int, src: Array, dst: Array) -> Network:
        """Return the network of these links (columns of tails and heads); loops are left out."""
        order = np.argsort(dst, kind="stable")
        order = order[src[order] != dst[order]]
        degree = np.bincount(dst[order], minlength=num_nodes)
        links = np.full((num_nodes, int(degree.max(initial=0))), -1, dtype=np.int64)
        links[np.arange(links.shape[1]) < degree[:, None]] = order
        tails = np.where(links >= 0, src[links] if len(src) else 0, np.arange(num_nodes)[:, None])
        return cls(tails.astype(np.int64), links)

    @property
    def num_nodes(self) -> int:
        """Nodes, with or without in-links."""
        return len(self.tails)


@attrs.frozen(eq=False)
class Trees:
    """Cheapest paths, a column for every source (or price): ``cost``, ``hops`` to every node, ``slot`` of its in-link.

    Shapes (nodes, columns). Among equally cheap paths, those of fewest hops win. At the source, and without a path
    (cost -1), the slot is -1.
    """

    cost: Array
    hops: Array
    slot: Array


def cheapest(network: Network, sources: Array, prices: Array, ties: Array | None = None) -> Trees:
    """Return the cheapest paths for every column.

    ``sources``: a node for each column. ``prices``: integers of at least 0, shape (nodes, slots, columns or 1) or
    (1, slots, columns). ``ties`` (same shape, small positive integers; default: one per hop) is minimized among equally
    cheap paths. Costs beyond 64 bits use Python integers (object arrays).
    """
    n, slots = network.tails.shape
    columns = len(sources)
    most = 1 if ties is None else int(ties.max())
    scale = most * n + 1
    weights = prices * scale + (1 if ties is None else ties)
    exact: type = object if int(weights.max(initial=0)) * n >= 2**61 else np.int64
    if exact is object:
        weights = prices.astype(object) * scale + (1 if ties is None else ties)
    missing = int(weights.max(initial=0)) * n + 1
    weight = [np.where((network.links[:, j] >= 0)[:, None], weights[:, j], missing).astype(exact) for j in range(slots)]
    tails = [np.ascontiguousarray(network.tails[:, j]) for j in range(slots)]
    cost = np.full((n, columns), missing, dtype=exact)
    cost[sources, np.arange(columns)] = 0
    while True:
        new = cost
        for tail, w in zip(tails, weight, strict=True):
            new = np.minimum(new, cost[tail] + w)
        if (new == cost).all():
            break
        cost = new
    slot = np.full((n, columns), -1, dtype=np.int64)
    for j in reversed(range(slots)):
        slot[cost[tails[j]] + weight[j] == cost] = j
    slot[sources, np.arange(columns)] = -1
    hops = _hops(network, slot) if ties is not None else np.where(slot >= 0, cost % scale, 0).astype(np.int64)
    return Trees(np.where(cost < missing, cost // scale, -1), hops, slot)


def _hops(network: Network, slot: Array) -> Array:
    """Return the hops of every path, by following parents in strides that double."""
    up = parents(network, slot)
    hops = (slot >= 0).astype(np.int64)
    while True:
        more = np.take_along_axis(hops, up, axis=0)
        if not more.any():
            return hops
        hops = hops + more
        up = np.take_along_axis(up, up, axis=0)


def parents(network: Network, slot: Array) -> Array:
    """Return the node before every node on its path; a source's is itself."""
    nodes = np.arange(len(slot))[:, None]
    return np.where(slot >= 0, network.tails[nodes, np.maximum(slot, 0)], nodes)


def subtree_sums(network: Network, trees: Trees, amounts: Array) -> Array:
    """Return the flow into every node: its own ``amounts`` (broadcast to (nodes, columns)) and all that it forwards."""
    n, columns = trees.slot.shape
    total = np.broadcast_to(amounts, (n, columns)).astype(np.float64).ravel()
    up = (parents(network, trees.slot) * columns + np.arange(columns)).ravel()
    hops = trees.hops.ravel()
    order = np.argsort(hops.astype(np.int16) if hops.max(initial=0) < 2**15 else hops, kind="stable")
    start = group_starts(hops[order], int(hops.max(initial=0)) + 1)
    for h in range(len(start) - 2, 0, -1):
        at = order[start[h] : start[h + 1]]
        np.add.at(total, up[at], total[at])
    return total.reshape(n, columns)
