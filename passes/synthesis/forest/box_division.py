"""How many trees a rank of a cluster roots in an allreduce, so that the fabric is always busy.

An out-tree crosses the fabric once for every box but its root's, and so does the in-tree that it belongs to. So T trees
of n boxes use 2 (n - 1) T of the boxes' bandwidth to the fabric, and at most the bandwidth of the weakest box enters it
and leaves it: the bandwidth of an allreduce is at most the smaller of sum / (2 (n - 1)) and the weakest. All ranks may
root equally many: what enters a weak box leaves less for the way out, and other boxes send its trees on.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm

import attrs

from collc.ir.topology import Topology

from .boxes import Cluster

__all__ = ["BoxRoots", "box_roots"]


@attrs.frozen
class BoxRoots:
    """``k`` trees of every rank, ``per_unit`` trees per unit of bandwidth, and the bandwidth of the allreduce."""

    k: int
    per_unit: Fraction
    value: Fraction


def box_roots(topology: Topology, boxes: Cluster) -> BoxRoots | None:
    """Return the roots of an allreduce; None if some links to the fabric have no reverse of the same bandwidth."""
    width = [Fraction(0)] * topology.num_ranks
    for v, (up, down) in enumerate(zip(boxes.up, boxes.down, strict=True)):
        if (up < 0) != (down < 0) or (up >= 0 and topology.bandwidth(up) != topology.bandwidth(down)):
            return None
        if up >= 0:
            width[v] = topology.bandwidth(up)
    whole = [sum((width[v] for v in box.ranks), Fraction(0)) for box in boxes.boxes]
    value = min(sum(whole, Fraction(0)) / (2 * len(whole) - 2), *whole)
    if not value:
        return None
    share = topology.num_ranks / value
    k = lcm(*((one * share).denominator for one in dict.fromkeys(width) if one))
    return BoxRoots(k, k * share, value)
