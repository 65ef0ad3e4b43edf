"""The all-to-all rate of any network by column generation: trees cheapest at prices, prices from a linear program.

One source of each orbit under automorphisms is routed, and loads are counted by orbits of links: the mean of a routing
over all automorphisms loads all links of an orbit equally.

Multiplicative weights find good prices quickly; HiGHS finds the best, with the trees that were cheapest so far.
Both work in floats. The returned bounds are exact: any whole prices prove an upper bound of the rate by exact shortest
paths, and any whole mix of trees is a routing with exact loads.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm

import attrs
import numpy as np

from collc.ir.arrays import Array

from .basis import Row, solve_sparse
from .levelling import level
from .master import Master
from .paths import Network, cheapest, subtree_sums
from .regret import SourceRoutes, learn

__all__ = ["Bracket", "Commodities", "Routing", "column_rate", "good_prices", "quick_rate"]

_PRICE = 2**26  # the dearest class's price, in whole numbers
_SHARE = 2**26  # units in which a mix's shares are counted
#: Rounds of multiplicative weights, and how many of the last join the linear program: small and large programs.
_WARM, _KEEP = (16, 300), (16, 6)
_WARM_LEAST, _MOST_WARM, _MOST_QUICK = 4, 1 << 23, 1 << 25
_WARM_LEARN, _LEARN = 60, 160  # rounds if flows learn
_WARM_QUICK, _MOST_LEARNT = 30, 1 << 17  # rounds beyond the most sources times classes for learning
_LEVELLED = 320  # rounds of levelling
_LEVEL = Fraction(1, 1000)  # a routing this level is good enough
_WEIGHT = (0.7, 0.5)  # weight of the best known prices: the program's own oscillate
_LARGE = 1 << 16  # sources times classes from which a program is large
_ROUNDS_LARGE = 15  # some seconds each
_MOST_LOADS = 1 << 19  # sources times classes from which it takes too long
_MOST_BASIS = 300


@attrs.frozen(eq=False)
class Routing:
    """The trees that are cheapest at some prices: their cost, and each source's loads, shape (sources, classes)."""

    cost: int
    loads: Array


@attrs.frozen(eq=False)
class Commodities:
    """The data to route: from each of ``sources``, which represents ``count`` of its kind, ``wanted`` to every node.

    ``wanted`` are whole units, shape (nodes, sources), or (nodes, 1) if all sources send the same. ``link_class``
    numbers the classes of links; ``capacity`` is each class's total, in whole units.
    """

    network: Network
    wanted: Array
    sources: Array
    count: Array
    link_class: Array
    capacity: Array

    @property
    def classes(self) -> int:
        """Classes of links."""
        return len(self.capacity)

    @property
    def size(self) -> int:
        """Sources times classes of links."""
        return len(self.sources) * self.classes

    @property
    def work(self) -> int:
        """The work of a routing: sources times places of links into nodes."""
        return len(self.sources) * int(self.network.tails.size)

    def route(self, prices: Array) -> Routing:
        """Route everything as cheaply as possible at these whole prices, one for each class.

        A source's loads are its own, without the others that it represents.
        """
        links = self.network.links
        kind = self.link_class[np.maximum(links, 0)]
        trees = cheapest(self.network, self.sources, prices[kind][:, :, None])
        sums = subtree_sums(self.network, trees, self.wanted)
        nodes, columns = np.nonzero(trees.slot >= 0)
        key = columns * self.classes + kind[nodes, trees.slot[nodes, columns]]
        loads = np.bincount(key, weights=sums[nodes, columns], minlength=len(self.sources) * self.classes)
        costs = (trees.cost * self.wanted).sum(axis=0)
        total = sum(int(c) * int(n) for c, n in zip(costs, self.count, strict=True))
        return Routing(total, loads.reshape(len(self.sources), self.classes).astype(np.int64))

    def bound(self, prices: Array) -> tuple[Fraction, Routing]:
        """Return the least 1/f that these whole prices prove, and the routing that is cheapest at them."""
        routing = self.route(prices)
        capacity = sum(int(p) * int(c) for p, c in zip(prices, self.capacity, strict=True))
        return Fraction(routing.cost, capacity), routing


@attrs.frozen(eq=False)
class Bracket:
    """``lower``: a rate that a routing reaches; ``upper``: the bound of these whole ``prices``, one for each class."""

    lower: Fraction
    upper: Fraction
    prices: Array


def column_rate(commodities: Commodities, gap: Fraction, rounds: int, start: Array | None = None) -> Bracket:
    """Return a bracket around the rate: bounds within ``gap`` of each other, relatively, or after ``rounds`` rounds.

    The bounds are equal if the linear program's last basis can be solved in fractions and is feasible. Networks with
    too many kinds of sources and links for a linear program use :mod:`.regret`. ``start``: prices of the classes that
    may be good.
    """
    search, loads = _Search(commodities), commodities.size
    if start is not None:
        search.offer(start)
    if loads > _MOST_LOADS:
        return search.bracket(search.learn(start))
    close = search.run(gap, rounds)
    exact = search.exact() if close and not search.large else None
    if exact is not None:
        return Bracket(1 / exact[0], 1 / exact[0], exact[1])
    return search.bracket(search.value())


def quick_rate(commodities: Commodities, start: Array | None = None) -> Bracket:
    """Return a bracket around the rate of a network of any size, without linear programs on trees.

    Sources and prices learn from each other if they are not too many; otherwise a few rounds raise the prices of busy
    links. ``start``: prices of the classes that may be good.
    """
    search = _Search(commodities)
    if start is not None:
        search.offer(start)
    if commodities.size > _MOST_LEARNT:
        return search.bracket(search.weigh(max(_WARM_LEAST, min(_WARM_QUICK, _MOST_QUICK // commodities.work)), keep=0))
    return search.bracket(search.learn(None, min(_LEARN, _MOST_WARM // commodities.size)))


def good_prices(commodities: Commodities, gap: Fraction, rounds: int) -> Array:
    """Return prices of the classes that prove a bound on the rate; it is within ``gap`` unless rounds run out."""
    search = _Search(commodities)
    search.run(gap, rounds)
    return search.prices


class _Search:
    """Prices and trees found so far. ``best`` is the largest bound on 1/f, proved at ``prices`` (floats)."""

    def __init__(self, commodities: Commodities) -> None:
        self.commodities, self.capacity = commodities, commodities.capacity.astype(np.float64)
        self.large = commodities.size > _LARGE
        method = "central" if self.large else "simplex"
        self.master = Master(
            np.zeros(commodities.classes, dtype=np.int64), commodities.capacity, len(commodities.sources), method
        )
        self.best = Fraction(0)
        self.prices: Array = np.ones(commodities.classes) / self.capacity.sum()
        self.pool: list[Array] = []
        self.shares = np.zeros(0)

    def run(self, gap: Fraction, rounds: int) -> bool:
        """Find prices, then mixes and prices in turn; return whether the bounds came within ``gap``."""
        warm = max(_WARM_LEAST, min(_WARM[self.large], _MOST_WARM // self.commodities.work))
        self.weigh(warm, min(warm, _KEEP[self.large]))
        return self.improve(gap, min(rounds, _ROUNDS_LARGE) if self.large else rounds)

    def offer(self, prices: Array) -> None:
        """Keep these prices if they prove more than the best so far."""
        self._try(prices)

    def learn(self, start: Array | None, rounds: int = _LEARN) -> Fraction:
        """Return the largest load of a good routing: a level one, or one that flows and prices have learned."""
        flat = self.level() if start is not None else None
        if flat is not None and flat <= self.best * (1 + _LEVEL):
            return flat
        commodities, warm = self.commodities, _Search(self.commodities)
        warm.weigh(_WARM_LEARN, keep=0)
        self.offer(warm.prices)
        found = warm.prices
        if start is not None:
            found = (found + start / (start @ self.capacity)) / 2
        learned = learn(self._source_routes(found), commodities.count, commodities.capacity, found, rounds)
        self.offer(learned.prices)
        return learned.value if flat is None else min(flat, learned.value)

    def level(self) -> Fraction:
        """Return the largest load of the most level flow found at the best prices."""
        return level(
            self._source_routes(self.prices),
            self.commodities.count,
            self.commodities.capacity,
            self.prices,
            self.best,
            _LEVELLED,
        )

    def bracket(self, value: Fraction) -> Bracket:
        """Return the rate of a routing whose largest load is ``value``, and the best prices."""
        return Bracket(1 / value, 1 / self.best, _whole(self.prices))

    def _source_routes(self, prices: Array) -> SourceRoutes:
        commodities = self.commodities
        kind = commodities.link_class[np.maximum(commodities.network.links, 0)]
        return SourceRoutes.of(commodities.network, commodities.sources, commodities.wanted, kind, _whole(prices))

    def _try(self, prices: Array) -> Routing:
        bound, routing = self.commodities.bound(_whole(prices))
        if bound > self.best:
            self.best, self.prices = bound, prices / (prices @ self.capacity)
        return routing

    def _join(self, routing: Routing) -> None:
        self.pool.append(routing.loads)
        source, used = np.nonzero(routing.loads)
        loads = routing.loads[source, used] * self.commodities.count[source]
        self.master.join(np.arange(len(self.commodities.sources)), source, used, loads)

    def weigh(self, rounds: int, keep: int) -> Fraction:
        """Multiplicative weights: busier classes become dearer. Return the largest load of the mean."""
        logarithm, total = np.zeros(self.commodities.classes), np.zeros(self.commodities.classes, dtype=np.int64)
        for turn in range(rounds):
            routing = self._try(np.exp(logarithm - logarithm.max()) / self.capacity)
            load = self.commodities.count @ routing.loads
            total += load
            logarithm += load / self.capacity / float(self.best) / np.sqrt(turn + 1)
            if turn >= rounds - keep:
                self._join(routing)
        return max(Fraction(int(a), int(c) * rounds) for a, c in zip(total, self.commodities.capacity, strict=True))

    def improve(self, gap: Fraction, rounds: int) -> bool:
        """Column generation; return whether the bounds came within ``gap`` of each other."""
        before = float("inf")
        for _ in range(rounds):
            least, self.shares, duals = self.master.solve()
            if least <= float(self.best) * (1 + float(gap) / 2):
                return True
            # if better prices brought no better mix, the program may have ended: its own prices decide
            weight = _WEIGHT[self.large] if least < before * (1 - 1e-9) else 0.0
            before = least
            self._join(self._try(weight * self.prices + (1 - weight) * duals))
        self.shares = self.master.solve()[1]
        return False

    def value(self) -> Fraction:
        """Return the exact largest load of the last mix, its shares rounded to whole parts."""
        commodities, loads = self.commodities, np.concatenate(self.pool)
        total, source = (
            np.zeros(commodities.classes, dtype=object),
            np.tile(np.arange(len(commodities.sources)), len(self.pool)),
        )
        for s in range(len(commodities.sources)):
            mine = np.flatnonzero(source == s)
            parts = np.rint(self.shares[mine] * _SHARE).astype(np.int64)
            parts[np.argmax(parts)] += _SHARE - parts.sum()
            mine, parts = mine[parts > 0], parts[parts > 0]
            total = total + parts.astype(object) @ loads[mine].astype(object) * int(commodities.count[s])
        return max(Fraction(a, int(c) * _SHARE) for a, c in zip(total, commodities.capacity, strict=True))

    def exact(self) -> tuple[Fraction, Array] | None:
        """Solve the program's last basis in fractions; return 1/f and whole prices if both prove each other."""
        commodities = self.commodities
        columns, slack = self.master.basis()
        tight, chosen = np.flatnonzero(~slack), np.flatnonzero(columns[1:])
        size = len(tight) + len(commodities.sources)
        if len(chosen) + 1 != size or size > _MOST_BASIS or not columns[0]:
            return None
        loads = np.concatenate(self.pool)[chosen] * commodities.count[chosen % len(commodities.sources), None]
        source = chosen % len(commodities.sources)
        # unknowns: the chosen trees' shares, then 1/f; equations: the busiest classes, then the sources
        rows: list[Row] = [{len(chosen): -Fraction(int(commodities.capacity[k]))} for k in tight]
        rows += [{} for _ in commodities.sources]
        for c, s in enumerate(source.tolist()):
            for i in np.flatnonzero(loads[c, tight]).tolist():
                rows[i][c] = Fraction(int(loads[c, tight[i]]))
            rows[len(tight) + s][c] = Fraction(1)
        right = [Fraction(0)] * len(tight) + [Fraction(1)] * len(commodities.sources)
        mix = solve_sparse(rows, right)
        turned: list[Row] = [{} for _ in range(size)]
        for i, row in enumerate(rows):
            for c, x in row.items():
                turned[c][i] = x
        duals = solve_sparse(turned, [Fraction(0)] * len(chosen) + [Fraction(-1)]) if mix else None
        if mix is None or duals is None or min(mix) < 0 or min(duals[: len(tight)]) < 0:
            return None
        total = np.array(mix[:-1], dtype=object) @ loads.astype(object)
        if max(Fraction(a, int(c)) for a, c in zip(total, commodities.capacity, strict=True)) > mix[-1]:
            return None
        scale = lcm(*(p.denominator for p in duals[: len(tight)]))
        prices = np.zeros(commodities.classes, dtype=object)
        prices[tight] = [int(p * scale) for p in duals[: len(tight)]]
        return (mix[-1], prices) if commodities.bound(prices)[0] == mix[-1] else None


def _whole(prices: Array) -> Array:
    """Return prices as whole numbers up to the dearest's."""
    whole: Array = np.rint(prices * (_PRICE / prices.max())).astype(np.int64)
    return whole
