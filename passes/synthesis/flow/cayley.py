"""The all-to-all rate of Cayley digraphs: one source, one load for every generator.

Translations turn any routing into one with equal loads on all links of a generator, so LP (3) of the direct-connect
paper (A.5) needs only the paths from the identity. 1/f is the least, over mixes of shortest path trees, of the largest
number of uses of one generator. That is a game, solved exactly: prices on the generators, the trees that are cheapest
at these prices, better prices.

If every generator has its inverse, then a routing read backwards swaps their loads, and the mean of both routings loads
them equally. So a generator and its inverse are one class.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import gcd, lcm

import attrs
import numpy as np

from collc.ir.arrays import Array

from .game import Game

__all__ = ["cayley_bracket", "cayley_rate"]

_ROUNDS = 500
_COARSE = 2**20
#: The best known prices weigh three times as much as the game's own, which jump between far corners.
_WEIGHT = 3


def cayley_rate(
    heads: Array, capacities: Sequence[Fraction] | None = None, gap: Fraction = Fraction(0)
) -> tuple[Fraction, Fraction]:
    """Return ``(lower, upper)`` around the rate f of LP (3): equal unless a ``gap`` between them is enough, relatively.

    ``heads``, shape (N, d): x * g_j at ``[x, j]``; element 0 is the identity. ``capacities``: the bandwidth of a link,
    for every generator (default: 1 each). N is at least 2. The rate is 0 if the generators do not generate the group.

    >>> ring = (np.arange(8)[:, None] + np.array([1, 7])) % 8
    >>> cayley_rate(ring)
    (Fraction(1, 8), Fraction(1, 8))
    """
    lower, upper, _ = cayley_bracket(heads, capacities, gap)
    return lower, upper


def cayley_bracket(
    heads: Array, capacities: Sequence[Fraction] | None = None, gap: Fraction = Fraction(0)
) -> tuple[Fraction, Fraction, list[int]]:
    """Return the bounds of :func:`cayley_rate`, and the whole prices of generators that prove the upper one."""
    used = np.flatnonzero(heads[0] != 0)
    widths = [Fraction(1) if capacities is None else Fraction(capacities[j]) for j in used.tolist()]
    search = _Search(heads[:, used], widths)
    proof = [0] * heads.shape[1]
    value = search.run(gap)
    if value is None:
        return Fraction(0), Fraction(0), proof
    for j, kind in zip(used.tolist(), search.kind, strict=True):
        proof[j] = search.proof[kind]
    return 1 / value, 1 / search.best, proof


class _Search:
    """Prices of classes of generators. ``best`` is the largest bound on 1/f so far, proved by the prices ``proof``."""

    def __init__(self, heads: Array, widths: Sequence[Fraction]) -> None:
        self.paths = _Paths.of(heads)
        self.kind = _classes(heads, widths)
        total = [Fraction(0)] * (max(self.kind) + 1)
        for kind, width in zip(self.kind, widths, strict=True):
            total[kind] += width
        unit = lcm(*(width.denominator for width in total))
        self.capacity = [int(width * unit) for width in total]
        # the time that one shard takes on a class, in units of 1/scale
        whole = lcm(*self.capacity)
        self.times = [whole // capacity for capacity in self.capacity]
        self.scale = Fraction(whole, unit)
        self.unit = unit
        self.game = Game(len(total))
        self.best, self.proof = Fraction(0), [1] * len(total)

    def run(self, gap: Fraction) -> Fraction | None:
        """Return the largest load of the best mix; None if an element cannot be reached."""
        prices, value = self.proof, Fraction(0)
        for _ in range(_ROUNDS):
            for whole in (self._mixed(prices), *_roundings(prices)):
                new = self._join(whole)
                if new is None:
                    return None
                if new:
                    break
            else:
                break
            value = self.game.solve() / self.scale
            if value <= self.best * (1 + gap):
                break
            prices = [p * time for p, time in zip(self.game.prices, self.times, strict=True)]
        return value

    def _mixed(self, prices: Sequence[int]) -> list[int]:
        """Return whole prices near the weighted mean of these and the best ones, where all capacity costs the same."""
        total, unit = [0] * len(prices), _COARSE * max(self.capacity)
        for weight, each in ((1, prices), (_WEIGHT, self.proof)):
            cost = sum(p * c for p, c in zip(each, self.capacity, strict=True))
            total = [t + weight * unit * p // cost for t, p in zip(total, each, strict=True)]
        return total

    def _join(self, prices: Sequence[int]) -> int | None:
        """Add the trees that are cheapest at these whole prices; return how many are new, None if there are none."""
        found = self.paths.trees([prices[kind] for kind in self.kind], wide=not self.game.routings)
        if found is None:
            return None
        cost, uses = found
        bound = Fraction(cost * self.unit, sum(p * c for p, c in zip(prices, self.capacity, strict=True)))
        if bound > self.best:
            self.best, self.proof = bound, list(prices)
        loads = np.zeros((len(uses), len(self.capacity)), dtype=np.int64)
        np.add.at(loads.T, self.kind, uses.T)
        return sum(self.game.join([x * t for x, t in zip(row, self.times, strict=True)]) for row in loads.tolist())


def _classes(heads: Array, widths: Sequence[Fraction]) -> list[int]:
    """Return the class of every generator: equal ones share one, and inverses do if all have them, equally wide."""
    elements = heads[0].tolist()
    inverse = {g: int(np.flatnonzero(heads[:, j] == 0)[0]) for j, g in enumerate(elements)}
    width = dict.fromkeys((*elements, *inverse.values()), Fraction(0))
    for g, w in zip(elements, widths, strict=True):
        width[g] += w
    both = all(width[g] == width[inverse[g]] for g in elements)
    first = [min(g, inverse[g]) if both else g for g in elements]
    number = {g: k for k, g in enumerate(sorted(set(first)))}
    return [number[g] for g in first]


def _roundings(prices: Sequence[int]) -> list[list[int]]:
    """Return prices in small whole numbers, then the exact ones if they differ."""
    common = gcd(*prices) or 1
    prices = [p // common for p in prices]
    most = max(prices)
    if most <= _COARSE:
        return [prices]
    return [[p * _COARSE // most for p in prices], prices]


@attrs.frozen(eq=False)
class _Paths:
    """``tails``, shape (d, N): the element before x on generator j at ``[j, x]``. ``orders`` are orders of generators.

    The first d orders are the rotations, then come those read backwards.
    """

    tails: Array
    orders: Array

    @classmethod
    def of(cls, heads: Array) -> _Paths:
        n, degree = heads.shape
        tails = np.empty((degree, n), dtype=np.int64)
        for j in range(degree):
            tails[j, heads[:, j]] = np.arange(n)
        turned = (np.arange(degree)[:, None] + np.arange(degree)) % degree
        return cls(tails, np.concatenate([turned, turned[:, ::-1]]))

    def trees(self, prices: Sequence[int], wide: bool) -> tuple[int, Array] | None:
        """Return the cost of all cheapest paths, and how often trees of them use each generator, shape (trees, d).

        A tree for every rotation (with ``wide``, for every order) ends each path by the first generator that it can.
        Of equally cheap paths those of fewest hops are taken. Returns None if an element cannot be reached.
        """
        degree, n = self.tails.shape
        scale, most = n + 1, max(prices)
        exact: type = object if (most * (n + 1) + 1) * (n + 1) >= 2**62 else np.int64
        weight: Array = np.array([p * scale + 1 for p in prices], dtype=exact)[:, None]
        missing = (most * scale + 1) * n + 1
        cost = np.full(n, missing, dtype=exact)
        cost[0] = 0
        while True:
            new = np.minimum(cost, (cost[self.tails] + weight).min(axis=0))
            if (new == cost).all():
                break
            cost = new
        if (cost >= missing).any():
            return None
        usable = (cost[self.tails] + weight == cost).astype(bool)
        orders = self.orders if wide else self.orders[:degree]
        slot = np.stack([order[usable[order].argmax(axis=0)] for order in orders], axis=1)
        return int((cost // scale).sum()), self._uses(slot, (cost % scale).astype(np.int64))

    def _uses(self, slot: Array, hops: Array) -> Array:
        """Return the uses of each generator by trees, from the last generator of each path, shape (N, trees)."""
        degree, n = self.tails.shape
        trees = slot.shape[1]
        up = self.tails[slot, np.arange(n)[:, None]] * trees + np.arange(trees)
        order = np.argsort(hops, kind="stable")
        start = np.searchsorted(hops[order], np.arange(1, int(hops.max()) + 2))
        paths = np.ones((n, trees), dtype=np.int64)
        flat = paths.reshape(-1)
        for first, end in zip(start[-2::-1].tolist(), start[:0:-1].tolist(), strict=True):
            at = order[first:end]
            np.add.at(flat, up[at].ravel(), paths[at].ravel())
        key = np.arange(trees) * degree + slot
        uses = np.bincount(key[1:].ravel(), weights=paths[1:].ravel(), minlength=trees * degree)
        return uses.astype(np.int64).reshape(trees, degree)
