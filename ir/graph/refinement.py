"""Colour refinement of networks: nodes have equal colours as long as no difference of their neighbourhoods is known.

Colours are 64-bit hashes of properties that isomorphisms preserve, so colours of two networks can be compared. No
isomorphism maps a node to one of another colour; nodes of equal colours may still differ. *Twins* are nodes that can be
exchanged in any order (the GPUs under one switch, all ranks of a complete graph). They are found exactly, and one
represents all.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import attrs
import numpy as np

from ..arrays import Array
from ..ragged import group_starts
from ..topology import Topology
from .balls import ball_sizes

__all__ = ["Budget", "Graph", "individualize", "mix", "start_colours", "twins"]

#: a round of refinement costs at least as much as this number of links
_ROUND = 2000
#: hops within which the nodes near a node are counted
_NEAR = 16
#: kinds and numbers of parallel links for which linked twins are searched
_MOST_PATTERNS = 8

_GOLDEN, _STRETCH, _SPREAD = (np.uint64(x) for x in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
_SHIFTS = tuple(np.uint64(x) for x in (30, 27, 31))
_INWARD = np.uint64(0xD1B54A32D192ED03)


def mix(words: Array) -> Array:
    """Return pseudorandom 64-bit words, each a function of its own word: the finalizer of splitmix64."""
    words = words + _GOLDEN
    words = (words ^ (words >> _SHIFTS[0])) * _STRETCH
    words = (words ^ (words >> _SHIFTS[1])) * _SPREAD
    mixed: Array = words ^ (words >> _SHIFTS[2])
    return mixed


def individualize(colours: Array, node: int, number: int = 0) -> Array:
    """Return the colours with a new one for a node; nodes of one colour need different numbers."""
    result = colours.copy()
    result[node : node + 1] = mix((colours[node : node + 1] ^ _INWARD) + np.uint64(number))
    return result


@attrs.define
class Budget:
    """The remaining effort of a search, as a number of links; ``spent`` if it is negative."""

    left: int

    @property
    def spent(self) -> bool:
        """Return whether the search has examined more links than the budget allows."""
        return self.left < 0


@attrs.frozen(eq=False)
class Graph:
    """Links as sorted rows for refinement, of ``size`` nodes and ``kinds`` kinds of links.

    ``out_ends`` holds kind * size + head for all links by tail, ``in_ends`` kind * size + tail by head; the rows of the
    nodes ``out_nodes`` (those that have any) begin at ``out_start``.
    """

    size: int
    kinds: int
    src: Array
    dst: Array
    kind: Array
    out_nodes: Array
    out_start: Array
    out_ends: Array
    in_nodes: Array
    in_start: Array
    in_ends: Array

    @classmethod
    def of(cls, size: int, kinds: int, src: Array, dst: Array, kind: Array) -> Graph:
        """Return the graph of ``size`` nodes with these links (columns), each of a kind from 0 to ``kinds`` - 1."""
        rows = [_rows(tails, kind * size + heads) for tails, heads in ((src, dst), (dst, src))]
        return cls(size, kinds, src, dst, kind, *rows[0], *rows[1])

    def induced(self, nodes: Array) -> Graph:
        """Return the graph of some nodes, numbered in their order."""
        number = np.full(self.size, -1, dtype=np.int64)
        number[nodes] = np.arange(len(nodes))
        keep = (number[self.src] >= 0) & (number[self.dst] >= 0)
        return Graph.of(len(nodes), self.kinds, number[self.src[keep]], number[self.dst[keep]], self.kind[keep])

    def refine(
        self, colours: Array, budget: Budget, trace: Sequence[int] | None = None
    ) -> tuple[Array, list[int]] | None:
        """Return stable colours, finer than those given, and a checksum of every round.

        With the ``trace`` of another graph, refine as many rounds and return None as soon as they differ.
        """
        sums, classes = list[int](), len(np.unique(colours)) if trace is None else 0
        while trace is None or len(sums) < len(trace):
            budget.left -= len(self.src) + _ROUND
            colours = self._round(colours)
            sums.append(int(mix(colours).sum(dtype=np.uint64)))
            if trace is None:
                before, classes = classes, len(np.unique(colours))
                if classes == before:
                    break
            elif sums[-1] != trace[len(sums) - 1]:
                return None
        return colours, sums

    def by_distance(self, colours: Array) -> Array:
        """Return colours that also depend on how many nodes reach a node within 1, 2, .. hops.

        Refinement alone gives all nodes of a regular graph one colour.
        """
        for sizes in islice(ball_sizes(self.size, self.src, self.dst), _NEAR):
            colours = mix(colours * _GOLDEN + sizes.astype(np.uint64))
        return colours

    def _round(self, colours: Array) -> Array:
        salts = mix(np.arange(self.kinds, dtype=np.uint64))[:, None]
        table = mix(colours + salts).ravel()
        result = colours * _GOLDEN
        if len(self.src):
            result[self.out_nodes] += np.add.reduceat(table[self.out_ends], self.out_start)
            result[self.in_nodes] += np.add.reduceat(mix(table + _INWARD)[self.in_ends], self.in_start)
        return mix(result)


def _rows(ends: Array, words: Array) -> tuple[Array, Array, Array]:
    order = np.argsort(ends, kind="stable")
    nodes, start = np.unique(ends[order], return_index=True)
    return nodes, start, words[order]


def start_colours(topology: Topology) -> Array:
    """Return the first colours of the nodes: one for ranks, one for every kind of switch."""
    kind = (np.arange(topology.num_nodes) >= topology.num_ranks).astype(np.uint64)
    kind[list(topology.multicast)] += np.uint64(1)
    kind[list(topology.reduces)] += np.uint64(2)
    return mix(kind)


# ---- twins


def twins(graph: Graph, colours: Array) -> list[Array]:
    """Return the classes of at least two twins, ascending, in the order of their least nodes.

    Exchanging any two nodes of a class, and no others, maps links to links and colours to colours. Classes of nodes
    with links to each other are found if all these links have one kind.
    """
    rows = [_neighbours(graph, *ends) for ends in ((graph.src, graph.dst), (graph.dst, graph.src))]
    words = mix(np.arange((graph.size + 1) * graph.kinds, dtype=np.uint64)).reshape(-1, graph.kinds)
    sums = [_sums(graph, words.ravel(), *row) for row in rows]
    found, free = list[Array](), np.ones(graph.size, dtype=bool)
    for kind, times in [(0, 0), *_patterns(graph)]:
        own = words[:-1, kind] * np.uint64(times)
        keys = mix(mix(sums[0] + own) + (sums[1] + own) * _INWARD) + colours
        nodes = np.flatnonzero(free)
        nodes = nodes[np.argsort(keys[nodes], kind="stable")]
        for group in np.split(nodes, np.flatnonzero(np.diff(keys[nodes])) + 1):
            if (
                len(group) > 1
                and _have_equal_neighbours(graph, rows, group, kind, times)
                and (colours[group] == colours[group[0]]).all()
            ):
                found.append(group)
                free[group] = False
    return sorted(found, key=lambda group: int(group[0]))


def _neighbours(graph: Graph, tails: Array, heads: Array) -> tuple[Array, Array]:
    """Return (start, words): every node's neighbours as head * kinds + kind, ascending; loops as node ``size``."""
    words = np.where(tails == heads, graph.size, heads) * graph.kinds + graph.kind
    order = np.lexsort((words, tails))
    return group_starts(tails[order], graph.size), words[order]


def _sums(graph: Graph, words: Array, start: Array, ends: Array) -> Array:
    total = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(words[ends], dtype=np.uint64)])
    sums: Array = total[start[1:]] - total[start[:-1]]
    return sums


def _patterns(graph: Graph) -> list[tuple[int, int]]:
    """Return the most frequent (kind, number of parallel links) between linked nodes."""
    apart = graph.src != graph.dst
    pair = (graph.kind[apart] * graph.size + graph.src[apart]) * graph.size + graph.dst[apart]
    pairs, times = np.unique(pair, return_counts=True)
    seen, count = np.unique(np.stack([pairs // graph.size**2, times], axis=1), axis=0, return_counts=True)
    best = np.argsort(-count, kind="stable")[:_MOST_PATTERNS]
    return [(int(kind), int(number)) for kind, number in seen[best]]


def _have_equal_neighbours(graph: Graph, rows: list[tuple[Array, Array]], group: Array, kind: int, times: int) -> bool:
    """Return whether all nodes of a group have equal neighbours; each counts ``times`` times as its own neighbour."""
    own = np.repeat((group * graph.kinds + kind)[:, None], times, axis=1)
    for start, words in rows:
        degrees = start[group + 1] - start[group]
        if (degrees != degrees[0]).any():
            return False
        table = words[start[group][:, None] + np.arange(degrees[0])]
        table = np.sort(np.concatenate([table, own], axis=1), axis=1)
        if (table != table[0]).any():
            return False
    return True
