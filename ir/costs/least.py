"""The least time of a collective at a size: what no schedule without coding goes below, latency and bandwidth."""

from __future__ import annotations

from fractions import Fraction

from ..topology import Topology
from .cost import DEFAULT_ALPHA, Cost, unit_seconds

__all__ = ["least_steps", "least_time"]


def least_steps(cost: Cost) -> int:
    """Return the least steps of one phase: the Moore bound where the network has one, else 1; 0 for a single rank.

    An allreduce in one phase needs as many: every rank must hear of every other.
    """
    if cost.taking_part < 2:
        return 0
    return max((cost.T_L_bound or 0) // cost.phases, 1)


def least_time(cost: Cost, topology: Topology, size: int) -> Fraction:
    """Return a lower bound on the exact seconds for M of ``size`` bytes, under the assumptions of ``predict``.

    Every step takes the least latency of a link at least, and all steps together the bandwidth time of the bound.

    >>> import collc
    >>> found = collc.compile_source("collective sums = allreduce on biring(4);")["sums"]
    >>> least_time(found.cost, found.schedule.topology, 0), found.cost.time(0)
    (Fraction(1, 50000), Fraction(1, 25000))
    """
    least = min((kind.latency for kind in topology.classes), default=Fraction(0))
    alpha = least if cost.timed else DEFAULT_ALPHA
    return least_steps(cost) * alpha + cost.bound.value * unit_seconds(topology) * size
