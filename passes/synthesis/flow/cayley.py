"""The all-to-all rate of Cayley digraphs: one source, one load for every generator.

Translations turn any routing into one with equal loads on all links of a generator, so LP (3) of the direct-connect
paper (A.5) needs only the paths from the identity. 1/f is the least, over mixes of shortest path trees, of the largest
number of uses of one generator. That is a game, solved exactly: prices on the generators, the trees that are cheapest
at these prices, better prices.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import gcd, lcm

import numpy as np

from collc.ir.arrays import Array

from .game import Game
from .paths import Network, cheapest, parents

__all__ = ["cayley_bracket", "cayley_rate"]

_ROUNDS = 500
_COARSE = 2**20


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
    used = np.flatnonzero(heads[0] != 0).tolist()
    widths = [Fraction(1) if capacities is None else Fraction(capacities[j]) for j in used]
    scale = lcm(*((1 / width).denominator for width in widths))
    # the time one shard takes on a link, in units of 1/scale
    times = [int(scale / width) for width in widths]
    network = _network(heads[:, used])
    game = Game(len(used))
    prices = [int(width * lcm(*(w.denominator for w in widths))) for width in widths]
    value, best, proof = Fraction(0), Fraction(0), [0] * heads.shape[1]
    for _ in range(_ROUNDS):
        for whole in _roundings(prices):
            cost, uses = _trees(network, whole)
            if cost < 0:
                return Fraction(0), Fraction(0), proof
            capacity = sum((p * width for p, width in zip(whole, widths, strict=True)), Fraction(0))
            if cost / capacity > best:
                best = cost / capacity
                for j, price in zip(used, whole, strict=True):
                    proof[j] = price
            if sum(game.join([u * time for u, time in zip(row, times, strict=True)]) for row in uses):
                break
        else:
            break
        value = game.solve() / scale
        if value <= best * (1 + gap):
            break
        prices = [p * time for p, time in zip(game.prices, times, strict=True)]
    return 1 / value, 1 / best, proof


def _network(heads: Array) -> Network:
    """Return the links into every node: slot j is generator j's."""
    n, degree = heads.shape
    tails = np.empty((n, degree), dtype=np.int64)
    for j in range(degree):
        tails[heads[:, j], j] = np.arange(n)
    return Network(tails, np.broadcast_to(np.arange(degree), (n, degree)))


def _roundings(prices: list[int]) -> list[list[int]]:
    """Return prices in small whole numbers, then the exact ones if they differ."""
    common = gcd(*prices) or 1
    prices = [p // common for p in prices]
    most = max(prices)
    if most <= _COARSE:
        return [prices]
    return [[p * _COARSE // most for p in prices], prices]


def _trees(network: Network, prices: list[int]) -> tuple[int, list[list[int]]]:
    """Return the cost of all cheapest paths, and how often each generator is used by trees of them.

    There is a tree of fewest hops, and for every generator one that uses it least. The cost is -1 if a node cannot be
    reached.
    """
    degree = len(prices)
    ties = np.ones((1, degree, degree + 1), dtype=np.int64)
    ties[0, np.arange(degree), np.arange(degree) + 1] = 4
    row = np.array(prices, dtype=np.int64 if max(prices) < 2**62 else object).reshape(1, degree, 1)
    trees = cheapest(network, np.zeros(degree + 1, dtype=np.int64), row, ties)
    if (trees.cost[:, 0] < 0).any():
        return -1, []
    up = parents(network, trees.slot)
    uses = (trees.slot[:, :, None] == np.arange(degree)).astype(np.int32)
    columns = np.arange(degree + 1)
    while up.any():
        uses += uses[up, columns]
        up = up[up, columns]
    return int(trees.cost[:, 0].sum()), [[int(x) for x in row] for row in uses.sum(axis=0)]
