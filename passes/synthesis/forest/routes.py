"""Back to physical links: every edge of a tree becomes a path of links through the switches it stands for.

A capacity from rank to rank may go several ways, and an arc may have parallel links: ways are first laid on links, so
much on each (routes). A tree is a whole: where one of its edges has to take several routes, the tree is cut in several
of the same edges. Routes are dealt so that few are.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise, repeat
from typing import Any

import attrs
import numpy as np

from collc.ir.schedule import Routes
from collc.ir.topology import Topology

from .capacities import Tree
from .switches import Logical

__all__ = ["Routed", "routed"]

Array = np.ndarray[Any, np.dtype[Any]]


@attrs.frozen(eq=False)
class Routed:
    """Trees on physical links: the columns of a Forest (row by row tree, parent, child, route; tree by tree the rest)
    and its routes."""

    root: Array
    weight: Array
    tree: Array
    parent: Array
    child: Array
    route: Array
    routes: Routes

    def columns(self) -> dict[str, Any]:
        """Return what :class:`~collc.ir.schedule.Forest` takes besides topology, collective and parts."""
        return {field.name: getattr(self, field.name) for field in attrs.fields(Routed)}


def routed(trees: Sequence[Tree], logical: Logical, topology: Topology, link_capacity: Sequence[int]) -> Routed:
    """Return the trees with a route for every edge; no link carries more trees than ``link_capacity`` says.

    The trees use no more than the capacities of ``logical``, which came from these links. Routes are numbered in order
    of first use; where there are no switches route r is link r. Trees that are cut stand together, their weights
    descending.
    """
    table = _RouteTable(topology, link_capacity)
    root = np.array([tree.root for tree in trees], dtype=np.int64)
    weight = [tree.weight for tree in trees]
    parent, child, start = _edges(trees)
    pairs, edge = np.unique(parent * topology.num_ranks + child, return_inverse=True)
    keys = [divmod(pair, topology.num_ranks) for pair in pairs.tolist()]
    # ways are laid on links in the order in which `logical` lists them, so that links do not depend on the trees
    laid = table.lay(logical, set(keys))
    first = np.array([laid[key][0][0] for key in keys], dtype=np.int64)
    single = np.array([len(laid[key]) == 1 for key in keys], dtype=bool)
    route = first[edge]
    dealt = _deal(np.flatnonzero(~single[edge]), edge, start, weight, [laid[key] for key in keys])
    tree_of, weights, rows, routes = _cut(dealt, route, start, weight)
    columns = {"root": root[tree_of], "weight": weights, "parent": parent[rows], "child": child[rows]}
    tree = np.repeat(np.arange(len(tree_of)), np.diff(start)[tree_of])
    number, chosen = _in_order(routes, table, topology)
    return Routed(columns["root"], columns["weight"], tree, columns["parent"], columns["child"], number, chosen)


def _edges(trees: Sequence[Tree]) -> tuple[Array, Array, Array]:
    """Return parents and children of all edges, and where each tree's begin (and the last one's end)."""
    start = np.cumsum([0, *(len(tree.edges) for tree in trees)])
    ends = chain.from_iterable(chain.from_iterable(tree.edges for tree in trees))
    flat = np.fromiter(ends, dtype=np.int64, count=2 * int(start[-1]))
    return flat[::2], flat[1::2], start


class _RouteTable:
    """Numbers paths of links, and deals out the capacity of links."""

    def __init__(self, topology: Topology, capacity: Sequence[int]) -> None:
        self.left = list(capacity)
        self.links: dict[tuple[int, int], list[int]] = {}
        for link, ends in enumerate(zip(topology.src.tolist(), topology.dst.tolist(), strict=True)):
            if self.left[link]:
                self.links.setdefault(ends, []).append(link)
        self.number: dict[tuple[int, ...], int] = {}

    def lay(self, logical: Logical, wanted: set[tuple[int, int]]) -> dict[tuple[int, int], list[tuple[int, int]]]:
        """Return (route, capacity) of every pair wanted, the widest first."""
        found = {}
        for (u, t), way in logical.via.items():
            if (u, t) in wanted:
                laid = [piece for switches, amount in way for piece in self._pieces((u, *switches, t), amount)]
                found[u, t] = sorted(laid, key=lambda piece: -piece[1]) if len(laid) > 1 else laid
        return found

    def _pieces(self, nodes: tuple[int, ...], amount: int) -> list[tuple[int, int]]:
        """Lay an amount on links from node to node, on few of them; return (route, part)."""
        result, left = [], self.left
        while amount:
            path, part = [], amount
            for ends in pairwise(nodes):
                links = self.links[ends]
                link = links[0] if len(links) == 1 else _fitting(links, left, part)
                part = min(part, left[link])
                path.append(link)
            for link in path:
                left[link] -= part
            amount -= part
            result.append((self.number.setdefault(tuple(path), len(self.number)), part))
        return result


def _fitting(links: list[int], left: list[int], amount: int) -> int:
    """Return the link with the least capacity that holds an amount, else the one that holds most of it."""
    holding = [link for link in links if left[link] >= amount]
    return min(holding, key=lambda link: left[link]) if holding else max(links, key=lambda link: left[link])


def _deal(
    rows: Array, edge: Array, start: Array, weight: list[int], laid: list[list[tuple[int, int]]]
) -> dict[int, list[tuple[int, list[tuple[int, int]]]]]:
    """Deal routes to the rows whose edges have several; return by tree (row, [(route, part of the weight), ..]).

    Heavy trees come first, and each takes the narrowest route that holds it whole.
    """
    tree_of = (np.searchsorted(start, rows, side="right") - 1).tolist()
    edges = edge[rows].tolist()
    pool: dict[Any, Any] = {}
    dealt: dict[int, list[tuple[int, list[tuple[int, int]]]]] = {}
    order = sorted(range(len(edges)), key=lambda i: (-weight[tree_of[i]], i))
    numbers = rows.tolist()
    for i in order:
        left = pool.get(edges[i])
        if left is None:
            left = pool[edges[i]] = [[route, capacity] for route, capacity in laid[edges[i]]]
        dealt.setdefault(tree_of[i], []).append((numbers[i], _draw(left, weight[tree_of[i]])))
    return dealt


def _draw(left: list[list[int]], amount: int) -> list[tuple[int, int]]:
    """Take an amount off routes (the widest first in ``left``), off few of them."""
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
    dealt: dict[int, list[tuple[int, list[tuple[int, int]]]]], route: Array, start: Array, weight: list[int]
) -> tuple[Array, Array, Array, Array]:
    """Cut the trees whose edges take several routes; return the tree each piece is of, the pieces' weights, and for
    every row of a piece the row it comes from, and its route."""
    trees, weights = list[int](), list[int]()
    pieces: list[Array] = []
    rows: list[Array] = []
    done = 0
    for tree in sorted(dealt):
        shares = dealt[tree]
        for row, parts in shares:
            route[row] = parts[0][0]
        ends = sorted({end for _, parts in shares for end in _ends(parts)})
        if len(ends) == 1:
            continue
        lo, hi = int(start[tree]), int(start[tree + 1])
        trees += range(done, tree)
        weights += weight[done:tree]
        rows.append(np.arange(start[done], lo))
        pieces.append(route[start[done] : lo])
        for below, end in zip([0, *ends], ends, strict=False):
            piece = route[lo:hi].copy()
            for row, parts in shares:
                piece[row - lo] = next(
                    number for (number, _), top in zip(parts, _ends(parts), strict=True) if top > below
                )
            pieces.append(piece)
            rows.append(np.arange(lo, hi))
            weights.append(end - below)
        trees += repeat(tree, len(ends))
        done = tree + 1
    trees += range(done, len(weight))
    weights += weight[done:]
    pieces.append(route[start[done] :])
    rows.append(np.arange(start[done], start[-1]))
    # object, should a weight pass 64 bits, ends in the columns' own error
    return np.array(trees, dtype=np.int64), np.array(weights), np.concatenate(rows), np.concatenate(pieces)


def _ends(parts: list[tuple[int, int]]) -> list[int]:
    total, ends = 0, []
    for _, part in parts:
        total += part
        ends.append(total)
    return ends


def _in_order(route: Array, table: _RouteTable, topology: Topology) -> tuple[Array, Routes]:
    """Return the rows' routes numbered in order of first use, and these routes; or plain links without switches."""
    paths = list(table.number)
    if not topology.num_switches:
        link = np.array([path[0] for path in paths], dtype=np.int64)
        return link[route] if len(route) else route, Routes.direct(topology.num_links)
    used, first, inverse = np.unique(route, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(used), dtype=np.int64)
    rank[order] = np.arange(len(used))
    return rank[inverse], Routes.of([paths[number] for number in used[order].tolist()])
