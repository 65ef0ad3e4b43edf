"""The times of collectives on a topology, for the model of an iteration; and the least times of any topology."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import attrs

from collc.ir.collective import Collective
from collc.ir.costs.bounds import moore_steps
from collc.ir.costs.cost import DEFAULT_ALPHA, DEFAULT_BANDWIDTH, Cost, cost, unit_seconds
from collc.ir.costs.pieces import fastest_pieces
from collc.ir.costs.training import Network
from collc.ir.spec import Problem
from collc.ir.topology import Topology

from ..synthesis.breadth_first.bfb import BFB
from ..synthesis.flow.rate import Rate, bound_of, quick_bracket, rate_bound
from .database import Row
from .measure import bfb_costs, with_reduce_scatter

__all__ = ["Pair", "Values", "least_network", "network_of", "networks", "row_network"]


@attrs.frozen
class Values:
    """The latency of a step (seconds) and B, the bandwidth out of a node (bytes per second); None: the topology's own,
    or 10 us and 100 Gbps if it has none.
    """

    alpha: Fraction | None = None
    bandwidth: Fraction | None = None


@attrs.frozen(eq=False)
class Pair:
    """A topology's times, the least times that bound them, and the scheduler of its allreduce."""

    network: Network
    bound: Network
    scheduler: str
    ranks: int


def networks(topology: Topology, name: str, values: Values, alltoall: bool) -> Pair:
    """Return the times on a topology and their bounds; the all-to-all's only if the workload has one.

    On equal links out of every rank, ``bfb`` schedules the allreduce, and the bound holds for any topology of as many
    ranks and links. On other networks ``forest`` does, and the bound is that of this network. Raises C0301 (not
    strongly connected).
    """
    if topology.num_ranks < 2:
        alone = Network(name, affine(Fraction(0), Fraction(0)), Fraction(0))
        return Pair(alone, alone, "", topology.num_ranks)
    rate = quick_bracket(topology) if alltoall else None
    pair = _of_rate(topology, name, values, rate)
    found, bound = (attrs.evolve(one, launch=topology.epsilon) for one in (pair.network, pair.bound))
    return attrs.evolve(pair, network=found, bound=bound)


def _of_rate(topology: Topology, name: str, values: Values, rate: Rate | None) -> Pair:
    if topology.degree and topology.is_direct and topology.is_uniform:
        return _regular(topology, name, values, rate)
    return _irregular(topology, name, values, rate)


def network_of(topology: Topology, name: str, values: Values, alltoall: bool = True) -> Network:
    """Return the times on a topology."""
    return networks(topology, name, values, alltoall).network


def _regular(topology: Topology, name: str, values: Values, rate: Rate | None) -> Pair:
    nodes, degree = topology.num_ranks, topology.degree or 0
    steps, bandwidth = bfb_costs(topology)
    row = Row(name, nodes, degree, steps, bandwidth, 0, topology.reverse_links is not None)
    row = with_reduce_scatter(row, lambda _: topology)
    own = topology.classes[int(topology.link_class[0])]
    alpha = (own.latency or DEFAULT_ALPHA) if values.alpha is None else values.alpha
    absolute = topology.node_bandwidth if topology.unit == "B/s" else None
    total = (absolute or DEFAULT_BANDWIDTH) if values.bandwidth is None else values.bandwidth
    found = row_network(attrs.evolve(row, alltoall_rate=None if rate is None else rate.lower), alpha, total)
    if topology.gamma:
        plain, adding = found.allreduce, topology.gamma * _allreduce_cost(topology).reduced
        found = attrs.evolve(found, allreduce=lambda size: plain(size) + adding * size)
    return Pair(found, least_network(nodes, degree, alpha, total), "bfb", nodes)


def _allreduce_cost(topology: Topology) -> Cost:
    return cost(BFB().run(Problem(topology, Collective("allreduce", topology.num_ranks))))


def row_network(row: Row, alpha: Fraction, bandwidth: Fraction) -> Network:
    """Return the times on a topology of the finder: sections A.2 and A.5 of the direct-connect paper.

    ``bandwidth`` is B, out of a node. A node sends M/N to every other at the rate f of links of B/d.
    """
    rate = row.alltoall_rate
    per_byte = row.degree / (row.nodes * rate * bandwidth) if rate else None
    return Network(row.expression, affine(2 * row.T_L * alpha, row.allreduce_T_B / bandwidth), per_byte)


def least_network(nodes: int, degree: int, alpha: Fraction, bandwidth: Fraction) -> Network:
    """Return the least times of any topology: Moore's bound, Theorem 4, and distances of Moore's bound (A.5)."""
    per_byte = degree / (nodes * rate_bound(nodes, degree) * bandwidth) if nodes > 1 else Fraction(0)
    both = Fraction(2 * (nodes - 1), nodes)
    return Network("bound", affine(2 * moore_steps(nodes, degree) * alpha, both / bandwidth), per_byte)


def affine(latency: Fraction, per_byte: Fraction) -> Callable[[int], Fraction]:
    """Return the time of a size: a latency (seconds), and seconds per byte; nothing takes no time."""
    return lambda size: latency + per_byte * size if size else Fraction(0)


def _irregular(topology: Topology, name: str, values: Values, rate: Rate | None) -> Pair:
    """Return the times of a network with switches, or of different links."""
    from ..synthesis.forest.scheduler import ForestScheduler

    trees = ForestScheduler().run(Problem(topology, Collective("allreduce", topology.num_ranks)))
    seconds = unit_seconds(topology, values.bandwidth)
    known: dict[int, Fraction] = {0: Fraction(0)}

    def time(size: int) -> Fraction:
        if size not in known:
            known[size] = fastest_pieces(trees, size, values.alpha, values.bandwidth)[0]
        return known[size]

    least, above = cost(trees).bound.value * seconds, None
    if rate is not None:
        bound = bound_of(topology, rate)
        above = (bound.value, bound.value if bound.above is None else bound.above)
    found = Network(name, time, None if above is None else above[1] * seconds)
    bounds = Network("bound", affine(Fraction(0), least), None if above is None else above[0] * seconds)
    return Pair(found, bounds, "forest", topology.num_ranks)
