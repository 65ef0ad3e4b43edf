"""Trees on a cluster on rails: low ones, few different ones, without a search over all ranks.

A tree leaves its root's box over rails, at most once to every other box, and spans each box from the rank where it
enters. A linear program says how many trees of a box go from which of its ranks to which rank of another box
(:mod:`.rail_program`). Here roots are divided accordingly: a rank sends its own trees first, and what it cannot send
leaves the box at others. So equal boxes divide their roots at equal places, and there are few more trees than roots.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from math import gcd, lcm

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.ragged import ranges, starts
from collc.ir.schedule import Routes
from collc.ir.topology import Topology

from .box_sending import Group
from .box_trees import BoxColumns, Interval, Mode, divided
from .capacities import link_capacities
from .rail_program import Quotas, quotas
from .rails import Path, Rails, rails
from .routes import Routed

__all__ = ["RailTrees", "rail_allreduce", "rail_trees"]

#: more shares of the vector would be too small
_MOST_SHARES = 1 << 28
#: what a rank sends: the end of a stretch of units, the sender's place, the place where they enter the next box
Stretch = tuple[int, int, int, int]


@attrs.frozen(eq=False)
class RailTrees:
    """Trees, ``parts`` of every root's data, or of the whole vector if roots differ (``whole``)."""

    parts: int
    whole: bool
    trees: Routed


def rail_trees(topology: Topology, held: Sequence[int], trees: Sequence[int]) -> RailTrees | None:
    """Return out-trees, ``trees[v]`` rooted at rank v, with at most ``held[link]`` of them on a link.

    The trees may be divided further: ``parts`` are then a multiple of 1. None if the network is no cluster on rails, or
    if such low trees do not fit.
    """
    found = rails(topology)
    if found is None or not any(trees):
        return None
    room = found.room(held)
    for weak in (False, True):
        shares = quotas(found, room, trees, sum(trees), None, weak)
        grown = None if shares is None else _Plan(found, shares, room).routed(topology, held, None)
        if grown is not None:
            return grown
    return None


def rail_allreduce(topology: Topology, value: Fraction) -> RailTrees | None:
    """Return the outward trees of an allreduce of this bandwidth; inward trees are the same ones backwards.

    None if the network is no cluster on rails, if links have no reverse, or if such low trees do not fit.
    """
    found, reverse = rails(topology), topology.reverse_links
    if found is None or reverse is None or not value:
        return None
    per_unit = Fraction(lcm(value.denominator, *(kind.bandwidth.denominator for kind in topology.classes)))
    per_unit /= gcd(int(value * per_unit), *(int(kind.bandwidth * per_unit) for kind in topology.classes))
    held, total = link_capacities(topology, per_unit), int(value * per_unit)
    room = found.room(held)
    for weak in (False, True):
        shares = quotas(found, room, None, total, reverse.tolist(), weak)
        grown = None if shares is None else _Plan(found, shares, room).routed(topology, held, reverse)
        if grown is not None:
            return grown
    return None


class _Plan:
    """What every box does with every unit of the axis of all trees, for :class:`.box_trees.BoxColumns`."""

    def __init__(self, found: Rails, shares: Quotas, room: list[int]) -> None:
        self.rails, self.boxes, self.shares, self.kinds = found, found.cluster, shares, shares.kinds
        self.kind_of = {box: number for number, kind in enumerate(self.kinds.kinds) for box in kind.boxes}
        self.delegating = sorted(box for kind in shares.delegating for box in self.kinds.kinds[kind].boxes)
        self.trees, self.room = [0] * len(found.rail), room
        for number, box in enumerate(self.boxes.boxes):
            for v, one in zip(box.ranks, self.kinds.kinds[self.kind_of[number]].classes, strict=True):
                self.trees[v] = shares.roots[one]
        self.total, self.start = sum(self.trees), dict[int, int]()
        end = 0
        for place in range(max(len(box.ranks) for box in self.boxes.boxes)):
            for box in self.boxes.boxes:
                if place < len(box.ranks):
                    self.start[box.ranks[place]] = end
                    end += self.trees[box.ranks[place]]
        self.known = dict[tuple[int, int, int], dict[int, list[Stretch]]]()
        self.senders = self._senders()
        self.modes = [self._modes(number) for number in range(len(self.boxes.boxes))]

    def cuts(self) -> list[int]:
        """Return where trees differ: the starts of the trees along the axis, and its end."""
        found = {0, self.total}
        found.update(low for modes in self.modes for low, _ in modes)
        found.update(first for root, first in self.start.items() if self.trees[root])
        found.update(self.start[root] + low for root, groups in self.senders.items() for low, _, _ in groups)
        return sorted(found)

    def routed(self, topology: Topology, held: Sequence[int], reverse: Array | None) -> RailTrees | None:
        """Return the trees; None if a link does not hold its trees, or if shares of the vector would be too small."""
        trees = BoxColumns(self, self.cuts()).routed(topology.num_links)
        trees = attrs.evolve(trees, routes=_physical(trees.routes, self.rails.paths, topology.num_links))
        lengths = trees.routes.lengths
        load = np.zeros(topology.num_links, dtype=np.int64)
        per_route = np.zeros(len(lengths), dtype=np.int64)
        np.add.at(per_route, trees.route, trees.weight[trees.tree])
        np.add.at(load, trees.routes.links, np.repeat(per_route, lengths))
        if reverse is not None:
            load = load + load[reverse]
        if (load > self.shares.finer * np.array(held)).any():
            return None
        equal = len(set(self.trees)) == 1
        common = gcd(*trees.weight.tolist(), *(() if reverse is not None else (self.shares.finer,)))
        trees = attrs.evolve(trees, weight=trees.weight // common)
        shares = int(trees.weight.sum())
        if shares > _MOST_SHARES:
            return None
        parts = self.shares.finer // common if reverse is None else shares // (len(self.trees) if equal else 1)
        return RailTrees(parts, not equal, trees)

    # ---- what a box sends

    def _stretches(self, box: int, target: int) -> dict[int, list[Stretch]]:
        """Return for every root whose trees a box sends to another the stretches of its units."""
        kind, other = self.kind_of[box], self.kind_of[target]
        number = self.kinds.kinds[kind].boxes[0]
        key = (number, other, target if target in self.delegating else -1)
        if key not in self.known:
            self.known[key] = _stretched(list(self._pool(number, target)), self._pairs(kind, other))
        found = self.known[key]
        if number == box:
            return found
        there = dict(zip(self.boxes.boxes[number].ranks, self.boxes.boxes[box].ranks, strict=True))
        return {there[root]: stretches for root, stretches in found.items()}

    def _pool(self, box: int, target: int) -> Iterator[tuple[int, int, int]]:
        """Yield the roots whose trees a box sends to another: the root, its trees, the place that they reach first."""
        for place, v in enumerate(self.boxes.boxes[box].ranks):
            if self.trees[v]:
                yield v, self.trees[v], place
        if box == self.shares.proxy:
            for other in self.delegating:
                if other != target:
                    for root, stretches in self._stretches(other, box).items():
                        yield root, self.trees[root], stretches[0][3]

    def _pairs(self, kind: int, other: int) -> list[tuple[int, int, int]]:
        """Return how much goes from a place of a box to one of another: as few pairs of places as possible."""
        one, two = self.kinds.kinds[kind], self.kinds.kinds[other]
        found = list[tuple[int, int, int]]()
        for rail in sorted(set(one.rails) & set(two.rails) - {-1}):
            out, into = (_by_class(part.classes, part.rails, rail) for part in (one, two))
            for c, first in out.items():
                for d, second in into.items():
                    amount = self.shares.send.get((c, d), 0)
                    if amount:
                        found += _dealt(first, len(second) * amount, second, len(first) * amount)
        return found

    def _senders(self) -> dict[int, list[Group]]:
        """Return for every root (low, high, the sender to every box)."""
        found = dict[int, list[Group]]()
        count = len(self.boxes.boxes)
        for box in range(count):
            roots = [v for v in self.boxes.boxes[box].ranks if self.trees[v]]
            rows: dict[int, list[tuple[int, int, list[Stretch]]]] = {root: [] for root in roots}
            for by, target in self._hops(box):
                stretches = self._stretches(by, target)
                for root in roots:
                    rows[root].append((by, target, stretches[root]))
            for root in roots:
                found[root] = self._groups(root, rows[root], count)
        return found

    def _hops(self, box: int) -> Iterator[tuple[int, int]]:
        """Yield for every other box the box that sends a box's trees to it."""
        delegates = box in self.delegating
        for target in range(len(self.boxes.boxes)):
            if target != box:
                yield (self.shares.proxy if delegates and target != self.shares.proxy else box), target

    def _groups(self, root: int, rows: list[tuple[int, int, list[Stretch]]], count: int) -> list[Group]:
        lows = sorted({low for _, _, stretches in rows for low, _, _, _ in stretches})
        groups = list[Group]()
        for low, high in zip(lows, [*lows[1:], self.trees[root]], strict=True):
            sender = [-1] * count
            for by, target, stretches in rows:
                place = next(u for start, end, u, _ in stretches if start <= low < end)
                sender[target] = self.boxes.boxes[by].ranks[place]
            groups.append((low, high, sender))
        return groups

    # ---- what a box gets

    def _modes(self, number: int) -> list[tuple[int, Mode]]:
        """Return the first rank of every unit in a box, the rank that sends it on inside, and pairs of another rank and
        what sends it there over a rail."""
        box = self.boxes.boxes[number]
        first: list[list[Interval]] = [[] for _ in box.ranks]
        for place, v in enumerate(box.ranks):
            if self.trees[v]:
                first[place].append((self.start[v], self.start[v] + self.trees[v]))
        for source in range(len(self.boxes.boxes)):
            if source != number and (source not in self.delegating or number == self.shares.proxy):
                for root, stretches in self._stretches(source, number).items():
                    for low, high, _, entry in stretches:
                        first[entry].append((self.start[root] + low, self.start[root] + high))
        found = list[tuple[int, Mode]]()
        classes = self.kinds.kinds[self.kind_of[number]].classes
        for v, one, pieces in zip(box.ranks, classes, first, strict=True):
            relays = [
                (u, amount) for u, other in zip(box.ranks, classes, strict=True)
                if u != v and (amount := self.shares.relay.get((one, other), 0))
            ]  # fmt: skip
            parts = divided(_joined(pieces), [amount for _, amount in relays])
            for u, part in zip((v, *(u for u, _ in relays)), parts, strict=True):
                found += [(low, (v, u)) for low, _ in part]
        found.sort()
        return self._with_apart(number, found)

    def _with_apart(self, number: int, modes: list[tuple[int, Mode]]) -> list[tuple[int, Mode]]:
        """Return the modes with the ranks that trees reach over a rail, and who sends them there."""
        apart = sorted(self._apart(number))
        if not apart:
            return modes
        lows = [low for low, _ in modes]
        cuts = sorted({*lows, *(low for low, _, _, _ in apart), *(high for _, high, _, _ in apart)} - {self.total})
        more: dict[int, list[int]] = {low: [] for low in cuts}
        for low, high, u, sender in apart:
            for at in range(bisect_left(cuts, low), bisect_left(cuts, high)):
                more[cuts[at]] += (u, sender)
        return [(low, (*modes[bisect_right(lows, low) - 1][1], *more[low])) for low in cuts]

    def _apart(self, number: int) -> Iterator[tuple[int, int, int, int]]:
        """Yield the units that a rank of a box gets over its rail though they enter at another: the first, the end, the
        rank, the sender."""
        box, kind = self.boxes.boxes[number], self.kinds.kinds[self.kind_of[number]]
        sent = {c for (c, _, e), amount in self.shares.apart.items() if amount and e in kind.classes}
        for source in range(len(self.boxes.boxes)) if sent else ():
            other = self.kinds.kinds[self.kind_of[source]]
            if source == number or not sent.intersection(other.classes):
                continue
            entering: dict[int, list[Interval]] = {}
            for root, stretches in self._stretches(source, number).items():
                for low, high, _, entry in stretches:
                    entering.setdefault(entry, []).append((self.start[root] + low, self.start[root] + high))
            for v, units in sorted(entering.items()):
                for u, (e, rail) in enumerate(zip(kind.classes, kind.rails, strict=True)):
                    senders = [
                        (place, self.shares.apart.get((c, kind.classes[v], e), 0))
                        for place, (c, r) in enumerate(zip(other.classes, other.rails, strict=True))
                        if u != v and r == rail >= 0
                    ]  # fmt: skip
                    for sender, low, high in _first(units, [one for one in senders if one[1]]):
                        yield low, high, box.ranks[u], self.boxes.boxes[source].ranks[sender]


def _by_class(classes: Sequence[int], rail_of: Sequence[int], rail: int) -> dict[int, list[int]]:
    found = dict[int, list[int]]()
    for place, (one, r) in enumerate(zip(classes, rail_of, strict=True)):
        if r == rail:
            found.setdefault(one, []).append(place)
    return found


def _dealt(first: Sequence[int], out: int, second: Sequence[int], into: int) -> Iterator[tuple[int, int, int]]:
    """Yield pairs with amounts: ``out`` of each of the first, ``into`` of each of the second, in order."""
    i = j = 0
    left, free = out, into
    while i < len(first):
        part = min(left, free)
        yield first[i], second[j], part
        left, free = left - part, free - part
        i, left = (i + 1, out) if not left else (i, left)
        j, free = (j + 1, into) if not free else (j, free)


def _stretched(pool: list[tuple[int, int, int]], pairs: Iterable[tuple[int, int, int]]) -> dict[int, list[Stretch]]:
    """Divide roots (root, trees, place) among pairs (sender, entry, trees): first those at the sender's place."""
    left = [list(pair) for pair in pairs]
    found: dict[int, list[Stretch]] = {}
    rest = list[tuple[int, int, int]]()
    for root, trees, place in pool:
        low = 0
        for pair in left:
            part = min(trees - low, pair[2]) if pair[0] == place else 0
            if part:
                found.setdefault(root, []).append((low, low + part, pair[0], pair[1]))
                pair[2] -= part
                low += part
        if low < trees:
            rest.append((root, low, trees))
    queue = [pair for pair in reversed(left) if pair[2]]
    for root, low, high in rest:
        while low < high and queue:
            pair = queue[-1]
            part = min(high - low, pair[2])
            found.setdefault(root, []).append((low, low + part, pair[0], pair[1]))
            pair[2] -= part
            low += part
            if not pair[2]:
                queue.pop()
    return found


def _first(units: Sequence[Interval], amounts: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, int]]:
    """Yield (key, low, high): the first units of some intervals, in order, for these amounts of keys."""
    queue = list(reversed(units))
    for key, amount in amounts:
        while amount:
            low, high = queue.pop()
            part = min(amount, high - low)
            yield key, low, low + part
            amount -= part
            if low + part < high:
                queue.append((low + part, high))


def _joined(pieces: list[Interval]) -> list[Interval]:
    """Return intervals in order, with those joined that follow each other."""
    found = list[Interval]()
    for low, high in sorted(pieces):
        if found and found[-1][1] == low:
            found[-1] = found[-1][0], high
        else:
            found.append((low, high))
    return found


def _physical(routes: Routes, paths: dict[int, Path], num_links: int) -> Routes:
    """Return the routes with the links of NICs."""
    lists = [paths.get(link, (link,)) for link in range(num_links)]
    count = np.array([len(path) for path in lists], dtype=np.int64)
    flat = np.array([link for path in lists for link in path], dtype=np.int64)
    links = routes.links.astype(np.int64)
    found = flat[ranges(starts(count)[:-1][links], count[links])]
    ends = starts(count[links])[routes.start.astype(np.int64)]
    return Routes(ends, found)
