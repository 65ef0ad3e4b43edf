"""Compute the exact cost of an allgather by BFB without its schedule (Theorem 19 of the direct-connect paper).

At step t node u receives the shards of the nodes at distance t, each over those of its in-links that lie on shortest
paths: a mask of links. The least load of the busiest link is the largest ratio, over sets of links, of the shards
confined to the set to the links in it. One subset-sum transform of the histogram of masks of a node and step gives all
these ratios. T_B is d/N times the sum over steps of the greatest load at any node.

Loads are integers in units of 1 / lcm(1 .. d). All nodes of a Cayley digraph have the same cost. Many generator sets of
one group are evaluated together.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import lcm
from typing import Any

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.diagnostic import error
from collc.ir.group import Group
from collc.ir.topology import Topology

from ..synthesis.breadth_first.balance import balance

__all__ = ["NEVER", "Costs", "Evaluator", "bfb_cost", "busiest", "cayley_cost", "cayley_heads", "in_masks", "load_unit"]

#: links for which histograms over all sets of links are small enough to be transformed
MOST_TABLED = 16
_CHUNK = 1 << 15  # elements that one batch of breadth-first searches holds
_TABLE = 1 << 20  # counters transformed together
_MOST_KEPT = 1 << 22  # entries of a group's multiplication table


@lru_cache
def load_unit(degree: int) -> int:
    """Return the denominator that makes the loads of nodes with ``degree`` in-links integers.

    >>> load_unit(4)
    12
    """
    return lcm(*range(1, max(degree, 1) + 1))


@lru_cache
def _weights(degree: int) -> Array:
    """Return 1 / (size) for every set of links, in load units; 0 for the empty set."""
    sizes = np.bitwise_count(np.arange(1 << degree, dtype=np.int64)).astype(np.int64)
    return np.where(sizes > 0, load_unit(degree) // np.maximum(sizes, 1), 0)


def busiest(counts: Array, degree: int) -> Array:
    """Return the least loads of the busiest link, in load units (int64), shape (rows,).

    ``counts`` has shape (2^degree, rows): for every mask of links the number of jobs that may use these links. Row 0
    must be 0.
    """
    most = int(counts.sum(axis=0).max(initial=0))
    confined: Array = counts.astype(np.uint16 if most < 1 << 16 else np.int64, order="C")  # a copy
    for link in range(degree):
        halves = confined.reshape(-1, 2, 1 << link, confined.shape[1])
        halves[:, 1] += halves[:, 0]
    kind = np.int32 if most * load_unit(degree) < 2**31 else np.int64
    busiest: Array = (confined * _weights(degree).astype(kind)[:, None]).max(axis=0).astype(np.int64)
    return busiest


# ---- Cayley digraphs


@attrs.frozen
class Costs:
    """The costs of generator sets, a row each.

    ``steps`` is T_L, or -1 if some node is not reached within the limit. ``loads`` adds up the loads of the busiest
    links in units of 1/``unit`` shard (:data:`NEVER` if ``steps`` is -1). ``sizes[:, t]`` counts the nodes at distance
    t.
    """

    steps: Array
    loads: Array
    sizes: Array
    unit: int
    nodes: int
    degree: int

    def T_B(self, row: int) -> Fraction:
        """Return the bandwidth time in units of M/B."""
        return Fraction(self.degree * int(self.loads[row]), self.unit * self.nodes)


#: the load of a digraph that is not connected
NEVER = int(np.iinfo(np.int64).max)


class Evaluator:
    """Computes costs of Cayley digraphs of one group: node x has a link to x*g for every generator g.

    The multiplication table is filled as generators occur, so only these take memory. A large table is emptied when it
    is full.
    """

    def __init__(self, group: Group):
        self.group = group
        self.nodes = group.order
        self.inverse: Array = group.inverse(np.arange(self.nodes))
        self._table = np.empty((0, self.nodes), dtype=np.int64)  # x*g for every x, a row for each g in it
        self._row = np.full(self.nodes, -1, dtype=np.int64)  # of each g, -1 without one
        self._filled = 0

    def times(self, elements: Array) -> Array:
        """Return x*g for every element g given and every x: shape (.., N)."""
        if (self._row[elements] < 0).any():
            self._fill(np.unique(elements))
        return self._table[self._row[elements]]

    def _fill(self, elements: Array) -> None:
        new = elements[self._row[elements] < 0]
        if (self._filled + len(new)) * self.nodes > max(_MOST_KEPT, len(elements) * self.nodes):
            self._row[:], self._filled, new = -1, 0, elements
        end = self._filled + len(new)
        if end > len(self._table):
            larger = np.empty((min(max(end, 2 * len(self._table)), self.nodes), self.nodes), dtype=np.int64)
            larger[: self._filled] = self._table[: self._filled]
            self._table = larger
        self._table[self._filled : end] = self.group.multiply(np.arange(self.nodes), new[:, None])
        self._row[new] = np.arange(self._filled, end)
        self._filled = end

    def search(self, generators: Array, limit: int) -> tuple[Array, Array]:
        """Search breadth first from the identity; ``generators`` has shape (B, d).

        Returns for every set and element x the hops (int16, -1 if more than ``limit``) and the mask of the generators
        that can be the last on a shortest path. Node u and source v have those of x = v^-1 u.
        """
        sets, degree = generators.shape
        # Any: any number of bits
        kind: type[np.unsignedinteger[Any]] = np.uint8 if degree <= 8 else np.uint16 if degree <= 16 else np.uint64
        before = self.times(self.inverse[generators.T])  # (d, B, N)
        before += (np.arange(sets) * self.nodes)[:, None]
        before = before.reshape(degree, -1)
        hops = np.full(sets * self.nodes, -1, dtype=np.int16)
        masks = np.zeros(sets * self.nodes, dtype=kind)
        full = kind((1 << degree) - 1)
        reached = np.zeros(sets * self.nodes, dtype=kind)  # all bits or none
        hops[:: self.nodes], reached[:: self.nodes] = 0, full
        for step in range(1, limit + 1):
            fresh = np.zeros_like(reached)
            for place in range(degree):
                fresh |= reached[before[place]] & kind(1 << place)
            fresh &= ~reached
            new = fresh != 0
            if not new.any():
                break
            masks |= fresh
            hops[new] = step
            reached[new] = full
            if (reached == full).all():
                break
        return hops.reshape(sets, -1), masks.reshape(sets, -1)

    def costs(self, generators: Array, limit: int) -> Costs:
        """Return the cost of each of the generator sets, up to ``limit`` steps.

        ``generators`` has shape (B, d); no set holds the identity or repeats an element.
        """
        sets, degree = generators.shape
        if not sets:
            none = np.zeros(0, dtype=np.int64)
            return Costs(none, none, np.zeros((0, 1), dtype=np.int64), load_unit(degree), self.nodes, degree)
        rows = max(_CHUNK // self.nodes, 1)
        parts = [self._costs(generators[i : i + rows], limit) for i in range(0, sets, rows)]
        depth = max(part.sizes.shape[1] for part in parts)
        sizes = [np.pad(part.sizes, ((0, 0), (0, depth - part.sizes.shape[1]))) for part in parts]
        steps, loads = (np.concatenate([getattr(part, name) for part in parts]) for name in ("steps", "loads"))
        return Costs(steps, loads, np.concatenate(sizes), load_unit(degree), self.nodes, degree)

    def _costs(self, generators: Array, limit: int) -> Costs:
        sets, degree = generators.shape
        hops, masks = self.search(generators, limit)
        depth = int(hops.max(initial=0)) + 1
        row = np.arange(sets)[:, None] * (depth + 1) + hops + 1
        sizes = np.bincount(row.ravel(), minlength=sets * (depth + 1)).reshape(sets, -1)
        unreached, sizes = sizes[:, 0], sizes[:, 1:]
        steps = np.where(unreached > 0, -1, hops.max(axis=1).astype(np.int64))
        loads = np.full(sets, NEVER)
        whole = np.flatnonzero(unreached == 0)
        # in the first step every in-link carries one shard, that of its tail
        later = np.maximum(hops[whole] - 1, 0)
        loads[whole] = load_unit(degree) + node_loads(later, masks[whole], degree).sum(axis=1)
        return Costs(steps, loads, sizes, load_unit(degree), self.nodes, degree)


def node_loads(hops: Array, masks: Array, degree: int) -> Array:
    """Return the busiest links' loads, in load units, of each row's steps 1, 2, ..: shape (rows, steps).

    ``hops`` and ``masks`` have shape (rows, N): a node's distances from all sources, and its in-links on shortest
    paths.
    """
    rows, depth = len(hops), int(hops.max(initial=0))
    if not depth:
        return np.zeros((rows, 0), dtype=np.int64)
    if degree > MOST_TABLED:
        return np.array([_listed_loads(h, m, depth, degree) for h, m in zip(hops, masks, strict=True)]).reshape(
            rows, -1
        )
    loads = np.empty((rows, depth), dtype=np.int64)
    together = max((_TABLE >> degree) // max(depth, 1), 1)
    for first in range(0, rows, together):
        part = slice(first, first + together)
        later = hops[part] > 0
        column = np.arange(len(later))[:, None] * depth + hops[part] - 1
        width = len(later) * depth
        key = masks[part][later].astype(np.int64) * width + column[later]
        counts = np.bincount(key, minlength=width << degree)
        loads[part] = busiest(counts.reshape(1 << degree, width), degree).reshape(-1, depth)
    return loads


def _listed_loads(hops: Array, masks: Array, depth: int, degree: int) -> list[int]:
    """Return the loads of one node with more than ``MOST_TABLED`` links, from a list of the masks that occur."""
    loads = []
    for step in range(1, depth + 1):
        listed, counts = np.unique(masks[hops == step], return_counts=True)
        pairs = tuple((int(m), int(c)) for m, c in zip(listed, counts, strict=True))
        loads.append(_listed_load(pairs, degree) if pairs else 0)
    return loads


@lru_cache(maxsize=4096)
def _listed_load(histogram: tuple[tuple[int, int], ...], degree: int) -> int:
    return int(balance(histogram).load * load_unit(degree))


def cayley_heads(group: Group, generators: Sequence[int]) -> Array:
    """Return the heads of every node's links, shape (N, d): x*g for node x and each generator g in order."""
    return group.multiply(np.arange(group.order)[:, None], np.array(generators, dtype=np.int64)[None, :])


def cayley_cost(group: Group, generators: Sequence[int]) -> tuple[int, Fraction] | None:
    """Return (T_L, T_B) of an allgather by BFB on a Cayley digraph, or None if it is not connected.

    The generators are different, and none is the identity.
    """
    costs = Evaluator(group).costs(np.array([list(generators)], dtype=np.int64), group.order)
    return None if costs.steps[0] < 0 else (int(costs.steps[0]), costs.T_B(0))


# ---- any network of ranks


def bfb_cost(topology: Topology) -> tuple[int, Fraction]:
    """Return (T_L, T_B) of an allgather by breadth first, T_B in units of M/B as in the cost model.

    Beside parallel links the pass `bfb` can do better, with arrivals after the first chance; this function does not
    consider them. Raises C0301 (not strongly connected) and C0575 (switches, different links, different degrees).
    """
    degree = topology.degree
    if degree is None or not topology.is_direct or not topology.is_uniform:
        raise error(
            "C0575",
            f"the finder cannot evaluate `{topology.name}`",
            notes=["needed: no switches, equal links, and the same number of links into and out of every rank"],
            hint="`collc cost` prints the cost of a schedule on any topology",
        )
    topology.require_connected("an allgather")
    nodes = topology.num_ranks
    # under a regular symmetry all ranks have the cost of rank 0
    ranks = np.arange(1 if topology.symmetry is not None else nodes)
    hops, masks, width = in_masks(topology, ranks)
    loads = node_loads(hops, masks, width).max(axis=0, initial=0)
    return int(topology.distances.max()), Fraction(degree * int(loads.sum()), load_unit(width) * nodes)


def in_masks(topology: Topology, ranks: Array) -> tuple[Array, Array, int]:
    """Return the distances from all sources to the ranks, the masks of in-links on shortest paths, and their width.

    Distances and masks have shape (len(ranks), N). Bit i is a rank's i-th link among the topology's ``in_links``.
    """
    start, links = topology.in_links
    width = int(topology.in_degree.max(initial=1))
    # Any: numpy's integers, or Python's if there are more links than bits
    kind: type[Any] = np.uint8 if width <= 8 else np.uint16 if width <= 16 else np.uint64 if width <= 63 else object
    hops = np.ascontiguousarray(topology.distances.T)
    masks = np.zeros((len(ranks), topology.num_ranks), dtype=kind)
    for place in range(width):
        there = np.flatnonzero(start[ranks] + place < start[ranks + 1])
        tails = topology.src[links[start[ranks[there]] + place]]
        usable = hops[tails] + 1 == hops[ranks[there]]
        bit = 1 << place if kind is object else kind(1 << place)
        masks[there] |= np.where(usable, bit, bit * 0).astype(kind)
    return hops[ranks], masks, width
