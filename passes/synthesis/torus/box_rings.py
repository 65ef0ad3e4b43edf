"""Rings through the boxes of a cluster, one for each NIC, as NCCL makes them.

Every ring visits the boxes in order, and in each box every rank once: it enters by one NIC and leaves by another. It
enters the next box by the NIC of the number by which it left, so it stays on one rail. At every crossing the rings of
different numbers have NICs of their own.

In a box with switches, or with equal links between all pairs, ranks follow each other by number. In others a
depth-first search finds paths over single links, on which the rings load the busiest link as little as it can find.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np

from collc.ir.arrays import Array
from collc.ir.graph.boxes import Boxes
from collc.ir.topology import Topology

__all__ = ["box_chains", "box_rings"]

#: ranks that the search for one path may visit; counted, so that the paths are the same on every machine
_MOST_VISITS = 2000
#: the most ranks of a box that is searched
_MOST_PLACES = 128

Path = tuple[int, ...]
#: the first and the last rank (or place) of a path; no last one: any
Ends = tuple[int, int | None]
#: (place, place) -> bandwidth of the links from one to the other, by places in a box
Speeds = dict[tuple[int, int], Fraction]


def box_rings(topology: Topology, boxes: Boxes, rings: int) -> list[Array]:
    """Return for every ring all ranks in the order in which it visits them."""
    ends = [list(_ends(boxes, ring)) for ring in range(rings)]
    known: dict[object, list[Path] | None] = {}
    columns = [_paths(topology, boxes, box, [one[box] for one in ends], known) for box in range(len(boxes))]
    return [np.concatenate([np.array(paths[ring], dtype=np.int64) for paths in columns]) for ring in range(rings)]


def box_chains(topology: Topology, boxes: Boxes, chains: int) -> list[list[Path]]:
    """Return for every chain its ranks in each box: all of the box, from the NIC of the chain's number on."""
    known: dict[object, list[Path] | None] = {}
    heads: list[list[Ends]] = [[(gates[chain % len(gates)], None) for chain in range(chains)] for gates in boxes.gates]
    columns = [_paths(topology, boxes, box, ends, known, closing=False) for box, ends in enumerate(heads)]
    return [[paths[chain] for paths in columns] for chain in range(chains)]


def _ends(boxes: Boxes, ring: int) -> Iterator[Ends]:
    """Yield the ranks by which a ring enters and leaves each box; it leaves a single box by any (None)."""
    rails = [_rail(boxes, ring, box) for box in range(len(boxes))]
    for box, gates in enumerate(boxes.gates):
        entry, leaving = gates[rails[box]], gates[rails[(box + 1) % len(boxes)]]
        if len(boxes) == 1:
            yield entry, None
        elif leaving != entry:
            yield entry, leaving
        else:
            turned = np.roll(gates, -gates.index(entry) - 1).tolist()
            yield entry, next((rank for rank in (*turned, *boxes.ranks[box]) if rank != entry), entry)


def _rail(boxes: Boxes, ring: int, box: int) -> int:
    """Return by which of its NICs a ring enters a box: neighbours differ, since it leaves by another than it entered.

    Pairs of NICs alternate, as in NCCL; an odd number of boxes needs a third NIC. With two NICs and an odd number of
    boxes, a ring changes rails once.
    """
    odd = len(boxes) % 2 and box == len(boxes) - 1 > 0
    turn, nics = 2 if odd and boxes.nics > 2 else box % 2, boxes.nics
    paired = nics % 2 == 0 and (len(boxes) % 2 == 0 or nics % 4 == 0)
    return ring % nics ^ turn if paired else (ring + turn) % nics


def _paths(
    topology: Topology, boxes: Boxes, box: int, ends: Sequence[Ends],
    known: dict[object, list[Path] | None], closing: bool = True,
) -> list[Path]:  # fmt: skip
    """Return for every pair of ends a path through all ranks of a box.

    ``known`` are the paths of other boxes, by their links and ends: most boxes are alike.
    """
    ranks = boxes.ranks[box]
    speeds = _speeds(topology, boxes, ranks)
    if speeds is None or not 2 < len(ranks) <= _MOST_PLACES:
        return [_by_number(ranks, *pair) for pair in ends]
    places = tuple((ranks.index(a), None if b is None else ranks.index(b)) for a, b in ends)
    key = tuple(sorted(speeds.items())), places
    if key not in known:
        known[key] = _Search(len(ranks), speeds, closing).paths(places)
    found = known[key]
    if found is None:
        return [_by_number(ranks, *pair) for pair in ends]
    return [tuple(ranks[place] for place in path) for path in found]


def _by_number(ranks: Sequence[int], first: int, last: int | None) -> Path:
    """Return a path that goes round a box by number, down or up, so that the paths of all first ranks differ."""
    size, begin = len(ranks), ranks.index(first)
    up = last is None or (ranks.index(last) + 1) % size == begin
    order = [ranks[(begin + (step if up else -step)) % size] for step in range(size)]
    if last is None or last == first:
        return tuple(order)
    return (*(rank for rank in order if rank != last), last)


def _speeds(topology: Topology, boxes: Boxes, ranks: Sequence[int]) -> Speeds | None:
    """Return the links between the ranks of a box; None if it has switches, or equal links between all pairs."""
    place = np.full(topology.num_nodes, -1)
    place[list(ranks)] = np.arange(len(ranks))
    here = boxes.inside & ((place[topology.src] >= 0) | (place[topology.dst] >= 0))
    a, b = place[topology.src[here]].tolist(), place[topology.dst[here]].tolist()
    if -1 in a or -1 in b:
        return None
    speeds: Speeds = {}
    for pair, link in zip(zip(a, b, strict=True), np.flatnonzero(here).tolist(), strict=True):
        if pair[0] != pair[1]:
            speeds[pair] = speeds.get(pair, Fraction(0)) + topology.bandwidth(link)
    pairs = len(ranks) * (len(ranks) - 1)
    return None if len(speeds) == pairs and len(set(speeds.values())) == 1 else speeds


class _Search:
    """Finds paths through all places of a box; ``limit`` is the most paths a unit of bandwidth between two places.

    With ``closing``, a path without a last place ends where it can return to the first.
    """

    def __init__(self, size: int, speeds: Speeds, closing: bool) -> None:
        self.size, self.speeds, self.closing = size, speeds, closing
        self.next = [sorted(b for a, b in speeds if a == place) for place in range(size)]
        self.used = dict.fromkeys(speeds, 0)
        self.limit, self.visits = Fraction(0), 0

    def paths(self, ends: Sequence[Ends]) -> list[Path] | None:
        """Return a path for each pair of ends, one after the other, each with the lowest limit at which it is found.

        Limits never fall. Returns None if a pair has no path.
        """
        speeds = set(self.speeds.values())
        limits = sorted({Fraction(number) / speed for number in range(1, len(ends) + 1) for speed in speeds})
        found = list[Path]()
        for first, last in ends:
            path = next((path for limit in limits if (path := self._within(limit, first, last))), None)
            if path is None:
                return None
            found.append(path)
            limits = limits[limits.index(self.limit) :]
            for pair in (*pairwise(path), *([(path[-1], first)] if last is None and self.closing else [])):
                self.used[pair] += 1
        return found

    def _within(self, limit: Fraction, first: int, last: int | None) -> Path | None:
        self.limit, self.visits = limit, 0
        return next(self._from((first,), last), None)

    def _from(self, path: Path, last: int | None) -> Iterator[Path]:
        """Yield the paths that begin with a path, the places with the fewest links on first, while visits are left."""
        self.visits += 1
        if len(path) == self.size:
            if path[-1] == last or (last is None and (not self.closing or self._free(path[-1], path[0]))):
                yield path
            return
        places = [place for place in self.next[path[-1]] if place not in path and self._free(path[-1], place)]
        if len(path) < self.size - 1:
            places = [place for place in places if place != last]
        for place in sorted(places, key=lambda place: self._order(path, place)):
            if self.visits < _MOST_VISITS:
                yield from self._from((*path, place), last)

    def _free(self, a: int, b: int) -> bool:
        """Return whether one more path may use a pair."""
        speed = self.speeds.get((a, b))
        return speed is not None and (self.used[a, b] + 1) / speed <= self.limit

    def _order(self, path: Path, place: int) -> tuple[int, Fraction, int]:
        links = sum(other not in path and self._free(place, other) for other in self.next[place])
        return links, self.used[path[-1], place] / self.speeds[path[-1], place], place
