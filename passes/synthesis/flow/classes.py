"""Classes of (source, link) pairs that look alike from the source: colour refinement of LP (3) on any network.

All pairs (source, node) begin with what the node is. In each round, the class of a pair is divided by what the links of
the node lead to, and the class of a link by the pairs at its ends, over all sources. The classes at the end are an
equitable partition of the linear program's variables and rows, so some optimal flow is constant on each class (Grohe,
Kersting, Mladenov, Selman: Dimension reduction via colour refinement, 2014). Classes are never finer than the orbits of
automorphisms, and no automorphism need be known.
"""

from __future__ import annotations

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.topology import Topology

__all__ = ["Classes"]

_MULTIPLIERS = tuple(map(np.uint64, (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)))


@attrs.frozen(eq=False)
class Classes:
    """``node[s, v]`` is the class of node v as source number s sees it, ``flow[s, e]`` that of link e for it.

    ``link[e]`` is the class of link e, over all sources. Classes count from 0. Loops, and links into the source, have
    the flow class -1.
    """

    sources: Array
    node: Array
    link: Array
    flow: Array

    @classmethod
    def of(cls, topology: Topology, sources: Array, demand: Array | None = None) -> Classes:
        """Return the coarsest classes; shapes are (sources, nodes), (links,) and (sources, links).

        ``demand``: what every node needs of each source, shape (sources, nodes); None: every rank needs the same.
        """
        src, dst = topology.src.astype(np.int64), topology.dst.astype(np.int64)
        node = (np.arange(topology.num_nodes) < topology.num_ranks).astype(np.int64)[None, :].repeat(len(sources), 0)
        if demand is not None:
            node += 3 * _numbered(demand)
        node[np.arange(len(sources)), sources] = 2
        node, link = _numbered(node), _numbered(topology.link_class.astype(np.int64))
        tails, heads = _Sums.by(src, topology.num_nodes), _Sums.by(dst, topology.num_nodes)
        while True:
            out, into = _mixed(node[:, dst], 1) * _odd(link), _mixed(node[:, src], 2) * _odd(link)
            finer = _numbered(_mixed(node, 0) + tails.of(out) + heads.of(into))
            ends = (_mixed(finer[:, src], 3) * _odd(finer[:, dst])).sum(axis=0, dtype=np.uint64)
            links = _numbered(ends + _mixed(link, 4))
            done = finer.max() == node.max() and links.max() == link.max()
            node, link = finer, links
            if done:
                break
        useful = (src != dst)[None, :] & (dst[None, :] != sources[:, None])
        flow = _numbered(_mixed(node[:, src], 5) + _mixed(node[:, dst], 6) + _mixed(link, 7)[None, :])
        kept, flow = np.unique(np.where(useful, flow, -1), return_inverse=True)
        return cls(sources, node, link, flow.reshape(useful.shape) - (kept[0] == -1))


@attrs.frozen(eq=False)
class _Sums:
    """Sums of a column of links at their tails, or heads."""

    order: Array
    first: Array
    nodes: Array
    count: int

    @classmethod
    def by(cls, ends: Array, nodes: int) -> _Sums:
        order = np.argsort(ends, kind="stable")
        used, first = np.unique(ends[order], return_index=True)
        return cls(order, first, used, nodes)

    def of(self, values: Array) -> Array:
        found = np.zeros((len(values), self.count), dtype=np.uint64)
        if len(self.order):
            found[:, self.nodes] = np.add.reduceat(values[:, self.order], self.first, axis=1)
        return found


def _mixed(values: Array, turn: int) -> Array:
    """Return 64 bits for each number, unlike for each ``turn`` (splitmix64)."""
    bits = (values.astype(np.uint64) + np.uint64(turn * 0x1000000 + 1)) * _MULTIPLIERS[0]
    bits = (bits ^ (bits >> np.uint64(30))) * _MULTIPLIERS[1]
    bits = (bits ^ (bits >> np.uint64(27))) * _MULTIPLIERS[2]
    mixed: Array = bits ^ (bits >> np.uint64(31))
    return mixed


def _odd(values: Array) -> Array:
    return _mixed(values, 8) | np.uint64(1)


def _numbered(values: Array) -> Array:
    """Return numbers from 0 for the different values, by their first place, so that they do not depend on the bits."""
    _, first, number = np.unique(values, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    numbered: Array = rank[number].reshape(values.shape)
    return numbered
