"""Forests for tests, grown greedily: correct, spread over the links, and not optimal. Independent of any scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import strategies

from collc.ir.collective import Collective
from collc.ir.schedule import Forest
from collc.ir.topology import Topology

__all__ = ["grown"]


def grown(
    topology: Topology, weights: Sequence[int] = (1,), root: int | None = None, pieces: int = 1, tall: bool = False
) -> Forest:
    """Return an allgather (with a root: a broadcast) of trees of these weights for every rank (for the root).

    A tree takes the edge whose busiest link is least busy, then (unless ``tall``) the one nearest to the root.
    """
    routes = strategies.rank_routes(topology)
    tails, heads = routes.tails(topology).tolist(), routes.heads(topology).tolist()
    paths = [routes.links_of(r) for r in range(len(routes))]
    hops: dict[int, list[tuple[int, int]]] = {}
    for route, (a, b) in enumerate(zip(tails, heads, strict=True)):
        hops.setdefault(a, []).append((b, route))
    load = [Fraction(0)] * topology.num_links
    trees, edges = [], []
    for at in range(topology.num_ranks) if root is None else [root]:
        for weight in weights:
            edges += [(len(trees), *edge) for edge in _tree(topology, at, weight, hops, paths, load, -1 if tall else 1)]
            trees.append((at, weight))
    kind = "allgather" if root is None else "broadcast"
    tree, parent, child, route = np.array(edges).T
    return Forest(
        topology, Collective(kind, topology.num_ranks, root), sum(weights), *np.array(trees).T, tree, parent, child,
        route, routes=routes, pieces=pieces,
    )  # fmt: skip


def _tree(
    topology: Topology, root: int, weight: int, hops: dict[int, list[tuple[int, int]]], paths: list[list[int]],
    load: list[Fraction], near: int,
) -> list[tuple[int, int, int]]:  # fmt: skip
    depth, rows = {root: 0}, list[tuple[int, int, int]]()
    while len(depth) < topology.num_ranks:
        _, _, a, b, route = min(
            (max(load[link] + weight / topology.bandwidth(link) for link in paths[route]), near * depth[a], a, b, route)
            for a in depth
            for b, route in hops.get(a, ())
            if b not in depth
        )
        for link in paths[route]:
            load[link] += weight / topology.bandwidth(link)
        depth[b] = depth[a] + 1
        rows.append((a, b, route))
    return rows
