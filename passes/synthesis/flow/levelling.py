"""Routings that load every link equally, if prices show that the best ones do.

Let prices p prove the bound 1/f >= L. A routing reaches it only if it is cheapest at these prices and every link with a
price carries exactly L times its capacity. With good prices, the flow to find is the most level one away from the
sources: it minimizes the sum of p * capacity * (load / L - 1)^2. By its gradient a link costs p * (load / L - 1); one
without a price costs a little if it carries more than L. The flows at every place shift from dear links to cheap ones
(mirror descent: shares are multiplied by exponentials), with momentum. If the prices of a base prove its line graph's
rate, and few links are free, all loads come within 1/10000 of the bound in some hundreds of rounds, each of a few array
operations. Elsewhere they stay uneven, and the search ends early.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from collc.ir.arrays import Array

from .regret import UNITS, SourceRoutes

__all__ = ["level"]

_STEP, _MOMENTUM, _MOST = 0.4, 0.8, 1.5
_FREE = 0.1  # of the mean price
_NEAR = Fraction(1, 25000)  # relatively: near enough to end
_LOOK, _LESS = 25, 0.75  # rounds between checks; the deviation of loads must fall by this factor


def level(routes: SourceRoutes, count: Array, capacity: Array, prices: Array, bound: Fraction, rounds: int) -> Fraction:
    """Return the largest load over capacity, exactly, of the most level flow found; never less than the rate allows.

    ``count``: how many sources each represents. ``prices`` (floats, one for each class) prove ``bound``.
    """
    times = count[routes.source].astype(np.float64)[:, None]
    price = prices / prices.mean()
    over = np.maximum(price, _FREE)
    split = routes.open / np.maximum(routes.open.sum(axis=1, keepdims=True), 1)
    turn = np.zeros(split.shape)
    best, rough = Fraction(0), float("inf")
    for number in range(rounds):
        load = np.bincount(routes.kind.ravel(), weights=(routes.flow(split) * times).ravel(), minlength=len(capacity))
        top = max(Fraction(int(a), int(c) * UNITS) for a, c in zip(load, capacity, strict=True))
        best = top if number == 0 else min(best, top)
        if best <= bound * (1 + _NEAR):
            break
        excess = load / (capacity * (float(bound) * UNITS)) - 1
        if number % _LOOK == 0:
            if float(np.std(excess)) > rough * _LESS:
                break
            rough = float(np.std(excess))
        cost, through = routes.costs(np.where(excess > 0, over, price) * excess, split)
        turn = _MOMENTUM * turn + through - cost[:, None]
        split = split * np.exp(np.clip(-_STEP * turn, -_MOST, _MOST)) * routes.open
        split /= np.maximum(split.sum(axis=1, keepdims=True), 1e-300)
    return best
