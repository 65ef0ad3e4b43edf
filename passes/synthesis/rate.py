"""The all-to-all rate: LP (3) of the direct-connect paper (A.5), exact or between bounds that are.

f is the largest amount that every rank can send to every other at once, on links of capacity 1. With links of bandwidth
b an all-to-all of M bytes a rank takes at least M / (N f b); in the paper's units T_B >= d / (N f).
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm
from typing import Any

import attrs
import numpy as np

from collc.ir.diagnostic import error
from collc.ir.isomorphism import orbits
from collc.ir.topology import Topology

from .flow.cayley import cayley_rate
from .flow.columns import Commodities, column_rate, good_prices
from .flow.line_rate import lifted
from .flow.paths import Network

__all__ = ["Rate", "alltoall_rate", "cayley_rate", "rate_bound"]

Array = np.ndarray[Any, np.dtype[Any]]

#: How near the bounds come to each other, relatively, unless told otherwise.
GAP = Fraction(1, 10**5)
_ROUNDS = 150
_SMALL = 1 << 14  # sources times classes of links: less is quickly exact


@attrs.frozen
class Rate:
    """f lies between ``lower`` (a routing reaches it) and ``upper`` (prices of links prove it)."""

    lower: Fraction
    upper: Fraction

    @property
    def exact(self) -> bool:
        return self.lower == self.upper

    @property
    def value(self) -> Fraction | None:
        """The rate, where it is known exactly."""
        return self.lower if self.exact else None


def alltoall_rate(topology: Topology, gap: Fraction = GAP, rounds: int = _ROUNDS) -> Rate:
    """Return the rate f of LP (3).

    A link's capacity is 1, and where links differ, its bandwidth over the least one. Switches pass data on. The rate is
    exact on networks that know their symmetry (unless a ``gap`` wider than usual is enough), and mostly on others; else
    the bounds are within ``gap`` of each other, relatively, or as near as so many ``rounds`` bring them. Raises C0301
    (not strongly connected), C0560 (fewer than 2 ranks).
    """
    if topology.num_ranks < 2:
        raise error(
            "C0560",
            f"an all-to-all rate needs at least 2 ranks; `{topology.name}` has {topology.num_ranks}",
            hint="choose a larger topology",
        )
    topology.require_connected("an all-to-all")
    return Rate(*(_symmetric(topology, gap) or _general(topology, gap, rounds)))


def rate_bound(num_ranks: int, degree: int) -> Fraction:
    """Return the largest rate that any network of this size and degree could have.

    The other ranks are at the distances of Moore's bound, and all paths are shortest: f <= d / (sum of distances).

    >>> round(float(rate_bound(32, 4)), 4), round(float(rate_bound(1024, 4)), 6)
    (0.058, 0.000857)
    """
    left, hops, total = num_ranks - 1, 1, 0
    reach = degree
    while left > 0:
        here = min(reach, left)
        total, left, hops, reach = total + here * hops, left - here, hops + 1, reach * degree
    return Fraction(degree, total)


def capacities(topology: Topology) -> list[Fraction]:
    """Return the bandwidth of every class of links over the least of a link that is no loop."""
    used = np.unique(topology.link_class[topology.src != topology.dst]).tolist()
    least = min(topology.classes[c].bandwidth for c in used)
    return [kind.bandwidth / least for kind in topology.classes]


def _symmetric(topology: Topology, gap: Fraction) -> tuple[Fraction, Fraction] | None:
    """The rate of a network with a group: its links in the order that the group keeps."""
    n = topology.num_ranks
    if topology.symmetry is None or not topology.is_direct:
        return None
    kinds = topology.link_class.reshape(n, -1)
    if (kinds != kinds[0]).any():
        return None
    widths = capacities(topology)
    return cayley_rate(
        topology.dst.reshape(n, -1).astype(np.int64), [widths[k] for k in kinds[0]], Fraction(0) if gap <= GAP else gap
    )


def _everyone(topology: Topology) -> Array:
    """One unit for every rank, none for switches; shape (nodes, 1)."""
    return (np.arange(topology.num_nodes) < topology.num_ranks).astype(np.int64)[:, None]


def _general(topology: Topology, gap: Fraction, rounds: int) -> tuple[Fraction, Fraction]:
    kinds = _Kinds.of(topology)
    widths = capacities(topology)
    scale = lcm(*(width.denominator for width in widths))
    width = np.array([int(widths[c] * scale) for c in topology.link_class[kinds.links].tolist()])
    what = kinds.commodities(topology, _everyone(topology), width)
    lower, upper = column_rate(what, gap, rounds, _from_base(topology, what, rounds))
    return lower / scale, upper / scale


def _from_base(topology: Topology, what: Commodities, rounds: int) -> Array | None:
    """Return prices of the classes of a large line graph's links, from those of its base."""
    if len(what.sources) * what.classes <= _SMALL:
        return None
    prices = lifted(topology, lambda base, pairs: _base_prices(base, pairs, rounds))
    if prices is None:
        return None
    found = np.zeros(what.classes)
    used = topology.src != topology.dst
    found[what.link_class[used]] = prices[used]
    return found


def _base_prices(base: Topology, pairs: Array, rounds: int) -> Array:
    """Return prices of a base's links for so many data from node to node; loops have none."""
    kinds = _Kinds.of(base)
    what = kinds.commodities(base, pairs[kinds.sources].T, np.ones(len(kinds.links), dtype=np.int64))
    prices = good_prices(what, GAP, rounds)[what.link_class]
    return np.where(base.src != base.dst, prices, 0.0)


@attrs.frozen(eq=False)
class _Kinds:
    """One source, and one link, for every orbit under automorphisms, and how many there are of each."""

    sources: Array
    source_count: Array
    links: Array
    link_count: Array
    kind: Array

    @classmethod
    def of(cls, topology: Topology) -> _Kinds:
        node_orbit, link_orbit = orbits(topology)
        _, sources, count = np.unique(node_orbit[: topology.num_ranks], return_index=True, return_counts=True)
        kinds, links, size = np.unique(link_orbit, return_index=True, return_counts=True)
        return cls(sources, count, links, size, np.searchsorted(kinds, link_orbit))

    def commodities(self, topology: Topology, wanted: Array, width: Array) -> Commodities:
        """Return what is to be routed; ``width`` is of one link of every orbit. Loops carry nothing: no class."""
        src, dst = topology.src.astype(np.int64), topology.dst.astype(np.int64)
        useful = src[self.links] != dst[self.links]
        number = np.maximum(np.cumsum(useful) - 1, 0)
        return Commodities(
            Network.of(topology.num_nodes, src, dst), wanted, self.sources, self.source_count,
            number[self.kind], (self.link_count * width)[useful],
        )  # fmt: skip
