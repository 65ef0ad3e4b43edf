"""Good routings of large networks: every node learns which of its in-links to take, and prices learn what is busy.

Both sides play against each other by regret matching (Hart and Mas-Colell; the variant that forgets negative regret,
and averages later rounds more, is CFR+ of Tammelin). A source's flow may take every link that leads away from it at
given prices: there are no circles then, and costs and amounts are known level by level. On a network of N nodes with S
sources a round takes a few array operations of N S d numbers, no more than one routing along cheapest paths; but where
those all go one way at a time, here every round has a flow that is split. Loads swing about their means, so a linear
program mixes the rounds, for groups of sources apart.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import attrs
import numpy as np

from .master import Master
from .paths import Network, cheapest

__all__ = ["UNITS", "Ways", "learn"]

Array = np.ndarray[Any, np.dtype[Any]]

UNITS = 2**20  #: a wanted unit is divided into so many
_SHARE = 2**20
_GROUPS = 4
_SETTLE = 8  # rounds // _SETTLE come before the first that is kept


@attrs.frozen(eq=False)
class Ways:
    """Where each source's flow may go. A place is a node and a source, on the level of its longest way.

    Places stand by level: level h has places ``start[h]`` to ``start[h + 1]``. ``before``, ``kind``, ``open``, shape
    (places, slots): for every in-link the place it comes from, its class, and whether it may be taken. ``after``, shape
    (places, out-links): the numbers place * slots + slot of the links out of a place, or places * slots where there is
    no more. ``own`` is what a place wants, ``source`` its source.
    """

    start: Array
    before: Array
    kind: Array
    open: Array
    after: Array
    own: Array
    source: Array

    @classmethod
    def of(cls, network: Network, sources: Array, wanted: Array, kind: Array, prices: Array) -> Ways:
        """Return the links that lead away from each source: to where it is dearer, or as dear and more hops.

        ``kind`` is the class of every in-link, shape (nodes, slots), ``prices`` are whole, one for each class.
        """
        n, columns = network.num_nodes, len(sources)
        trees = cheapest(network, sources, prices[kind][:, :, None])
        key = trees.cost * (int(trees.hops.max(initial=0)) + 1) + trees.hops
        usable = (key[network.tails] < key[:, None, :]) & (network.links >= 0)[:, :, None]  # (nodes, slots, sources)
        level = _levels(network, usable)
        order = np.argsort(level.ravel(), kind="stable")
        place = np.empty(n * columns, dtype=np.int64)
        place[order] = np.arange(n * columns)
        node, source = np.divmod(order, columns)
        amounts = np.array(np.broadcast_to(wanted, (n, columns)), dtype=np.float64)
        amounts[sources, np.arange(columns)] = 0
        return cls(
            np.searchsorted(level.ravel()[order], np.arange(int(level.max(initial=0)) + 2)),
            place[network.tails[node] * columns + source[:, None]], kind[node], usable[node, :, source],
            _after(network, place, node, source), amounts[node, source] * UNITS, source,
        )  # fmt: skip

    def costs(self, prices: Array, split: Array) -> tuple[Array, Array]:
        """Return what a unit costs at every place, and by every in-link, at these prices and splits."""
        through = prices[self.kind]
        cost = np.zeros(len(self.own))
        for low, high in zip(self.start[1:-1], self.start[2:], strict=True):
            through[low:high] += cost[self.before[low:high]]
            cost[low:high] = np.einsum("ij,ij->i", through[low:high], split[low:high])
        return cost, through

    def flow(self, split: Array) -> Array:
        """Return the flow on every in-link, in whole units (as floats, all below 2^53)."""
        amount = np.zeros(self.open.size + 1)
        flow = amount[:-1].reshape(self.open.shape)
        for low, high in zip(self.start[-2:0:-1], self.start[:1:-1], strict=True):
            total = self.own[low:high] + amount[self.after[low:high]].sum(axis=1)
            here = np.floor(total[:, None] * split[low:high])
            here[np.arange(high - low), split[low:high].argmax(axis=1)] += total - here.sum(axis=1)
            flow[low:high] = here
        return flow


def _levels(network: Network, usable: Array) -> Array:
    """Return the most links by which every node can be reached from every source, shape (nodes, sources)."""
    level = np.zeros((len(usable), usable.shape[2]), dtype=np.int32)
    while True:
        new = level
        for slot in range(usable.shape[1]):
            new = np.maximum(new, np.where(usable[:, slot], level[network.tails[:, slot]] + 1, 0))
        if (new == level).all():
            return level
        level = new


def _after(network: Network, place: Array, node: Array, source: Array) -> Array:
    n, slots = network.tails.shape
    heads, slot = np.nonzero(network.links >= 0)
    tails = network.tails[heads, slot]
    order = np.argsort(tails, kind="stable")
    count = np.bincount(tails, minlength=n)
    rank = np.arange(len(order)) - np.repeat(np.cumsum(count) - count, count)
    head, entry = (np.full((n, int(count.max(initial=0))), -1, dtype=np.int64) for _ in range(2))
    head[tails[order], rank], entry[tails[order], rank] = heads[order], slot[order]
    columns = len(place) // n
    links = place[head[node] * columns + source[:, None]] * slots + entry[node]
    return np.where(head[node] >= 0, links, len(place) * slots)


@attrs.frozen(eq=False)
class Learned:
    """The largest load of a class of links over its capacity that a routing has, exactly, and prices of the classes."""

    value: Fraction
    prices: Array


def learn(ways: Ways, count: Array, capacity: Array, prices: Array, rounds: int) -> Learned:
    """Play so many rounds; return the best mix of the flows, and the mean prices.

    ``count``: how many sources each stands for. ``prices``: to start with, one for each class.
    """
    players = _Players(ways, count, capacity, prices)
    played = (players.play(turn + 1) for turn in range(rounds))
    kept = [loads for turn, loads in enumerate(played) if turn >= rounds // _SETTLE]
    return Learned(_mix(np.array(kept), capacity), players.mean / capacity)


class _Players:
    def __init__(self, ways: Ways, count: Array, capacity: Array, prices: Array) -> None:
        self.ways, self.capacity = ways, capacity.astype(np.float64)
        self.count = count[ways.source].astype(np.float64)[:, None]
        # sources that stand side by side are in different groups
        self.key = ((ways.source % _GROUPS)[:, None] * len(capacity) + ways.kind).ravel()
        self.weight = prices * self.capacity / (prices @ self.capacity)
        self.regret, self.busy = np.zeros(ways.open.shape), np.zeros(len(capacity))
        self.even = ways.open / np.maximum(ways.open.sum(axis=1, keepdims=True), 1)
        self.split = self.even
        self.mean = np.zeros(len(capacity))

    def play(self, turn: int) -> Array:
        """Play a round; return the loads that it has in whole units, shape (groups, classes)."""
        ways = self.ways
        cost, through = ways.costs(self.weight / self.capacity, self.split)
        np.subtract(cost[:, None], through, out=through)
        self.regret += through
        self.regret[~ways.open] = 0
        np.maximum(self.regret, 0, out=self.regret)
        total = self.regret.sum(axis=1, keepdims=True)
        self.split = np.where(total > 0, self.regret / np.where(total > 0, total, 1), self.even)
        loads = np.bincount(
            self.key, weights=(ways.flow(self.split) * self.count).ravel(), minlength=_GROUPS * len(self.capacity)
        ).reshape(_GROUPS, -1)
        load = loads.sum(axis=0) / self.capacity
        self.busy = np.maximum(self.busy + load - self.weight @ load, 0)
        if self.busy.any():
            self.weight = self.busy / self.busy.sum()
        self.mean += turn * self.weight
        return loads.astype(np.int64)


def _mix(loads: Array, capacity: Array) -> Fraction:
    """Return the largest load over capacity of the best mix of rounds; ``loads``, shape (rounds, groups, classes)."""
    rounds, groups, classes = loads.shape
    scale = float((loads.sum(axis=1) / capacity).max(axis=1).min())
    master = Master(np.zeros(classes, dtype=np.int64), capacity, groups, "central")
    routing, kind = np.nonzero(loads.reshape(-1, classes))
    master.join(np.tile(np.arange(groups), rounds), routing, kind, loads.reshape(-1, classes)[routing, kind] / scale)
    _, shares, _ = master.solve()
    total = np.zeros(classes, dtype=np.int64)
    for group in range(groups):
        parts = np.rint(shares.reshape(rounds, groups)[:, group] * _SHARE).astype(np.int64)
        parts[np.argmax(parts)] += _SHARE - parts.sum()
        total += parts @ loads[:, group]
    return max(Fraction(int(a), int(c) * _SHARE * UNITS) for a, c in zip(total, capacity, strict=True))
