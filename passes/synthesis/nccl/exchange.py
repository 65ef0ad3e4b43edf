"""Rings by exchange: hops move between rings until each ring is one cycle.

Boxes of many links have more paths than the search can list. Here a ring is a permutation of the places: it maps each
place to the next one. At first the rings are random perfect matchings of the places with their successors, so most
consist of several cycles. Then two rings exchange the hops of some places, or a ring exchanges hops with the room that
no ring uses. An exchange that leaves more cycles than before is kept seldom.

A ring that passes the box returns outside from its last place to its first one. This is a hop, too: each ring must have
exactly one, and which one it has tells which ring it is.

Two rings that exchange hops keep the product of the signs of all permutations. Cycles of all places determine this
product, so some first rings lead nowhere. Therefore every attempt is short and draws others.

The search counts its exchanges, and the draws depend on nothing else: it finds the same rings on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from random import Random

import numpy as np

from collc.ir.arrays import Array
from collc.ir.graph.cuts import Cut, FlowNetwork

from .inside import Ends, Inside, Route
from .meshes import mesh_cycles, paths_between

__all__ = ["Exchange", "exchanged_paths"]

#: exchanges of an attempt, for each ring: at least, and for each pair of places
_ATTEMPT = 400
_ATTEMPT_OF_PAIR = 0.75
#: how often a ring takes spare room rather than hops of another ring, and how often it keeps each further cycle
_SPARE_SHARE = 0.3
_WORSE_SHARE = 0.1

#: a ring: the hop from every place, its head plus ``size`` times the number of a return (0: inside the box)
_Ring = list[int]


class Exchange:
    """Finds rings through ``size`` places; ``room[a, b]`` is how many of them fit on the hop from a to b.

    ``returns[ring]`` are the last place and the first one of a ring that leaves the box; without them all ``rings``
    are closed. After :meth:`solve`, ``impossible`` says whether the hops into or out of some places are too few.
    """

    def __init__(self, room: Array, rings: int, returns: Sequence[tuple[int, int]], most: int) -> None:
        self.size, self.rings, self.returns, self.most = len(room), rings, returns, most
        self.room: list[list[int]] = room.clip(0, rings).tolist()
        self.luck, self.steps, self.impossible = Random(0), 0, False

    def solve(self) -> list[list[int]] | None:
        """Return the successor of every place in every ring, those of ring i where ``returns`` lists it; or None."""
        hops = self._chosen_hops()
        while hops is not None and self.steps < self.most:
            rings = self._attempt(hops)
            if rings is not None:
                return [[hop % self.size for hop in ring] for ring in sorted(rings, key=self._number)]
        return None

    def _chosen_hops(self) -> list[_Ring] | None:
        """Return the hops from every place, as many from and to each place as there are rings; None if impossible."""
        size, sink, supply = self.size, 2 * self.size, [self.rings] * self.size
        demand = list(supply)
        for last, first in self.returns:
            supply[last] -= 1
            demand[first] -= 1
        arcs = [(a, size + b, room) for a, row in enumerate(self.room) for b, room in enumerate(row) if room]
        network = FlowNetwork(sink + 1, [*arcs, *((size + b, sink, amount) for b, amount in enumerate(demand))])
        flow = network.flow([*supply, *[0] * (size + 1)], sink, sum(supply))
        self.impossible = isinstance(flow, Cut)
        if isinstance(flow, Cut):
            return None
        hops: list[_Ring] = [[] for _ in range(size)]
        for arc, amount in sorted(flow.items()):
            if network.head[arc] != sink:
                hops[network.head[arc ^ 1]] += [network.head[arc] - size] * amount
        for ring, (last, first) in enumerate(self.returns):
            hops[last].append(first + (ring + 1) * size)
        return hops

    def _attempt(self, hops: list[_Ring]) -> list[_Ring] | None:
        rings = self._matchings(hops)
        spare = [[b for b, most in enumerate(row) for _ in range(most - hops[a].count(b))] for a, row in (
            enumerate(self.room))]  # fmt: skip
        excess = [self._excess(ring) for ring in rings]
        attempt = max(_ATTEMPT, int(_ATTEMPT_OF_PAIR * self.size**2)) * len(rings)
        end = min(self.steps + attempt, self.most)
        while any(excess) and self.steps < end:
            self.steps += 1
            split = [number for number, amount in enumerate(excess) if amount]
            ring = split[self._drawn(len(split))]
            if len(rings) == 1 or self.luck.random() < _SPARE_SHARE * any(spare):
                self._exchange_with_spare(rings, ring, spare, excess)
            else:
                self._exchange(rings, ring, (ring + 1 + self._drawn(len(rings) - 1)) % len(rings), excess)
        return None if any(excess) else rings

    def _exchange(self, rings: list[_Ring], one: int, other: int, excess: list[int]) -> None:
        """Exchange the hops of two rings from the places of an alternating cycle through a random place."""
        changed, others = rings[one].copy(), rings[other].copy()
        before = {hop % self.size: place for place, hop in enumerate(others)}
        start = place = self._drawn(self.size)
        while True:
            changed[place], others[place] = others[place], changed[place]
            place = before[others[place] % self.size]
            if place == start:
                break
        found = self._excess(changed), self._excess(others)
        if self._is_kept(sum(found) - excess[one] - excess[other]):
            rings[one], rings[other] = changed, others
            excess[one], excess[other] = found

    def _exchange_with_spare(self, rings: list[_Ring], ring: int, spare: list[_Ring], excess: list[int]) -> None:
        """Exchange hops of a ring with spare ones, from a random place on; nothing if that leads to no cycle."""
        changed = rings[ring].copy()
        before = {hop % self.size: place for place, hop in enumerate(changed)}
        place, drawn = self._drawn(self.size), dict[int, int]()
        while place not in drawn:
            if not spare[place] or changed[place] >= self.size:
                return
            drawn[place] = spare[place][self._drawn(len(spare[place]))]
            place = before[drawn[place]]
        places = list(drawn)
        places = places[places.index(place) :]
        for place in places:
            changed[place] = drawn[place]
        found = self._excess(changed)
        if self._is_kept(found - excess[ring]):
            for place in places:
                spare[place].remove(drawn[place])
                spare[place].append(rings[ring][place])
            rings[ring], excess[ring] = changed, found

    def _is_kept(self, more: int) -> bool:
        return more <= 0 or self.luck.random() < _WORSE_SHARE**more

    def _excess(self, ring: _Ring) -> int:
        """Return the cycles of a ring but one, plus the returns that it lacks or has beyond one."""
        left, cycles, size = bytearray(self.size), -1, self.size
        for place in range(size):
            if not left[place]:
                cycles += 1
                while not left[place]:
                    left[place] = 1
                    place = ring[place] % size
        return cycles + (abs(sum(hop >= size for hop in ring) - 1) if self.returns else 0)

    def _number(self, ring: _Ring) -> int:
        return max(ring) // self.size

    # ---- the first rings

    def _matchings(self, hops: list[_Ring]) -> list[_Ring]:
        """Return rings of all hops: hops with equally many from and to each place contain a perfect matching."""
        left, rings = [row.copy() for row in hops], []
        for _ in range(self.rings):
            ring = self._matching([self._mixed(row) for row in left])
            for place, hop in enumerate(ring):
                left[place].remove(hop)
            rings.append(ring)
        return rings

    def _matching(self, hops: list[_Ring]) -> _Ring:
        """Return a hop from every place, one to each place, by augmenting paths from each place in random order."""
        matched: dict[int, tuple[int, int]] = {}
        for start in self._mixed(list(range(self.size))):
            reached: dict[int, tuple[int, int]] = {}
            front = [start]
            while front:
                place = front.pop()
                new = [hop for hop in hops[place] if hop % self.size not in reached]
                reached.update((hop % self.size, (place, hop)) for hop in reversed(new))
                free = next((hop % self.size for hop in new if hop % self.size not in matched), None)
                if free is not None:
                    _augment(matched, reached, free, start)
                    break
                front += [matched[hop % self.size][0] for hop in new]
        ring = [0] * self.size
        for place, hop in matched.values():
            ring[place] = hop
        return ring

    def _mixed(self, row: list[int]) -> list[int]:
        mixed = row.copy()
        for end in range(len(mixed) - 1, 0, -1):
            other = self._drawn(end + 1)
            mixed[end], mixed[other] = mixed[other], mixed[end]
        return mixed

    def _drawn(self, count: int) -> int:
        return int(self.luck.random() * count)


def _augment(
    matched: dict[int, tuple[int, int]], reached: dict[int, tuple[int, int]], head: int, start: int
) -> None:  # fmt: skip
    """Match the places on the path from ``start`` to a free head."""
    heads = {place: one for one, (place, _) in matched.items()}
    while True:
        place = reached[head][0]
        matched[head] = reached[head]
        if place == start:
            return
        head = heads[place]


def exchanged_paths(
    inside: Inside, ends: Sequence[Ends], rate: Fraction, most: int
) -> tuple[list[tuple[int, ...]] | None, int, bool]:
    """Return a path of places for each of ``ends``, or None; the exchanges; and whether no paths exist.

    A ring enters and leaves at the places that are nearest to its NICs.
    """
    room = inside.room(rate)
    returns = _returns(inside, [one for one in ends if one is not None])
    if most <= 0 or returns is None or not inside.is_direct:
        return None, 0, False
    hops = np.zeros((inside.size, inside.size), dtype=np.int64)
    for (a, b), (pair,) in inside.hops.items():
        hops[a, b] = room[pair]
    known = _of_mesh(hops, len(ends), returns)
    if known is not None and _fit(inside, known, ends, room):
        return known, 0, False
    exchange = Exchange(hops, len(ends), returns, most)
    found = exchange.solve()
    if found is None:
        return None, exchange.steps, exchange.impossible and not returns
    starts = [first for _, first in returns] or [0] * len(ends)
    paths = [_path(ring, start) for ring, start in zip(found, starts, strict=True)]
    return paths if _fit(inside, paths, ends, room) else None, exchange.steps, False


def _of_mesh(room: Array, rings: int, returns: Sequence[tuple[int, int]]) -> list[tuple[int, ...]] | None:
    """Return the paths of rings in a full mesh, whatever the order of its places; None if they are not known."""
    copies = int(room[~np.eye(len(room), dtype=bool)].min(initial=0))
    if not copies:
        return None
    if returns:
        return paths_between(len(room), [(first, last) for last, first in returns])
    cycles = (mesh_cycles(len(room)) or []) * min(copies, rings)
    return [_path(dict(pairwise((*one, one[0]))), 0) for one in cycles[:rings]] if len(cycles) >= rings else None


def _returns(inside: Inside, ends: Sequence[tuple[int, int]]) -> list[tuple[int, int]] | None:
    """Return the last and the first place of every ring; None if one has none."""
    found = list[tuple[int, int]]()
    for entering, leaving in ends:
        near = [
            (len(into) + len(out), found.count((b, a)), b, a)
            for a, into in inside.entries[entering].items()
            for b, out in inside.exits[leaving].items()
            if a != b
        ]
        if not near:
            return None
        found.append(min(near)[2:])
    return found


def _path(ring: Sequence[int] | Mapping[int, int], start: int) -> tuple[int, ...]:
    path = [start]
    while ring[path[-1]] != start:
        path.append(ring[path[-1]])
    return tuple(path)


def _fit(inside: Inside, paths: Sequence[tuple[int, ...]], ends: Sequence[Ends], room: Array) -> bool:
    """Return whether paths fit together with their routes to and from NICs."""
    uses = np.zeros(len(room), dtype=np.int64)
    for path, both in zip(paths, ends, strict=True):
        routes: list[Route] = [inside.hops[hop] for hop in pairwise((*path, path[0]) if both is None else path)]
        if both is not None:
            routes += [inside.entries[both[0]][path[0]], inside.exits[both[1]][path[-1]]]
        np.add.at(uses, [pair for route in routes for pair in route], 1)
    return bool((uses <= room).all())
