"""Latency of a message, without the time for its bytes: the links and routers of its route."""

from __future__ import annotations

from fractions import Fraction

import attrs

from collc.ir.costs.cost import DEFAULT_ALPHA
from collc.ir.topology import Topology

__all__ = ["LATENCIES", "Latency", "ranks_route"]

_NS = Fraction(1, 10**9)


@attrs.frozen
class Latency:
    """``base + per_hop*h + overhead*(h + 2) + cable*c`` for a message over h hops, with c links at a switch.

    All are exact seconds. If ``base`` is None, it is the sum of the links' own latencies, or 10 us if no link has a
    latency. :mod:`collc.ir.costs.cost` assumes the same, so both agree on schedules over single links.

    Hops are links between routers. If links join ranks, a rank is a router with a network card, and h is the number of
    links of the route. If all ranks are at switches, the first and the last link lead to cards and are not hops.
    ``overhead`` counts them in both cases.
    """

    name: str = "links"
    base: Fraction | None = None
    per_hop: Fraction = Fraction(0)
    overhead: Fraction = Fraction(0)
    cable: Fraction = Fraction(0)

    def of(self, topology: Topology, links: int, cables: int, own: Fraction) -> Fraction:
        """Return the seconds for a route of ``links`` links, ``cables`` of them at a switch, with ``own`` latencies."""
        hops = links if ranks_route(topology) else max(links - 2, 0)
        base = self.base
        if base is None:
            base = own if any(kind.latency for kind in topology.classes) else DEFAULT_ALPHA
        return base + self.per_hop * hops + self.overhead * (hops + 2) + self.cable * cables

    @property
    def lengths(self) -> tuple[int, int]:
        """The lengths of a link between ranks and of a link at a switch, for shortest routes.

        All links have equal length unless cables to switches cost extra. Then the shortest route has the least latency.
        """
        hop = self.per_hop + self.overhead
        if not (self.cable and hop):
            return 1, 1
        ratio = (hop + self.cable) / hop
        return ratio.denominator, ratio.numerator


def ranks_route(topology: Topology) -> bool:
    """Return whether ranks forward messages: some link joins two ranks."""
    return bool(((topology.src < topology.num_ranks) & (topology.dst < topology.num_ranks)).any())


#: The latencies by name. ``swing`` is that of the Swing paper's simulations: routers of 300 ns, cables of 100 ns
#: (also to the network card), 4.7 ns a link. ``hammingmesh`` follows from the paper's times for its HammingMesh
#: networks: routers of 150 ns, cables to switches of 125 ns, no latency of traces on a board, 15 ns a message.
LATENCIES: dict[str, Latency] = {
    "links": Latency(),
    "swing": Latency("swing", 500 * _NS, 400 * _NS, Fraction(47, 10) * _NS),
    "hammingmesh": Latency("hammingmesh", 165 * _NS, 150 * _NS, Fraction(0), 125 * _NS),
}
