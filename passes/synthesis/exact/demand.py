"""The demand of a collective: items with a source, the ranks that must receive them, and links."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from math import gcd, lcm

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.collective import CUSTOM, Collective
from collc.ir.topology import Topology

__all__ = ["Demand"]


@attrs.frozen(eq=False)
class Demand:
    """Items that start at one rank and must reach others, over pairs of ranks with a capacity.

    An item is a shard, or for broadcast the whole vector. Item i starts at ``source[i]``, and ``wanted[i, r]`` tells
    whether rank r must receive it. ``tail``, ``head`` and ``width`` are the pairs of linked ranks and the bandwidth of
    all their links, in multiples of ``unit``; ``pair[k]`` is the pair of link k, -1 for loops.
    """

    topology: Topology
    collective: Collective
    source: Array
    required: Array
    tail: Array
    head: Array
    width: Array
    pair: Array
    unit: Fraction

    @classmethod
    def of(cls, topology: Topology, collective: Collective) -> Demand:
        """Return the demand of a collective that copies and does not reduce, on a network of ranks."""
        n = collective.num_ranks
        if collective.kind == "broadcast":
            source = np.array([collective.root])
            required = np.ones((1, n), dtype=bool)
        else:
            shards = np.arange(collective.num_shards)
            source = np.array([collective.source(s) for s in shards.tolist()])
            required = collective.wants(np.arange(n)[None, :], shards[:, None])
        required = required.copy()
        required[np.arange(len(source)), source] = False
        tail, head, width, pair, unit = _pairs(topology)
        return cls(topology, collective, source, required, tail, head, width, pair, unit)

    @property
    def num_ranks(self) -> int:
        """Ranks of the collective."""
        return self.collective.num_ranks

    @property
    def items_per_vector(self) -> int:
        """The number of items in the vector of size M."""
        if self.collective.kind == CUSTOM:
            return self.collective.whole
        return 1 if self.collective.kind == "broadcast" else self.num_ranks

    @property
    def spreads(self) -> bool:
        """Whether every item goes to all ranks."""
        return self.collective.kind in ("allgather", "broadcast")

    @property
    def rooted(self) -> bool:
        """Whether all items start, or all end, at one rank, with one receiver each: then a flow is a schedule."""
        return self.collective.kind in ("gather", "scatter")

    @property
    def folds(self) -> bool:
        """Whether a group moves every rank, so that rank 0's items can represent all."""
        return self.topology.symmetry is not None and self.collective.kind in ("allgather", "alltoall")

    @property
    def folded_items(self) -> int:
        """How many items start at rank 0; they are the first ones."""
        return self.num_ranks if self.collective.kind == "alltoall" else 1

    @cached_property
    def steps_bound(self) -> int:
        """The most hops from an item's source to one of its receivers."""
        hops = self.topology.distances[self.source, : self.num_ranks]
        return int(hops[self.required].max(initial=0))


def _pairs(topology: Topology) -> tuple[Array, Array, Array, Array, Fraction]:
    """Join parallel links to pairs (tail, head), ascending, with integer widths in multiples of a common unit."""
    real = np.flatnonzero(topology.src != topology.dst)
    key = topology.src[real].astype(np.int64) * topology.num_nodes + topology.dst[real]
    keys, number = np.unique(key, return_inverse=True)
    pair = np.full(topology.num_links, -1, dtype=np.int64)
    pair[real] = number
    widths = [topology.bandwidth(int(k)) for k in real]
    unit = Fraction(gcd(*(w.numerator for w in widths)) or 1, lcm(*(w.denominator for w in widths)))
    width = np.zeros(len(keys), dtype=np.int64)
    for k, w in zip(number.tolist(), widths, strict=True):
        width[k] += int(w / unit)
    return keys // topology.num_nodes, keys % topology.num_nodes, width, pair, unit
