"""Trees on a cluster of boxes in which one rank is a leaf: its link inside of its box is too weak to send on.

The trees of the other ranks are built without it (:mod:`.box_trees`). Then every tree gets one more edge, to the leaf:
as many as its link inside holds come from its box, the others over the fabric. A neighbour in the box roots the leaf's
own trees for it; these begin with an edge from the leaf to that neighbour.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.ragged import owners, starts
from collc.ir.schedule import Routes
from collc.ir.topology import Topology

from .box_trees import box_trees
from .boxes import Box, Cluster
from .routes import Routed

__all__ = ["cluster_trees"]


def cluster_trees(
    topology: Topology, boxes: Cluster, room: Sequence[int], trees: Sequence[int], reverse: Sequence[int] | None = None
) -> Routed | None:
    """Return the result of :func:`.box_trees.box_trees`, if need be with the rank of the weakest link as a leaf."""
    found = box_trees(topology, boxes, room, trees, reverse)
    weakest = None if found is not None else _weakest(boxes, room)
    if weakest is None:
        return found
    number, leaf = weakest
    box = boxes.boxes[number]
    proxy = next(v for v in box.ranks if v != leaf)
    rest = attrs.evolve(box, ranks=tuple(v for v in box.ranks if v != leaf))
    without = attrs.evolve(boxes, boxes=(*boxes.boxes[:number], rest, *boxes.boxes[number + 1 :]))
    sent = list(trees)
    sent[proxy], sent[leaf] = sent[proxy] + sent[leaf], 0
    base = box_trees(topology, without, room, sent, reverse)
    return None if base is None else _Leaf(topology, boxes, rest, leaf, room, reverse, base).added(proxy, trees[leaf])


def _weakest(boxes: Cluster, room: Sequence[int]) -> tuple[int, int] | None:
    """Return the box and the rank whose links inside hold least; None without a box of at least three ranks."""
    found = [
        (min(room[link] for u in box.ranks if u != v for link in box.inside[u, v][-1:]), number, v)
        for number, box in enumerate(boxes.boxes) if len(box.ranks) > 2
        for v in box.ranks if boxes.up[v] >= 0 and boxes.down[v] >= 0
    ]  # fmt: skip
    return min(found)[1:] if found else None


@attrs.frozen
class _Row:
    """Tree ``tree`` of the trees without the leaf, this many copies, and its further edge."""

    tree: int
    copies: int
    parent: int
    child: int
    links: tuple[int, ...]


class _Leaf:
    """The trees without the leaf, and how many more every link holds."""

    def __init__(
        self, topology: Topology, boxes: Cluster, rest: Box, leaf: int, room: Sequence[int],
        reverse: Sequence[int] | None, base: Routed,
    ) -> None:  # fmt: skip
        self.boxes, self.rest, self.leaf, self.base = boxes, rest, leaf, base
        self.inside = next(box for box in boxes.boxes if leaf in box.ranks).inside
        load = np.zeros(topology.num_links, dtype=np.int64)
        weight = base.weight[base.tree]
        lengths = base.routes.lengths[base.route]
        np.add.at(load, base.routes.links[base.routes.places(base.route)], np.repeat(weight, lengths))
        used = load if reverse is None else load + load[np.array(reverse)]
        self.reverse, self.left = reverse, (np.array(room, dtype=np.int64) - used).tolist()
        self.width = topology.num_ranks - 2
        self.child = base.child.reshape(-1, self.width)

    def added(self, proxy: int, own: int) -> Routed | None:
        """Return the trees with the leaf; ``own`` of the trees of ``proxy`` become those of the leaf."""
        rows = list[_Row]()
        for tree, (root, copies) in enumerate(zip(self.base.root.tolist(), self.base.weight.tolist(), strict=True)):
            taken = min(own, copies) if root == proxy else 0
            if taken:
                links = self.inside[self.leaf, proxy]
                if not self._take(links, taken):
                    return None
                rows.append(_Row(tree, taken, self.leaf, proxy, links))
                own -= taken
            copies -= taken
            while copies:
                found = self._fed(tree, root, copies)
                if found is None:
                    return None
                rows.append(found)
                copies -= found.copies
        return self._columns(rows)

    def _fed(self, tree: int, root: int, copies: int) -> _Row | None:
        """Return the edge to the leaf for as many copies as it holds: from a rank of its box that the tree reaches
        early, else over the fabric, from the root or the next rank that can send."""
        order = [root, *self.child[tree].tolist()]
        near = set(self.rest.ranks)
        for routes in (
            ((v, self.inside[v, self.leaf]) for v in order if v in near),
            ((v, (self.boxes.up[v], self.boxes.down[self.leaf])) for v in order if self.boxes.up[v] >= 0),
        ):
            for v, links in routes:
                most = min(copies, *(self.left[link] for link in links))
                if most > 0 and self._take(links, most):
                    return _Row(tree, most, v, self.leaf, links)
        return None

    def _take(self, links: Sequence[int], copies: int) -> bool:
        if min(self.left[link] for link in links) < copies:
            return False
        for link in links:
            self.left[link] -= copies
            if self.reverse is not None:
                self.left[self.reverse[link]] -= copies
        return True

    def _columns(self, rows: Sequence[_Row]) -> Routed:
        base, leaf = self.base, self.leaf
        root = np.array([row.parent if row.parent == leaf else int(base.root[row.tree]) for row in rows])
        rows = [rows[i] for i in np.argsort(root, kind="stable").tolist()]
        number: dict[tuple[int, ...], int] = {}
        more = [number.setdefault(row.links, len(base.routes) + len(number)) for row in rows]
        tree = np.array([row.tree for row in rows])
        first = np.array([row.parent == leaf for row in rows])
        parent, child, route = (
            _with_edge(getattr(base, name).reshape(-1, self.width)[tree], first, np.array(edge))
            for name, edge in (
                ("parent", [row.parent for row in rows]), ("child", [row.child for row in rows]), ("route", more)
            )
        )  # fmt: skip
        lengths = [*base.routes.lengths.tolist(), *(len(links) for links in number)]
        links = [*base.routes.links.tolist(), *(link for route_links in number for link in route_links)]
        return Routed(
            np.sort(root, kind="stable"), np.array([row.copies for row in rows]),
            owners(np.full(len(rows), self.width + 1)), parent, child, route, Routes(starts(lengths), links),
        )  # fmt: skip


def _with_edge(rows: Array, first: Array, edge: Array) -> Array:
    """Return the rows of all trees with one more each: the first of these trees, else the last."""
    before = np.concatenate([edge[:, None], rows], axis=1)
    after = np.concatenate([rows, edge[:, None]], axis=1)
    return np.where(first[:, None], before, after).ravel()
