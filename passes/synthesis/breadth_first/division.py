"""The rule that divides a node's jobs among equal or different in-links, in any parts or in whole chunks."""

from __future__ import annotations

from fractions import Fraction

import attrs
import numpy as np

from collc.ir.arrays import Array, distinct
from collc.ir.collective import Collective
from collc.ir.costs.cost import DEFAULT_BANDWIDTH
from collc.ir.topology import Topology

from .balance import Balance, Flow, Histogram, balance, divide
from .chunked import balance_chunks
from .heterogeneous import Pace, balance_unlike, divide_unlike

__all__ = ["Division", "Kinds", "division_for"]
#: the kind of each of a node's in-links; empty if all links of the network are equal
Kinds = tuple[int, ...]


@attrs.frozen
class Division:
    """``pace`` by link class, None if the links are equal; ``chunks`` per shard, None for any parts."""

    pace: tuple[Pace, ...] | None = None
    chunks: int | None = None

    def kinds(self, topology: Topology, slots: Array) -> Array:
        """Return for every node the kinds of its in-links ``slots`` (a row a node, padded with -1)."""
        if self.pace is None:
            return np.zeros((len(slots), 0), dtype=np.int64)
        number = np.array([self.pace.index(pace) for pace in self.pace])  # classes of the same pace are one kind
        return np.where(slots < 0, -1, number[topology.link_class[slots]])

    def divide(self, histogram: Histogram, kinds: Kinds) -> Balance:
        """Return the optimal division of a node's jobs at one step."""
        if self.pace is not None:
            return balance_unlike(histogram, tuple(self.pace[k] for k in kinds), self.chunks)
        return balance(histogram) if self.chunks is None else balance_chunks(histogram, self.chunks)

    def flow(self, histogram: Histogram, kinds: Kinds) -> Flow:
        """Return the optimal division of a node's jobs at one step in any parts, before jobs are cut."""
        if self.pace is not None:
            return divide_unlike(histogram, tuple(self.pace[k] for k in kinds))
        return divide(histogram)


def division_for(topology: Topology, collective: Collective, chunks: int | None, size: int | None) -> Division:
    """Return the rule for a collective of ``size`` bytes (M); None ignores latencies.

    If links differ in bandwidth only, the size plays no role. Bandwidths in link units are converted as in predictions
    (:func:`collc.ir.costs.cost.predict`).
    """
    used = distinct(topology.link_class[topology.src != topology.dst])
    classes = [topology.classes[c] for c in used]
    if len(set(classes)) <= 1:
        return Division(chunks=chunks)
    if size is None or len({c.latency for c in classes}) == 1:
        return Division(tuple(Pace(Fraction(0), c.bandwidth) for c in topology.classes), chunks)
    shards = _bytes_per_second(topology) * collective.whole / max(size, 1)
    return Division(tuple(Pace(c.latency, c.bandwidth * shards) for c in topology.classes), chunks)


def _bytes_per_second(topology: Topology) -> Fraction:
    """Return the bytes per second of one unit of bandwidth."""
    if topology.unit == "B/s":
        return Fraction(1)
    return DEFAULT_BANDWIDTH / (topology.node_bandwidth or 1)
