"""How often data cross links if a runtime executes a schedule by operations of switches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from collc.ir.topology import Topology

__all__ = ["Crossings"]


class Crossings:
    """Chunks that cross each link. A switch sends nothing back to the rank whose data it multicasts."""

    def __init__(self, topology: Topology):
        self.topology = topology
        self.load = [0] * topology.num_links
        ends = zip(topology.src.tolist(), topology.dst.tolist(), strict=True)
        #: a link of each pair of nodes that has one
        self.link = {pair: number for number, pair in enumerate(ends)}

    def alone(self, routes: Iterable[Sequence[int]], size: int) -> None:
        """Count transfers that share no links."""
        for route in routes:
            self._add(route, size)

    def shared(self, routes: Iterable[Sequence[int]], size: int) -> None:
        """Count transfers that share the links of their routes: a switch copies or adds."""
        self._add({link for route in routes for link in route}, size)

    def stored(self, rank: int, switch: int, group: Iterable[int], size: int) -> None:
        """Count a store of a rank that a switch multicasts to a group."""
        self._add([self.link[rank, switch], *(self.link[switch, other] for other in group if other != rank)], size)

    def _add(self, links: Iterable[int], size: int) -> None:
        for link in links:
            self.load[link] += size

    def time(self) -> Fraction:
        """Return the largest time of a link for all its chunks, in chunks per unit of bandwidth."""
        t = self.topology
        most = dict[int, int]()
        for load, kind in zip(self.load, t.link_class.tolist(), strict=True):
            most[kind] = max(load, most.get(kind, 0))
        return max((Fraction(load) / t.classes[kind].bandwidth for kind, load in most.items()), default=Fraction(0))
