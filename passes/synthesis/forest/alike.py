"""Boxes that are all alike: the trees of one box's ranks, and a rotation of the boxes that moves them to all others.

A root sends its data to the rank of the same place in every other box, each box once, through the switches between
boxes (the fabric: one switch, or rails). From there, and in its own box, a tree of the box spreads them. The links to
the fabric then carry what the cut around a box needs, in equal shares, and nothing more. Inside of a box the ranks of
each place are roots n times, once for every box. So the trees of a box alone are enough, if n times their loads take
no longer than the links to the fabric. Then the whole is optimal: it meets the cut around a box, and an allreduce in
both directions the partition into boxes.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.costs.cost import link_loads
from collc.ir.diagnostic import CollcError
from collc.ir.graph.box_rotation import nodes_alike
from collc.ir.schedule import Routes
from collc.ir.symmetries import Rotations
from collc.ir.topology import Topology

from .halves import Half, packed_half
from .optimum import choose
from .routes import Routed

__all__ = ["Alike", "box_seed", "box_trees", "boxes_alike", "loads_of", "to_fabric"]

_MOST_OF_A_BOX = 8  # trees a rank in a box, besides the number that its optimum needs


@attrs.frozen(eq=False)
class Alike:
    """The nodes of every box, box by box (first ranks, then switches, ascending), and their rotation.

    ``up[i]`` and ``down[i]`` are the links of routes between rank i of box 0 and every switch of the fabric.
    """

    topology: Topology
    nodes: Array
    num_ranks: int
    rotation: Rotations
    up: tuple[dict[int, tuple[int, ...]], ...]
    down: tuple[dict[int, tuple[int, ...]], ...]

    @property
    def count(self) -> int:
        """The number of boxes."""
        return len(self.nodes)


def boxes_alike(topology: Topology) -> Alike | None:
    """Return the boxes of a cluster whose boxes are all alike, or None if it is none.

    The ranks of the first box are 0 .. m-1. Switches of the fabric stay in place when boxes are rotated.
    """
    degree = np.bincount(topology.src, minlength=topology.num_nodes)
    switches = np.arange(topology.num_ranks, topology.num_nodes)
    for number in sorted(set(degree[switches].tolist()), reverse=True):
        found = _boxes(topology, switches[degree[switches] == number].tolist())
        if found is not None:
            return found
    return None


def _boxes(topology: Topology, fabric: Sequence[int]) -> Alike | None:
    found = nodes_alike(topology, fabric)
    if found is None:
        return None
    nodes, size, rotation = found
    up = [to_fabric(topology, nodes[0], fabric, rank, True) for rank in range(size)]
    down = [to_fabric(topology, nodes[0], fabric, rank, False) for rank in range(size)]
    if any(not set(above) & set(below) for above, below in zip(up, down, strict=True)):
        return None
    return Alike(topology, nodes, size, rotation, tuple(up), tuple(down))


def to_fabric(
    topology: Topology, box: Array, fabric: Sequence[int], rank: int, upward: bool
) -> dict[int, tuple[int, ...]]:
    """Return the shortest route between a rank and each switch of the fabric, through switches of the box."""
    tails, heads = (topology.src, topology.dst) if upward else (topology.dst, topology.src)
    inner = {node for node in box.tolist() if node >= topology.num_ranks}
    ends, found = set(fabric), dict[int, tuple[int, ...]]()
    around: dict[int, list[tuple[int, int]]] = {node: [] for node in (rank, *inner)}
    for link in np.flatnonzero(np.isin(tails, [*around])).tolist():
        around[int(tails[link])].append((int(heads[link]), link))
    front, seen = [(rank, tuple[int, ...]())], {rank}
    for node, route in front:
        for other, link in around[node]:
            there = (*route, link) if upward else (link, *route)
            if other in ends:
                found.setdefault(other, there)
            elif other in inner and other not in seen:
                seen.add(other)
                front.append((other, there))
    return found


# ---- trees of a box


def box_trees(alike: Alike, most: Fraction) -> Half | None:
    """Return trees of a box alone, as low as possible, that take at most ``most`` of time per shard; None without."""
    box, links = _box(alike)
    if alike.num_ranks == 1:
        return None
    if not box.is_connected:
        return None
    found: list[Half] = []
    supply = [1] * alike.num_ranks
    try:
        best = choose(box, supply, None)
        if best.optimum.one_over_x > most:
            return None
        for k in sorted({best.k, *range(1, _MOST_OF_A_BOX + 1)}):
            choice = best if k == best.k else choose(box, supply, k)
            half = packed_half(box, supply, choice, lambda phase: None)
            if _time(box, half) <= most:
                found.append(half)
    except CollcError:
        return None
    if not found:
        return None
    half = min(found, key=lambda half: (_height(half), half.parts))
    return _numbered(alike, half, links)


def _box(alike: Alike) -> tuple[Topology, Array]:
    """Return the first box alone, and its links' numbers in the whole network."""
    topology, nodes = alike.topology, alike.nodes[0]
    number = np.full(topology.num_nodes, -1, dtype=np.int64)
    number[nodes] = np.arange(len(nodes))
    links = np.flatnonzero((number[topology.src] >= 0) & (number[topology.dst] >= 0))
    box = Topology(
        f"box of {topology.name}", alike.num_ranks, number[topology.src[links]], number[topology.dst[links]],
        len(nodes) - alike.num_ranks, topology.link_class[links], topology.classes, topology.unit,
    )  # fmt: skip
    return box, links


def loads_of(topology: Topology, trees: Routed, among: Array | slice = slice(None)) -> Array:
    """Return how many trees every link carries, counting the edges in a mask, by default all."""
    return link_loads(topology, trees.routes, trees.route[among], trees.weight.astype(np.int64)[trees.tree[among]])


def _time(topology: Topology, half: Half) -> Fraction:
    """Return the time of the slowest link, per shard."""
    loads = loads_of(topology, half.trees).tolist()
    return max(
        (Fraction(load, half.parts) / topology.bandwidth(link) for link, load in enumerate(loads)), default=Fraction(0)
    )


def _height(half: Half) -> int:
    depth: dict[tuple[int, int], int] = {}
    trees = half.trees
    for tree, parent, child in zip(trees.tree.tolist(), trees.parent.tolist(), trees.child.tolist(), strict=True):
        depth[tree, child] = depth.get((tree, parent), 0) + 1
    return max(depth.values(), default=0)


def _numbered(alike: Alike, half: Half, links: Array) -> Half:
    """Return trees of the box alone with the whole network's numbers: ranks keep theirs."""
    routes = Routes(half.trees.routes.start, links[half.trees.routes.links])
    return Half(half.parts, attrs.evolve(half.trees, routes=routes))


# ---- trees of all boxes


def box_seed(topology: Topology) -> tuple[Half, Rotations] | None:
    """Return trees of the first box's ranks whose images load no link more than the cut around a box, or None.

    Every root has as few trees as the links to the fabric divide, mostly one.
    """
    alike = boxes_alike(topology)
    if alike is None:
        return None
    least = _cut(alike)
    inside = box_trees(alike, least / alike.count)
    if inside is None:
        return None
    rails = max(len(set(up) & set(down)) for up, down in zip(alike.up, alike.down, strict=True))
    for k in range(1, rails * _MOST_OF_A_BOX + 1):
        half = Half(k, _seed(alike, inside, k))
        loads = alike.rotation.summed(loads_of(topology, half.trees)[None, :], alike.rotation.link_orbit)[0]
        if _within(topology, loads, least * k):
            return half, alike.rotation
    return None


def _cut(alike: Alike) -> Fraction:
    """Return the time per shard that the cut into a box needs: all other ranks' shards over its links."""
    topology, own = alike.topology, np.zeros(alike.topology.num_nodes, dtype=bool)
    own[alike.nodes[0]] = True
    into = np.flatnonzero(~own[topology.src] & own[topology.dst])
    width = sum((topology.bandwidth(link) for link in into.tolist()), Fraction(0))
    return Fraction(topology.num_ranks - alike.num_ranks) / width


def _within(topology: Topology, loads: Array, most: Fraction) -> bool:
    return all(
        int(loads[topology.link_class == number].max(initial=0)) <= most * kind.bandwidth
        for number, kind in enumerate(topology.classes)
    )


def _seed(alike: Alike, inside: Half, k: int) -> Routed:
    """Return k trees of every rank of the first box.

    Tree number t uses in box j the tree of the box whose share holds number t*n + j of k*n equal shares, so that all
    trees of the box are used in proportion to their weights.
    """
    builder = _Builder(alike, inside)
    for rank in range(alike.num_ranks):
        for tree in range(k):
            builder.add(rank, tree, k)
    return builder.trees()


class _Builder:
    """Adds trees edge by edge; equal routes are one."""

    def __init__(self, alike: Alike, inside: Half) -> None:
        self.alike, self.inside = alike, inside
        own, rotation = inside.trees, alike.rotation
        box = np.arange(alike.count)[:, None]
        lengths = own.routes.lengths
        links = rotation.links(box, own.routes.links[None, :].astype(np.int64))
        self.lists = [links[:, a:b].tolist() for a, b in zip(own.routes.start[:-1], own.routes.start[1:], strict=True)]
        self.number = np.arange(alike.count)[:, None] * len(lengths) + np.arange(len(lengths))
        self.inner = alike.count * len(lengths)
        self.crossing: dict[tuple[int, ...], int] = {}
        self.blocks: dict[str, list[Array]] = {"tree": [], "parent": [], "child": [], "route": []}
        self.roots: list[int] = []
        self.order = np.argsort(own.tree, kind="stable")
        self.begin = np.searchsorted(own.tree[self.order], np.arange(len(own.root) + 1))
        self.of_root = [np.flatnonzero(own.root == rank) for rank in range(alike.num_ranks)]

    def add(self, rank: int, tree: int, k: int) -> None:
        alike, rotation = self.alike, self.alike.rotation
        number = len(self.roots)
        self.roots.append(rank)
        for box in range(alike.count):
            entry = int(rotation.nodes(box, rank))
            if box:
                route = self.crossing.setdefault(self._crossing(rank, box, tree), self.inner + len(self.crossing))
                self._edges(number, np.array([rank]), np.array([entry]), np.array([route]))
            rows = self._rows(rank, tree * alike.count + box, k * alike.count)
            own = self.inside.trees
            parent, child = (rotation.nodes(box, end[rows].astype(np.int64)) for end in (own.parent, own.child))
            self._edges(number, parent, child, self.number[box, own.route[rows]])

    def _rows(self, rank: int, share: int, shares: int) -> Array:
        """Return the edges of the tree of the box that this one of equal shares of a rank's data takes."""
        trees = self.of_root[rank]
        ends = np.cumsum(self.inside.trees.weight[trees].astype(np.int64))
        # the middle of the share
        place = (2 * share + 1) * int(ends[-1]) // (2 * shares)
        which = int(trees[int(np.searchsorted(ends, place, side="right"))])
        rows: Array = self.order[self.begin[which] : self.begin[which + 1]]
        return rows

    def _crossing(self, rank: int, box: int, tree: int) -> tuple[int, ...]:
        """Return the links to the same place in another box; rails are taken in turn."""
        alike = self.alike
        both = sorted(set(alike.up[rank]) & set(alike.down[rank]))
        rail = both[(box - 1 + tree * (alike.count - 1)) % len(both)]
        down = alike.rotation.links(box, np.array(alike.down[rank][rail])).tolist()
        return (*alike.up[rank][rail], *down)

    def _edges(self, tree: int, parent: Array, child: Array, route: Array) -> None:
        columns = {"tree": np.full(len(parent), tree), "parent": parent, "child": child, "route": route}
        for name, column in columns.items():
            self.blocks[name].append(column)

    def trees(self) -> Routed:
        """Return all trees, with the routes that they use."""
        columns = {name: np.concatenate(blocks) for name, blocks in self.blocks.items()}
        used, route = np.unique(columns["route"], return_inverse=True)
        outer = list(self.crossing)
        lists = [self._links(number, outer) for number in used.tolist()]
        root = np.array(self.roots, dtype=np.int64)
        weight = np.ones(len(root), dtype=np.int64)
        return Routed(
            root, weight, columns["tree"], columns["parent"], columns["child"], route.reshape(-1), Routes.of(lists)
        )

    def _links(self, number: int, outer: Sequence[tuple[int, ...]]) -> Sequence[int]:
        if number >= self.inner:
            return outer[number - self.inner]
        box, route = divmod(number, len(self.lists))
        links: list[int] = self.lists[route][box]
        return links
