"""The best flows of an unrolled network: places learn which links to use, and prices learn which links are busy.

Both sides play against each other by regret matching: CFR+ (Tammelin), which forgets negative regret, with the
prediction that the next round is like the last (Farina, Kroer and Sandholm). Mean flows and mean prices come near the
best; later rounds count more. Prices are normalized for groups of steps: for each step on its own, and the flows learn
to take the least sum of steps' times; or for all steps together, and they learn the rate of LP (3) over routes of that
number of hops.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.progress import progress

from .unrolled import Unrolled

__all__ = ["Learned", "learn_flows"]

_LOOK = 20  # rounds between checks


@attrs.frozen(eq=False)
class Learned:
    """The mean ``flow``, its ``time`` (the groups' largest loads over capacity, added), and the mean prices of classes.

    ``prices``, shape (groups, classes); times capacities, those of a group add up to 1. No flow takes less time than
    ``least``. Both are floats.
    """

    flow: Array
    time: float
    prices: Array
    least: float


def learn_flows(unrolled: Unrolled, rounds: int, enough: Callable[[float, float], bool], *, by_step: bool) -> Learned:
    """Play until ``enough(least, time)``, or for ``rounds`` rounds. ``by_step``: every step is a group."""
    players = _Players(unrolled, unrolled.steps if by_step else 1)
    for turn in range(1, rounds + 1):
        players.play(turn)
        if turn % _LOOK == 0 or turn == rounds:
            progress(f"flows of {unrolled.steps} steps", turn)
            if enough(players.least(), players.time()):
                break
    return Learned(players.flow / players.turns, players.time(), players.prices / players.turns, players.least())


class _Players:
    def __init__(self, unrolled: Unrolled, groups: int) -> None:
        self.unrolled, self.groups = unrolled, groups
        self.even = self.split = unrolled.even()
        self.regret = np.zeros(self.split.shape)
        self.flow = np.zeros(self.split.shape)
        self.capacity = unrolled.capacity
        self.busy = np.zeros((groups, unrolled.classes))
        self.weight = np.tile(self.capacity / self._total(self.capacity), (groups, 1))
        self.loads, self.prices, self.turns = np.zeros(self.busy.shape), np.zeros(self.busy.shape), 0.0

    def play(self, turn: int) -> None:
        """Play a round; add its flow and prices to the sums, ``turn`` squared times."""
        gain = self.unrolled.gains(self._link_prices(self.weight), self.split)
        self.regret += gain
        np.maximum(self.regret, 0, out=self.regret)
        gain += self.regret
        np.maximum(gain, 0, out=gain)
        total = gain[:, 0].copy()
        for slot in range(1, gain.shape[1]):
            total += gain[:, slot]
        some = total > 0
        gain /= np.where(some, total, 1.0)[:, None]
        self.split = np.where(some[:, None], gain, self.even)
        flow = self.unrolled.flow(self.split)
        load = self.unrolled.loads(flow)
        if self.groups == 1:
            load = load.cumsum(axis=0)[-1:]
        self._reprice(load)
        share = float(turn * turn)
        flow *= share
        self.flow += flow
        self.loads += share * load
        self.prices += share * self.weight / self.capacity
        self.turns += share

    def _reprice(self, load: Array) -> None:
        busy = load / self.capacity
        excess = busy - np.array([[self._total(row)] for row in busy * self.weight])
        self.busy = np.maximum(self.busy + excess, 0)
        guess = np.maximum(self.busy + excess, 0) * self.capacity
        for row, found in zip(self.weight, guess, strict=True):
            total = self._total(found)
            if total > 0:
                row[:] = found / total

    def time(self) -> float:
        return self._total((self.loads / self.turns / self.capacity).max(axis=1))

    def least(self) -> float:
        return self.unrolled.least(self._link_prices(self.prices / self.turns * self.capacity))

    def _link_prices(self, weight: Array) -> Array:
        price = np.broadcast_to(weight / self.capacity, (self.unrolled.steps, self.unrolled.classes))
        return self.unrolled.prices(price)

    @staticmethod
    def _total(row: Array) -> float:
        """Return the sum, added in order."""
        return float(row.cumsum()[-1])
