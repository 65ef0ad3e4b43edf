"""Isomorphisms between networks and automorphisms of one: refinement, individualization and backtracking, in columns.

Every map found is checked link by link. Effort is counted, not timed, so that results do not depend on the machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import attrs
import numpy as np

from ..arrays import Array
from ..ragged import inverse
from ..topology import Topology
from ._search import Path, Side, components, first_of_orbits, generators
from .refinement import Budget, individualize

__all__ = ["EFFORT", "Match", "automorphisms", "isomorphism", "link_map", "match", "orbits"]

#: default of the most links that a search examines: some seconds
EFFORT = 100_000_000


@attrs.frozen(eq=False)
class Match:
    """The result of a search: a map of nodes or None; with None, ``decided`` is whether there is certainly no map."""

    nodes: Array | None
    decided: bool = True


def isomorphism(
    one: Topology, two: Topology, fixing: Mapping[int, int] | None = None, effort: int = EFFORT
) -> Array | None:
    """Return an array m such that links v -> w of ``one`` are links m[v] -> m[w] of ``two``, or None.

    Ranks map to ranks; parallel links, bandwidths and latencies count. ``fixing`` maps some nodes in advance. The
    result is also None if no map is found within ``effort``: :func:`match` distinguishes both.

    >>> ring = Topology.from_links("ring", 3, [(0, 1), (1, 2), (2, 0)])
    >>> isomorphism(ring, ring.transpose(), fixing={0: 1}).tolist()
    [1, 0, 2]
    """
    return match(one, two, fixing, effort).nodes


def match(one: Topology, two: Topology, fixing: Mapping[int, int] | None = None, effort: int = EFFORT) -> Match:
    """Search like :func:`isomorphism`; if no map is found, the result states whether the search was complete."""
    if (one.num_ranks, one.num_switches, one.num_links) != (two.num_ranks, two.num_switches, two.num_links):
        return Match(None)
    first, second, kinds = _kinds(one, two)
    sides = [Side.of(one, first, len(kinds)), Side.of(two, second, len(kinds))]
    for i, (a, b) in enumerate((fixing or {}).items()):
        if sides[0].colours[a] != sides[1].colours[b]:
            return Match(None)
        sides = [attrs.evolve(s, colours=individualize(s.colours, x, i)) for s, x in zip(sides, (a, b), strict=True)]
    budget = Budget(effort)
    small = [side.quotient() for side in sides]
    path = Path.down(small[0].graph, small[0].colours, budget)
    start = small[1].graph.refine(small[1].colours, budget, path.trace)
    if start is None:
        return Match(None)
    found = first_of_orbits(path, small[1], start[0], budget, _translations(two))
    if found is None:
        return Match(None, decided=not budget.spent)
    nodes = small[0].lift(found, small[1])
    return Match(nodes) if link_map(one, two, nodes) is not None else Match(None, decided=False)


def link_map(one: Topology, two: Topology, nodes: Array) -> Array | None:
    """Return for each link of ``one`` the link of ``two`` that a map of nodes takes it to; None if one is missing.

    The k-th of parallel links of one kind goes to the k-th. Also None if ``two`` has further links, so this
    decides whether ``nodes``, a permutation, is an isomorphism.
    """
    if one.num_links != two.num_links:
        return None
    kinds = _kinds(one, two)
    keys = [
        (kind[t.link_class] * t.num_nodes + nodes_of[t.src]) * t.num_nodes + nodes_of[t.dst]
        for t, kind, nodes_of in ((one, kinds[0], nodes.astype(np.int64)), (two, kinds[1], np.arange(two.num_nodes)))
    ]
    order = [np.argsort(key, kind="stable") for key in keys]
    if not np.array_equal(keys[0][order[0]], keys[1][order[1]]):
        return None
    links = np.empty(one.num_links, dtype=np.int64)
    links[order[0]] = order[1]
    return links


def _kinds(one: Topology, two: Topology) -> tuple[Array, Array, list[tuple[str, Fraction, Fraction]]]:
    """Return for the classes of both the number of their kind, and the kinds; equal classes are of one kind."""
    both = [[(t.unit, c.bandwidth, c.latency) for c in t.classes] for t in (one, two)]
    kinds = list(dict.fromkeys(kind for row in both for kind in row))
    number = {kind: i for i, kind in enumerate(kinds)}
    first, second = (np.array([number[kind] for kind in row], dtype=np.int64) for row in both)
    return first, second, kinds


# ---- automorphisms


def automorphisms(topology: Topology, effort: int = EFFORT, fixing: Sequence[int] = ()) -> list[Array]:
    """Return automorphisms, as maps of nodes, that generate all of them, or within ``effort`` as many as were found.

    They keep the nodes ``fixing``. The identity is left out. Deterministic.

    >>> ring = Topology.from_links("ring", 3, [(0, 1), (1, 2), (2, 0)])
    >>> len(automorphisms(ring)), automorphisms(ring, fixing=[1])
    (1, [])
    """
    kinds = _kinds(topology, topology)
    side = Side.of(topology, kinds[0], len(kinds[2]))
    for place, node in enumerate(fixing):
        side = attrs.evolve(side, colours=individualize(side.colours, node, place))
    return _automorphisms(topology, side, [] if fixing else _translations(topology), Budget(effort))


def _automorphisms(topology: Topology, side: Side, known: list[Array], budget: Budget) -> list[Array]:
    """Return generators of the automorphisms that keep the side's colours; some are ``known``."""
    small = side.quotient()
    found = [small.lift(g, small) for g in generators(small, known, budget)]
    everyone = np.arange(topology.num_nodes)
    for group in small.members:
        if len(group) > 1:
            swap, turn = everyone.copy(), everyone.copy()
            swap[group[:2]], turn[group] = group[1::-1], np.roll(group, 1)
            found += [swap, turn] if len(group) > 2 else [swap]
    return [g for g in found if (g != everyone).any() and link_map(topology, topology, g) is not None]


def orbits(topology: Topology, effort: int = EFFORT) -> tuple[Array, Array]:
    """Return the orbit of every node and of every link under all automorphisms, numbered from 0 as they appear.

    Parallel links of one kind are in one orbit. Nodes (links) of one orbit are equivalent. Those of several orbits may
    be equivalent too if the search ended early.
    """
    kinds, _, names = _kinds(topology, topology)
    known, side = _translations(topology), Side.of(topology, kinds, len(names))
    if not known:
        side = attrs.evolve(side, colours=side.graph.by_distance(side.colours))
    maps = _automorphisms(topology, side, known, Budget(effort))
    nodes = components(np.arange(topology.num_nodes), maps)
    ends = (kinds[topology.link_class] * topology.num_nodes + topology.src) * topology.num_nodes + topology.dst
    _, first, place = np.unique(ends, return_index=True, return_inverse=True)
    moved = (link_map(topology, topology, g) for g in maps)
    links = components(first[place.ravel()], [m for m in moved if m is not None])
    return _numbered(nodes), _numbered(links)


def _translations(topology: Topology) -> list[Array]:
    """Return left multiplications that generate the topology's group; none if it has no group."""
    group, found = topology.symmetry, list[Array]()
    if group is None or group.order != topology.num_ranks or topology.num_switches:
        return []
    ranks = np.arange(topology.num_ranks)
    reached = ranks
    while (reached != 0).any():
        found.append(group.translate(ranks, int(np.flatnonzero(reached)[0])))
        reached = components(ranks, found)
    return [g for g in found if link_map(topology, topology, g) is not None]


def _numbered(labels: Array) -> Array:
    _, first, number = np.unique(labels, return_index=True, return_inverse=True)
    return inverse(np.argsort(first, kind="stable"))[number.ravel()]
