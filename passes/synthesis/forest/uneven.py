"""Trees for shards that differ in size: shares of every root's own shard, and a tree for each root without data.

A root of weight w sends k w equal trees, so each tree is a share 1/(k w) of its shard. One denominator counts the
shares of all shards. A root of weight 0 sends no data now, but a count at run time may differ: it has one tree, over
shortest routes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.ragged import starts
from collc.ir.schedule import Routes
from collc.ir.topology import Topology

from ..shares import common_parts
from ..shortest import shortest_links
from .routes import Routed

__all__ = ["in_shards"]


def in_shards(topology: Topology, trees: Routed, totals: Sequence[int]) -> tuple[int, Routed]:
    """Return the parts of a shard, and the trees with weights in these parts.

    ``totals[v]`` is the number of trees of root v, which ``trees`` have as weights. A root without trees gets one.
    """
    parts, weight = _shares(trees, totals)
    kept = weight > 0
    tree = np.cumsum(kept) - 1
    rows = kept[trees.tree]
    found = Routed(
        trees.root[kept], weight[kept], tree[trees.tree[rows]], trees.parent[rows], trees.child[rows],
        trees.route[rows], trees.routes,
    )  # fmt: skip
    return parts, _with_idle_roots(topology, found, [v for v, total in enumerate(totals) if not total], parts)


def _shares(trees: Routed, totals: Sequence[int]) -> tuple[int, Array]:
    """Return the parts of a shard, and the weight of every tree in these parts, in sum ``parts`` for each root.

    If exact weights need too many parts, the ends of shares are rounded down.
    """
    root, count = trees.root.tolist(), [int(weight) for weight in trees.weight.tolist()]
    common = list(totals)
    for v, weight in zip(root, count, strict=True):
        common[v] = gcd(common[v], weight)
    parts = common_parts("forest", (total // one for total, one in zip(totals, common, strict=True) if total))
    before, found = [0] * len(totals), list[int]()
    for v, weight in zip(root, count, strict=True):
        low, before[v] = before[v], before[v] + weight
        found.append(before[v] * parts // totals[v] - low * parts // totals[v])
    return parts, np.array(found, dtype=np.int64)


def _with_idle_roots(topology: Topology, trees: Routed, roots: Sequence[int], parts: int) -> Routed:
    """Return the trees with a tree of shortest routes for each of ``roots``."""
    parent, child, route, routes, sizes = list[int](), list[int](), list[int](), list[list[int]](), list[int]()
    direct = trees.routes.is_direct and topology.is_direct
    for root in roots:
        edges = _shortest(topology, root)
        sizes.append(len(edges))
        for tail, head, links in edges:
            parent.append(tail)
            child.append(head)
            route.append(links[0] if direct else len(trees.routes) + len(routes))
            routes.append(links)
    return attrs.evolve(
        trees, root=np.append(trees.root, roots).astype(np.int64),
        weight=np.append(trees.weight, [parts] * len(roots)).astype(np.int64),
        tree=np.append(trees.tree, np.repeat(np.arange(len(roots)), sizes) + len(trees.root)).astype(np.int64),
        parent=np.append(trees.parent, parent).astype(np.int64), child=np.append(trees.child, child).astype(np.int64),
        route=np.append(trees.route, route).astype(np.int64),
        routes=trees.routes if direct else _joined(trees.routes, routes),
    )  # fmt: skip


def _joined(routes: Routes, more: Sequence[Sequence[int]]) -> Routes:
    start = starts([*routes.lengths.tolist(), *(len(links) for links in more)])
    return Routes(start, np.concatenate([routes.links, np.array([x for links in more for x in links], dtype=np.int64)]))


def _shortest(topology: Topology, root: int) -> list[tuple[int, int, list[int]]]:
    """Return (parent, child, links) for every rank besides the root, parents first: a tree of shortest routes."""
    last, found = shortest_links(topology, root), list[tuple[int, int, list[int]]]()
    for rank in (node for node in last if node < topology.num_ranks):
        links = [last[rank]]
        while (tail := int(topology.src[links[0]])) >= topology.num_ranks:
            links.insert(0, last[tail])
        found.append((tail, rank, links))
    return found
