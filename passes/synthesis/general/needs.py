"""The network and the commodities that trees connect."""

from __future__ import annotations

import attrs

from collc.ir.collective import Collective
from collc.ir.connectivity import not_connected
from collc.ir.costs.commodities import Commodity, commodities
from collc.ir.graph.bottleneck import whole_bandwidths
from collc.ir.topology import Topology

__all__ = ["Needs"]


@attrs.frozen(eq=False)
class Needs:
    """The commodities of a collective, by source and targets, and the links that may carry them.

    ``out[v]`` lists (link, head) of the links out of node v without loops, ``into[v]`` (link, tail); ``tails`` are the
    links' tails. ``widths`` are their bandwidths in whole units; loops have 0.
    """

    topology: Topology
    collective: Collective
    commodities: tuple[Commodity, ...]
    out: tuple[tuple[tuple[int, int], ...], ...]
    into: tuple[tuple[tuple[int, int], ...], ...]
    tails: tuple[int, ...]
    widths: tuple[int, ...]

    @classmethod
    def of(cls, topology: Topology, collective: Collective) -> Needs:
        """Return the needs of a collective that does not reduce. Raises C0301 if a target cannot be reached."""
        out: list[list[tuple[int, int]]] = [[] for _ in range(topology.num_nodes)]
        into: list[list[tuple[int, int]]] = [[] for _ in range(topology.num_nodes)]
        tails = tuple(topology.src.tolist())
        for link, (tail, head) in enumerate(zip(tails, topology.dst.tolist(), strict=True)):
            if tail != head:
                out[tail].append((link, head))
                into[head].append((link, tail))
        found = commodities(collective)
        widths = tuple(whole_bandwidths(topology)[0])
        return cls(topology, collective, found, tuple(map(tuple, out)), tuple(map(tuple, into)), tails, widths)

    @property
    def pointed(self) -> bool:
        """Whether every commodity has one target."""
        return all(len(one.targets) == 1 for one in self.commodities)

    def one_by_one(self) -> Needs:
        """Return the needs of one target at a time: no rank passes on what it needs itself."""
        alone = [attrs.evolve(one, targets=(target,)) for one in self.commodities for target in one.targets]
        return attrs.evolve(self, commodities=tuple(alone))

    def require_routes(self) -> None:
        """Raise C0301 unless there is a route from the source of every shard to all its targets."""
        topology = self.topology
        by_source: dict[int, set[int]] = {}
        for one in self.commodities:
            by_source.setdefault(one.source, set()).update(one.targets)
        for source, targets in by_source.items():
            hops = topology.hops_from(source)
            if any(hops[target] < 0 for target in targets):
                name = topology.names[source]
                need = f"{self.collective.name} needs a route from rank {name} to every rank that needs its shards"
                raise not_connected(topology, need, source, True)
