"""Trees on a cluster of boxes: low ones, few different ones, without a search over all ranks.

A tree spans its root's box, enters every other box once, at a rank that the fabric leads to, and spans that box from
there. So a box sees only how many trees enter at which of its ranks, and how many its ranks send to other boxes. Both
are divided among the ranks within the capacities of their links; in a box, the rank that a tree reaches first sends to
all others, or to one of them that relays.

All trees form one axis of units: the roots of the first ranks of all boxes, of the second ranks, and so on. Every box
cuts the axis where the entry changes. Equal boxes cut it at the same places, so there are few more trees than roots.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Protocol

import numpy as np

from collc.ir.arrays import Array
from collc.ir.ragged import inverse, owners, starts
from collc.ir.schedule import Routes
from collc.ir.topology import Topology

from .box_sending import Group, Sending
from .boxes import Box, Cluster
from .routes import Routed

__all__ = ["BoxColumns", "Interval", "Mode", "box_trees", "divided"]

Interval = tuple[int, int]
#: the rank of a box that a tree reaches first, the rank that sends to the others, and for each rank that the tree
#: reaches from another box instead: the rank, and the one that sends there
Mode = tuple[int, ...]

_MOST_CUTS = 4  # trees may be this many times as many as roots, and a few more


def box_trees(
    topology: Topology, boxes: Cluster, room: Sequence[int], trees: Sequence[int], reverse: Sequence[int] | None = None
) -> Routed | None:
    """Return out-trees, ``trees[v]`` rooted at rank v, with at most ``room[link]`` of them on a link.

    With ``reverse``, the partner of every link in the opposite direction, both share their room: the reversed trees use
    the partners. Returns None if such low trees do not fit.
    """
    plan = _Plan(boxes, list(room), list(trees), None if reverse is None else list(reverse))
    if not plan.send() or not all(plan.enter(number) for number in range(len(boxes.boxes))):
        return None
    cuts = plan.cuts()
    roots = sum(amount > 0 for amount in trees)
    return None if len(cuts) > _MOST_CUTS * roots + 64 else BoxColumns(plan, cuts).routed(topology.num_links)


class _Plan:
    """What every box does with every unit of the axis: ``modes[c]`` are (start, mode) along it.

    ``senders[r]`` are groups of the units of root r: (first, end, the sender to every box).
    """

    def __init__(self, boxes: Cluster, room: list[int], trees: list[int], reverse: list[int] | None) -> None:
        self.boxes, self.room, self.trees, self.reverse = boxes, room, trees, reverse
        self.load = [0] * len(room)
        self.total = sum(trees)
        self.others = len(boxes.boxes) - 1
        self.start = dict[int, int]()
        self.rails = [0]
        for place in range(max(len(box.ranks) for box in boxes.boxes)):
            end = self.rails[-1]
            for box in boxes.boxes:
                if place < len(box.ranks):
                    self.start[box.ranks[place]] = end
                    end += trees[box.ranks[place]]
            self.rails.append(end)
        self.modes: list[list[tuple[int, Mode]]] = []
        self.preferred: list[list[tuple[int, int, int]]] = [[] for _ in boxes.boxes]
        self.senders = dict[int, list[Group]]()

    def free(self, link: int) -> int:
        """Return how many more trees a link holds."""
        if link < 0:
            return 0
        used = self.load[link] if self.reverse is None else self.load[link] + self.load[self.reverse[link]]
        return self.room[link] - used

    def send(self) -> bool:
        """Choose who sends the trees of every root to the other boxes."""
        found = Sending(self.boxes, self.room, self.trees, self.reverse is not None).groups()
        if found is None:
            return False
        self.senders = found
        self._prefer()
        for low, high, sender in (group for groups in found.values() for group in groups):
            for rank in sender:
                if rank >= 0:
                    self.load[self.boxes.up[rank]] += high - low
        return True

    def _prefer(self) -> None:
        """Let trees that a box sends on for another enter it at the rank that sends them."""
        home = {
            rank: (number, place) for number, box in enumerate(self.boxes.boxes) for place, rank in enumerate(box.ranks)
        }
        for root, groups in self.senders.items():
            for low, high, sender in groups:
                for rank in dict.fromkeys(sender):
                    if rank >= 0 and home[rank][0] != home[root][0]:
                        number, place = home[rank]
                        self.preferred[number].append((self.start[root] + low, self.start[root] + high, place))

    # ---- what enters a box

    def enter(self, number: int) -> bool:
        """Choose where every tree enters a box, and how it spans the box from there."""
        box, own = self.boxes.boxes[number], [self.trees[v] for v in self.boxes.boxes[number].ranks]
        inside = _Inside(self, box)
        given = self._entries(box, own, inside)
        if given is None:
            return False
        relays = inside.relays([x + e for x, e in zip(own, given, strict=True)])
        if relays is None:
            return False
        for v, amount in zip(box.ranks, given, strict=True):
            if amount:
                self.load[self.boxes.down[v]] += amount
        units = self._units(box, own, given, self.preferred[number])
        found = list[tuple[int, Mode]]()
        for v, pieces, through in zip(box.ranks, units, relays, strict=True):
            for u, part in zip((v, *(u for u, _ in through)), divided(pieces, [m for _, m in through]), strict=True):
                found += [(low, (v, u)) for low, _ in part]
                inside.charge(v, u, sum(high - low for low, high in part))
        self.modes.append(sorted(found))
        return all(self.free(link) >= 0 for route in box.inside.values() for link in route)

    def _entries(self, box: Box, own: list[int], inside: _Inside) -> list[int] | None:
        """Return how many trees enter at each rank: those of the roots at its place in other boxes, if they fit."""
        needed = self.total - sum(own)
        room = [self.free(link) for link in (self.boxes.down[v] for v in box.ranks)]
        rails = [high - low - x for (low, high), x in zip(pairwise(self.rails), own, strict=False)]
        for most in (inside.direct, inside.most):
            high = [min(r, m - x) for r, m, x in zip(room, most, own, strict=True)]
            low = [max(0, least - x) for least, x in zip(inside.least, own, strict=True)]
            if sum(high) >= needed >= sum(low) and all(a <= b for a, b in zip(low, high, strict=True)):
                return _filled([max(a, min(b, r)) for a, b, r in zip(low, high, rails, strict=True)], low, high, needed)
        return None

    def _units(
        self, box: Box, own: list[int], given: list[int], preferred: list[tuple[int, int, int]]
    ) -> list[list[Interval]]:
        """Return the units of the axis that every rank is the first to reach: its own, those that it sends on, and
        those of the roots at its place in other boxes; what does not fit goes to ranks with room."""
        first = [self.start[v] for v in box.ranks]
        found = [[(a, a + x)] if x else [] for a, x in zip(first, own, strict=True)]
        taken = [interval for intervals in found for interval in intervals]
        room, rest = list(given), list[Interval]()
        end = 0
        for low, high, place in sorted(preferred):
            if high - low <= room[place] and low >= end:
                found[place].append((low, high))
                taken.append((low, high))
                room[place] -= high - low
                end = high
        taken.sort()
        for place, (low, high) in enumerate(pairwise(self.rails)):
            for a, b in _without(low, high, taken):
                part = min(room[place], b - a) if place < len(box.ranks) else 0
                if part:
                    found[place].append((a, a + part))
                    room[place] -= part
                if a + part < b:
                    rest.append((a + part, b))
        queue = iter(rest)
        a, b = 0, 0
        for place, left in enumerate(room):
            while left:
                if a == b:
                    a, b = next(queue)
                part = min(left, b - a)
                found[place].append((a, a + part))
                a, left = a + part, left - part
        return found

    def cuts(self) -> list[int]:
        """Return where trees differ: the starts of the trees along the axis, and its end."""
        found = {0, self.total}
        found.update(low for modes in self.modes for low, _ in modes)
        found.update(first for root, first in self.start.items() if self.trees[root])
        found.update(self.start[root] + low for root, groups in self.senders.items() for low, _, _ in groups)
        return sorted(found)


class _Inside:
    """How many trees may reach each rank of a box first: ``least``, ``direct`` if it sends to all others, ``most``."""

    def __init__(self, plan: _Plan, box: Box) -> None:
        self.plan, self.ranks, self.inside = plan, box.ranks, box.inside
        total, size, room = plan.total, len(box.ranks), plan.room
        self.out = [self._shared(v, 0) for v in box.ranks]
        self.into = [self._shared(v, -1) for v in box.ranks]
        self.least, self.direct = [0] * size, [total] * size
        if size == 1:
            self.most = self.direct
            return
        for place, v in enumerate(box.ranks):
            out, into = self.out[place], self.into[place]
            if into >= 0 and (plan.reverse is None or room[into] < total):
                self.least[place] = total - room[into]
            if out < 0:
                self.direct[place] = min(room[link] for u in box.ranks if u != v for link in self.inside[v, u])
            elif plan.reverse is None:
                self.direct[place] = room[out] // (size - 1)
            elif size > 2:
                self.direct[place] = max(0, (room[out] - total) // (size - 2))
        self.most = [
            direct if out < 0 or size == 2 or plan.reverse is not None else room[out]
            for direct, out in zip(self.direct, self.out, strict=True)
        ]
        if plan.reverse is not None and size > 2:
            self.most = [direct if out < 0 else total for direct, out in zip(self.direct, self.out, strict=True)]

    def _shared(self, v: int, end: int) -> int:
        """Return the link with which all routes from a rank (``end`` 0) or to it (-1) begin or end, or -1."""
        pairs = [(v, u) if end == 0 else (u, v) for u in self.ranks if u != v]
        links = {self.inside[pair][end] for pair in pairs}
        return links.pop() if len(links) == 1 and len(pairs) > 1 else -1

    def relays(self, first: list[int]) -> list[list[tuple[int, int]]] | None:
        """Return for each rank (relay, trees) for the trees that it cannot send to all others itself."""
        size = len(self.ranks)
        over = [amount - direct for amount, direct in zip(first, self.direct, strict=True)]
        found: list[list[tuple[int, int]]] = [[] for _ in first]
        if max(over) <= 0:
            return found
        left = [self._spare(place, amount) for place, amount in enumerate(first)]
        spare = [max(0, amount // (size - 2)) for amount in left]
        for place, amount in enumerate(left):
            needed = -(amount // (size - 2))
            for helper, u in enumerate(self.ranks):
                part = min(needed, spare[helper]) if helper != place and self.out[helper] >= 0 else 0
                if part > 0:
                    found[place].append((u, part))
                    spare[helper] -= part
                    needed -= part
            if needed > 0:
                return None
        return found

    def _spare(self, place: int, first: int) -> int:
        """Return the room of a rank's link out if it sends its trees to all others; negative if they do not fit."""
        if self.out[place] < 0:
            return 0
        back = 0 if self.plan.reverse is None else self.plan.total - first
        return self.plan.room[self.out[place]] - (len(self.ranks) - 1) * first - back

    def charge(self, v: int, relay: int, amount: int) -> None:
        """Load the links of trees that reach rank v first and continue from a relay, or from v itself."""
        load = self.plan.load
        for u in self.ranks:
            if u != v:
                for link in self.inside[v if u == relay else relay, u]:
                    load[link] += amount


def _without(low: int, high: int, taken: Sequence[Interval]) -> list[Interval]:
    """Return what is left of an interval without others, which are sorted and do not overlap."""
    found = list[Interval]()
    for a, b in taken:
        if a < high and b > low:
            if low < a:
                found.append((low, a))
            low = b
    return [*found, (low, high)] if low < high else found


def _filled(given: list[int], low: list[int], high: list[int], needed: int) -> list[int]:
    """Return amounts of this sum between their limits, near to ``given``: the rest is divided evenly."""
    given = list(given)
    while (rest := needed - sum(given)) != 0:
        if rest > 0:
            spare = [i for i, (a, b) in enumerate(zip(given, high, strict=True)) if a < b]
            share = max(1, rest // len(spare))
            for i in spare[: rest // share]:
                given[i] += min(share, high[i] - given[i])
        else:
            spare = [i for i, (a, b) in enumerate(zip(given, low, strict=True)) if a > b]
            share = max(1, -rest // len(spare))
            for i in spare[: -rest // share]:
                given[i] -= min(share, given[i] - low[i])
    return given


def divided(pieces: list[Interval], last: Sequence[int]) -> list[list[Interval]]:
    """Divide intervals into the first part, and parts of these lengths at the end."""
    lengths = [sum(high - low for low, high in pieces) - sum(last), *last]
    found, queue = list[list[Interval]](), list(reversed(pieces))
    for length in lengths:
        part = list[Interval]()
        while length:
            low, high = queue.pop()
            amount = min(length, high - low)
            part.append((low, low + amount))
            length -= amount
            if low + amount < high:
                queue.append((low + amount, high))
        found.append(part)
    return found


# ---- columns


class Planned(Protocol):
    """What every box does with every unit of the axis, as :class:`BoxColumns` reads it; ``room`` is that of links."""

    boxes: Cluster
    room: list[int]
    trees: list[int]
    start: dict[int, int]
    senders: dict[int, list[Group]]
    modes: list[list[tuple[int, Mode]]]


class BoxColumns:
    """The trees of a plan as rows: those of the root's box first, then box after box the entry and the others."""

    def __init__(self, plan: Planned, cuts: list[int]) -> None:
        self.plan, self.boxes = plan, plan.boxes.boxes
        low = np.array(cuts[:-1], dtype=np.int64)
        roots = np.array(sorted(v for v, amount in enumerate(plan.trees) if amount), dtype=np.int64)
        first = np.array([plan.start[v] for v in roots.tolist()], dtype=np.int64)
        along = np.argsort(first)
        root = roots[along][np.searchsorted(first[along], low, side="right") - 1]
        order = np.argsort(root, kind="stable")
        self.low, self.root = low[order], root[order]
        self.weight = np.diff(np.array(cuts, dtype=np.int64))[order]
        self.sender = self._senders()

    def _senders(self) -> Array:
        """Return the rank that sends tree t to box c, at [t, c] (-1 for the root's own box)."""
        found = np.empty((len(self.low), len(self.boxes)), dtype=np.int64)
        for root, groups in self.plan.senders.items():
            rows = slice(*np.searchsorted(self.root, [root, root + 1]))
            offset = self.low[rows] - self.plan.start[root]
            start = np.array([low for low, _, _ in groups])
            sender = np.array([one for _, _, one in groups])
            found[rows] = sender[np.searchsorted(start, offset, side="right") - 1]
        return found

    def routed(self, num_links: int) -> Routed:
        """Return the columns, with routes numbered in order of first use."""
        up, down = (np.array(links, dtype=np.int64) for links in (self.plan.boxes.up, self.plan.boxes.down))
        tables = [self._box(number) for number in range(len(self.boxes))]
        columns = [np.arange(a, b) for a, b in pairwise(accumulate((len(box.ranks) for box in self.boxes), initial=0))]
        parents = np.empty((len(self.low), sum(len(box.ranks) for box in self.boxes)), dtype=np.int64)
        children, routes = np.empty_like(parents), np.empty_like(parents)
        for number, (place, table) in enumerate(zip(columns, tables, strict=True)):
            mode, rows = table
            sender, entry = self.sender[:, number], rows[0][mode, 0]
            parents[:, place[0]], children[:, place[0]] = sender, entry
            routes[:, place[0]] = up[sender] * (num_links + 1) + down[entry] + 1
            for target, column in zip((parents, children, routes), rows[1:], strict=True):
                target[:, place[1:]] = column[mode]
        order = self._order(columns)
        chosen = [np.take_along_axis(table, order, axis=1).ravel() for table in (parents, children, routes)]
        route, found = _numbered(chosen[2], num_links)
        tree = owners(np.full(len(self.low), order.shape[1]))
        return Routed(self.root, self.weight, tree, chosen[0], chosen[1], route, found)

    def _order(self, columns: list[Array]) -> Array:
        """Return for every tree the columns of its rows, parents first: its root's box without the entry, then boxes in
        order of the hops of the fabric to them."""
        home = np.empty(len(self.plan.trees), dtype=np.int64)
        for number, box in enumerate(self.boxes):
            home[list(box.ranks)] = number
        own = home[self.root]
        order = np.empty((len(self.low), sum(map(len, columns)) - 1), dtype=np.int64)
        above = np.where(self.sender < 0, own[:, None], home[self.sender])
        for number in np.unique(own).tolist():
            rows = np.flatnonzero(own == number)
            rest = [place for other, place in enumerate(columns) if other != number]
            order[rows] = np.concatenate([columns[number][1:], *rest])
        for tree in np.flatnonzero((above != own[:, None]).any(axis=1)).tolist():
            boxes = np.argsort(_hops(above[tree].tolist(), int(own[tree])), kind="stable").tolist()
            order[tree] = np.concatenate([columns[boxes[0]][1:], *(columns[number] for number in boxes[1:])])
        return order

    def _box(self, number: int) -> tuple[Array, tuple[Array, Array, Array, Array]]:
        """Return the mode of every tree in a box, and of every mode the first rank, and parents, children and routes
        of the others."""
        box, modes = self.boxes[number], self.plan.modes[number]
        kinds = {mode: i for i, mode in enumerate(dict.fromkeys(mode for _, mode in modes))}
        start = np.array([low for low, _ in modes], dtype=np.int64)
        kind = np.array([kinds[mode] for _, mode in modes], dtype=np.int64)
        base = len(self.plan.room) + 1
        rows = []
        for v, relay, *apart in kinds:
            order = [u for u in (relay, *(u for u in box.ranks if u != relay)) if u != v]
            above = [v if u == relay else relay for u in order]
            links = [(*box.inside[pair], -1)[:2] for pair in zip(above, order, strict=True)]
            for u, sender in zip(apart[::2], apart[1::2], strict=True):
                place = order.index(u)
                above[place] = sender
                links[place] = self.plan.boxes.up[sender], self.plan.boxes.down[u]
            rows.append((above, order, [a * base + b + 1 for a, b in links]))
        shape = (len(rows), len(box.ranks) - 1)
        tables = [np.array([row[i] for row in rows], dtype=np.int64).reshape(shape) for i in range(3)]
        first = np.array([[v] for v, *_ in kinds], dtype=np.int64)
        return kind[np.searchsorted(start, self.low, side="right") - 1], (first, tables[0], tables[1], tables[2])


def _hops(above: list[int], home: int) -> list[int]:
    """Return the hops to every box from that of the root; ``above`` has the box before it."""
    hops = [-1] * len(above)
    hops[home] = 0
    for box in range(len(above)):
        path = []
        while hops[box] < 0:
            path.append(box)
            box = above[box]
        for more, one in enumerate(reversed(path), 1):
            hops[one] = hops[box] + more
    return hops


def _numbered(keys: Array, num_links: int) -> tuple[Array, Routes]:
    """Return the number of every row's route, and the routes; a key holds one link or two."""
    used, first, which = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    pairs = used[order]
    links = np.stack([pairs // (num_links + 1), pairs % (num_links + 1) - 1], axis=1)
    there = links >= 0
    return inverse(order)[which.ravel()], Routes(starts(there.sum(axis=1).tolist()), links[there])
