"""From trees to physical links: every edge of a tree becomes a route through switches.

A capacity from rank to rank may use several switch routes, and an arc may have parallel links. So capacities are first
assigned to routes of links. If an edge of a tree needs several routes, the tree is cut into several trees with the same
edges. Routes are distributed so that few trees are cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise, repeat

import attrs
import numpy as np

from collc.ir.arrays import Array, Columns
from collc.ir.progress import counting
from collc.ir.ragged import inverse, owners, starts
from collc.ir.schedule import Routes
from collc.ir.topology import Topology

from .capacities import Tree
from .switches import Logical

__all__ = ["Routed", "routed", "spare_routes"]


@attrs.frozen(eq=False)
class Routed:
    """Trees on physical links: the columns of a Forest (per row tree, parent, child, route; per tree the rest) and its
    routes."""

    root: Array
    weight: Array
    tree: Array
    parent: Array
    child: Array
    route: Array
    routes: Routes

    def columns(self) -> Columns:
        """Return the arguments of :class:`~collc.ir.schedule.Forest` besides topology, collective and parts."""
        return {field.name: getattr(self, field.name) for field in attrs.fields(Routed)}


def routed(trees: Sequence[Tree], logical: Logical, topology: Topology, link_capacity: Sequence[int]) -> Routed:
    """Return the trees with a route for every edge; no link carries more trees than its ``link_capacity``.

    The trees use at most the capacities of ``logical``, which came from these links. Routes are numbered in order of
    first use; without switches route r is link r. The parts of a cut tree are contiguous, with descending weights.
    """
    table = _RouteTable(topology, link_capacity)
    root = np.array([tree.root for tree in trees], dtype=np.int64)
    weight = [tree.weight for tree in trees]
    parent, child, start = _edges(trees)
    pairs, edge = np.unique(parent * topology.num_ranks + child, return_inverse=True)
    keys = [divmod(pair, topology.num_ranks) for pair in pairs.tolist()]
    # switch routes get links in the order of `logical`, so that links do not depend on the trees
    assigned = table.assign_routes(logical, set(keys))
    first = np.array([assigned[key][0][0] for key in keys], dtype=np.int64)
    single = np.array([len(assigned[key]) == 1 for key in keys], dtype=bool)
    route = first[edge]
    distributed = _distribute(np.flatnonzero(~single[edge]), edge, start, weight, [assigned[key] for key in keys])
    tree_of, weights, rows, routes = _cut(distributed, route, start, weight)
    columns = {"root": root[tree_of], "weight": weights, "parent": parent[rows], "child": child[rows]}
    tree = owners(np.diff(start)[tree_of])
    number, chosen = _in_order(routes, table, topology)
    return Routed(columns["root"], columns["weight"], tree, columns["parent"], columns["child"], number, chosen)


def spare_routes(
    topology: Topology, logical: Logical, left: Sequence[int], pairs: Sequence[tuple[int, int]]
) -> list[tuple[tuple[int, int], tuple[int, ...], int]]:
    """Return (pair, links, capacity) of the routes between some pairs of ranks, in what is ``left`` of all links.

    Of ``logical`` other pairs may have used their capacity, or less.
    """
    table = _RouteTable(topology, left)
    assigned = table.assign_routes(logical, set(pairs))
    links = list(table.number)
    return [(pair, links[route], amount) for pair, shares in sorted(assigned.items()) for route, amount in shares]


def _edges(trees: Sequence[Tree]) -> tuple[Array, Array, Array]:
    """Return parents and children of all edges, and the starts of the trees (with the end of the last)."""
    start = starts([len(tree.edges) for tree in trees])
    ends = chain.from_iterable(chain.from_iterable(tree.edges for tree in trees))
    flat = np.fromiter(ends, dtype=np.int64, count=2 * int(start[-1]))
    return flat[::2], flat[1::2], start


class _RouteTable:
    """Numbers routes of links, and distributes the capacity of links."""

    def __init__(self, topology: Topology, capacity: Sequence[int]) -> None:
        self.left = list(capacity)
        self.links: dict[tuple[int, int], list[int]] = {}
        for link, ends in enumerate(zip(topology.src.tolist(), topology.dst.tolist(), strict=True)):
            if self.left[link]:
                self.links.setdefault(ends, []).append(link)
        self.number: dict[tuple[int, ...], int] = {}

    def assign_routes(
        self, logical: Logical, pairs: set[tuple[int, int]]
    ) -> dict[tuple[int, int], list[tuple[int, int]]]:
        """Return (route, capacity) of every pair in ``pairs``, the widest first."""
        found = {}
        for (u, t), via in counting(logical.via.items(), "routes of trees"):
            if (u, t) in pairs:
                assigned = [share for switches, amount in via for share in self._assign((u, *switches, t), amount)]
                found[u, t] = sorted(assigned, key=lambda share: -share[1]) if len(assigned) > 1 else assigned
        return found

    def _assign(self, nodes: tuple[int, ...], amount: int) -> list[tuple[int, int]]:
        """Assign an amount to few links from node to node; return (route, part)."""
        result, left = [], self.left
        while amount:
            links_used, part = [], amount
            for ends in pairwise(nodes):
                links = self.links[ends]
                link = links[0] if len(links) == 1 else _fitting(links, left, part)
                part = min(part, left[link])
                links_used.append(link)
            for link in links_used:
                left[link] -= part
            amount -= part
            result.append((self.number.setdefault(tuple(links_used), len(self.number)), part))
        return result


def _fitting(links: list[int], left: list[int], amount: int) -> int:
    """Return the link with the least capacity that holds an amount, else the one that holds most of it."""
    holding = [link for link in links if left[link] >= amount]
    return min(holding, key=lambda link: left[link]) if holding else max(links, key=lambda link: left[link])


def _distribute(
    rows: Array, edge: Array, start: Array, weight: list[int], assigned: list[list[tuple[int, int]]]
) -> dict[int, list[tuple[int, list[tuple[int, int]]]]]:
    """Distribute routes to the rows whose edges have several; return by tree (row, [(route, part of the weight), ..]).

    Heavy trees come first, and each takes the narrowest route that holds all of it.
    """
    tree_of = (np.searchsorted(start, rows, side="right") - 1).tolist()
    edges = edge[rows].tolist()
    pool: dict[int, list[list[int]]] = {}
    distributed: dict[int, list[tuple[int, list[tuple[int, int]]]]] = {}
    order = sorted(range(len(edges)), key=lambda i: (-weight[tree_of[i]], i))
    numbers = rows.tolist()
    for i in order:
        left = pool.get(edges[i])
        if left is None:
            left = pool[edges[i]] = [[route, capacity] for route, capacity in assigned[edges[i]]]
        distributed.setdefault(tree_of[i], []).append((numbers[i], _draw(left, weight[tree_of[i]])))
    return distributed


def _draw(left: list[list[int]], amount: int) -> list[tuple[int, int]]:
    """Remove an amount from routes (the widest first in ``left``), off few of them."""
    parts = []
    while amount:
        place = next((i for i in range(len(left) - 1, -1, -1) if left[i][1] >= amount), 0)
        route, capacity = left[place]
        part = min(capacity, amount)
        parts.append((route, part))
        amount -= part
        if capacity > part:
            left[place][1] -= part
            while place + 1 < len(left) and left[place][1] < left[place + 1][1]:
                left[place], left[place + 1] = left[place + 1], left[place]
                place += 1
        else:
            del left[place]
    return parts


def _cut(
    distributed: dict[int, list[tuple[int, list[tuple[int, int]]]]], route: Array, start: Array, weight: list[int]
) -> tuple[Array, Array, Array, Array]:
    """Cut the trees whose edges take several routes; return each result's tree and weight, and for every row of the
    results its original row and its route."""
    trees, weights = list[int](), list[int]()
    cut_routes: list[Array] = []
    rows: list[Array] = []
    done = 0
    for tree in sorted(distributed):
        shares = distributed[tree]
        for row, parts in shares:
            route[row] = parts[0][0]
        ends = sorted({end for _, parts in shares for end in _ends(parts)})
        if len(ends) == 1:
            continue
        lo, hi = int(start[tree]), int(start[tree + 1])
        trees += range(done, tree)
        weights += weight[done:tree]
        rows.append(np.arange(start[done], lo))
        cut_routes.append(route[start[done] : lo])
        for below, end in zip([0, *ends], ends, strict=False):
            cut_route = route[lo:hi].copy()
            for row, parts in shares:
                cut_route[row - lo] = next(
                    number for (number, _), top in zip(parts, _ends(parts), strict=True) if top > below
                )
            cut_routes.append(cut_route)
            rows.append(np.arange(lo, hi))
            weights.append(end - below)
        trees += repeat(tree, len(ends))
        done = tree + 1
    trees += range(done, len(weight))
    weights += weight[done:]
    cut_routes.append(route[start[done] :])
    rows.append(np.arange(start[done], start[-1]))
    # a weight beyond 64 bits makes an object array, which the columns refuse
    return np.array(trees, dtype=np.int64), np.array(weights), np.concatenate(rows), np.concatenate(cut_routes)


def _ends(parts: list[tuple[int, int]]) -> list[int]:
    total, ends = 0, []
    for _, part in parts:
        total += part
        ends.append(total)
    return ends


def _in_order(route: Array, table: _RouteTable, topology: Topology) -> tuple[Array, Routes]:
    """Return the rows' routes numbered in order of first use, and these routes; or plain links without switches."""
    routes = list(table.number)
    if not topology.num_switches:
        link = np.array([route_links[0] for route_links in routes], dtype=np.int64)
        return link[route] if len(route) else route, Routes.direct(topology.num_links)
    used, first, which = np.unique(route, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return inverse(order)[which], Routes.of([routes[number] for number in used[order].tolist()])
