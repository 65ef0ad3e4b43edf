"""Boxes that are all alike and that data enter more than once: the trees of one box's ranks, and the boxes' rotation.

If the links of ranks are the bottleneck, not the links to the fabric, every tree enters a box at several ranks
(:mod:`.alike` serves the other case). Seen from a box, all else is one node, the outside. What a tree is in a box is a
tree from the outside, or from the root in the root's own box. So one packing of the box and the outside holds all trees
of all boxes: k n m trees of n boxes of m ranks. Its cuts are cuts of the network, so these trees are as fast as any
(Edmonds; ForestColl, Theorem 5). A rotation moves the trees of one box's ranks to those of all others.

Which rank sends into other boxes is free: every rank of the root's box gets its data. So the root itself sends what its
links hold, then the ranks nearest to it. A switch of the fabric passes as much to a box as it gets from one, since all
boxes are alike; every entry needs a sender at the same switch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import attrs
import numpy as np

from collc.ir.arrays import Array, lexsort
from collc.ir.diagnostic import CollcError
from collc.ir.graph.box_rotation import fabrics, nodes_alike
from collc.ir.ragged import group_starts
from collc.ir.schedule import Routes
from collc.ir.symmetries import Rotations
from collc.ir.topology import Topology

from .alike import loads_of
from .capacities import flow_network, link_capacities
from .halves import Half
from .optimum import Choice, choose
from .packing import height, pack
from .routes import Routed, routed, spare_routes
from .switches import removals

__all__ = ["Entry", "FedBox", "Part", "by_value", "fed_box", "fed_seed", "part_of"]

#: edges of the trees of one box's ranks
_MOST_EDGES = 1 << 22
_MOST_TREES = 1 << 12
_MOST_EXITS = 16  # of a rank to a switch of the fabric


#: a route of a rank out of its box: the rank, links of the box's network, the trees that it holds
Exit = tuple[int, tuple[int, ...], int]


@attrs.frozen(eq=False)
class FedBox:
    """The first box of ``topology`` and the outside, as a network of m + 1 ranks: rank m is the outside.

    ``nodes`` are those of every box, box by box, ranks first. Link i of ``network`` is link ``links[i]`` of the
    topology.
    """

    topology: Topology
    nodes: Array
    rotation: Rotations
    network: Topology
    links: Array

    @property
    def count(self) -> int:
        """The number of boxes."""
        return len(self.nodes)

    @property
    def num_ranks(self) -> int:
        """The number of ranks of a box."""
        return self.network.num_ranks - 1

    def end(self, links: Sequence[int]) -> int:
        """Return the switch of the fabric to which links of ``network`` lead."""
        switch: int = self.topology.dst[self.links[links[-1]]].item()
        return switch


def fed_box(topology: Topology) -> FedBox | None:
    """Return the first box of a cluster whose boxes are all alike, and the outside; None if it is none.

    The fabric is the set of switches without which the network falls into boxes: those with as many links, or those
    farthest from all ranks. They have no links to each other.
    """
    if not topology.num_switches or topology.in_network:
        return None
    for fabric in fabrics(topology):
        found = nodes_alike(topology, fabric)
        if found is not None and not _linked(topology, fabric):
            return _with_outside(topology, fabric, *found)
    return None


def _linked(topology: Topology, fabric: Sequence[int]) -> bool:
    own = np.zeros(topology.num_nodes, dtype=bool)
    own[list(fabric)] = True
    return bool((own[topology.src] & own[topology.dst]).any())


def _with_outside(topology: Topology, fabric: Sequence[int], nodes: Array, ranks: int, rotation: Rotations) -> FedBox:
    number = np.full(topology.num_nodes, -1, dtype=np.int64)
    number[nodes[0, :ranks]] = np.arange(ranks)
    number[nodes[0, ranks:]] = np.arange(ranks + 1, nodes.shape[1] + 1)
    number[list(fabric)] = ranks
    src, dst = number[topology.src], number[topology.dst]
    links = np.flatnonzero((src >= 0) & (dst >= 0))
    network = Topology(
        f"box of {topology.name}", ranks + 1, src[links], dst[links], nodes.shape[1] - ranks,
        topology.link_class[links], topology.classes, topology.unit,
    )  # fmt: skip
    return FedBox(topology, nodes, rotation, network, links)


# ---- the packing of a box


def fed_seed(topology: Topology, k: int | None = None) -> tuple[Half, Rotations] | None:
    """Return trees of the first box's ranks that with their images take as long as the slowest cut, or None.

    Every root has ``k`` trees, by default as few as reach the optimum.
    """
    box = fed_box(topology)
    if box is None or not topology.is_connected:
        return None
    choice = _choice(box, k)
    if choice is None:
        return None
    packed = _packed(box, choice)
    if packed is None:
        return None
    trees, held = packed[0], np.array(link_capacities(topology, choice.per_unit))
    for exits in packed[1]:
        found = _Joined(box, choice.k, trees, exits).trees()
        if found is not None:
            loads = box.rotation.summed(loads_of(topology, found)[None, :], box.rotation.link_orbit)[0]
            if (loads <= held).all():
                return Half(choice.k, found), box.rotation
    return None


def _supply(box: FedBox) -> list[int]:
    return [1] * box.num_ranks + [box.topology.num_ranks - box.num_ranks]


def _choice(box: FedBox, k: int | None) -> Choice | None:
    """Return ``k`` trees of a root, or the fewest that reach the optimum; None if that is too many."""
    try:
        best = choose(box.network, _supply(box), k)
        if best.optimum.k > _MOST_TREES:
            return None
        choice = choose(box.network, _supply(box), "fewest", balanced=True) if k is None else best
    except CollcError:
        return None
    return choice if choice.k * box.num_ranks * box.topology.num_ranks <= _MOST_EDGES else None


def _packed(box: FedBox, choice: Choice) -> tuple[Routed, list[list[Exit]]] | None:
    """Return the trees of the box and the outside, and choices of the routes out of it; None if there are none."""
    network, outside, supply = box.network, box.num_ranks, [choice.k * amount for amount in _supply(box)]
    held = _narrowed(box, link_capacities(network, choice.per_unit), supply)
    try:
        choices = list(removals(flow_network(network, held), network.num_ranks, supply, network.names))
        forests = [(pack(network.num_ranks, one.capacity, supply), one) for one in choices]
    except (CollcError, ValueError):
        return None
    packed, logical = min(forests, key=lambda found: (height(found[0]), len(found[0])))
    trees = routed(packed, logical, network, held)
    used = loads_of(network, trees, np.flatnonzero(trees.child != outside))
    left = (np.array(held) - used).tolist()
    rest = spare_routes(network, logical, left, [(rank, outside) for rank in range(outside)])
    return trees, [_even_exits(box, left), [(rank, links, amount) for (rank, _), links, amount in rest]]


def _narrowed(box: FedBox, held: list[int], supply: Sequence[int]) -> list[int]:
    """Return capacities with which no more trees enter the box than one at every rank for each tree from outside.

    More would only serve roots in their own box, which need no route through the fabric. Capacities do not change if
    less does not hold all trees.
    """
    network, outside = box.network, box.num_ranks
    entering = np.flatnonzero(network.src == outside)
    crossing = set(np.flatnonzero((network.src == outside) | (network.dst == outside)).tolist())
    total, most = sum(held[link] for link in entering.tolist()), supply[outside] * box.num_ranks
    if total <= most:
        return held
    narrow = [amount * most // total if link in crossing else amount for link, amount in enumerate(held)]
    surplus = np.zeros(network.num_nodes, dtype=np.int64)
    np.add.at(surplus, network.src, narrow)
    np.subtract.at(surplus, network.dst, narrow)
    if surplus[outside + 1 :].any():
        return held
    short = flow_network(network, narrow).violated([*supply, *[0] * network.num_switches], range(outside + 1))
    return held if short else narrow


def _even_exits(box: FedBox, left: Sequence[int]) -> list[Exit]:
    """Return routes out in what is left of links: ranks send as much as others to every switch, where links permit."""
    room, found, held = list(left), list[Exit](), dict[int, int]()
    for link in np.flatnonzero(box.network.dst == box.num_ranks).tolist():
        held[box.end((link,))] = held.get(box.end((link,)), 0) + room[link]
    every = [_shortest(box, rank) for rank in range(box.num_ranks)]
    sent = [sum(left[link] for link in {links[0] for one in exits.values() for links in one}) for exits in every]

    def send(rank: int, switch: int, amount: int) -> None:
        while amount:
            part, links = max((min(amount, *(room[link] for link in one)), one) for one in every[rank][switch])
            if not part:
                return
            found.append((rank, links, part))
            amount -= part
            for link in links:
                room[link] -= part

    for rank, exits in enumerate(every):
        reached = sum(held[switch] for switch in exits)
        for switch in exits:
            send(rank, switch, sent[rank] * held[switch] // max(reached, 1))
    for rank, exits in enumerate(every):  # what rounding left
        for switch in exits:
            send(rank, switch, sent[rank])
    return found


def _shortest(box: FedBox, rank: int) -> dict[int, list[tuple[int, ...]]]:
    """Return the shortest routes of a rank to the switches of the fabric: of many a few for each."""
    network, outside = box.network, box.num_ranks
    found = dict[int, list[tuple[int, ...]]]()
    front, seen = {rank: [tuple[int, ...]()]}, {rank}
    while front and not found:
        onward = dict[int, list[tuple[int, ...]]]()
        for node, exits in front.items():
            for link in np.flatnonzero(network.src == node).tolist():
                head, longer = int(network.dst[link]), [(*links, link) for links in exits]
                if head == outside:
                    found.setdefault(box.end((link,)), []).extend(longer)
                elif head > outside and head not in seen:
                    onward.setdefault(head, []).extend(longer)
        seen |= set(onward)
        front = {node: exits[:_MOST_EXITS] for node, exits in onward.items()}
    return found


# ---- trees of the whole network


@attrs.frozen
class Entry:
    """Where data enter a box: at a rank, over a route of the packing, from a switch of the fabric (by its place).

    ``below`` is the height of what the tree has below this rank in the box.
    """

    rank: int
    route: int
    rail: int
    below: int


@attrs.frozen(eq=False)
class Part:
    """What a tree is in a box: edges parents first (rows of parent, child, route), and where data enter.

    ``fed`` has the entry above every rank, by its place; -1 for those that the root in the box reaches. ``depth`` is
    counted from there.
    """

    edges: Array
    entries: tuple[Entry, ...]
    fed: tuple[int, ...]
    depth: tuple[int, ...]


def part_of(packed: Routed, rows: Array, outside: int, rail: Callable[[int], int]) -> Part:
    """Return what the tree of some rows of a packing is in the box whose ``outside`` is the rank of this number.

    ``rail`` has the place of the switch from which a route enters the box.
    """
    parent, child, route = (getattr(packed, name)[rows].astype(np.int64) for name in ("parent", "child", "route"))
    fed, depth = [-1] * outside, [0] * outside
    above, entered = dict[int, int](), list[tuple[int, int]]()
    for tail, head, over in zip(parent.tolist(), child.tolist(), route.tolist(), strict=True):
        if tail == outside:
            fed[head] = len(entered)
            entered.append((head, over))
        elif head != outside:
            fed[head], depth[head], above[head] = fed[tail], depth[tail] + 1, tail
    below = [0] * outside
    for rank in sorted(above, key=lambda v: -depth[v]):
        below[above[rank]] = max(below[above[rank]], below[rank] + 1)
    inside = (parent != outside) & (child != outside)
    entries = tuple(Entry(rank, over, rail(over), below[rank]) for rank, over in entered)
    return Part(np.stack([parent, child, route])[:, inside], entries, tuple(fed), tuple(depth))


class _Senders:
    """How often the ranks of the first box can still send to the switches of the fabric, and over which links."""

    def __init__(self, box: FedBox, exits: Sequence[Exit]) -> None:
        self.rails = {switch: place for place, switch in enumerate(sorted({box.end(links) for _, links, _ in exits}))}
        self.left = np.zeros((box.num_ranks, len(self.rails)), dtype=np.int64)
        self.exits: dict[tuple[int, int], list[tuple[tuple[int, ...], int]]] = {}
        for rank, links, amount in exits:
            rail = self.rails[box.end(links)]
            self.left[rank, rail] += amount
            own = tuple(box.links[list(links)].tolist())
            self.exits.setdefault((rank, rail), []).append((own, amount))

    def take(self, rank: int, rail: int) -> tuple[int, ...]:
        """Return the links over which a rank sends once more to a switch."""
        self.left[rank, rail] -= 1
        exits = self.exits[rank, rail]
        links, amount = exits.pop()
        if amount > 1:
            exits.append((links, amount - 1))
        return links

    def nearest(self, depth: Array, rail: int) -> int | None:
        """Return the rank of least depth that can send, of equal ones that with most left; depths below 0 cannot."""
        able = np.flatnonzero((self.left[:, rail] > 0) & (depth >= 0))
        if not len(able):
            return None
        return int(able[np.lexsort((able, -self.left[able, rail], depth[able]))[0]])


class _Joined:
    """Joins parts of trees in boxes to trees of the first box's ranks: tree t is of rank t // k."""

    def __init__(self, box: FedBox, k: int, packed: Routed, exits: Sequence[Exit]) -> None:
        self.box, self.k, self.packed, self.senders = box, k, packed, _Senders(box, exits)
        order = np.argsort(packed.tree, kind="stable")
        begin = group_starts(packed.tree[order], len(packed.root)).tolist()
        self.parts = [part_of(packed, order[a:b], box.num_ranks, self._rail) for a, b in pairwise(begin)]
        units = np.repeat(np.arange(len(packed.root)), packed.weight.astype(np.int64))
        of = packed.root[units]
        #: the part in its own box of every tree
        self.own = [part for rank in range(box.num_ranks) for part in units[of == rank].tolist()]
        self.outer = units[of == box.num_ranks].tolist()
        self.blocks = _Blocks(box, packed.routes)

    def trees(self) -> Routed | None:
        """Return the trees; None if some data find no sender."""
        depths = [self._start(tree) for tree in range(len(self.own))]
        if any(depth is None for depth in depths):
            return None
        chosen = self._dealt()
        if not self._send(chosen, [depth for depth in depths if depth is not None]):
            return None
        for part, rows in by_value(chosen):
            trees, boxes = np.divmod(rows, self.box.count - 1)
            self.blocks.inside(trees, boxes + 1, self.parts[part].edges, 4)
        return self.blocks.trees(np.repeat(np.arange(self.box.num_ranks), self.k))

    def _rail(self, route: int) -> int:
        """Return the place of the switch from which a route enters the box; -1 if no rank sends there."""
        links = self.packed.routes
        first = self.box.links[int(links.links[int(links.start[route])])]
        return self.senders.rails.get(int(self.box.topology.src[first]), -1)

    def _start(self, tree: int) -> Array | None:
        """Add the edges of a tree in its own box; return the depth of every rank there, or None without a sender."""
        part = self.parts[self.own[tree]]
        fed, depth = np.array(part.fed), np.array(part.depth)
        under = fed[part.edges[1]] >= 0
        one, first = np.array([tree]), np.array([0])
        self.blocks.inside(one, first, part.edges[:, ~under], 0)
        self.blocks.inside(one, first, part.edges[:, under], 2)
        known = np.where(fed < 0, depth, -1)
        for number, entry in enumerate(part.entries):
            sender = self.senders.nearest(known, entry.rail) if entry.rail >= 0 else None
            if sender is None:
                return None
            self._cross(tree, 0, entry, sender, 1)
            depth[fed == number] += known[sender] + 1
        return depth

    def _dealt(self) -> Array:
        """Return the part of every tree in every other box, row by row: high parts to roots that can send most."""
        rest, ranks = self.box.count - 1, self.box.num_ranks
        filled = [0] * len(self.own)
        room, slots = self.senders.left.copy(), np.full(ranks, rest * self.k)
        chosen = np.empty(len(self.own) * rest, dtype=np.int64)
        height = [max((entry.below for entry in part.entries), default=0) for part in self.parts]
        order = sorted(self.outer, key=lambda part: (-height[part], -len(self.parts[part].entries), part))
        for part in order:
            rails = [entry.rail for entry in self.parts[part].entries]
            used, times = np.unique(rails, return_counts=True)
            score = (room[:, used] - times).min(axis=1)
            rank = int(np.lexsort((-slots, -score, slots == 0))[0])
            tree = min(range(rank * self.k, (rank + 1) * self.k), key=lambda one: (filled[one], one))
            chosen[tree * rest + filled[tree]] = part
            filled[tree] += 1
            slots[rank] -= 1
            room[rank, used] -= times
        return chosen

    def _send(self, chosen: Array, depths: list[Array]) -> bool:
        """Give every entry a sender in the root's box: the root, then the nearest rank; false if there is none."""
        rest, waiting = self.box.count - 1, list[tuple[int, int, Entry]]()
        every = [
            (*divmod(slot, rest), entry)
            for slot, part in enumerate(chosen.tolist())
            for entry in self.parts[part].entries
        ]
        for tree, box, entry in sorted(every, key=lambda one: (-one[2].below, one[1], one[0], one[2].rank)):
            if entry.rail < 0:
                return False
            if self.senders.left[tree // self.k, entry.rail] > 0:
                self._cross(tree, box + 1, entry, tree // self.k, 3)
            else:
                waiting.append((tree, box + 1, entry))
        for tree, box, entry in waiting:
            sender = self.senders.nearest(depths[tree], entry.rail)
            if sender is None:
                return False
            self._cross(tree, box, entry, sender, 3)
        return True

    def _cross(self, tree: int, box: int, entry: Entry, sender: int, phase: int) -> None:
        links = self.senders.take(sender, entry.rail)
        self.blocks.crossing(tree, sender, links, box, entry.rank, entry.route, phase)


def by_value(values: Array) -> Iterator[tuple[int, Array]]:
    """Yield the different values and the rows of each."""
    order = np.argsort(values, kind="stable")
    found, first = np.unique(values[order], return_index=True)
    yield from zip(found.tolist(), np.split(order, first[1:]), strict=True)


def _without_loops(topology: Topology, links: Sequence[int]) -> tuple[int, ...]:
    """Return a route that visits no node twice: one that leaves a box and enters it again may pass a switch of it."""
    place, kept = {int(topology.src[links[0]]): 0}, list[int]()
    for link in links:
        kept.append(link)
        head = int(topology.dst[link])
        if head in place:
            del kept[place[head] :]
            place = {node: number for node, number in place.items() if number <= len(kept)}
        place[head] = len(kept)
    return tuple(kept)


class _Blocks:
    """The edges of all trees, in blocks with a phase: those of one tree follow each other by phase."""

    def __init__(self, box: FedBox, routes: Routes) -> None:
        self.box, self.routes = box, routes
        boxes = np.arange(box.count)[:, None]
        self.images = box.rotation.links(boxes, box.links[routes.links.astype(np.int64)][None, :])
        self.start = routes.start.tolist()
        self.columns: list[tuple[Array, ...]] = []
        self.crossings: list[tuple[int, ...]] = []
        self.number: dict[tuple[int, ...], int] = {}

    def inside(self, trees: Array, boxes: Array, edges: Array, phase: int) -> None:
        """Add the same edges of one part to trees, each in one of the boxes."""
        nodes, (parent, child, route) = self.box.nodes, edges
        if not edges.size:
            return
        self.columns.append((
            np.repeat(trees, len(parent)), np.full(len(trees) * len(parent), phase),
            nodes[boxes[:, None], parent].ravel(), nodes[boxes[:, None], child].ravel(),
            (boxes[:, None] * len(self.routes) + route).ravel(),
        ))  # fmt: skip

    def crossing(
        self, tree: int, sender: int, up: tuple[int, ...], box: int, entry: int, route: int, phase: int
    ) -> None:  # fmt: skip
        """Add an edge from a rank of the first box into a box."""
        links = (*up, *self.images[box, self.start[route] : self.start[route + 1]].tolist())
        links = links if box else _without_loops(self.box.topology, links)
        key = self.box.count * len(self.routes) + self.number.setdefault(links, len(self.number))
        nodes = self.box.nodes
        self.crossings.append((tree, phase, int(nodes[0, sender]), int(nodes[box, entry]), key))

    def trees(self, root: Array) -> Routed:
        """Return the trees of these roots, with the routes that they use."""
        crossing = np.array(self.crossings, dtype=np.int64).reshape(-1, 5).T
        tree, phase, parent, child, key = (np.concatenate(parts) for parts in zip(*self.columns, crossing, strict=True))
        order = lexsort((phase, tree))
        used, route = np.unique(key[order], return_inverse=True)
        outer, inner = list(self.number), self.box.count * len(self.routes)
        lists = [outer[one - inner] if one >= inner else self._links(one) for one in used.tolist()]
        roots = self.box.nodes[0, root]
        return Routed(
            roots, np.ones(len(root), dtype=np.int64), tree[order], parent[order], child[order], route.reshape(-1),
            Routes.of(lists),
        )  # fmt: skip

    def _links(self, key: int) -> tuple[int, ...]:
        box, route = divmod(key, len(self.routes))
        found: tuple[int, ...] = tuple(self.images[box, self.start[route] : self.start[route + 1]].tolist())
        return found
