"""Trees on a cluster of two tiers: from pod to pod over the spines, and in every pod as on a cluster of boxes.

A tree enters every pod but its root's once, at one rank. From there it spans the pod over its leaves, as if it were
rooted at this rank. So what is to be divided at the upper tier is how many trees enter at each rank and how many each
rank sends to other pods, within what links to the leaves and to the spines hold. What is left of the links to the
leaves is a cluster of boxes with known roots, pod by pod (:mod:`.box_leaf`). Trees then cross the links to a box and to
a pod as seldom as they can, and every pod is small: a fault changes one of them, equal ones are built once.

Sometimes the boxes of a pod cannot send all trees on to each other. If the links to the spines hold more, the pod is
cut into smaller ones on the same leaf, down to single boxes. This is also why leaves and spines are not taken for one
fabric at once: a tree then crosses a spine for every box of other pods, far more often than oversubscribed links allow.
If those are full too, some trees enter the pod several times (:mod:`.tier_feeding`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.ragged import inverse, owners, starts
from collc.ir.schedule import Routes
from collc.ir.topology import Topology

from .box_leaf import cluster_trees
from .box_sending import Group
from .boxes import Box, Cluster
from .routes import Routed
from .tier_feeding import fed, fed_pods, kept_room, weak_boxes, widened_room
from .tier_senders import depths, early_senders, farthest_first
from .tier_sending import PodSending
from .tier_shares import Share, shares, short_pods
from .tiers import Pod, Tiers, divided, tiers

__all__ = ["FEW", "edges_high", "fits", "low_tiers", "lower", "tier_trees"]

#: ranks of networks on which trees are packed by flows too, and the lower ones taken: there are lower ones at times
FEW = 48

#: units [first, end) of the axis of all trees, and a rank
Piece = tuple[int, int, int]

_MOST_CUTS = 4  # trees may be this many times as many as roots, and a few more


def tier_trees(
    topology: Topology, network: Tiers, room: Sequence[int], trees: Sequence[int], reverse: Sequence[int] | None = None
) -> Routed | None:
    """Return out-trees, ``trees[v]`` rooted at rank v, with at most ``room[link]`` of them on a link.

    With ``reverse``, the partner of every link in the opposite direction, both share their room: the reversed trees use
    the partners. Returns None if such low trees do not fit.
    """
    weak = weak_boxes(network, room, sum(trees), reverse is not None)
    kept = kept_room(network, weak, room, trees, reverse is not None) if weak else room
    for found in _divisions(topology, network, kept, trees, reverse is not None):
        routed = _built(topology, found, kept, trees, reverse)
        if routed is not None and weak:
            routed = fed(routed, network, weak, room, reverse)
        if routed is not None and fits(routed, room, reverse):
            return routed
    short = short_pods(network, room, trees, reverse is not None)
    if not short:
        return None
    wide = widened_room(network, short, room, trees, reverse is not None)
    routed = _built(topology, network, wide, trees, reverse)
    routed = None if routed is None else fed_pods(routed, network, sorted(short), room, reverse)
    return routed if routed is not None and fits(routed, room, reverse) else None


def _built(
    topology: Topology, network: Tiers, room: Sequence[int], trees: Sequence[int], reverse: Sequence[int] | None
) -> Routed | None:
    plan = _Plan(topology, network, room, trees, reverse)
    return plan.routed() if plan.send() and plan.span() else None


def fits(found: Routed, room: Sequence[int], reverse: Sequence[int] | None) -> bool:
    """Return whether no link has more than its room of trees."""
    uses = np.bincount(found.route, found.weight[found.tree], len(found.routes)).astype(np.int64)
    load = np.zeros(len(room), dtype=np.int64)
    np.add.at(load, found.routes.links, np.repeat(uses, found.routes.lengths))
    if reverse is not None:
        load = load + load[np.array(reverse)]
    return bool((load <= np.array(room)).all())


def _divisions(
    topology: Topology, network: Tiers, room: Sequence[int], trees: Sequence[int], shared: bool
) -> Iterator[Tiers]:
    """Yield the network, then with pods cut into smaller ones: those that are short, and all."""
    yield network
    most = max(len(pod.inside.boxes) for pod in network.pods)
    short = short_pods(network, room, trees, shared)
    for numbers in dict.fromkeys((short, frozenset(range(len(network.pods))))):
        parts = 1
        while numbers and parts < most:
            parts = min(2 * parts, most)
            yield divided(topology, network, numbers, parts)


def low_tiers(
    topology: Topology, room: Sequence[int], trees: Sequence[int], reverse: Sequence[int] | None = None
) -> Routed | None:
    """Return the result of :func:`tier_trees` for a network that may have two tiers; None if it has not."""
    found = tiers(topology)
    return None if found is None else tier_trees(topology, found, room, trees, reverse)


def edges_high(trees: Routed) -> int:
    """Return the most edges from a root to a rank; every tree spans all ranks, and its rows have parents first."""
    count = len(trees.root)
    return int(depths(trees, len(trees.parent) // count + 1).max(initial=0)) if count else 0


def lower(first: Routed, second: Routed) -> Routed:
    """Return the trees of less height, of these the fewer; else the first."""
    return min((first, second), key=lambda trees: (edges_high(trees), len(trees.root)))


class _Plan:
    """All trees as one axis of units, and along it what happens in every pod.

    The axis has the roots of the first ranks of all pods, of the second ranks, and so on.
    """

    def __init__(
        self, topology: Topology, tiers: Tiers, room: Sequence[int], trees: Sequence[int],
        reverse: Sequence[int] | None,
    ) -> None:  # fmt: skip
        self.topology, self.tiers, self.pods = topology, tiers, tiers.pods
        self.room, self.trees, self.reverse = list(room), list(trees), reverse
        self.total = sum(trees)
        self.start = dict[int, int]()
        self.places = [0]
        for place in range(max(len(pod.ranks) for pod in tiers.pods)):
            end = self.places[-1]
            for pod in tiers.pods:
                if place < len(pod.ranks):
                    self.start[pod.ranks[place]] = end
                    end += trees[pod.ranks[place]]
            self.places.append(end)
        self.home = {rank: number for number, pod in enumerate(tiers.pods) for rank in pod.ranks}

    # ---- the upper tier

    def send(self) -> bool:
        """Choose which rank sends every tree to every other pod, and at which rank it enters."""
        found = shares(self.tiers, self.room, self.trees, self.reverse is not None)
        if found is None:
            return False
        self.shares: list[Share] = found
        quota = [0] * len(self.room)
        for share, pod in zip(found, self.pods, strict=True):
            for v, most in zip(pod.ranks, share.leaving, strict=True):
                if most:
                    quota[self.tiers.up[v]] = most
        groups: dict[int, list[Group]] | None = {v: [(0, n, [-1])] for v, n in enumerate(self.trees) if n}
        if len(self.pods) > 1:
            boxes = Cluster(tuple(Box(pod.ranks, {}) for pod in self.pods), self.tiers.up, self.tiers.down)
            groups = PodSending(boxes, quota, self.trees, False).groups()
        if groups is None:
            return False
        self.senders: list[list[Piece]] = [[] for _ in self.pods]
        self.leaving = [0] * len(self.trees)
        for low, high, sender in (
            (self.start[root] + a, self.start[root] + b, sender)
            for root, found_groups in groups.items() for a, b, sender in found_groups
        ):  # fmt: skip
            for number, rank in enumerate(sender):
                self.senders[number].append((low, high, rank))
                if rank >= 0:
                    self.leaving[rank] += high - low
        sent: list[list[Piece]] = [[] for _ in self.pods]
        for pieces in self.senders:
            pieces.sort()
            for piece in pieces:
                if piece[2] >= 0:
                    sent[self.home[piece[2]]].append(piece)
        if not self._crosses():
            return False
        self.entries = [self._entries(number, sorted(pieces)) for number, pieces in enumerate(sent)]
        return True

    def _crosses(self) -> bool:
        """Return whether the links between leaves and spines hold all trees, those of a leaf together."""
        leaf, load = self.tiers.leaf, dict[tuple[int, bool], int]()
        for pod, pieces in zip(self.pods, self.senders, strict=True):
            below = {leaf[v] for v in pod.ranks if leaf[v] >= 0}
            if len(below) > 1:
                continue
            own = below.pop()
            for low, high, rank in pieces:
                if rank >= 0 and leaf[rank] != own:
                    for key in ((leaf[rank], True), (own, False)):
                        load[key] = load.get(key, 0) + high - low
        for (one, rising), amount in load.items():
            links = self.tiers.rise if rising else self.tiers.fall
            both = 0 if self.reverse is None else load.get((one, not rising), 0)
            if amount + both > sum(self.room[link] for link in links[one].values()):
                return False
        return True

    def _entries(self, number: int, sent: Sequence[Piece]) -> list[Piece]:
        """Return where the axis enters a pod: its own trees at their roots, trees that a rank sends on at this rank,
        those of roots at the same place of other pods, and what does not fit at ranks with room."""
        pod, left = self.pods[number], dict(zip(self.pods[number].ranks, self.shares[number].entering, strict=True))
        found: list[Piece] = [(self.start[v], self.start[v] + self.trees[v], v) for v in pod.ranks if self.trees[v]]
        own, end = _Axis(sorted(found)), 0
        for low, high, rank in sent:
            if low >= end and high - low <= left[rank] and not own.touches(low, high):
                found.append((low, high, rank))
                left[rank] -= high - low
                end = high
        rest = list[tuple[int, int]]()
        taken = _Axis(sorted(found))
        for place, (low, high) in enumerate(pairwise(self.places)):
            for a, b in taken.without(low, high):
                part = min(left[pod.ranks[place]], b - a) if place < len(pod.ranks) else 0
                if part:
                    found.append((a, a + part, pod.ranks[place]))
                    left[pod.ranks[place]] -= part
                if a + part < b:
                    rest.append((a + part, b))
        queue = [(v, amount) for v, amount in left.items() if amount][::-1]
        for low, high in rest:
            while low < high:
                v, amount = queue.pop()
                part = min(amount, high - low)
                found.append((low, low + part, v))
                low += part
                if part < amount:
                    queue.append((v, amount - part))
        return sorted(found)

    # ---- the lower tier

    def span(self) -> bool:
        """Build the trees of every pod; equal pods with equal roots have equal trees."""
        known = dict[bytes, Routed | None]()
        self.inner, self.routes = list[Routed | None](), list[list[tuple[int, ...]]]()
        self.between = list(self.room)
        self.modes = list[list[Piece]]()
        for number, pod in enumerate(self.pods):
            rooted = dict.fromkeys(pod.ranks, 0)
            for low, high, v in self.entries[number]:
                rooted[v] += high - low
            roots = [rooted[v] for v in pod.ranks]
            inner = None
            if len(roots) > 1:
                room = self._left(pod, [amount - self.trees[v] for v, amount in zip(pod.ranks, roots, strict=True)])
                key = repr((roots, room, pod.network.src.tolist(), pod.network.dst.tolist())).encode()
                if key not in known:
                    known[key] = self._inner(pod, room, roots)
                inner = known[key]
                if inner is None:
                    return False
            self.inner.append(inner)
            self.routes.append([] if inner is None else self._routes(pod, inner))
            self.modes.append(self._modes(number, inner))
        self._exchange()
        return all(all(routes) for routes in self.routes)

    def _left(self, pod: Pod, entering: Sequence[int]) -> list[int]:
        """Return what the links of a pod hold besides trees that enter it and leave it."""
        room = [self.room[link] for link in pod.links]
        alone = len(pod.inside.boxes) == 1
        for v, amount, up, down in zip(pod.ranks, entering, pod.inside.up, pod.inside.down, strict=True):
            for link, used in ((up, self.leaving[v]), (down, amount)):
                if link >= 0:
                    room[link] -= used if self.reverse is None else amount + self.leaving[v]
                    room[link] = self.total if alone else room[link]  # no tree of a single box uses it
        return room

    def _inner(self, pod: Pod, room: Sequence[int], roots: Sequence[int]) -> Routed | None:
        partner = None if self.reverse is None else pod.network.reverse_links
        if min(room) < 0 or (partner is None) != (self.reverse is None):
            return None
        back = None if partner is None else partner.tolist()
        return cluster_trees(pod.network, pod.inside, room, roots, back)

    def _routes(self, pod: Pod, inner: Routed) -> list[tuple[int, ...]]:
        """Return the routes of a pod's trees in the whole network: from leaf to leaf over a spine."""
        uses = np.bincount(inner.route, inner.weight[inner.tree], len(inner.routes)).astype(np.int64).tolist()
        leaf, found = self.tiers.leaf, list[tuple[int, ...]]()
        for route, amount in enumerate(uses):
            links = tuple(pod.links[link] for link in inner.routes.links_of(route))
            ends = int(self.topology.src[links[0]]), int(self.topology.dst[links[-1]])
            if int(self.topology.dst[links[0]]) != leaf[ends[0]] or leaf[ends[0]] == leaf[ends[1]]:
                found.append(links)
                continue
            rise, fall = self.tiers.rise[leaf[ends[0]]], self.tiers.fall[leaf[ends[1]]]
            joined = [(rise[spine], fall[spine]) for spine in rise if spine in fall]
            if not joined:
                found.append(())
                continue
            pair = max(joined, key=lambda pair: (min(self.between[pair[0]], self.between[pair[1]]), -pair[0]))
            for link in pair:
                self.between[link] -= amount
                if self.reverse is not None:
                    self.between[self.reverse[link]] -= amount
            found.append((links[0], *pair, links[1]))
        return found

    def _modes(self, number: int, inner: Routed | None) -> list[Piece]:
        """Return which tree of a pod every unit of the axis has."""
        if inner is None:
            return [(0, self.total, 0)]
        place = {v: i for i, v in enumerate(self.pods[number].ranks)}
        queues: list[list[tuple[int, int]]] = [[] for _ in place]
        for tree in range(len(inner.root) - 1, -1, -1):
            queues[int(inner.root[tree])].append((tree, int(inner.weight[tree])))
        found = list[Piece]()
        for low, high, v in self.entries[number]:
            queue = queues[place[v]]
            while low < high:
                tree, weight = queue.pop()
                part = min(weight, high - low)
                found.append((low, low + part, tree))
                low += part
                if part < weight:
                    queue.append((tree, weight - part))
        return found

    def _exchange(self) -> None:
        """Let ranks that trees reach early send them to other pods."""
        sent: list[list[tuple[int, Piece]]] = [[] for _ in self.pods]
        pieces = [(target, piece) for target, row in enumerate(self.senders) for piece in row if piece[2] >= 0]
        home = [self.home[v] for v in range(len(self.trees))]
        for target, piece in farthest_first(pieces, home):
            sent[home[piece[2]]].append((target, piece))
        known = dict[int, Array]()
        fresh = [[piece for piece in pieces if piece[2] < 0] for pieces in self.senders]
        for number, (pod, inner) in enumerate(zip(self.pods, self.inner, strict=True)):
            if inner is not None:
                depth = known.setdefault(id(inner), depths(inner, len(pod.ranks)))
                sent[number] = early_senders(sent[number], self.modes[number], depth, pod.ranks)
            for target, piece in sent[number]:
                fresh[target].append(piece)
        self.senders = [sorted(pieces) for pieces in fresh]

    # ---- columns

    def routed(self) -> Routed | None:
        """Return the trees; None if there are too many, or if links to the spines hold too few."""
        cuts = {0, self.total, *(self.start[v] for v, amount in enumerate(self.trees) if amount)}
        for lists in (self.senders, self.entries, self.modes):
            cuts.update(low for pieces in lists for low, _, _ in pieces)
        crossing = _Crossing(self, np.array(sorted(cuts), dtype=np.int64))
        if len(crossing.low) > _MOST_CUTS * sum(amount > 0 for amount in self.trees) + 64 or not crossing.choose():
            return None
        return _columns(self, crossing)


@attrs.frozen
class _Axis:
    """Intervals that do not overlap, in order."""

    pieces: Sequence[Piece]

    def without(self, low: int, high: int) -> list[tuple[int, int]]:
        """Return what is left of an interval without these."""
        found = list[tuple[int, int]]()
        for a, b, _ in self.pieces:
            if a < high and b > low:
                if low < a:
                    found.append((low, a))
                low = b
        return [*found, (low, high)] if low < high else found

    def touches(self, low: int, high: int) -> bool:
        return any(a < high and b > low for a, b, _ in self.pieces)


def _at(pieces: Sequence[Piece], low: Array) -> Array:
    """Return the value of the piece that holds each unit; pieces are sorted and cover the axis."""
    first = np.array([a for a, _, _ in pieces], dtype=np.int64)
    value = np.array([value for _, _, value in pieces], dtype=np.int64)
    return value[np.searchsorted(first, low, side="right") - 1]


class _Crossing:
    """For tree t and pod c, at [t, c]: the rank that sends it (-1 in the root's pod), its entry, and the spine."""

    def __init__(self, plan: _Plan, cuts: Array) -> None:
        self.plan = plan
        self._cut(cuts)

    def _cut(self, cuts: Array) -> None:
        plan, low = self.plan, cuts[:-1]
        ranks = np.array(sorted(v for v, amount in enumerate(plan.trees) if amount), dtype=np.int64)
        first = np.array([plan.start[v] for v in ranks.tolist()], dtype=np.int64)
        along = np.argsort(first)
        root = ranks[along][np.searchsorted(first[along], low, side="right") - 1]
        order = np.argsort(root, kind="stable")
        self.low, self.root, self.weight = low[order], root[order], np.diff(cuts)[order]
        tables = (plan.senders, plan.entries, plan.modes)
        self.sender, self.entry, self.mode = (
            np.stack([_at(pieces, self.low) for pieces in lists], axis=1) for lists in tables
        )

    def choose(self) -> bool:
        """Choose the spines; trees are divided where none holds all. Return whether all trees fit."""
        spines = self._by_one()
        if spines is None:
            pieces = self._spread()
            if pieces is None:
                return False
            cuts = {low for row in pieces for low, _, _ in row} | set(self.low.tolist()) | {self.plan.total}
            self._cut(np.array(sorted(cuts), dtype=np.int64))
            spines = np.stack([_at(row, self.low) if row else np.full(len(self.low), -1) for row in pieces], axis=1)
        self.spine = spines
        return True

    def _by_one(self) -> Array | None:
        """Return the only spine, if there is one."""
        names = {spine for links in self.plan.tiers.rise.values() for spine in links}
        return np.full(self.sender.shape, names.pop()) if len(names) == 1 else None

    def _spread(self) -> list[list[Piece]] | None:
        """Return the spines of every pod's trees along the axis: each time the one that holds most."""
        tiers, room = self.plan.tiers, list(self.plan.between)
        back = self.plan.reverse
        found: list[list[Piece]] = [[] for _ in self.plan.pods]
        order = np.argsort(self.low, kind="stable").tolist()
        weight, low = self.weight.tolist(), self.low.tolist()
        senders, entries, leaf = self.sender.tolist(), self.entry.tolist(), tiers.leaf
        for tree in order:
            for pod, (sender, entry) in enumerate(zip(senders[tree], entries[tree], strict=True)):
                at, end = low[tree], low[tree] + weight[tree]
                if sender < 0 or leaf[sender] == leaf[entry]:
                    found[pod].append((at, end, -1))
                    continue
                rise, fall = tiers.rise[leaf[sender]], tiers.fall[leaf[entry]]
                while at < end:
                    most, spine = max(
                        ((min(room[link], room[fall[s]]), -s) for s, link in rise.items() if s in fall),
                        default=(0, 0),
                    )  # fmt: skip
                    part = min(most, end - at)
                    if part <= 0:
                        return None
                    for link in (rise[-spine], fall[-spine]):
                        room[link] -= part
                        if back is not None:
                            room[back[link]] -= part
                    found[pod].append((at, at + part, -spine))
                    at += part
        return found


def _columns(plan: _Plan, crossing: _Crossing) -> Routed:
    """Return the rows of all trees: the root's pod, then pod after pod the edge that enters it and its other edges."""
    routes = _RouteList()
    width = [len(pod.ranks) for pod in plan.pods]
    first = list(accumulate(width, initial=0))
    parents = np.empty((len(crossing.low), first[-1]), dtype=np.int64)
    children, route = np.empty_like(parents), np.empty_like(parents)
    for number, pod in enumerate(plan.pods):
        sender, entry = crossing.sender[:, number], crossing.entry[:, number]
        parents[:, first[number]], children[:, first[number]] = sender, entry
        route[:, first[number]] = routes.between(plan.tiers, sender, entry, crossing.spine[:, number])
        inner = plan.inner[number]
        if inner is not None:
            mode, ranks = crossing.mode[:, number], np.array(pod.ranks)
            own = routes.numbers(plan.routes[number])
            shape, columns = (len(inner.root), width[number] - 1), slice(first[number] + 1, first[number + 1])
            parents[:, columns] = ranks[inner.parent].reshape(shape)[mode]
            children[:, columns] = ranks[inner.child].reshape(shape)[mode]
            route[:, columns] = own[inner.route].reshape(shape)[mode]
    order = _order(plan, crossing, first)
    parent, child, number_of = (
        np.take_along_axis(table, order, axis=1).ravel() for table in (parents, children, route)
    )
    place, found = routes.used(number_of)
    tree = owners(np.full(len(crossing.low), order.shape[1]))
    return Routed(crossing.root, crossing.weight, tree, parent, child, place, found)


def _order(plan: _Plan, crossing: _Crossing, first: Sequence[int]) -> Array:
    """Return for every tree the columns of its rows, parents first: its root's pod without the entry, then pods in
    order of the hops between pods."""
    home = np.array([plan.home[v] for v in range(len(plan.trees))], dtype=np.int64)
    own = home[crossing.root]
    above = np.where(crossing.sender < 0, own[:, None], home[crossing.sender])
    columns = [np.arange(a, b) for a, b in pairwise(first)]
    order = np.empty((len(crossing.low), first[-1] - 1), dtype=np.int64)
    for number in np.unique(own).tolist():
        rest = [place for other, place in enumerate(columns) if other != number]
        order[own == number] = np.concatenate([columns[number][1:], *rest])
    for tree in np.flatnonzero((above != own[:, None]).any(axis=1)).tolist():
        pods = np.argsort(_hops(above[tree].tolist(), int(own[tree])), kind="stable").tolist()
        order[tree] = np.concatenate([columns[pods[0]][1:], *(columns[number] for number in pods[1:])])
    return order


def _hops(above: Sequence[int], home: int) -> list[int]:
    """Return the hops to every pod from that of the root; ``above`` has the pod before it."""
    hops = [-1] * len(above)
    hops[home] = 0
    while -1 in hops:
        hops = [hops[one] + 1 if h < 0 and hops[one] >= 0 else h for h, one in zip(hops, above, strict=True)]
    return hops


class _RouteList:
    """Routes of links, numbered as they come."""

    def __init__(self) -> None:
        self.number = dict[tuple[int, ...], int]()

    def numbers(self, routes: Sequence[tuple[int, ...]]) -> Array:
        """Return the numbers of some routes."""
        return np.array([self.number.setdefault(one, len(self.number)) for one in routes], dtype=np.int64)

    def between(self, tiers: Tiers, sender: Array, entry: Array, spine: Array) -> Array:
        """Return the numbers of the routes from pod to pod, 0 where no rank sends."""
        rows = np.stack([sender, entry, spine], axis=1)
        kinds, which = np.unique(rows, axis=0, return_inverse=True)
        found = [self._over(tiers, *kind) if kind[0] >= 0 else 0 for kind in kinds.tolist()]
        return np.array(found, dtype=np.int64)[which.ravel()]

    def _over(self, tiers: Tiers, sender: int, entry: int, spine: int) -> int:
        ends, leaf = (tiers.up[sender], tiers.down[entry]), (tiers.leaf[sender], tiers.leaf[entry])
        links = (
            ends if leaf[0] == leaf[1] else (ends[0], tiers.rise[leaf[0]][spine], tiers.fall[leaf[1]][spine], ends[1])
        )
        return self.number.setdefault(links, len(self.number))

    def used(self, numbers: Array) -> tuple[Array, Routes]:
        """Return the rows' routes numbered in order of first use, and those that are used."""
        first = np.full(len(self.number), len(numbers), dtype=np.int64)
        first[numbers[::-1]] = np.arange(len(numbers) - 1, -1, -1)
        order = np.argsort(first, kind="stable")
        listed = list(self.number)
        chosen = [listed[i] for i in order[: int((first < len(numbers)).sum())].tolist()]
        return inverse(order)[numbers], Routes(starts([len(links) for links in chosen]), [a for b in chosen for a in b])
