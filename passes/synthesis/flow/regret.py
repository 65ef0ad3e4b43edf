"""Good routings of large networks: every node learns which in-links to use, and prices learn which links are busy.

Both sides play against each other by regret matching (Hart and Mas-Colell; the variant that forgets negative regret,
and averages later rounds more, is CFR+ of Tammelin). A source's flow may use every link that leads away from it at
given prices. So there are no cycles, and costs and amounts are known level by level. On a network of N nodes with S
sources a round takes a few array operations of N S d numbers, no more than one routing along cheapest paths. Cheapest
paths do not split; here the flow of every round is split. Loads oscillate about their means, so a linear program mixes
the rounds, separately for groups of sources.
"""

from __future__ import annotations

from fractions import Fraction

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.ragged import group_starts, inverse, nth

from .master import Master
from .paths import Network, cheapest

__all__ = ["UNITS", "SourceRoutes", "learn"]

UNITS = 2**20  #: parts of one unit of demand
_SHARE = 2**20
_GROUPS = 4
_SETTLE = 8  # rounds // _SETTLE come before the first that is kept


@attrs.frozen(eq=False)
class SourceRoutes:
    """The links that each source's flow may use. A place is a node and a source, on the level of its longest route.

    Places are ordered by level: level h has places ``start[h]`` to ``start[h + 1]``. ``before``, ``kind``, ``open``,
    shape (places, slots): for every in-link the place it comes from, its class, and whether it may be used. ``after``,
    shape (places, out-links): the numbers place * slots + slot of the links out of a place, padded with places * slots.
    ``own`` is the demand of a place, ``source`` its source.
    """

    start: Array
    before: Array
    kind: Array
    open: Array
    after: Array
    own: Array
    source: Array

    @classmethod
    def of(cls, network: Network, sources: Array, wanted: Array, kind: Array, prices: Array) -> SourceRoutes:
        """Return the links that lead away from each source: to a higher cost, or to the same cost and more hops.

        ``kind`` is the class of every in-link, shape (nodes, slots), ``prices`` are whole, one for each class.
        """
        n, columns = network.num_nodes, len(sources)
        trees = cheapest(network, sources, prices[kind][:, :, None])
        key = trees.cost * (int(trees.hops.max(initial=0)) + 1) + trees.hops
        usable = (key[network.tails] < key[:, None, :]) & (network.links >= 0)[:, :, None]  # (nodes, slots, sources)
        level = _levels(network, usable)
        order = np.argsort(level.ravel(), kind="stable")
        place = inverse(order)
        node, source = np.divmod(order, columns)
        amounts = np.array(np.broadcast_to(wanted, (n, columns)), dtype=np.float64)
        amounts[sources, np.arange(columns)] = 0
        return cls(
            group_starts(level.ravel()[order], int(level.max(initial=0)) + 1),
            place[network.tails[node] * columns + source[:, None]], kind[node], usable[node, :, source],
            _after(network, place, node, source), amounts[node, source] * UNITS, source,
        )  # fmt: skip

    def costs(self, prices: Array, split: Array) -> tuple[Array, Array]:
        """Return the cost of a unit at every place, and by every in-link, at these prices and splits."""
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
    """Return the most links on a route from every source to every node, shape (nodes, sources)."""
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
    rank = nth(count)
    head, entry = (np.full((n, int(count.max(initial=0))), -1, dtype=np.int64) for _ in range(2))
    head[tails[order], rank], entry[tails[order], rank] = heads[order], slot[order]
    columns = len(place) // n
    links = place[head[node] * columns + source[:, None]] * slots + entry[node]
    slots_of: Array = np.where(head[node] >= 0, links, len(place) * slots)
    return slots_of


@attrs.frozen(eq=False)
class Learned:
    """The exact largest load over capacity of a routing's classes of links, and prices of the classes."""

    value: Fraction
    prices: Array


def learn(routes: SourceRoutes, count: Array, capacity: Array, prices: Array, rounds: int) -> Learned:
    """Play ``rounds`` rounds; return the best mix of the flows, and the mean prices.

    ``count``: how many sources each represents. ``prices``: to start with, one for each class.
    """
    players = _Players(routes, count, capacity, prices)
    played = (players.play(turn + 1) for turn in range(rounds))
    kept = [loads for turn, loads in enumerate(played) if turn >= rounds // _SETTLE]
    return Learned(_mix(np.array(kept), capacity), players.mean / capacity)


class _Players:
    def __init__(self, routes: SourceRoutes, count: Array, capacity: Array, prices: Array) -> None:
        self.routes, self.capacity = routes, capacity.astype(np.float64)
        self.count = count[routes.source].astype(np.float64)[:, None]
        # neighbouring sources are in different groups
        self.key = ((routes.source % _GROUPS)[:, None] * len(capacity) + routes.kind).ravel()
        self.weight = prices * self.capacity / (prices @ self.capacity)
        self.regret, self.busy = np.zeros(routes.open.shape), np.zeros(len(capacity))
        self.even = routes.open / np.maximum(routes.open.sum(axis=1, keepdims=True), 1)
        self.split = self.even
        self.mean = np.zeros(len(capacity))

    def play(self, turn: int) -> Array:
        """Play a round; return its loads in whole units, shape (groups, classes)."""
        routes = self.routes
        cost, through = routes.costs(self.weight / self.capacity, self.split)
        np.subtract(cost[:, None], through, out=through)
        self.regret += through
        self.regret[~routes.open] = 0
        np.maximum(self.regret, 0, out=self.regret)
        total = self.regret.sum(axis=1, keepdims=True)
        self.split = np.where(total > 0, self.regret / np.where(total > 0, total, 1), self.even)
        loads = np.bincount(
            self.key, weights=(routes.flow(self.split) * self.count).ravel(), minlength=_GROUPS * len(self.capacity)
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
