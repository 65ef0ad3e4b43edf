"""Clusters with odd boxes that data enter more than once, or whose links have no room to spare: a packing of each box.

Seen from a box, alike or odd, all else is one node, the outside (:mod:`.fed_boxes`). One packing of the box and the
outside holds what all trees of all roots are in it. Nothing is divided between roots before. So it exists
whenever the cuts of the box permit (Edmonds). Then the data of every root are divided among the parts of trees in every
box, and the root, or the ranks of its box nearest to it, send them into all other boxes.

A part of weight w in an odd box serves w units of a rank of the first alike box, if all weights are counted in units
that are n times as small, where n is the number of alike boxes: the images of that rank use it n times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, chain, pairwise

import attrs
import numpy as np

from collc.ir.arrays import Array, lexsort
from collc.ir.diagnostic import CollcError
from collc.ir.graph.box_rotation import parts_without
from collc.ir.ragged import group_starts
from collc.ir.schedule import Routes
from collc.ir.topology import Topology

from .capacities import flow_network
from .fed_boxes import Entry, Part, by_value, part_of
from .halves import Half
from .odd_boxes import OddBoxes
from .packing import height, pack
from .routes import Routed, routed
from .switches import removals

__all__ = ["EFFORT", "fed_odd"]

_MOST_EDGES = 1 << 23
#: steps of work for lower trees in a box, which are more trees
EFFORT = 1 << 20
_SHARES = 64  # steps in which links to the outside are narrowed

#: parts of trees in a box, by number, each with its weight
Weighted = list[tuple[int, int]]


@attrs.frozen(eq=False)
class _Box:
    """The packing of one box: its ranks, its routes in the topology's links, the parts of trees, and who uses them."""

    ranks: Array
    routes: tuple[tuple[int, ...], ...]
    parts: tuple[Part, ...]
    own: tuple[Weighted, ...]
    outer: Weighted

    def entered(self) -> list[int]:
        """Return the weight that enters the box at every rank."""
        found = [0] * len(self.ranks)
        for number, weight in chain(self.outer, *self.own):
            for entry in self.parts[number].entries:
                found[entry.rank] += weight
        return found


def fed_odd(
    odd: OddBoxes, alike: Sequence[int], rest: Sequence[int], held: Sequence[int], both: Sequence[int] = (),
    inside: Sequence[Half | None] = (None,), effort: int = EFFORT,
) -> Iterator[Routed]:  # fmt: skip
    """Yield trees of the first alike box's ranks and of all odd ranks, n units of weight for each tree.

    ``alike`` has the number of trees of every rank of an alike box, ``rest`` that of every odd rank, ``held`` what
    links hold of them. ``both`` is what a link and its reverse hold together, if trees are used in both directions.
    ``inside`` are choices for an alike box: trees of the box alone, of which every tree of the network takes one, or
    None, a packing. None are yielded if links hold too few trees, or if boxes cannot send all data of their ranks.
    """
    topology, count = odd.topology, odd.alike.count
    supply = list(alike) * count + list(rest)
    groups = parts_without(topology, [odd.fabric])
    chosen = [nodes for nodes in groups if nodes[0] >= count * odd.alike.num_ranks]
    found = [_box(topology, nodes, odd.fabric, held, supply, effort) for nodes in chosen]
    boxes = [box for box in found if box is not None]
    for trees in inside if len(boxes) == len(found) else ():
        if trees is None:
            first = _box(topology, groups[0], odd.fabric, held, supply, effort)
        else:
            first = _entered_once(odd, trees, alike, sum(supply))
        joined = None if first is None else _Joined(odd, supply, [first, *boxes], held, both).trees()
        if joined is not None:
            yield joined


def _box(
    topology: Topology, nodes: Sequence[int], fabric: int, held: Sequence[int], supply: Sequence[int], effort: int
) -> _Box | None:  # fmt: skip
    ranks = [node for node in nodes if node < topology.num_ranks]
    number = np.full(topology.num_nodes, -1)
    number[[*ranks, fabric, *(node for node in nodes if node >= topology.num_ranks)]] = np.arange(len(nodes) + 1)
    src, dst = number[topology.src], number[topology.dst]
    links = np.flatnonzero((src >= 0) & (dst >= 0))
    network = Topology(f"box of {topology.name}", len(ranks) + 1, src[links], dst[links], len(nodes) - len(ranks))
    own = [supply[rank] for rank in ranks]
    roots = [*own, sum(supply) - sum(own)]
    room = _narrowed(network, [held[link] for link in links.tolist()], roots)
    if room is None:
        return None
    flow = flow_network(network, room)
    try:
        forests = [
            (pack(len(roots), one.capacity, roots, effort=effort), one) for one in removals(flow, len(roots), roots)
        ]
    except (CollcError, ValueError):
        return None
    packed, logical = min(forests, key=lambda one: (height(one[0]), len(one[0])))
    return _with_parts(routed(packed, logical, network, room), np.array(ranks), links)


def _entered_once(odd: OddBoxes, inside: Half, own: Sequence[int], total: int) -> _Box:
    """Return trees of an alike box alone as its packing: what a rank sends into other alike boxes enters at its place.

    There, and in its own box, all data of a rank take one tree of its place: in all boxes together each in proportion
    to its weight. Data of odd ranks are divided among all places.
    """
    trees, ranks, count = inside.trees, len(own), odd.alike.count
    lists = [tuple(trees.routes.links_of(route)) for route in range(len(trees.routes))]
    lists += [tuple(odd.alike.down[rank][odd.fabric]) for rank in range(ranks)]
    order = np.argsort(trees.tree, kind="stable")
    begin = group_starts(trees.tree[order], len(trees.root)).tolist()
    alone = [part_of(trees, order[a:b], ranks, lambda route: 0) for a, b in pairwise(begin)]
    entered = [
        attrs.evolve(part, entries=(Entry(root, len(trees.routes) + root, 0, max(part.depth)),), fed=(0,) * ranks)
        for part, root in zip(alone, trees.root.tolist(), strict=True)
    ]
    taken = np.array([_by_share(trees, rank, count) for rank in range(ranks)])
    users = tuple([(int(taken[rank, 0]), own[rank])] if own[rank] else [] for rank in range(ranks))
    outer = [
        (len(alone) + int(taken[rank, image]), own[rank])
        for image in range(1, count) for rank in range(ranks) if own[rank]
    ]  # fmt: skip
    rest = _even(total - count * sum(own), [1] * ranks)
    outer += [
        (len(alone) + int(taken[rank, count // 2]), amount) for rank, amount in enumerate(rest) if amount
    ]  # fmt: skip
    return _Box(np.arange(ranks), tuple(lists), (*alone, *entered), users, outer)


def _by_share(trees: Routed, root: int, shares: int) -> Array:
    """Return the tree of a root that has the middle of each of some equal shares of its data."""
    own = np.flatnonzero(trees.root == root)
    ends = np.cumsum(trees.weight[own].astype(np.int64))
    found: Array = own[np.searchsorted(ends, (2 * np.arange(shares) + 1) * int(ends[-1]) // (2 * shares), side="right")]
    return found


def _even(total: int, weights: Sequence[int]) -> list[int]:
    """Return whole numbers of this sum in proportion to weights."""
    ends = [total * end // sum(weights) for end in accumulate(weights, initial=0)]
    return [high - low for low, high in pairwise(ends)]


def _narrowed(network: Topology, held: list[int], roots: Sequence[int]) -> list[int] | None:
    """Return capacities of which as little as possible leads to and from the outside; None if they hold too few trees.

    So trees enter the box as seldom as its own links permit: every entry must be sent by other boxes.
    """
    outside = len(roots) - 1
    crossing = ((network.src == outside) | (network.dst == outside)).tolist()

    def at(share: int) -> list[int]:
        return [-(-room * share // _SHARES) if out else room for room, out in zip(held, crossing, strict=True)]

    def holds(share: int) -> bool:
        flow = flow_network(network, at(share))
        return not flow.violated([*roots, *[0] * network.num_switches], range(len(roots)))

    low, high = 0, _SHARES
    if not holds(high):
        return None
    while high - low > 1:
        share = (low + high) // 2
        low, high = (low, share) if holds(share) else (share, high)
    return at(high)


def _with_parts(trees: Routed, ranks: Array, links: Array) -> _Box:
    outside = len(ranks)
    order = np.argsort(trees.tree, kind="stable")
    begin = group_starts(trees.tree[order], len(trees.root)).tolist()
    parts = tuple(part_of(trees, order[a:b], outside, lambda route: 0) for a, b in pairwise(begin))
    users: list[Weighted] = [[] for _ in range(outside + 1)]
    for number, (root, weight) in enumerate(zip(trees.root.tolist(), trees.weight.tolist(), strict=True)):
        users[root].append((number, int(weight)))
    users[outside].sort(key=lambda one: (-len(parts[one[0]].entries), one))  # those of odd ranks come last
    routes = tuple(tuple(links[trees.routes.links_of(route)].tolist()) for route in range(len(trees.routes)))
    return _Box(ranks, routes, parts, tuple(users[:outside]), users[outside])


class _Users:
    """Gives the parts of a box to one user after the other."""

    def __init__(self, parts: Weighted) -> None:
        self.left = list(reversed(parts))

    def take(self, weight: int) -> Weighted:
        """Return parts of this weight in all."""
        found: Weighted = []
        while weight:
            part, most = self.left.pop()
            found.append((part, min(most, weight)))
            if most > weight:
                self.left.append((part, most - weight))
            weight -= found[-1][1]
        return found


def _refined(layers: Sequence[Weighted]) -> Iterator[tuple[int, list[int]]]:
    """Yield weights, each with the part of every layer, for layers of equal total weight."""
    ends = [np.cumsum([weight for _, weight in layer]) for layer in layers]
    cuts = np.unique(np.concatenate(ends))
    for low, high in pairwise([0, *cuts.tolist()]):
        places = (int(np.searchsorted(end, low, side="right")) for end in ends)
        yield high - low, [layer[place][0] for layer, place in zip(layers, places, strict=True)]


@attrs.define(eq=False)
class _Piece:
    """A tree of a root in box ``home`` (-1 in ``boxes``: that box), of some weight: the part in every other box.

    ``boxes`` lists (number of the box, image under the rotation, part); ``sent`` has the sender of each entry that has
    one, by the place of the box in ``boxes`` and the entry.
    """

    root: int
    home: int
    own: int
    weight: int
    boxes: list[tuple[int, int, int]]
    depth: Array
    sent: dict[tuple[int, int], int] = attrs.Factory(dict)


class _Joined:
    """Joins the parts of trees in all boxes: box 0 is the first alike box, the others are odd."""

    def __init__(
        self, odd: OddBoxes, supply: Sequence[int], boxes: Sequence[_Box], held: Sequence[int], both: Sequence[int]
    ) -> None:
        self.odd, self.supply, self.boxes = odd, supply, boxes
        self.count, self.rotation = odd.alike.count, odd.alike.rotation
        self.up = [[self._link(int(rank), True) for rank in box.ranks] for box in boxes]
        #: what every rank can still send to the fabric
        self.left = [
            [
                (both[link] - taken if both else held[link]) * self.count if link >= 0 else 0
                for link, taken in zip(links, box.entered(), strict=True)
            ]
            for links, box in zip(self.up, boxes, strict=True)
        ]
        self.rows: list[tuple[Array, ...]] = []
        self.number: dict[tuple[int, ...], int] = {}
        self.numbers: dict[tuple[int, int], Array] = {}

    def _link(self, rank: int, upward: bool) -> int:
        links = self.odd.alike.up if upward else self.odd.alike.down
        if rank < self.odd.alike.num_ranks:
            return links[rank][self.odd.fabric][0]
        return (self.odd.up if upward else self.odd.down).get(rank, -1)

    def trees(self) -> Routed | None:
        """Return the trees; None if the data of some ranks find no sender in their box."""
        pieces = self._pieces()
        if len(pieces) * self.odd.topology.num_ranks > _MOST_EDGES:
            return None
        found = self._sent(pieces)
        return None if found is None else self._columns(found)

    # ---- what every root uses in every box

    def _pieces(self) -> list[_Piece]:
        users, pieces = [_Users(box.outer) for box in self.boxes], list[_Piece]()
        sizes = self.supply[: self.odd.alike.num_ranks]
        images = [[users[0].take(size) for size in sizes] for _ in range(1, self.count)]
        inside = [[one.take(size * self.count) for size in sizes] for one in users[1:]]
        for place in np.flatnonzero(sizes).tolist():
            alike = [self.boxes[0].own[place], *(image[place] for image in images)]
            layers = [[(part, weight * self.count) for part, weight in layer] for layer in alike]
            for weight, parts in _refined([*layers, *(layer[place] for layer in inside)]):
                other = [(0, image, part) for image, part in enumerate(parts[1 : self.count], 1)]
                other += [(number, 0, part) for number, part in enumerate(parts[self.count :], 1)]
                pieces.append(self._piece(place, 0, weight, parts[0], other))
        for home, box in enumerate(self.boxes[1:], 1):
            for place, rank in enumerate(box.ranks.tolist()):
                if self.supply[rank]:
                    pieces += self._of_odd(users, home, place, self.supply[rank])
        return pieces

    def _of_odd(self, users: Sequence[_Users], home: int, place: int, size: int) -> Iterator[_Piece]:
        others = [number for number in range(len(self.boxes)) if number != home]
        layers = [self.boxes[home].own[place], *(users[number].take(size) for number in others)]
        for weight, parts in _refined(layers):
            other = [(0, image, parts[1]) for image in range(self.count)]
            other += [(number, 0, part) for number, part in zip(others[1:], parts[2:], strict=True)]
            yield self._piece(place, home, weight * self.count, parts[0], other)

    def _piece(self, root: int, home: int, weight: int, own: int, other: list[tuple[int, int, int]]) -> _Piece:
        part = self.boxes[home].parts[own]
        depth = np.where(np.array(part.fed) < 0, np.array(part.depth), -1)
        return _Piece(root, home, own, weight, [(home, -1, own), *other], depth)

    # ---- senders

    def _sent(self, pieces: list[_Piece]) -> list[_Piece] | None:
        """Give every entry a sender: the root while it has room, then the nearest ranks; pieces may be cut."""
        work, done = list(reversed(pieces)), list[_Piece]()
        while work:  # entries of own boxes: only ranks that have the data already
            piece = work.pop()
            rest = self._served(piece, [(0, number) for number in range(len(self._part(piece, 0).entries))])
            if rest is None:
                return None
            work += rest[::-1]
            if not rest:
                done.append(piece)
        entries = [self._entries(piece) for piece in done]
        for piece, every in zip(done, entries, strict=True):
            for key in every:
                if self.left[piece.home][piece.root] >= piece.weight:
                    self.left[piece.home][piece.root] -= piece.weight
                    piece.sent[key] = piece.root
        work, done = done[::-1], []
        while work:
            piece = work.pop()
            rest = self._served(piece, [key for key in self._entries(piece) if key not in piece.sent])
            if rest is None:
                return None
            work += rest[::-1]
            if not rest:
                done.append(piece)
        return done

    def _part(self, piece: _Piece, place: int) -> Part:
        number, _, part = piece.boxes[place]
        return self.boxes[number].parts[part]

    def _entries(self, piece: _Piece) -> list[tuple[int, int]]:
        """Return the entries of all other boxes, those with most below them first."""
        found = [
            (-entry.below, place, number)
            for place in range(1, len(piece.boxes))
            for number, entry in enumerate(self._part(piece, place).entries)
        ]
        return [(place, number) for _, place, number in sorted(found)]

    def _served(self, piece: _Piece, entries: Sequence[tuple[int, int]]) -> list[_Piece] | None:
        """Give entries the nearest senders; return both halves of a piece that had to be cut, else nothing.

        None if no rank of the box can send.
        """
        left = self.left[piece.home]
        for key in entries:
            if key in piece.sent:
                continue
            able = [rank for rank, room in enumerate(left) if room > 0 and piece.depth[rank] >= 0]
            if not able:
                return None
            sender = min(able, key=lambda rank: (piece.depth[rank], left[rank] < piece.weight, -left[rank], rank))
            taken = min(left[sender], piece.weight)
            left[sender] -= taken
            halves = [] if taken == piece.weight else [
                attrs.evolve(piece, weight=weight, sent=dict(piece.sent), depth=piece.depth.copy())
                for weight in (taken, piece.weight - taken)
            ]  # fmt: skip
            for one in halves[:1] or [piece]:
                one.sent[key] = sender
                if key[0] == 0:
                    part = self._part(piece, 0)
                    fed = np.array(part.fed) == key[1]
                    one.depth[fed] = np.array(part.depth)[fed] + one.depth[sender] + 1
            if halves:
                return halves
        return []

    # ---- columns

    def _columns(self, pieces: Sequence[_Piece]) -> Routed:
        for tree, piece in enumerate(pieces):
            edges = self._part(piece, 0).edges
            under = np.array(self._part(piece, 0).fed)[edges[1]] >= 0
            self._inside(tree, piece.home, np.array([0]), edges[:, ~under], 0)
            self._inside(tree, piece.home, np.array([0]), edges[:, under], 2)
            for key, sender in sorted(piece.sent.items()):
                self._cross(tree, piece, key, sender)
            for number, part, images in self._alike(piece):
                self._inside(tree, number, images, self.boxes[number].parts[part].edges, 4)
        column, phase, parent, child, route = (np.concatenate(parts) for parts in zip(*self.rows, strict=True))
        order = lexsort((phase, column))
        used, place = np.unique(route[order], return_inverse=True)
        lists = list(self.number)
        return Routed(
            np.array([int(self.boxes[piece.home].ranks[piece.root]) for piece in pieces]),
            np.array([piece.weight for piece in pieces]), column[order], parent[order], child[order], place.reshape(-1),
            Routes.of([lists[one] for one in used.tolist()]),
        )  # fmt: skip

    def _alike(self, piece: _Piece) -> Iterator[tuple[int, int, Array]]:
        """Yield the parts of a tree in other boxes: the box, the part, and the images of the box with that part."""
        names = np.array([(number, part) for number, _, part in piece.boxes[1:]]).reshape(-1, 2)
        images = np.array([image for _, image, _ in piece.boxes[1:]])
        for number in np.unique(names[:, 0]).tolist():
            own = np.flatnonzero(names[:, 0] == number)
            for part, rows in by_value(names[own, 1]):
                yield number, part, images[own[rows]]

    def _nodes(self, number: int, images: Array, places: Array) -> Array:
        """Return the ranks at some places of the images of a box, image by image."""
        ranks = self.boxes[number].ranks[places]
        if number:
            return np.broadcast_to(ranks, (len(images), len(ranks))).ravel()
        found: Array = self.rotation.nodes(images[:, None], ranks[None, :]).ravel()
        return found

    def _routes(self, number: int, image: int) -> Array:
        """Return the numbers of the routes of the image of a box."""
        if (number, image) not in self.numbers:
            routes = self.boxes[number].routes
            moved = routes if number else [self.rotation.links(image, np.array(one)).tolist() for one in routes]
            found = [self.number.setdefault(tuple(one), len(self.number)) for one in moved]
            self.numbers[number, image] = np.array(found, dtype=np.int64)
        return self.numbers[number, image]

    def _inside(self, tree: int, number: int, images: Array, edges: Array, phase: int) -> None:
        if not edges.size or not len(images):
            return
        parent, child, route = edges
        routes = np.concatenate([self._routes(number, image)[route] for image in images.tolist()])
        self.rows.append((
            np.full(len(routes), tree), np.full(len(routes), phase), self._nodes(number, images, parent),
            self._nodes(number, images, child), routes,
        ))  # fmt: skip

    def _cross(self, tree: int, piece: _Piece, key: tuple[int, int], sender: int) -> None:
        number, image, part = piece.boxes[key[0]]
        box, image = self.boxes[number], max(image, 0)
        entry = box.parts[part].entries[key[1]]
        down = box.routes[entry.route]
        down = down if number else tuple(self.rotation.links(image, np.array(down)).tolist())
        route = self.number.setdefault((self.up[piece.home][sender], *down), len(self.number))
        tail = int(self.boxes[piece.home].ranks[sender])
        head = int(self._nodes(number, np.array([image]), np.array([entry.rank]))[0])
        columns = (tree, 1 if key[0] == 0 else 3, tail, head, route)
        self.rows.append(tuple(np.array([one]) for one in columns))
