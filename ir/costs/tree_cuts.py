"""A family of cuts that bounds an allreduce by trees, and its check: sums of rows, by the links alone.

Let x_v be the bandwidth of the trees rooted at rank v, X their sum. Outward trees that are rooted on one side of a cut
leave it if a rank is on the other side; inward trees enter it. As much of each enters a switch as leaves it. So add up
rows with multipliers: if every x_v counts ``carries`` times at least, carries * X is at most what the links hold at
their prices, ``bandwidth``. The price of a link is the larger of what the rows count of it for outward and for inward
trees. Rows stand for all their images under automorphisms, which share the multiplier.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction
from typing import Generic, TypeVar

import attrs
import numpy as np

from ..arrays import Array
from ..shown import brief_fields
from ..topology import Topology

__all__ = ["SwitchBalance", "TreeCuts", "WeightedCut", "images"]

Arc = tuple[int, int]
T = TypeVar("T", bound=Hashable)


@attrs.frozen
class WeightedCut:
    """A row: trees rooted in ``nodes`` (``rooted``), or in all other nodes, cross to the other side, ``inward`` ones
    the other way.
    """

    multiplier: Fraction
    nodes: tuple[int, ...]
    inward: bool
    rooted: bool
    named: tuple[str, ...] = attrs.field(default=(), eq=False, repr=False)

    def roots(self, num_nodes: int) -> set[int]:
        """Return the nodes on the side of the roots."""
        return set(self.nodes) if self.rooted else set(range(num_nodes)).difference(self.nodes)

    def to_json(self) -> dict[str, object]:
        """Return ``{multiplier, trees, roots, nodes, named}``."""
        return {
            "multiplier": str(self.multiplier), "trees": _trees(self.inward),
            "roots": "inside" if self.rooted else "outside", "nodes": list(self.nodes), "named": list(self.named),
        }  # fmt: skip


@attrs.frozen
class SwitchBalance:
    """A row: what enters a ``switch`` of outward (or ``inward``) trees, less what leaves it."""

    multiplier: Fraction
    switch: int
    inward: bool

    def to_json(self) -> dict[str, object]:
        """Return ``{multiplier, trees, switch}``."""
        return {"multiplier": str(self.multiplier), "trees": _trees(self.inward), "switch": self.switch}


def _trees(inward: bool) -> str:
    return "inward" if inward else "outward"


@attrs.frozen
class TreeCuts:
    """Rows that prove that an allreduce by trees takes at least ``carries`` / ``bandwidth`` per byte of M.

    ``maps`` are automorphisms, as the images of all nodes. ``mirrored``: outward and inward trees may be exchanged and
    links reversed. Switches ``multicast`` let out more than they get of outward trees, switches ``reduces`` get more
    than they let out of inward ones. ``text`` is the sum in words.
    """

    cuts: tuple[WeightedCut, ...]
    balances: tuple[SwitchBalance, ...]
    maps: tuple[tuple[int, ...], ...]
    mirrored: bool
    carries: Fraction
    bandwidth: Fraction
    multicast: tuple[int, ...] = ()
    reduces: tuple[int, ...] = ()
    text: str = attrs.field(default="", eq=False)

    __repr__ = brief_fields

    def to_json(self) -> dict[str, object]:
        """Return ``{kind, text, cuts, balances, automorphisms, mirrored, carries, bandwidth}``.

        Carries over bandwidth is the bound. Automorphisms map the nodes 0, 1, .. to those listed.
        """
        able = {"multicast": list(self.multicast), "reduces": list(self.reduces)}
        return {
            "kind": "cuts", "text": self.text, "cuts": [cut.to_json() for cut in self.cuts],
            "balances": [balance.to_json() for balance in self.balances],
            "automorphisms": [list(each) for each in self.maps], "mirrored": self.mirrored,
            **{name: nodes for name, nodes in able.items() if nodes},
            "carries": str(self.carries), "bandwidth": str(self.bandwidth),
        }  # fmt: skip

    def proved(self, topology: Topology) -> tuple[Fraction, Fraction] | None:
        """Return (carries, bandwidth) as the rows add up to them; None if a row or an automorphism does not hold."""
        width = _widths(topology)
        ends = np.array(list(width), dtype=np.int64).reshape(-1, 2)
        moved = [_moved(ends, g) for g in self.maps if len(g) == topology.num_nodes]
        if not self._maps_hold(topology, width, moved) or not self._rows_hold(topology):
            return None
        halves = [(a, b, half) for a, b in width for half in (False, True)]
        ranks = _Orbits(range(topology.num_ranks), [(v, g[v]) for g in self.maps for v in range(topology.num_ranks)])
        pairs = [
            ((a, b, half), (g[a], g[b], half))
            for g, arcs in zip(self.maps, moved, strict=True) for a, b in arcs for half in (False, True)
        ]  # fmt: skip
        arcs = _Orbits(halves, pairs + [((a, b, half), (b, a, not half)) for a, b, half in halves if self.mirrored])
        for cut in self.cuts:
            near = cut.roots(topology.num_nodes)
            ranks.add(cut.multiplier, [v for v in near if v < topology.num_ranks])
            arcs.add(cut.multiplier, [(a, b, cut.inward) for a, b in width if _crosses(a, b, near, cut.inward)])
        for row in self.balances:
            arcs.add(row.multiplier, [(a, b, row.inward) for a, b in width if b == row.switch])
            arcs.add(-row.multiplier, [(a, b, row.inward) for a, b in width if a == row.switch])
        price = {arc: max(arcs.mean((*arc, False)), arcs.mean((*arc, True)), Fraction(0)) for arc in width}
        carries = min(ranks.mean(rank) for rank in range(topology.num_ranks))
        return carries, sum((price[arc] * width[arc] for arc in width), Fraction(0))

    def _maps_hold(self, topology: Topology, width: dict[Arc, Fraction], moved: Sequence[Sequence[Arc]]) -> bool:
        """Return whether all maps are automorphisms that keep what switches can do.

        ``moved`` are the arcs of each map with an end that it moves.
        """
        if self.mirrored and any(width.get((b, a)) != bandwidth for (a, b), bandwidth in width.items()):
            return False
        if self.mirrored and set(self.multicast) != set(self.reduces):
            return False
        nodes = list(range(topology.num_nodes))
        if len(moved) < len(self.maps):
            return False
        for each, arcs in zip(self.maps, moved, strict=True):
            if sorted(each) != nodes or any(image >= topology.num_ranks for image in each[: topology.num_ranks]):
                return False
            if any(width.get((each[a], each[b])) != width[a, b] for a, b in arcs):
                return False
            if any({each[node] for node in able} != set(able) for able in (self.multicast, self.reduces)):
                return False
        return True

    def _rows_hold(self, topology: Topology) -> bool:
        """Return whether every cut has a rank beyond the roots, and multipliers have the signs that they need."""
        ranks, switches = range(topology.num_ranks), range(topology.num_ranks, topology.num_nodes)
        for cut in self.cuts:
            if cut.multiplier < 0 or cut.roots(topology.num_nodes).issuperset(ranks):
                return False
        for row in self.balances:
            able = row.switch in (self.reduces if row.inward else self.multicast)
            sign = row.multiplier if row.inward else -row.multiplier
            if row.switch not in switches or (able and sign < 0):
                return False
        return True


def _widths(topology: Topology) -> dict[Arc, Fraction]:
    """Return the bandwidth from node to node, of all links together."""
    found: dict[Arc, Fraction] = {}
    for link, arc in enumerate(zip(topology.src.tolist(), topology.dst.tolist(), strict=True)):
        if arc[0] != arc[1]:
            found[arc] = found.get(arc, Fraction(0)) + topology.bandwidth(link)
    return found


def _moved(arcs: Array, images: Sequence[int]) -> list[Arc]:
    """Return the arcs (rows of tail and head) with an end that a map moves: it maps the others to themselves."""
    away = np.array(images, dtype=np.int64) != np.arange(len(images))
    return [(a, b) for a, b in arcs[away[arcs].any(axis=1)].tolist()]


def _crosses(a: int, b: int, near: set[int], inward: bool) -> bool:
    return (b in near and a not in near) if inward else (a in near and b not in near)


class _Orbits(Generic[T]):
    """Sums over the orbits of items that pairs of (item, image) join."""

    def __init__(self, items: Iterable[T], pairs: Iterable[tuple[T, T]]) -> None:
        self.above = {item: item for item in items}
        for item, image in pairs:
            self.above[self.find(item)] = self.find(image)
        self.sums = dict.fromkeys(self.above, Fraction(0))
        self.sizes = Counter(self.find(item) for item in self.above)

    def find(self, item: T) -> T:
        """Return the item that stands for an orbit."""
        while self.above[item] != item:
            self.above[item] = self.above[self.above[item]]
            item = self.above[item]
        return item

    def add(self, multiplier: Fraction, items: Iterable[T]) -> None:
        """Add a multiplier for each of some items."""
        for item in items:
            self.sums[self.find(item)] += multiplier

    def mean(self, item: T) -> Fraction:
        """Return what was added for an item, if an orbit's items share it equally."""
        first = self.find(item)
        return self.sums[first] / self.sizes[first]


def images(nodes: Sequence[int], maps: Sequence[Sequence[int]], most: int) -> list[frozenset[int]]:
    """Return the images of a set of nodes under all products of maps, at most about ``most``."""
    first = frozenset(nodes)
    seen, waiting = {first: None}, [first]
    while waiting and len(seen) <= most:
        last = waiting.pop()
        for each in maps:
            image = frozenset(each[node] for node in last)
            if image not in seen:
                seen[image] = None
                waiting.append(image)
    return list(seen)
