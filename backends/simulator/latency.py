"""How late a message is, besides the time its bytes take: by the links and routers on its way."""

from __future__ import annotations

from fractions import Fraction

import attrs

from collc.ir.cost import DEFAULT_ALPHA
from collc.ir.topology import Topology

__all__ = ["LATENCIES", "Latency", "ranks_route"]

_NS = Fraction(1, 10**9)


@attrs.frozen
class Latency:
    """A message over h hops, c of its links at a switch, is ``base + per_hop*h + overhead*(h + 2) + cable*c`` late.

    All are seconds, exact. Without a ``base`` it is the sum of the links' own latencies, and 10 us on a network whose
    links have none: what :mod:`collc.ir.cost` assumes, so that both agree on schedules over single links.

    Hops are links between routers. Where links join ranks, ranks are routers with a network card behind them: h is the
    number of links of the way. Where ranks hang from switches alone, the first and the last link lead to cards and are
    no hops; ``overhead`` counts them in both cases.
    """

    name: str = "links"
    base: Fraction | None = None
    per_hop: Fraction = Fraction(0)
    overhead: Fraction = Fraction(0)
    cable: Fraction = Fraction(0)

    def of(self, topology: Topology, links: int, cables: int, own: Fraction) -> Fraction:
        """Return the seconds for a way of so many links, ``cables`` of them at a switch, ``own`` late themselves."""
        hops = links if ranks_route(topology) else max(links - 2, 0)
        base = self.base
        if base is None:
            base = own if any(kind.latency for kind in topology.classes) else DEFAULT_ALPHA
        return base + self.per_hop * hops + self.overhead * (hops + 2) + self.cable * cables

    @property
    def lengths(self) -> tuple[int, int]:
        """How long links between ranks and links at a switch are when shortest ways are looked for.

        All links are alike unless cables to switches cost extra: then the shortest way is the least late.
        """
        hop = self.per_hop + self.overhead
        if not (self.cable and hop):
            return 1, 1
        ratio = (hop + self.cable) / hop
        return ratio.denominator, ratio.numerator


def ranks_route(topology: Topology) -> bool:
    """Return whether ranks pass messages on: some link joins two of them."""
    return bool(((topology.src < topology.num_ranks) & (topology.dst < topology.num_ranks)).any())


#: The latencies by name. ``swing``: routers of 300 ns and cables of 100 ns, the network card's counted, and 4.7 ns a
#: link, of the Swing paper's simulations. ``hammingmesh``: routers of 150 ns, cables to switches of 125 ns, traces on
#: a board of none, 15 ns a message: what the paper's times for its HammingMesh networks imply.
LATENCIES: dict[str, Latency] = {
    "links": Latency(),
    "swing": Latency("swing", 500 * _NS, 400 * _NS, Fraction(47, 10) * _NS),
    "hammingmesh": Latency("hammingmesh", 165 * _NS, 150 * _NS, Fraction(0), 125 * _NS),
}
