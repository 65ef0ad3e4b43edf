"""Trees after faults: those that no fault touches stay, the others grow again in the bandwidth that is left.

The optimum of the broken network says how many trees a root sends and how many a link holds, as in a fresh synthesis.
Trees that stay take their part of both. The rest exists if and only if the links out of every set of nodes that lacks a
rank hold the trees that are still to grow in it (Edmonds; ForestColl, Theorem 5). A tree that crosses a set more often
than it must takes bandwidth that the others may need: where a set is short, those trees give up some of their share.
They cross every set of all trees together no more often than fresh trees once all of them are gone, so this ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import lcm

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.graph.cuts import FlowNetwork
from collc.ir.schedule import Forest, Routes
from collc.ir.topology import Topology

from .box_trees import box_trees
from .boxes import Cluster, cluster
from .capacities import flow_network
from .flatten import EFFORT
from .packing import height, pack
from .routes import Routed, routed
from .switches import removals

__all__ = ["Regrown", "Standing", "grown", "regrown", "regrown_both_ways", "standing"]

#: sets to learn from one sweep
_CUTS = 64
#: trees examined to make the new ones lower
_FLATTENING = 300_000
#: larger numbers of trees a root would not fit a column
_MOST_TREES = 1 << 40


@attrs.frozen(eq=False)
class Standing:
    """Trees of one direction that still stand, with the ranks and links of the broken network.

    ``number`` are the numbers of the trees before; ``share`` is the part of its root's data that each carries.
    ``before`` is the number of trees of this direction that there were.
    """

    before: int
    number: Array
    root: Array
    share: tuple[Fraction, ...]
    tree: Array
    parent: Array
    child: Array
    route: Array
    routes: Routes


@attrs.frozen(eq=False)
class Regrown:
    """All trees of one direction: ``parts`` equal shares of a root's data; the first ``kept`` ones stood before."""

    parts: int
    trees: Routed
    kept: int


def standing(forest: Forest, inward: bool, rank: Array, link: Array, touched: Array) -> Standing:
    """Return the outward (or inward) trees of a forest that faults do not touch.

    ``rank`` and ``link`` are the numbers after the faults, -1 for what is gone; ``touched`` are links before that are
    gone or slower. A leaf that is gone leaves its tree. Routes of inward trees are reversed: they are trees of the
    transpose.
    """
    chosen = forest.inward == inward
    lost = rank[forest.child] < 0
    inner = np.zeros(forest.num_trees * forest.collective.num_ranks, dtype=bool)
    inner[forest.tree.astype(np.int64) * forest.collective.num_ranks + forest.parent] = True
    leaf = ~inner[forest.tree.astype(np.int64) * forest.collective.num_ranks + forest.child]
    broken = np.add.reduceat(touched[forest.routes.links].astype(np.int64), forest.routes.start[:-1]) > 0
    wrong = np.where(lost, ~leaf, broken[forest.route]) & chosen[forest.tree]
    stands = chosen & (rank[forest.root] >= 0)
    stands[forest.tree[wrong]] = False
    rows = np.flatnonzero(stands[forest.tree] & ~lost)
    used, route = np.unique(forest.route[rows], return_inverse=True)
    lists = [[int(link[one]) for one in forest.routes.links_of(old)] for old in used.tolist()]
    number = np.flatnonzero(stands)
    place = np.cumsum(stands) - 1
    return Standing(
        int(chosen.sum()), number, rank[forest.root[number]], _shares(forest, inward, number),
        place[forest.tree[rows]], rank[forest.parent[rows]], rank[forest.child[rows]], route.ravel(),
        Routes.of([one[::-1] for one in lists] if inward else lists),
    )  # fmt: skip


def _shares(forest: Forest, inward: bool, trees: Array) -> tuple[Fraction, ...]:
    """Return the part of its root's data that each of some trees carries."""
    whole: dict[int, int] = {}
    root, weight = forest.root.tolist(), forest.weight.tolist()
    for tree in np.flatnonzero(forest.inward == inward).tolist():
        whole[root[tree]] = whole.get(root[tree], 0) + weight[tree]
    return tuple(Fraction(weight[tree], whole[root[tree]]) for tree in trees.tolist())


def regrown(topology: Topology, held: Sequence[int], trees: Sequence[int], before: Standing, divides: bool) -> Regrown:
    """Return the trees of one direction: those that stand as far as they can stay, and others in what they leave.

    Rank r's data are ``trees[r]`` equal trees, and a link holds ``held[link]`` of them. If ``divides``, these trees may
    be divided further, so that standing trees keep their shares exactly. Raises C0584 as the removal of switches does.
    """
    finer, staying = _staying(topology, held, trees, before, divides)
    staying.fit_links()
    new = _low(topology, *staying.rests())
    if new is None:
        staying.fit_sets()
        left, rest = staying.rests()
        new = grown(topology, left, rest, _FLATTENING) if any(rest) else None
    return Regrown(finer, *_joined(topology, before, staying.weight, new))


def regrown_both_ways(
    topology: Topology, boxes: Cluster, room: Sequence[int], k: int, before: Standing
) -> Regrown | None:
    """Return the outward trees of an allreduce on a cluster, k of every rank; None if low trees do not fit.

    Inward trees are the same ones backwards, so a link holds ``room[link]`` trees of both directions together. A box
    that is too narrow to send all its trees to every other box grows its own again: other boxes pass those on.
    """
    reverse = topology.reverse_links
    assert reverse is not None, "links go both ways"
    finer, staying = _staying(topology, room, [k] * topology.num_ranks, before, True, reverse)
    staying.fit_links()
    for box in boxes.boxes:
        own = finer * k * len(box.ranks)
        needed = finer * k * topology.num_ranks - own + own * (len(boxes.boxes) - 1)
        if sum(finer * room[boxes.up[rank]] for rank in box.ranks if boxes.up[rank] >= 0) < needed:
            staying.release(box.ranks)
    left, rest = staying.rests()
    new = box_trees(topology, boxes, left, rest, reverse.tolist()) if any(rest) else None
    if new is None and any(rest):
        return None
    return Regrown(finer, *_joined(topology, before, staying.weight, new))


def _staying(
    topology: Topology, held: Sequence[int], trees: Sequence[int], before: Standing, divides: bool,
    reverse: Array | None = None,
) -> tuple[int, _Staying]:  # fmt: skip
    """Return the number of equal parts of a tree, and what stays in these parts."""
    amounts = [share * trees[root] for share, root in zip(before.share, before.root.tolist(), strict=True)]
    finer = lcm(*(amount.denominator for amount in amounts)) if divides else 1
    finer = finer if finer * max(trees) <= _MOST_TREES else 1
    total, capacity = [finer * number for number in trees], [finer * number for number in held]
    weight = np.array([int(amount * finer) for amount in amounts], dtype=np.int64)
    return finer, _Staying(topology, before, weight, capacity, total, reverse)


class _Staying:
    """The standing trees with the numbers of copies that stay, and what they leave of links and roots."""

    def __init__(
        self, topology: Topology, before: Standing, weight: Array, capacity: Sequence[int], trees: Sequence[int],
        reverse: Array | None,
    ) -> None:  # fmt: skip
        self.topology, self.weight, self.root = topology, weight, before.root
        lengths = before.routes.lengths[before.route]
        self.tree = np.repeat(before.tree, lengths)
        self.link = before.routes.links[before.routes.places(before.route)].astype(np.int64)
        if reverse is not None:  # every tree is there in both directions
            self.link, self.tree = np.concatenate([self.link, reverse[self.link]]), np.tile(self.tree, 2)
        self.left = np.array(capacity, dtype=np.int64)
        np.subtract.at(self.left, self.link, weight[self.tree])
        self.rest = np.array([*trees, *[0] * topology.num_switches], dtype=np.int64)
        np.subtract.at(self.rest, self.root, weight)

    def rests(self) -> tuple[list[int], list[int]]:
        """Return what is left of every link, and the trees that every rank has still to grow."""
        return self.left.tolist(), self.rest[: self.topology.num_ranks].tolist()

    def release(self, roots: Sequence[int]) -> None:
        """Remove all copies of the trees of some roots."""
        for tree in np.flatnonzero(np.isin(self.root, roots)).tolist():
            self._remove(tree, int(self.weight[tree]))

    def fit_links(self) -> None:
        """Remove copies until no link carries more than it holds."""
        for link in np.flatnonzero(self.left < 0).tolist():
            for tree in self.tree[self.link == link][::-1].tolist():
                if self.left[link] >= 0:
                    break
                self._remove(tree, min(int(self.weight[tree]), -int(self.left[link])))

    def fit_sets(self) -> None:
        """Remove copies until every set of nodes can send the trees that are still to grow in it."""
        network, sinks = FlowNetwork(self.topology.num_nodes, self._arcs()), range(self.topology.num_ranks)
        while self.rest.any():
            short = network.violated(self.rest.tolist(), sinks, _CUTS)
            if not short:
                return
            for nodes in dict.fromkeys(cut.nodes for cut in short):
                self._relieve(np.array(nodes))
            network.refill(self._arcs())

    def _arcs(self) -> list[tuple[int, int, int]]:
        ends = zip(self.topology.src.tolist(), self.topology.dst.tolist(), self.left.tolist(), strict=True)
        return [end for end in ends if end[2]]

    def _relieve(self, nodes: Array) -> None:
        """Remove copies of the trees that cross a set more often than they must, until the rest fits."""
        inside = np.zeros(self.topology.num_nodes, dtype=bool)
        inside[nodes] = True
        out = inside[self.topology.src] & ~inside[self.topology.dst]
        short = int(self.rest[nodes].sum()) - int(self.left[out].sum())
        crossed = np.bincount(self.tree[out[self.link]], minlength=len(self.weight))
        excess = crossed - inside[self.root]
        for tree in np.lexsort((-np.arange(len(excess)), -excess)).tolist():
            if short <= 0:
                return
            if excess[tree] > 0 and self.weight[tree]:
                copies = min(int(self.weight[tree]), -(-short // int(excess[tree])))
                short -= copies * int(excess[tree])
                self._remove(tree, copies)
        if short > 0:
            raise ValueError(f"{len(nodes)} nodes have {short} units of capacity too few for all their trees")

    def _remove(self, tree: int, copies: int) -> None:
        self.weight[tree] -= copies
        self.rest[self.root[tree]] += copies
        np.add.at(self.left, self.link[self.tree == tree], copies)


def _low(topology: Topology, held: Sequence[int], trees: Sequence[int]) -> Routed | None:
    """Return the trees of a cluster of boxes; None for other networks, if low trees do not fit, and without trees."""
    boxes = cluster(topology) if any(trees) else None
    return None if boxes is None else box_trees(topology, boxes, held, trees)


def grown(topology: Topology, held: Sequence[int], trees: Sequence[int], effort: int = EFFORT) -> Routed:
    """Return trees within ``held`` per link, ``trees[r]`` rooted at rank r.

    ``effort`` limits the search for lower trees. The links must hold the trees. Raises C0584 as the removal of
    switches does.
    """
    low = _low(topology, held, trees)
    if low is not None:
        return low
    forests = []
    for logical in removals(flow_network(topology, list(held)), topology.num_ranks, trees, topology.names):
        forests.append((pack(topology.num_ranks, logical.capacity, trees, effort=effort), logical))
    packed, logical = min(forests, key=lambda found: (height(found[0]), len(found[0])))
    return routed(packed, logical, topology, held)


def _joined(topology: Topology, before: Standing, weight: Array, grown: Routed | None) -> tuple[Routed, int]:
    """Return the trees that stay, those with copies, and the new ones after them; and how many stay."""
    stays = weight > 0
    rows = stays[before.tree]
    count, number = int(stays.sum()), np.cumsum(stays) - 1
    kept = Routed(
        before.root[stays], weight[stays], number[before.tree[rows]], before.parent[rows], before.child[rows],
        before.route[rows], before.routes,
    )  # fmt: skip
    if not topology.num_switches:
        kept = attrs.evolve(kept, route=before.routes.links[kept.route], routes=Routes.direct(topology.num_links))
    return (kept if grown is None else _together(kept, grown)), count


def _together(first: Routed, second: Routed) -> Routed:
    """Return the trees of both; a route that both have is one."""
    routes, places = first.routes, np.arange(len(second.routes))
    if not (first.routes.is_direct and second.routes.is_direct):
        lists = {tuple(first.routes.links_of(route)): route for route in range(len(first.routes))}
        places = np.array([
            lists.setdefault(tuple(second.routes.links_of(route)), len(lists)) for route in range(len(second.routes))
        ], dtype=np.int64)  # fmt: skip
        routes = Routes.of(list(lists))
    names = ("root", "weight", "parent", "child")
    columns = {name: np.concatenate([getattr(first, name), getattr(second, name)]) for name in names}
    tree = np.concatenate([first.tree, second.tree.astype(np.int64) + len(first.root)])
    route = np.concatenate([first.route.astype(np.int64), places[second.route]])
    return Routed(columns["root"], columns["weight"], tree, columns["parent"], columns["child"], route, routes)
