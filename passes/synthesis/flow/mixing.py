"""The best mix of timed paths, by a linear program to which cheap paths are added.

minimize the sum over steps of L_t, so that no class of links carries more than its capacity times L_t at step t, and
every shard's shares add up to 1. HiGHS returns a vertex, so few shards are split: of shares and L_t that are not 0
there are at most as many as rows, so all shards together have at most steps * (classes - 1) shares beyond one each.
"""

from __future__ import annotations

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.progress import progress

from .expanded import Expanded
from .master import Master

__all__ = ["Mix", "best_mix"]

_WARM = 40  # rounds of multiplicative weights, of which the last join the linear program
_KEEP = 10
_ROUNDS = 60
_WEIGHT = 0.7  # weight of the best known prices
_NEAR, _NEAR_LARGE, _LARGE = 1e-7, 1e-3, 2000


@attrs.frozen(eq=False)
class Mix:
    """Timed ``paths`` (rows), the commodity of each and its share; ``time`` is the program's value, a float."""

    expanded: Expanded
    commodity: Array
    paths: Array
    shares: Array
    time: float


def best_mix(expanded: Expanded, target: float) -> Mix:
    """Return the best mix of timed paths; ``target`` is a time that none beats.

    For large programs the mix is within 1/1000 of the best.
    """
    search = _Search(expanded)
    search.warm_up()
    time, shares = search.improve(target)
    return Mix(expanded, np.concatenate(search.commodity), np.concatenate(search.paths), shares, time)


class _Search:
    def __init__(self, expanded: Expanded) -> None:
        self.expanded, self.commodities = expanded, expanded.commodities
        self.shape = (expanded.steps, expanded.classes)
        self.capacity = np.array([float(c) for c in expanded.capacity])
        self.count = expanded.count[np.searchsorted(expanded.sources, self.commodities[:, 0])]
        group = np.repeat(np.arange(expanded.steps), expanded.classes)
        self.large = expanded.cells + len(self.commodities) > _LARGE
        method = "vertex" if self.large else "simplex"
        self.master = Master(group, np.tile(self.capacity, expanded.steps), len(self.commodities), method)
        self.known: set[bytes] = set()
        self.commodity: list[Array] = []
        self.paths: list[Array] = []
        self.best, self.prices = 0.0, np.zeros(self.shape)

    def _try(self, prices: Array) -> Array:
        """Return the cheapest paths at prices that, times capacities, add up to 1 at every step."""
        paths, cost = self.expanded.cheapest(prices, self.commodities)
        bound = float(cost @ self.count)
        if bound > self.best:
            self.best, self.prices = bound, prices
        return paths

    def _join(self, paths: Array) -> int:
        new = []
        for i, row in enumerate(paths):
            key = i.to_bytes(4, "little") + row.tobytes()
            if key not in self.known:
                self.known.add(key)
                new.append(i)
        if new:
            commodity = np.array(new)
            routing, cell = self.expanded.uses(paths[commodity])
            self.master.join(commodity, routing, cell, self.count[commodity[routing]])
            self.commodity.append(commodity)
            self.paths.append(paths[commodity])
        return len(new)

    def warm_up(self) -> None:
        """Multiplicative weights at every step: busier classes become dearer."""
        logarithm = np.zeros(self.shape)
        for turn in range(_WARM):
            prices = np.exp(logarithm - logarithm.max(axis=1, keepdims=True)) / self.capacity
            paths = self._try(prices / (prices @ self.capacity)[:, None])
            if turn >= _WARM - _KEEP:
                self._join(paths)
            load = self.expanded.loads(paths, self.count).reshape(self.shape) / self.capacity
            logarithm += load / np.maximum(load.max(axis=1, keepdims=True), 1) / np.sqrt(turn + 1)

    def improve(self, target: float) -> tuple[float, Array]:
        """Column generation until the target is met or no better mix exists; return the time and all shares."""
        before = float("inf")
        for turn in range(_ROUNDS):
            progress(f"mixing routings of {self.expanded.steps} steps, round", turn + 1)
            time, shares, duals = self.master.solve()
            near = _NEAR_LARGE if self.large or self.master.exhausted else _NEAR
            if time <= max(self.best, target) * (1 + near):
                break
            weight = _WEIGHT if time < before * (1 - 1e-9) else 0.0
            before = time
            prices = duals.reshape(self.shape)
            prices = prices / np.maximum(prices @ self.capacity, 1e-9)[:, None]
            if not self._join(self._try(weight * self.prices + (1 - weight) * prices)) and not weight:
                break
        else:
            time, shares, _ = self.master.solve()
        return time, shares
