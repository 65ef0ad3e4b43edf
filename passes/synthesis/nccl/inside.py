"""A box as the search for rings sees it: places, the routes from place to place, and all paths through the box."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import islice, pairwise
from math import factorial
from typing import TypeVar

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.graph.nics import Cabling, Pair
from collc.ir.topology import Topology

__all__ = ["Ends", "Inside", "Paths", "Route", "inside_of"]

#: partial paths that an enumeration may visit, and paths that it may list
_MOST_VISITS = 400_000
_MOST_PATHS = 6_000
#: further paths, each the first of an enumeration in another order, and the visits of each of these
_MOST_OTHERS = 1_000
_FEW_VISITS = 300

#: the numbers of the NICs by which a ring enters and leaves a box; None: the ring closes in the box
Ends = tuple[int, int] | None
#: numbers of pairs
Route = tuple[int, ...]
_Key = TypeVar("_Key")


@attrs.frozen(eq=False)
class Paths:
    """Paths through a box: their places in ``orders``, and how often each uses every pair, (paths, pairs).

    Of several paths with the same pairs only one is listed. If ``complete``, no other pairs are possible.
    """

    orders: tuple[tuple[int, ...], ...]
    uses: Array
    complete: bool


@attrs.frozen(eq=False)
class Inside:
    """A box of ``size`` places, its ranks in order.

    ``hops[a, b]`` is the route between places, ``entries[nic][a]`` the route from outside to place a, ``exits[nic][a]``
    the one back; routes are numbers of pairs. ``pairs[p]`` are the nodes of a pair, ``links[p]`` the bandwidths of its
    parallel links. ``groups`` are the pairs into each place, then those out of each. Places of one ``twin`` have the
    same neighbours, all of them switches.
    """

    size: int
    hops: dict[tuple[int, int], Route]
    entries: tuple[dict[int, Route], ...]
    exits: tuple[dict[int, Route], ...]
    pairs: tuple[Pair, ...]
    links: tuple[tuple[Fraction, ...], ...]
    groups: tuple[Array, ...]
    twin: tuple[int, ...]

    @cached_property
    def key(self) -> object:
        """What equal boxes have in common."""
        routes = tuple(tuple(sorted(one.items())) for one in (*self.entries, *self.exits))
        return self.size, tuple(sorted(self.hops.items())), routes, self.links

    @property
    def most(self) -> Fraction:
        """The most bandwidth of rings that enter a place from outside, all others from inside, and leave so, too."""
        inner = {pair for route in self.hops.values() for pair in route}
        both = [Fraction(0), Fraction(0)]
        for number, group in enumerate(self.groups):
            for pair in inner.intersection(group.tolist()):
                both[number // self.size] += sum(self.links[pair], Fraction(0))
        return min(both) / (self.size - 1)

    def room(self, rate: Fraction) -> Array:
        """Return how many rings of a bandwidth fit on every pair, each of them on one link."""
        return np.array([sum(int(link // rate) for link in links) for links in self.links], dtype=np.int64)

    def has_room(self, ends: Sequence[Ends], rate: Fraction) -> bool:
        """Return whether rings of a bandwidth, one for each of ``ends``, pass routes that have room.

        The pairs into every place must have room for all rings, those out of it, too. This needs no paths.
        """
        room = self.room(rate)
        through = {both for both in ends if both is not None}
        ports = [self.entries[into].values() for into, _ in through] + [self.exits[out].values() for _, out in through]
        usable = [[route for route in routes if room[list(route)].all()] for routes in [*ports, self.hops.values()]]
        if not all(usable[: len(ports)]):
            return False
        used = list({pair for routes in usable for route in routes for pair in route})
        most = np.zeros(len(room), dtype=np.int64)
        most[used] = room[used].clip(0, len(ends))
        return all(most[group].sum() >= len(ends) for group in self.groups)

    @property
    def is_direct(self) -> bool:
        """Whether all hops are links between ranks."""
        return all(len(route) == 1 for route in self.hops.values())

    def is_crowded(self, rings: int) -> bool:
        """Whether the box is a full mesh with more paths than are listed, and rings take more than half of its hops.

        Such rings are seldom among the listed paths.
        """
        meshed = self.is_direct and len(self.hops) == self.size * (self.size - 1)
        return meshed and factorial(max(self.size - 2, 0)) > _MOST_PATHS and 2 * rings >= self.size

    @cached_property
    def _known(self) -> dict[Ends, Paths]:
        return {}

    def paths(self, ends: Ends) -> Paths:
        """Return the paths through all places from one NIC to another, or round and back."""
        if ends not in self._known:
            self._known[ends] = self._enumerate(ends)
        return self._known[ends]

    def _enumerate(self, ends: Ends) -> Paths:
        found: dict[bytes, tuple[int, ...]] = {}
        walk = self._walk(ends)
        for path, route in walk.between(ends):
            self._list(found, path, route)
            if len(found) == _MOST_PATHS:
                walk.complete = False
                break
        # The listed paths begin alike. Rings that share no links need paths that differ from the beginning.
        for turn in range(_MOST_OTHERS if found and not walk.complete else 0):
            for path, route in islice(_Walk(self, _FEW_VISITS, turn + 1).between(ends), 1):
                self._list(found, path, route)
        table = np.frombuffer(b"".join(found), dtype=np.uint8).reshape(-1, len(self.links))
        return Paths(tuple(found.values()), table, walk.complete)

    def _walk(self, ends: Ends) -> _Walk:
        """Return the walk that lists most paths: by number, unless that leads nowhere for long."""
        trial = _Walk(self, _FEW_VISITS * 100)
        if next(trial.between(ends), None) is None and not trial.complete:
            return _Walk(self, _FEW_VISITS * 100, careful=True)
        return _Walk(self, _MOST_VISITS)

    def _list(self, found: dict[bytes, tuple[int, ...]], path: tuple[int, ...], route: list[int]) -> None:
        uses = bytearray(len(self.links))
        for pair in route:
            uses[pair] += 1
        found.setdefault(bytes(uses), path)

    @cached_property
    def _unentered(self) -> tuple[frozenset[int], frozenset[int]]:
        """The places into which no hop leads, and those from which none leads."""
        places = frozenset(range(self.size))
        into, out = places - {b for _, b in self.hops}, places - {a for a, _ in self.hops}
        return into, out

    @cached_property
    def _twins_of(self) -> tuple[tuple[int, ...], ...]:
        """For every place those of its twin, ascending."""
        return tuple(tuple(p for p in range(self.size) if self.twin[p] == twin) for twin in self.twin)

    def passes(self, first: int, last: int) -> bool:
        """Return whether a hop leads to every place but the first, and one from every place but the last."""
        into, out = self._unentered
        return into <= {first} and out <= {last}

    def route(self, path: Sequence[int]) -> list[Route]:
        """Return the routes between the places of a path."""
        return [self.hops[a, b] for a, b in pairwise(path)]


class _Walk:
    """Walks through all places of a box: near places first, and of twins the lowest first.

    It ends after ``most`` visits. Every ``turn`` but 0 tries equally near places in another order. A ``careful`` walk
    first goes where the fewest places are left to go on to (Warnsdorff's rule).
    """

    def __init__(self, inside: Inside, most: int, turn: int = 0, careful: bool = False) -> None:
        self.inside, self.most, self.careful, self.complete, self.visits = inside, most, careful, True, 0
        near: list[list[int]] = [[] for _ in range(inside.size)]
        for a, b in sorted(inside.hops, key=lambda ends: (len(inside.hops[ends]), _mixed(ends, turn))):
            near[a].append(b)
        self.near = near
        self.visited = bytearray(inside.size)

    def between(self, ends: Ends) -> Iterator[tuple[tuple[int, ...], list[int]]]:
        """Yield every path with the pairs that it uses."""
        inside = self.inside
        if ends is None:
            for path in self._from(0, None):
                if (path[-1], 0) in inside.hops:
                    yield path, [pair for route in inside.route((*path, 0)) for pair in route]
            return
        entries, exits = inside.entries[ends[0]], inside.exits[ends[1]]
        both = [(len(entries[a]) + len(exits[b]), a, b) for a in entries for b in exits if a != b or inside.size == 1]
        for _, first, last in sorted(both):
            if not inside.passes(first, last):
                continue
            if self.visits >= self.most and inside.size > 1:
                self.complete = False
                return
            for path in self._from(first, last):
                within = [pair for route in inside.route(path) for pair in route]
                yield path, [*entries[first], *within, *exits[last]]

    def _from(self, first: int, last: int | None) -> Iterator[tuple[int, ...]]:
        """Yield the paths through all places from a place, to ``last`` if it is given."""
        size, visited, path = self.inside.size, self.visited, [first]
        self.visits += 1
        if size == 1:
            yield (first,)
            return
        if self.visits > self.most:
            self.complete = False
            return
        visited[first] = 1
        stack = [iter(self._following(path, last))]
        while stack:
            place = next(stack[-1], None)
            if place is None:
                stack.pop()
                visited[path.pop()] = 0
                continue
            self.visits += 1
            if len(path) + 1 == size:
                yield (*path, place)
            elif self.visits > self.most:
                self.complete = False
            else:
                path.append(place)
                visited[place] = 1
                stack.append(iter(self._following(path, last)))

    def _following(self, path: list[int], last: int | None) -> list[int]:
        visited, near, twins = self.visited, self.near[path[-1]], self.inside._twins_of
        if last is not None and len(path) == self.inside.size - 1:
            return [last] if last in near else []
        found = list(dict.fromkeys(
            place if len(twins[place]) == 1 else next(p for p in twins[place] if not visited[p] and p != last)
            for place in near if not visited[place] and place != last
        ))  # fmt: skip
        if self.careful:
            found.sort(key=lambda place: sum(not visited[other] for other in self.near[place]))
        return found


def _mixed(ends: tuple[int, int], turn: int) -> tuple[int, int, int]:
    """Return a key that orders pairs of places differently in every turn, and by number in turn 0."""
    a, b = ends
    return (a * 7919 + b * 104_729) * turn % 1_009, a, b


def inside_of(cables: Cabling, box: int, direct: bool = False) -> Inside:
    """Return a box of a network; with ``direct``, its hops are links between ranks only."""
    numbers: dict[Pair, int] = {}

    def numbered(path: Sequence[Pair] | None) -> Route | None:
        return None if path is None else tuple(numbers.setdefault(pair, len(numbers)) for pair in path)

    ranks, nics = cables.boxes[box], cables.nics[box]
    places = list(enumerate(ranks))
    ends = [(a, b, cables.inside(x, y)) for a, x in places for b, y in places if a != b]
    hops = {(a, b): numbered(path) for a, b, path in ends if not direct or (path is not None and len(path) == 1)}
    entries = [{a: numbered(cables.into(nic, rank)) for a, rank in places} for nic in nics]
    exits = [{a: numbered(cables.out(rank, nic)) for a, rank in places} for nic in nics]
    pairs, links = tuple(numbers), _links(cables.topology, numbers)
    into = [[n for pair, n in numbers.items() if pair[1] == rank] for rank in ranks]
    out = [[n for pair, n in numbers.items() if pair[0] == rank] for rank in ranks]
    return Inside(
        len(ranks), _some(hops), tuple(map(_some, entries)), tuple(map(_some, exits)), pairs, links,
        tuple(np.array(group, dtype=np.int64) for group in (*into, *out)), _twins(cables, box),
    )  # fmt: skip


def _some(routes: dict[_Key, Route | None]) -> dict[_Key, Route]:
    return {key: route for key, route in routes.items() if route is not None}


def _links(topology: Topology, numbers: dict[Pair, int]) -> tuple[tuple[Fraction, ...], ...]:
    found: list[list[Fraction]] = [[] for _ in numbers]
    for link, pair in enumerate(zip(topology.src.tolist(), topology.dst.tolist(), strict=True)):
        if pair in numbers:
            found[numbers[pair]].append(topology.bandwidth(link))
    return tuple(tuple(sorted(one, reverse=True)) for one in found)


def _twins(cables: Cabling, box: int) -> tuple[int, ...]:
    """Return for every place the lowest one with the same switches beside it; a neighbour of a rank has no twin."""
    topology, known, found = cables.topology, dict[object, int](), list[int]()
    for place, rank in enumerate(cables.boxes[box]):
        beside = [(int(topology.dst[link]), 0, topology.bandwidth(link)) for link in _at(topology.out_links, rank)]
        beside += [(int(topology.src[link]), 1, topology.bandwidth(link)) for link in _at(topology.in_links, rank)]
        own = sorted(one for one in beside if cables.box_of[one[0]] == box)
        direct = any(node < topology.num_ranks for node, _, _ in own)
        found.append(place if direct else known.setdefault(tuple(own), place))
    return tuple(found)


def _at(rows: tuple[Array, Array], node: int) -> list[int]:
    start, links = rows
    found: list[int] = links[start[node] : start[node + 1]].tolist()
    return found
