"""Groups that share links: the mix of trees and routes of all groups that keeps the busiest link least busy.

A linear program mixes columns: trees of groups, and routes. Its prices of links buy the columns that join next, the
cheapest at these prices (Dantzig and Wolfe). Any whole prices prove a bound: every byte pays at least the cheapest tree
of its group, and a link of bandwidth b takes b times its price in a unit of time. Relays copy and add in trees. So the
bound is one of all schedules without coding, but of an allreduce only of those that reduce to a root. Without relays an
allreduce has a bound of all schedules too: see :meth:`~.commodities.Market.general`.

Rounds are limited by counted work. Shares become whole parts, so the result is exact whatever the solver returned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import isqrt, lcm

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.effort import spend
from collc.ir.graph.members import Inside
from collc.ir.topology import Topology

from ..flow.master import Master
from .commodities import Column, Commodity, Market

__all__ = ["Mixture", "Priced", "mixture"]

#: elementary steps of array operations for all rounds together; some ten seconds to a minute
_EFFORT = 20_000_000_000
#: rounds in which busy links become dearer, before the linear program: of small and of large programs
_WARM = (12, 30)
_MOST_ROUNDS = 120
#: rounds without a linear program: the fewest, the most, and one over the part of the first that do not count
_FEWEST_TURNS, _MOST_TURNS, _SKIPPED = 12, 64, 4
#: commodities times links, from which a program is large: an interior point method solves it, and prices are central
_LARGE = 1 << 15
#: elementary steps of a solution of a program, about: this times commodities times links to the power of 3/2
_PROGRAM = 8
#: weight of the best known prices: the program's own oscillate, central ones less
_WEIGHT = (0.5, 0.3)
#: bounds as near as this end the search: of small and of large programs; a program of little work is solved exactly
_GAP = (1 / 200, 1 / 100)
_EXACT, _LITTLE = 1e-9, 1_500_000
#: shares below this are left out of a large program's solution
_SLIGHT = 1e-3
#: numbers of parts of a shard that are tried; the first that loses no more than this part of the time is taken
_PARTS = (*range(1, 13), 14, 15, 16, 18, 20, 21, 24, 28, 30, 32, 36, 40, 42, 48, 60, 64, 72, 80, 84, 96, 120, 128, 144,
          160, 168, 180, 192, 240, 256, 360, 420, 504, 720, 840, 1024)  # fmt: skip
_LOST = 1 / 200
#: whole numbers that prices are multiples of one over, if they are that simple; the most exact parts of trees
_SIMPLE = 1024
#: the largest denominator of a share without the noise of floats; the most parts of routes, which only become shares
_FINE, _MOST_OF_ROUTES = 4096, 1 << 30
_NEAR = 1e-6


@attrs.frozen(eq=False)
class Priced:
    """Whole prices of links, which prove that groups take at least ``carried`` / ``paid`` units of time.

    ``carried`` are the bytes of all groups times the cheapest prices of their trees and routes; ``paid`` is the
    bandwidth of the links times their prices.
    """

    prices: tuple[int, ...]
    carried: Fraction
    paid: Fraction

    @property
    def value(self) -> Fraction:
        """The lower bound on the time until the last group has finished."""
        return self.carried / self.paid


@attrs.frozen(eq=False)
class Mixture:
    """Columns, each with its part of its commodity in 1/``parts``, the ``time`` of the busiest link, and a bound.

    ``proved`` is a bound of schedules by trees, in which an allreduce reduces to roots; None if relays could copy in
    ways that were not tried. ``general`` is one of all schedules on these networks, None if an allreduce has relays.
    """

    commodities: tuple[Commodity, ...]
    columns: tuple[Column, ...]
    units: tuple[int, ...]
    parts: int
    time: Fraction
    proved: Priced | None
    general: Priced | None

    def loads(self, group: int, num_links: int) -> list[Fraction]:
        """Return the bytes of a group on every link."""
        found = [Fraction(0)] * num_links
        for column, units in zip(self.columns, self.units, strict=True):
            one = self.commodities[column.commodity]
            if one.group == group:
                for link, count in column.loads:
                    found[link] += one.planned * count * units / self.parts
        return found


def mixture(
    topology: Topology, networks: Sequence[Inside], commodities: Sequence[Commodity], effort: int = _EFFORT
) -> Mixture | None:
    """Return a mix near the best one; None if rounds take so much work that too few are within the effort.

    If the linear program is beyond the effort, the mix is the mean of the trees that were cheapest while busy links
    became dearer.
    """
    search = _Search(Market(topology, networks, commodities))
    left = effort - search.warm * search.market.work
    rounds = left // (search.market.work + search.program_work)
    if rounds >= 1:
        search.run(min(rounds, _MOST_ROUNDS))
        return search.found()
    turns = effort // search.market.work
    return search.averaged(min(turns, _MOST_TURNS)) if turns >= _FEWEST_TURNS else None


class _Search:
    """Prices and columns so far. ``best`` are the prices of the largest bound, as floats that sum up to 1 over links
    times their bandwidth, and ``bound`` that bound.
    """

    def __init__(self, market: Market) -> None:
        self.market, topology = market, market.topology
        widths = [topology.bandwidth(link) for link in range(topology.num_links)]
        self.unit = max(widths)
        self.width = np.array([float(width / self.unit) for width in widths])
        self.widths = widths
        self.scale = max(one.planned for one in market.commodities)
        self.size = np.array([float(one.planned / self.scale) for one in market.commodities])
        self.is_large = len(widths) * len(self.size) > _LARGE
        self.master = self._master("central" if self.is_large else "simplex")
        self.number: dict[Column, int] = {}
        self.bound, self.proof = Fraction(0), Priced((), Fraction(0), Fraction(1))
        self.general: Priced | None = None
        self.best = self._even(np.ones(len(widths)))
        self.shares = np.zeros(0)

    def _even(self, prices: Array) -> Array:
        found: Array = prices / (prices @ self.width)
        return found

    def _master(self, method: str) -> Master:
        return Master(np.zeros(len(self.width), dtype=np.int64), self.width, len(self.size), method)

    @property
    def warm(self) -> int:
        """Rounds before the linear program."""
        return _WARM[self.is_large]

    @property
    def program_work(self) -> int:
        """The elementary steps of a solution of the linear program, about."""
        cells = len(self.width) * len(self.size)
        return _PROGRAM * cells * isqrt(cells)

    @property
    def gap(self) -> float:
        """How near bounds must be, relatively, to end the search."""
        return _EXACT if self.market.work <= _LITTLE and not self.is_large else _GAP[self.is_large]

    # ---- rounds

    def run(self, rounds: int) -> None:
        """Raise the prices of busy links for some rounds, then take the program's own prices."""
        for columns in self._turns(self.warm):
            self._join(columns)
        weight, before = _WEIGHT[self.is_large], float("inf")
        for _ in range(rounds):
            spend(self.program_work)
            time, self.shares, prices = self.master.solve()
            if time <= self._seconds(self.bound) * (1 + self.gap):
                break
            kept = weight if time < before * (1 - _EXACT) else 0.0
            before = time
            fresh = self._join(self._round(kept * self.best + (1 - kept) * self._even(np.maximum(prices, 0))))
            if not fresh and not kept:
                break  # the program's own prices buy nothing new
        self._settle()

    def averaged(self, turns: int) -> Mixture:
        """Return the mean of the cheapest columns of some rounds, without a linear program."""
        found = [self._first(columns) for columns in self._turns(turns)][turns // _SKIPPED :]
        times = Counter(column for columns in found for column in columns)
        self._settle_bounds(self.best)
        return self._mixture(list(times), np.array(list(times.values())), len(found))

    def _turns(self, turns: int) -> Iterator[list[Column]]:
        """Yield the columns that are cheapest while links that were busy become dearer."""
        logarithm = np.zeros(len(self.width))
        for turn in range(turns):
            columns = self._round(np.exp(logarithm - logarithm.max()) / self.width)
            yield columns
            load = np.zeros(len(self.width))
            for column in self._first(columns):
                for link, count in column.loads:
                    load[link] += count * self.size[column.commodity]
            logarithm += load / (self.width * max(self._seconds(self.bound), 1e-300) * np.sqrt(turn + 1) * 3)

    def _first(self, columns: Sequence[Column]) -> list[Column]:
        """Return the first, cheapest column of every commodity."""
        found: dict[int, Column] = {}
        for column in columns:
            found.setdefault(column.commodity, column)
        return list(found.values())

    def _settle(self) -> None:
        """Solve the program once more, a large one with the columns that it used, to a vertex; try its prices."""
        if self.is_large:
            used = [column for column, share in zip(self.number, self.shares, strict=False) if share > _SLIGHT]
            self.number, self.master = {}, self._master("vertex")
            self._join(used)
        _, self.shares, prices = self.master.solve()
        self._settle_bounds(prices, *_simple(prices), self.best)

    def _settle_bounds(self, *prices: Array) -> None:
        """Try prices, links of price 0 included, and their means over both directions for a bound of all schedules."""
        for one in prices:
            self._try(self._whole(one, 0))
            self._try_general(self._whole(self._both_ways(one), 0))
        self._try_general(np.array(self.proof.prices, dtype=np.int64))

    def _seconds(self, time: Fraction) -> float:
        """Return a time in the program's unit: that of the largest commodity on the widest link."""
        return float(time * self.unit / self.scale)

    def _whole(self, prices: Array, least: int = 1) -> Array:
        dearest = self.market.dearest
        found: Array = np.maximum(np.rint(prices * (dearest / max(prices.max(), 1e-300))), least).astype(np.int64)
        return found

    def _round(self, prices: Array) -> list[Column]:
        """Return the columns that are cheapest at these prices, and try the bound that these prove."""
        spend(self.market.work)
        whole = self._whole(prices)
        carried, columns = self.market.columns(whole)
        self._prove(whole, carried)
        return columns

    def _join(self, bought: Sequence[Column]) -> int:
        """Add columns to the program; return how many are new."""
        columns = [column for column in dict.fromkeys(bought) if column not in self.number]
        for column in columns:
            self.number[column] = len(self.number)
        routing = [place for place, column in enumerate(columns) for _ in column.loads]
        links = [link for column in columns for link, _ in column.loads]
        loads = [count * self.size[column.commodity] for column in columns for _, count in column.loads]
        self.master.join(
            np.array([column.commodity for column in columns], dtype=np.int64), np.array(routing, dtype=np.int64),
            np.array(links, dtype=np.int64), np.array(loads, dtype=np.float64),
        )  # fmt: skip
        return len(columns)

    def _try(self, whole: Array) -> None:
        if whole.any():
            self._prove(whole, self.market.cost(whole))

    def _both_ways(self, prices: Array) -> Array:
        """Return the mean of the prices of every link and its reverse."""
        reverse = self.market.topology.reverse_links
        return prices if reverse is None else (prices + prices[reverse]) / 2

    def _try_general(self, whole: Array) -> None:
        carried, paid = self.market.general(whole), self._paid(whole)
        if carried is not None and paid and (self.general is None or carried > self.general.value * paid):
            self.general = Priced(tuple(whole.tolist()), carried, paid)

    def _paid(self, whole: Array) -> Fraction:
        return sum((width * price for width, price in zip(self.widths, whole.tolist(), strict=True)), Fraction(0))

    def _prove(self, whole: Array, carried: Fraction) -> None:
        paid = self._paid(whole)
        if carried > self.bound * paid:
            self.bound = carried / paid
            self.best = self._even(whole.astype(np.float64))
            self.proof = Priced(tuple(whole.tolist()), carried, paid)

    # ---- whole parts

    def found(self) -> Mixture:
        """Return the mix in few parts, with its exact time."""
        columns = [column for column, share in zip(self.number, self.shares, strict=True) if share > _NEAR]
        shares = np.array([share for share in self.shares if share > _NEAR])
        rounding = _Rounding(columns, shares, self.size, self.width)
        most = _SIMPLE if any(one.targets is None for one in self.market.commodities) else _MOST_OF_ROUTES
        simple, least = _simple_parts(shares, most), None
        tried = [(parts, _EXACT) for parts in simple] + [(parts, _LOST) for parts in _PARTS]
        for parts, lost in tried:
            units = rounding.units(parts)
            time = rounding.time(units, parts)
            if time <= rounding.value * (1 + lost) + _EXACT:
                return self._mixture(columns, units, parts)
            if least is None or time < least[0] * (1 - _NEAR):
                least = time, units, parts
        assert least is not None, "there are numbers of parts"
        return self._mixture(columns, least[1], least[2])

    def _mixture(self, columns: Sequence[Column], units: Array, parts: int) -> Mixture:
        market, kept = self.market, np.flatnonzero(units).tolist()
        chosen, amounts = tuple(columns[i] for i in kept), tuple(int(units[i]) for i in kept)
        total = [Fraction(0)] * len(self.widths)
        for column, amount in zip(chosen, amounts, strict=True):
            for link, count in column.loads:
                total[link] += market.commodities[column.commodity].planned * (count * amount)
        time = max(load / width for load, width in zip(total, self.widths, strict=True)) / parts
        return Mixture(
            tuple(market.commodities), chosen, amounts, parts, time, self.proof if market.proves else None, self.general
        )  # fmt: skip


def _simple_parts(shares: Array, most: int) -> list[int]:
    """Return the number of parts in which shares are whole; none if it is more than ``most``."""
    exact = 1
    for share in shares.tolist():
        simple = Fraction(share).limit_denominator(_FINE)
        exact = lcm(exact, simple.denominator) if abs(float(simple) - share) < _EXACT else 0
        if not 0 < exact <= most:
            return []
    return [exact]


def _simple(prices: Array) -> list[Array]:
    """Return prices without the noise of floats, if they are whole multiples of one number."""
    used = prices[prices > _NEAR * max(prices.max(), 1e-300)]
    for parts in range(1, _SIMPLE + 1):
        scaled = used / used.max() * parts
        if (np.abs(scaled - np.rint(scaled)) < _NEAR * parts).all():
            found: Array = np.rint(np.maximum(prices, 0) / used.max() * parts)
            return [found]
    return []


class _Rounding:
    """Shares of columns, to be rounded to whole parts of their commodities: links fill up as evenly as possible."""

    def __init__(self, columns: Sequence[Column], shares: Array, size: Array, width: Array) -> None:
        self.shares = shares
        self.links = [np.array([link for link, _ in column.loads], dtype=np.int64) for column in columns]
        self.loads = [
            np.array([count for _, count in column.loads]) * size[column.commodity] / width[links]
            for column, links in zip(columns, self.links, strict=True)
        ]  # fmt: skip
        self.choices: dict[int, list[int]] = {}
        for place, column in enumerate(columns):
            self.choices.setdefault(column.commodity, []).append(place)
        self.count, self.flat = len(width), np.concatenate(self.links)
        self.owner = np.repeat(np.arange(len(columns)), [len(links) for links in self.links])

    @property
    def value(self) -> float:
        """The load of the busiest link before rounding."""
        return float(self._busy(self.shares).max())

    def time(self, units: Array, parts: int) -> float:
        """Return the load of the busiest link with these whole parts."""
        return float(self._busy(units / parts).max())

    def _busy(self, shares: Array) -> Array:
        return np.bincount(self.flat, np.concatenate(self.loads) * shares[self.owner], self.count)

    def units(self, parts: int) -> Array:
        """Return whole parts: shares rounded down, then one part more where links are least busy."""
        full = self.shares * parts
        units = np.floor(full + _NEAR).astype(np.int64)
        busy = self._busy(units / parts)
        for places in self.choices.values():
            for _ in range(parts - int(units[places].sum())):
                rest = [place for place in places if full[place] > units[place] - _NEAR] or places
                busiest = [round(float((busy[self.links[i]] + self.loads[i] / parts).max()), 9) for i in rest]
                best = min(zip(busiest, (units - full)[rest].tolist(), rest, strict=True))[2]
                units[best] += 1
                busy[self.links[best]] += self.loads[best] / parts
        return units
