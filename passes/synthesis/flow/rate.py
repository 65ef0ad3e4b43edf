"""The all-to-all rate: LP (3) of the direct-connect paper (A.5), exact or between exact bounds.

f is the largest amount that every rank can send to every other at once, on links of capacity 1. With links of bandwidth
b an all-to-all of M bytes a rank takes at least M / (N f b); in the paper's units T_B >= d / (N f).
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import lcm

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.costs.certificate import Bound, Prices
from collc.ir.diagnostic import error
from collc.ir.graph.isomorphism import orbits
from collc.ir.topology import Topology

from .cayley import cayley_bracket, cayley_rate
from .classes import Classes
from .columns import Bracket, Commodities, column_rate, good_prices, quick_rate
from .line_rate import line_graph_prices
from .narrowing import narrowed
from .paths import Network
from .quotient import best_flows, best_prices

__all__ = ["Rate", "alltoall_bound", "alltoall_rate", "cayley_rate", "commodities_of", "quick_bracket", "rate_bound"]

#: Default relative gap between the bounds.
GAP = Fraction(1, 10**5)
_ROUNDS = 150
_SMALL = 1 << 14  # sources times classes of links: smaller networks are quickly exact
#: Limits on the work of a bound. Linear programs of trees: sources times classes, and classes. Cheapest paths: ranks
#: times links, without and with a known symmetry.
_EXACT, _ROWS, _MOST_QUICK, _MOST_SYMMETRIC = 6_500, 320, 1 << 23, 1 << 30
_MOST_CLASSES, _MOST_COLUMNS = 1 << 20, 2500  # pairs of a source and a link, and classes of them
_LARGEST_PRICE = 1 << 40  # sums of such prices do not overflow
_NARROW = Fraction(1, 500)  # a bracket no wider, relatively, is not improved
_COARSE = 2**16  # the dearest link's price in a bracket's certificate


@attrs.frozen
class Rate:
    """f lies between ``lower`` (a routing reaches it) and ``upper`` (whole prices of links prove it).

    Link k has price k modulo their number. With y the prices, b bandwidths over the least one, and d(s, t) the cost of
    the cheapest route from rank s to rank t: upper = sum b(e) y(e) / sum d(s, t).
    """

    lower: Fraction
    upper: Fraction
    prices: tuple[int, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether the bounds from below and above are equal."""
        return self.lower == self.upper

    @property
    def value(self) -> Fraction | None:
        """The exact rate, or None."""
        return self.lower if self.exact else None


def alltoall_rate(topology: Topology, gap: Fraction = GAP, rounds: int = _ROUNDS) -> Rate:
    """Return the rate f of LP (3).

    A link's capacity is its bandwidth over the least one. Switches forward data. The rate is exact on networks with a
    known symmetry (unless ``gap`` is wider than the default), and mostly on others. Otherwise the bounds are within
    ``gap`` of each other, relatively, or as near as ``rounds`` rounds bring them. Raises C0301 (not strongly
    connected), C0560 (fewer than 2 ranks).
    """
    if topology.num_ranks < 2:
        raise error(
            "C0560",
            f"found {topology.num_ranks} ranks in `{topology.name}`, needed at least 2 for an all-to-all rate",
            hint="choose a larger topology",
        )
    topology.require_connected("an all-to-all")
    return _symmetric(topology, gap) or _general(topology, gap, rounds)


def alltoall_bound(topology: Topology) -> Bound | None:
    """Return the least time of an all-to-all per byte of M, by LP (3): its value, or a bracket around it.

    Returns None if even a few rounds of cheapest paths would take too long; this depends on ranks and links, never on
    the clock. Raises C0301 (not strongly connected).
    """
    if topology.num_ranks < 2:
        return None
    rate = quick_bracket(topology)
    if rate is not None and not rate.exact:
        rate = _by_classes(topology) or rate
    return None if rate is None else bound_of(topology, rate)


def _by_classes(topology: Topology) -> Rate | None:
    """Return the exact rate of a network whose pairs of a source and a link have few classes, proved by prices.

    The flow from :mod:`.quotient` reaches the rate, and the cheapest routes at its prices show that none is higher.
    """
    if topology.num_ranks * topology.num_links > _MOST_CLASSES:
        return None
    if Classes.of(topology, np.arange(topology.num_ranks)).flow.max() >= _MOST_COLUMNS:
        return None
    widths = capacities(topology)
    flows = best_flows(topology, np.arange(topology.num_ranks), widths)
    prices = best_prices(topology, widths) if flows.exact else None
    if prices is None:
        return None
    commodities, scale = _commodities(topology)
    by_class = np.zeros(commodities.classes, dtype=object)
    by_class[commodities.link_class] = prices
    if max(prices) >= _LARGEST_PRICE or commodities.bound(by_class.astype(np.int64))[0] != flows.time / scale:
        return None
    found = Bracket(scale / flows.time, scale / flows.time, by_class.astype(np.int64))
    return _rate(topology, commodities, found, scale)


def quick_bracket(topology: Topology) -> Rate | None:
    """Return the rate exactly, or a bracket that takes seconds; None if that would take too long.

    Raises C0301 (not strongly connected).
    """
    topology.require_connected("an all-to-all")
    rate = _symmetric(topology, GAP) if _is_quick(topology) else None
    return rate or _quick(topology)


def bound_of(topology: Topology, rate: Rate) -> Bound:
    """Return the bound on the time per byte that a rate gives, proved by its prices."""
    priced = list(rate.prices) * (topology.num_links // len(rate.prices))
    useful = (topology.src != topology.dst).tolist()
    by_class: Counter[int] = Counter()
    for kind, price, counts in zip(topology.link_class.tolist(), priced, useful, strict=True):
        by_class[kind] += price * counts
    capacity = sum((topology.classes[kind].bandwidth * price for kind, price in by_class.items()), Fraction(0))
    fastest = rate.upper * _least(topology)
    above = 1 / (rate.lower * _least(topology) * topology.num_ranks)
    proof = Prices(rate.prices, int(capacity / fastest), capacity)
    name = "LP (3)" if rate.exact else "prices of links"
    value = 1 / (fastest * topology.num_ranks)
    return Bound(value, "multi-commodity-flow", name, proof, above)


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
    """Return the bandwidth of every class of links over the least one, loops left out."""
    least = _least(topology)
    return [kind.bandwidth / least for kind in topology.classes]


def _least(topology: Topology) -> Fraction:
    used: list[int] = np.unique(topology.link_class[topology.src != topology.dst]).tolist()
    return min(topology.classes[c].bandwidth for c in used)


def _symmetric(topology: Topology, gap: Fraction) -> Rate | None:
    """The rate of a network with a group: its links in the order that the group keeps."""
    n = topology.num_ranks
    if topology.symmetry is None or not topology.is_direct:
        return None
    kinds = topology.link_class.reshape(n, -1)
    if (kinds != kinds[0]).any():
        return None
    widths, heads = capacities(topology), topology.dst.reshape(n, -1).astype(np.int64)
    lower, upper, prices = cayley_bracket(heads, [widths[k] for k in kinds[0]], Fraction(0) if gap <= GAP else gap)
    return Rate(lower, upper, tuple(prices))


def _unit_per_rank(topology: Topology) -> Array:
    """One unit for every rank, none for switches; shape (nodes, 1)."""
    return (np.arange(topology.num_nodes) < topology.num_ranks).astype(np.int64)[:, None]


def _general(topology: Topology, gap: Fraction, rounds: int) -> Rate:
    commodities, scale = _commodities(topology)
    return _rate(
        topology, commodities, column_rate(commodities, gap, rounds, _from_base(topology, commodities, rounds)), scale
    )


def _quick(topology: Topology) -> Rate | None:
    """Return the exact rate if a linear program of trees is small, else a bracket, else None."""
    if topology.num_ranks * topology.num_links > _MOST_QUICK:
        return None
    commodities, scale = _commodities(topology)
    if commodities.size <= _EXACT and commodities.classes <= _ROWS:
        return _rate(topology, commodities, column_rate(commodities, GAP, _ROUNDS), scale)
    found = quick_rate(commodities, commodities.capacity.astype(np.float64) * 0 + 1)
    if found.upper > found.lower * (1 + _NARROW):
        found = narrowed(commodities, found, _NARROW)
    coarse = np.rint(found.prices * (_COARSE / found.prices.max())).astype(np.int64)
    if not np.array_equal(coarse, found.prices):
        found = attrs.evolve(found, upper=1 / commodities.bound(coarse)[0], prices=coarse)
    return _rate(topology, commodities, found, scale)


def _is_quick(topology: Topology) -> bool:
    return topology.num_ranks * topology.num_links <= _MOST_SYMMETRIC


def commodities_of(topology: Topology) -> Commodities:
    """Return the data of an all-to-all, one source and link for every orbit under automorphisms."""
    return _commodities(topology)[0]


def _commodities(topology: Topology) -> tuple[Commodities, int]:
    """Return the commodities, and the least bandwidth in their units."""
    kinds = _Kinds.of(topology)
    widths = capacities(topology)
    scale = lcm(*(width.denominator for width in widths))
    width = np.array([int(widths[c] * scale) for c in topology.link_class[kinds.links].tolist()])
    return kinds.commodities(topology, _unit_per_rank(topology), width), scale


def _rate(topology: Topology, commodities: Commodities, found: Bracket, scale: int) -> Rate:
    """Return a bracket as a rate: links have the prices of their classes, loops have none."""
    prices = [int(found.prices[k]) for k in commodities.link_class.tolist()]
    useful = (topology.src != topology.dst).tolist()
    each = tuple(price if counts else 0 for price, counts in zip(prices, useful, strict=True))
    return Rate(found.lower / scale, found.upper / scale, each)


def _from_base(topology: Topology, commodities: Commodities, rounds: int) -> Array | None:
    """Return prices of the classes of a large line graph's links, from those of its base."""
    if commodities.size <= _SMALL:
        return None
    prices = line_graph_prices(topology, lambda base, pairs: _base_prices(base, pairs, rounds))
    if prices is None:
        return None
    found = np.zeros(commodities.classes)
    used = topology.src != topology.dst
    found[commodities.link_class[used]] = prices[used]
    return found


def _base_prices(base: Topology, pairs: Array, rounds: int) -> Array:
    """Return prices of a base's links for ``pairs`` units of data from node to node; loops have none."""
    kinds = _Kinds.of(base)
    commodities = kinds.commodities(base, pairs[kinds.sources].T, np.ones(len(kinds.links), dtype=np.int64))
    prices = good_prices(commodities, GAP, rounds)[commodities.link_class]
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
        """Return the commodities; ``width`` is of one link of every orbit. Loops have no class."""
        src, dst = topology.src.astype(np.int64), topology.dst.astype(np.int64)
        useful = src[self.links] != dst[self.links]
        number = np.maximum(np.cumsum(useful) - 1, 0)
        return Commodities(
            Network.of(topology.num_nodes, src, dst), wanted, self.sources, self.source_count,
            number[self.kind], (self.link_count * width)[useful],
        )  # fmt: skip
