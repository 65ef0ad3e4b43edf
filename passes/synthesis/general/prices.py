"""Whole prices of links prove a lower bound on the time of every schedule.

At any prices y, each shard pays for the links that it crosses: at least the price of a cheapest tree to its targets.
All links together are paid at most T times the sum of bandwidth times price in a time of T. So T is at least the sum of
weight times cheapest tree, over all shards, divided by the sum of bandwidth times price.

The price of a tree is bounded from below: by the farthest target; by the sum of the cheapest hops into all targets,
since switches do not copy; and by the dual ascent of Wong (A dual ascent approach for Steiner tree problems on a
directed graph, 1984), which raises the slack of cuts around targets until they reach the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import attrs
import numpy as np

from collc.ir.arrays import Array

from .needs import Needs
from .trees import distances, nearest

__all__ = ["Proof", "proof_of"]

_MOST_ASCENT = 1 << 27  # arcs between ranks times targets of all commodities with several
_MOST_HOPS = 1 << 22  # arcs between ranks
_NO_ARCS: tuple[Array, Array, Array] = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))


@attrs.frozen(eq=False)
class Proof:
    """Whole ``prices`` of links; ``paid`` is the least that all data pay, by weight, and ``capacity`` all that links
    can take in a unit of time, in widths times price.
    """

    prices: tuple[int, ...]
    paid: int
    capacity: int

    @property
    def value(self) -> Fraction:
        """The least time, in weight per width."""
        return Fraction(self.paid, self.capacity) if self.paid else Fraction(0)


def proof_of(needs: Needs, prices: Sequence[int], ascend: bool = True) -> Proof:
    """Return what whole prices of at least 0 prove; without ``ascend``, by farthest targets and hops into them only."""
    paid = 0
    singles: dict[int, list[tuple[int, int]]] = {}
    several = []
    for one in needs.commodities:
        if one.weight and len(one.targets) == 1:
            singles.setdefault(one.source, []).append((one.targets[0], one.weight))
        elif one.weight:
            several.append(one)
    for source, needed in singles.items():
        far = distances(needs, prices, source, among={target for target, _ in needed})
        paid += sum(int(far[target]) * weight for target, weight in needed)
    if several:
        trees = _Trees(needs, prices, ascend and _is_quick(needs))
        paid += sum(one.weight * trees.least(one.source, one.targets) for one in several)
    capacity = sum(width * price for width, price in zip(needs.widths, prices, strict=True))
    return Proof(tuple(prices), paid, capacity)


def _is_quick(needs: Needs) -> bool:
    arcs = sum(map(len, needs.out)) if needs.topology.is_direct else needs.topology.num_ranks**2
    several = sum(len(one.targets) ** 2 for one in needs.commodities if len(one.targets) > 1)
    return arcs <= _MOST_HOPS and arcs * several <= _MOST_ASCENT


class _Trees:
    """Lower bounds on the prices of trees; arcs are cheapest hops from rank to rank, which no other rank copies in."""

    def __init__(self, needs: Needs, prices: Sequence[int], ascend: bool) -> None:
        self.needs, self.prices, self.ascend = needs, prices, ascend
        self.far: dict[int, list[float]] = {}
        self.into: dict[int, int] = {}
        self.tail, self.head, self.price = _arcs(needs, prices) if ascend else _NO_ARCS

    def least(self, source: int, targets: Sequence[int]) -> int:
        """Return a lower bound on the price of any tree from a source to all targets."""
        if source not in self.far:
            self.far[source] = distances(self.needs, self.prices, source)
        found = max(int(self.far[source][target]) for target in targets)
        found = max(found, sum(self._entering(target) for target in targets))
        return max(found, self._ascent(source, targets)) if self.ascend else found

    def _entering(self, target: int) -> int:
        """Return the price of the cheapest route to a target from any other rank."""
        if target not in self.into:
            self.into[target] = nearest(self.needs, self.prices, target)
        return self.into[target]

    def _ascent(self, source: int, targets: Sequence[int]) -> int:
        slack, total = self.price.copy(), 0
        left = list(targets)
        while left:
            open_ = []
            for target in left:
                raised = self._raise(slack, source, target)
                total += raised
                if raised:
                    open_.append(target)
            left = open_
        return total

    def _raise(self, slack: Array, source: int, target: int) -> int:
        """Raise the cut around the ranks from which a target is reached for nothing; return 0 if the source is one."""
        inside = np.zeros(self.needs.topology.num_ranks, dtype=bool)
        inside[target] = True
        while True:
            entering = inside[self.head] & ~inside[self.tail]
            free = entering & (slack == 0)
            if not free.any():
                break
            inside[self.tail[free]] = True
        if inside[source]:
            return 0
        least = int(slack[entering].min())
        slack[entering] -= least
        return least


def _arcs(needs: Needs, prices: Sequence[int]) -> tuple[Array, Array, Array]:
    """Return tail, head and price of the hops between ranks: links, or cheapest routes if there are switches."""
    ranks = needs.topology.num_ranks
    if needs.topology.is_direct:
        count = np.array([len(links) for links in needs.out])
        tail = np.repeat(np.arange(ranks), count)
        links = np.array([link for links in needs.out for link, _ in links], dtype=np.int64)
        return tail, needs.topology.dst[links].astype(np.int64), np.array([prices[k] for k in links.tolist()])
    between = np.array([distances(needs, prices, rank)[:ranks] for rank in range(ranks)])
    tail, head = np.nonzero(np.isfinite(between) & ~np.eye(ranks, dtype=bool))
    return tail, head, between[tail, head].astype(np.int64)
