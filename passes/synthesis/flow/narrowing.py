"""Narrower brackets around the rate of LP (3): flows and prices that learn on the network unrolled over hops.

With one price for each class of links at all hops, the unrolled network's routes are those of the network itself with
at most that number of hops. Whole prices prove one side, by shortest routes of any length. The other side is the exact
load of the learned flow in whole units. Both are exact whatever the floats were.
"""

from __future__ import annotations

from fractions import Fraction

import attrs
import numpy as np

from .columns import Bracket, Commodities
from .learning import Learned, learn_flows
from .paths import cheapest
from .units import whole_units
from .unrolled import Unrolled

__all__ = ["narrowed"]

_LOOKS = 4  # numbers of hops that are tried
#: rounds, and the most of their number times the entries of a flow; larger networks have too few rounds
_ROUNDS, _MOST_WORK, _LEAST_ROUNDS = 600, 1 << 29, 200
_PRICE = 2**26  # the dearest class's price, in whole numbers
_UNITS = 2**16  # parts of what a node wants of a source


def narrowed(commodities: Commodities, bracket: Bracket, gap: Fraction) -> Bracket:
    """Return the best of a bracket and those that are learned: until its ends are within ``gap``, relatively.

    Routes of more hops are tried where they are proved to be better.
    """
    free = np.zeros((1, commodities.network.tails.shape[1], 1), dtype=np.int64)
    hops = cheapest(commodities.network, commodities.sources, free).hops
    steps = int(hops.max()) + 1
    for _ in range(_LOOKS):
        size = Unrolled.size_of(commodities.network, len(commodities.sources), steps)
        if size * _LEAST_ROUNDS > _MOST_WORK or bracket.upper <= bracket.lower * (1 + gap):
            break
        unrolled = Unrolled.of(
            commodities.network, commodities.sources, commodities.count, commodities.wanted,
            commodities.link_class, commodities.capacity, hops, steps,
        )  # fmt: skip
        near = 1 + float(gap) / 2
        learned = learn_flows(unrolled, min(_ROUNDS, _MOST_WORK // size), _Within(near), by_step=False)
        bracket = _better(commodities, unrolled, learned, bracket)
        if learned.least <= float(1 / bracket.upper) * near:
            break
        steps += max(2, steps // 4)
    return bracket


@attrs.frozen
class _Within:
    """Whether learning may end, given the proved least time and the reached one."""

    factor: float

    def __call__(self, least: float, time: float) -> bool:
        return time <= least * self.factor


def _better(commodities: Commodities, unrolled: Unrolled, learned: Learned, bracket: Bracket) -> Bracket:
    prices = np.rint(learned.prices[0] * (_PRICE / learned.prices.max())).astype(np.int64)
    upper = 1 / commodities.bound(prices)[0]
    if upper >= bracket.upper:
        upper, prices = bracket.upper, bracket.prices
    loads = unrolled.loads(whole_units(unrolled, learned.flow, _UNITS).astype(np.float64)).sum(axis=0)
    most = max(Fraction(int(x), int(c) * _UNITS) for x, c in zip(loads, commodities.capacity, strict=True))
    return Bracket(max(bracket.lower, 1 / most), upper, prices)
