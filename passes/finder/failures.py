"""The exact cost of an allgather by breadth first after the worst failure of one cable, and of one node.

Links (and nodes) that a symmetry of the network maps to each other fail with the same cost, so one of each orbit is
enough: one node of a Cayley graph, and one for every walk from a node of the Cayley graph whose line graph it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.progress import counting
from collc.ir.topology import Topology

from .evaluate import in_masks, load_unit, node_loads
from .wide import greatest_load

__all__ = ["After", "after_failures", "strict_cost"]

#: evaluations times the square of the number of nodes, up to which failures are evaluated: about a minute
MOST_EFFORT = 400_000_000
_NARROW_DEGREE = 8


@attrs.frozen
class After:
    """The cost after the worst failure: the most steps, and the greatest bandwidth time, perhaps of two failures.

    ``state`` is ``computed``, ``disconnected`` if some failure leaves ranks without a route, or ``not computed`` if
    that takes too long. Without costs they are None. ``evaluated`` failures stand for all.
    """

    state: str
    T_L: int | None = None
    T_B: Fraction | None = None
    evaluated: int = 0


def after_failures(topology: Topology) -> tuple[After, After]:
    """Return the costs after the worst failure of a cable and of a node.

    A cable is a link, or where every link has its reverse, both. T_B is in units of M/B with the bandwidth B that nodes
    have without failures; after the failure of a node M is the data of the others.
    """
    links, nodes = list(_cables(topology)), _nodes(topology)
    if (len(links) + len(nodes)) * topology.num_ranks**2 > MOST_EFFORT:
        return After("not computed"), After("not computed")
    degree = topology.degree or 0
    cut = [strict_cost(_without_links(topology, failed), degree) for failed in counting(links, "failures of links")]
    lost = [strict_cost(_without_node(topology, int(node)), degree) for node in counting(nodes, "failures of nodes")]
    return _worst(cut), _worst(lost)


def _worst(costs: list[tuple[int, Fraction] | None]) -> After:
    known = [cost for cost in costs if cost is not None]
    if len(known) < len(costs):
        return After("disconnected", evaluated=len(costs))
    most = max((cost[0] for cost in known), default=0), max((cost[1] for cost in known), default=Fraction(0))
    return After("computed", *most, evaluated=len(costs))


# ---- orbits


def _nodes(topology: Topology) -> Array:
    """Return one node of every orbit of the symmetries that are known, the lowest."""
    if topology.symmetry is not None:
        return np.arange(1)
    origin = topology.origin
    base = origin.bases[0] if origin is not None and origin.name == "line" else None
    if base is not None and base.symmetry is not None and topology.num_ranks % base.num_ranks == 0:
        return np.arange(topology.num_ranks // base.num_ranks)  # the walks from rank 0 of the base
    return np.arange(topology.num_ranks)


def _cables(topology: Topology) -> Iterator[list[int]]:
    """Yield the links of one cable of every orbit; loops carry no data and do not count."""
    partner = topology.reverse_links
    owners = np.isin(topology.src, _nodes(topology))
    degree = topology.degree or 1
    seen: set[int] = set()
    for link in np.flatnonzero(owners & (topology.src != topology.dst)).tolist():
        if partner is None:
            yield [link]
            continue
        # under a regular symmetry the orbit of a link is its place among its node's links
        kind, other = (link, int(partner[link]))
        if topology.symmetry is not None:
            kind, other = kind % degree, other % degree
        if kind not in seen:
            seen |= {kind, other}
            yield [link, int(partner[link])]


# ---- what is left


def _without_links(topology: Topology, failed: list[int]) -> Topology:
    kept = np.ones(topology.num_links, dtype=bool)
    kept[failed] = False
    return _rest(topology, kept, topology.src[kept], topology.dst[kept], topology.num_ranks)


def _without_node(topology: Topology, node: int) -> Topology:
    kept = (topology.src != node) & (topology.dst != node)
    src, dst = topology.src[kept].astype(np.int64), topology.dst[kept].astype(np.int64)
    return _rest(topology, kept, src - (src > node), dst - (dst > node), topology.num_ranks - 1)


def _rest(topology: Topology, kept: Array, src: Array, dst: Array, ranks: int) -> Topology:
    return attrs.evolve(
        topology, num_ranks=ranks, src=src, dst=dst, link_class=topology.link_class[kept], node_names=None,
        symmetry=None, origin=None,
    )  # fmt: skip


def strict_cost(topology: Topology, degree: int) -> tuple[int, Fraction] | None:
    """Return T_L and T_B by strict breadth first on equal links between ranks; None if the network is not connected.

    ``degree`` links have the bandwidth B of T_B; nodes may have fewer.
    """
    nodes = topology.num_ranks
    if not topology.is_connected:
        return None
    if nodes < 2:
        return 0, Fraction(0)
    hops, masks, width = in_masks(topology, np.arange(nodes))
    steps = int(hops.max())
    if width > _NARROW_DEGREE:
        masks = masks.astype(np.int64)
        loads = (greatest_load(np.where(hops == step, masks, 0), width) for step in range(1, steps + 1))
        return steps, sum(loads, Fraction(0)) * degree / nodes
    total = int(node_loads(hops, masks, width).max(axis=0, initial=0).sum())
    return steps, Fraction(degree * total, load_unit(width) * nodes)
