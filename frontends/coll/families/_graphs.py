"""Undirected graphs as edges: two columns of vertex numbers, each edge once.

Graphs become topologies by :func:`linked`: both directions of every edge, rank by rank, neighbours ascending.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from collc.ir.arrays import Array, distinct_pairs
from collc.ir.topology import Topology

__all__ = [
    "at_distance", "cayley_sum", "edge_graph", "generalized_petersen", "hamiltonian", "linked", "subsets",
    "without_matching",
]  # fmt: skip


def linked(name: str, edges: Array) -> Topology:
    """Return the topology with both directions of every edge; vertices are those that have edges, from 0."""
    both = np.concatenate([edges, edges[:, ::-1]]).astype(np.int64)
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    return Topology(name, int(both.max()) + 1, both[:, 0], both[:, 1])


def edge_graph(edges: Array) -> Array:
    """Return the undirected line graph: a vertex for every edge, joined where edges share an end."""
    order = np.sort(edges, axis=1)
    order = order[np.lexsort((order[:, 1], order[:, 0]))]
    shared = (order[:, None, :, None] == order[None, :, None, :]).any(axis=(2, 3))
    return np.argwhere(np.triu(shared, 1))


def at_distance(edges: Array, distance: int) -> Array:
    """Return the graph that joins the vertices at this distance."""
    return np.argwhere(np.triu(linked("", edges).distances == distance))


def subsets(n: int, k: int, joined: Callable[[frozenset[int], frozenset[int]], bool]) -> Array:
    """Return the graph on the k-subsets of n things, in lexicographic order, joined as ``joined`` says."""
    sets = [frozenset(chosen) for chosen in combinations(range(n), k)]
    return np.array([(i, j) for (i, a), (j, b) in combinations(enumerate(sets), 2) if joined(a, b)])


def without_matching(n: int) -> Array:
    """Return K_n,n without a perfect matching: vertex i of one side is joined to all but i of the other."""
    return np.array([(i, n + j) for i in range(n) for j in range(n) if i != j])


def cayley_sum(shape: Sequence[int], steps: ArrayLike) -> Array:
    """Return the graph on vectors modulo ``shape`` that joins those whose difference is a step or its negative."""
    sizes, numbers = np.array(shape), np.arange(int(np.prod(shape)))
    at = np.stack(np.unravel_index(numbers, tuple(shape)), axis=1)
    ends = [np.ravel_multi_index(tuple(((at + step) % sizes).T), tuple(shape)) for step in np.array(steps)]
    pairs = np.concatenate([np.sort(np.stack([numbers, end], axis=1), axis=1) for end in ends])
    return np.stack(distinct_pairs(pairs[:, 0], pairs[:, 1]), axis=1)


def generalized_petersen(n: int, k: int) -> Array:
    """Return GP(n,k): an outer ring of n vertices, each joined to one of n inner vertices in strides of k."""
    i = np.arange(n)
    outer, spokes = np.stack([i, (i + 1) % n], axis=1), np.stack([i, i + n], axis=1)
    return np.concatenate([outer, spokes, np.stack([i + n, (i + k) % n + n], axis=1)])


def hamiltonian(jumps: Sequence[int], times: int) -> Array:
    """Return the cubic graph that a cycle and the jumps along it make (LCF notation)."""
    n = len(jumps) * times
    ring = [(i, (i + 1) % n) for i in range(n)]
    chords = {tuple(sorted((i, (i + jump) % n))) for i, jump in enumerate(list(jumps) * times)}
    return np.array(ring + sorted(chords))
