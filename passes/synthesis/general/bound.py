"""The least time of a collective that copies, proved by prices of links."""

from __future__ import annotations

from fractions import Fraction

from collc.ir.collective import Collective
from collc.ir.costs.certificate import Bound, Prices
from collc.ir.costs.commodities import commodities, commodity_bound
from collc.ir.graph.bottleneck import whole_bandwidths
from collc.ir.topology import Topology

from .mix import mixed

__all__ = ["MOST_SHARDS", "general_bound"]

#: the most shards of a search
MOST_SHARDS = 1 << 16


def general_bound(topology: Topology, collective: Collective) -> Bound:
    """Return the best bound on the time per byte of M and unit of bandwidth: by sets of nodes, or by prices of links.

    With more than :data:`MOST_SHARDS` shards, where the search for prices would take long, it is that of sets of nodes;
    so it is if switches copy shards of several targets, since the prices are of trees that branch at ranks alone.
    Raises C0301 if a target cannot be reached.
    """
    simple = commodity_bound(topology, collective)
    copied = bool(topology.multicast) and any(len(one.targets) > 1 for one in commodities(collective))
    if collective.num_shards > MOST_SHARDS or copied:
        return simple
    proof = mixed(topology, collective).proof
    _, scale = whole_bandwidths(topology)
    value = proof.value * scale / collective.whole
    if value <= simple.value:
        return simple
    certificate = Prices(proof.prices, proof.paid, Fraction(proof.capacity) / scale)
    return Bound(value, "all-schedules", "prices of links", certificate)
