"""The two tiers of a cluster: its boxes, and what each rank may send to and receive from the fabric."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from math import gcd, lcm

import numpy as np

from collc.ir.arrays import Array
from collc.ir.frozen import frozen
from collc.ir.graph.boxes import Boxes
from collc.ir.topology import Topology

__all__ = ["Cluster"]

_MOST_UNITS = 1 << 16
#: the largest scale in which shares are exact, and the one in which they are not
_MOST_SCALE, _FINE = 1 << 16, 1 << 14


@frozen(eq=False)
class Cluster:
    """A network with boxes. ``out`` and ``into`` are the bandwidths of each rank's own links to and from the fabric, in
    units of one bandwidth, ``unit``: shape (ranks,).

    If no rank of a box has a link of its own out of the box, all links of its ranks count: they lead to the fabric too.
    """

    topology: Topology
    boxes: Boxes
    out: Array
    into: Array
    unit: Fraction

    @classmethod
    def of(cls, topology: Topology, boxes: Boxes) -> Cluster:
        """Return the two tiers of a network with these boxes."""
        out = _to_fabric(topology, boxes, topology.src, topology.dst)
        into = _to_fabric(topology, boxes, topology.dst, topology.src)
        parts = lcm(*(value.denominator for value in (*out, *into)))
        numbers = [int(value * parts) for value in (*out, *into)]
        common = gcd(*numbers) or 1
        if max(numbers) // common > _MOST_UNITS:  # far more digits than bandwidths have: every rank counts alike
            numbers, common, parts = [int(value > 0) for value in (*out, *into)], 1, 1
        units = np.array(numbers, dtype=np.int64) // common
        n = topology.num_ranks
        return cls(topology, boxes, units[:n], units[n:], Fraction(common, parts))

    def __len__(self) -> int:
        return len(self.boxes)

    @cached_property
    def box_of(self) -> Array:
        """The box of each rank."""
        return self.boxes.box_of.astype(np.int64)

    @cached_property
    def totals(self) -> tuple[Array, Array]:
        """The units of bandwidth of each box to the fabric, and from it: two arrays of shape (boxes,)."""
        out, into = (np.bincount(self.box_of, units, len(self)).astype(np.int64) for units in (self.out, self.into))
        return out, into

    @property
    def is_even(self) -> bool:
        """Whether all boxes have the same bandwidth to the fabric and from it."""
        return len({*self.totals[0].tolist(), *self.totals[1].tolist()}) == 1

    @cached_property
    def scale(self) -> int:
        """Shares of a stream between two boxes are whole in 1/scale of it: a common multiple of all boxes' units, or if
        that is too large, a number that is fine enough.
        """
        exact = lcm(*self.totals[0].tolist(), *self.totals[1].tolist())
        return exact if exact <= _MOST_SCALE else _FINE

    @cached_property
    def shares(self) -> tuple[Array, Array]:
        """The share of each rank in what its box sends over the fabric, and in what it receives, in 1/scale."""
        out, into = (
            self._shares(units, totals) for units, totals in zip((self.out, self.into), self.totals, strict=True)
        )
        return out, into

    def _shares(self, units: Array, totals: Array) -> Array:
        ends = np.zeros(len(units), dtype=np.int64)
        for ranks in self.boxes.ranks:
            ends[list(ranks)] = np.cumsum(units[list(ranks)])
        total = totals[self.box_of]
        shares: Array = ends * self.scale // total - (ends - units) * self.scale // total
        return shares

    def between(self, demand: Array) -> Array:
        """Return the sums of a matrix of ranks over the ranks of each pair of boxes: shape (boxes, boxes)."""
        first = np.array([ranks[0] for ranks in self.boxes.ranks])
        order = np.argsort(self.box_of, kind="stable")
        starts = np.searchsorted(self.box_of[order], self.box_of[first])
        moved = demand[order][:, order]
        sums: Array = np.add.reduceat(np.add.reduceat(moved, starts, axis=0), starts, axis=1)
        return sums

    def fabric_time(self, demand: Array) -> Fraction:
        """Return the least time in which the fabric's links of the busiest box carry a matrix of ranks."""
        between = self.between(demand)
        np.fill_diagonal(between, 0)
        rows, columns = between.sum(axis=1).tolist(), between.sum(axis=0).tolist()
        out, into = (units.tolist() for units in self.totals)
        return max(Fraction(sum_, units) for sum_, units in zip((*rows, *columns), (*out, *into), strict=True)) / (
            self.unit
        )

    def inside_bandwidth(self) -> Fraction:
        """Return the least bandwidth out of a rank, or into one, over the links of its box; 0 if it has none."""
        return min(
            min(_sums(self.topology, ends, np.flatnonzero(self.boxes.inside)))
            for ends in (self.topology.src, self.topology.dst)
        )


def _sums(topology: Topology, ends: Array, links: Array) -> list[Fraction]:
    found = [Fraction(0)] * topology.num_ranks
    for link in links.tolist():
        if int(ends[link]) < topology.num_ranks:
            found[int(ends[link])] += topology.bandwidth(link)
    return found


def _to_fabric(topology: Topology, boxes: Boxes, near: Array, far: Array) -> list[Fraction]:
    """Return the bandwidth of each rank's links that leave its box (``near`` are their ends at the rank)."""
    found = _sums(topology, near, np.flatnonzero(~boxes.inside & (near != far)))
    shared = _sums(topology, near, np.flatnonzero(near != far))
    for ranks in boxes.ranks:
        if not any(found[rank] for rank in ranks):
            for rank in ranks:
                found[rank] = shared[rank]
    return found
