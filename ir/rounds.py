"""What pipelined trees keep links busy with, round by round, for any number of pieces, without writing the steps out.

An edge that the first piece uses in step t is used by piece j in step t + j. With D the first pieces' steps (the sum of
the heights) and L_t(e) what whole shares put on link e through edges of step t, P pieces put

    (L_a(e) + .. + L_b(e)) / P,   a = max(0, s - P + 1),  b = min(s, D - 1)

on link e in step s: a window of steps. There are D + P - 1 rounds and at most 2 D different windows; with P >= D they
are the beginnings of 0 .. D - 1, all of it P - D + 1 times, and the ends. Were every link as busy in each round as over
all steps together, the time would be (D + P - 1) (latency + time of all / P): the usual estimate, and what no forest
exceeds. What is done here is exact for links that take turns step by step, the same that :func:`collc.ir.cost.cost`
says of the steps written out.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm
from typing import Any

import attrs
import numpy as np

from .pipelining import turns
from .schedule import Forest, Routes
from .topology import Topology

__all__ = ["Loads", "Round", "front", "loads"]

Array = np.ndarray[Any, np.dtype[Any]]
#: how often a round occurs, and (latency, parts per unit of bandwidth) of its links that may be the slowest
Round = tuple[int, tuple[tuple[Fraction, Fraction], ...]]


@attrs.frozen(eq=False)
class Loads:
    """What the first piece's steps put on links: running sums, so that a window is one difference.

    ``total`` (steps + 1, links) counts parts; ``used`` (latencies, steps + 1, links) routes of each of the ``waits``.
    """

    topology: Topology
    total: Array
    waits: tuple[Fraction, ...]
    used: Array

    @property
    def steps(self) -> int:
        return len(self.total) - 1

    def rounds(self, pieces: int) -> tuple[Round, ...]:
        """Return the rounds of so many pieces; a round's parts are of whole shares, to be divided by ``pieces``."""
        if not self.steps:
            return ()
        different = min(pieces, self.steps) + self.steps - 1
        first = np.maximum(np.arange(different) - min(pieces, self.steps) + 1, 0)
        end = np.minimum(np.arange(different), self.steps - 1) + 1
        again = max(pieces - self.steps, 0)  # how often the round of all steps comes back
        windows = enumerate(self._windows(first, end))
        return tuple((1 + again if i == self.steps - 1 else 1, pairs) for i, pairs in windows)

    def _windows(self, first: Array, end: Array) -> list[tuple[tuple[Fraction, Fraction], ...]]:
        """Return for each window of steps ``first`` .. ``end`` (exclusive) the (latency, parts per unit of bandwidth)
        of the links that may be the slowest; a link of a route through switches is as late as the route.
        """
        load = self.total[end] - self.total[first]
        found: list[dict[Fraction, Fraction]] = [{} for _ in first]
        for wait, used in zip(self.waits, self.used, strict=True):
            here = used[end] > used[first]
            busy = np.where(here, load, 0)
            for number, kind in enumerate(self.topology.classes):
                most = busy[:, self.topology.link_class == number].max(axis=1, initial=0)
                for window, parts in zip(found, most.tolist(), strict=True):
                    window[wait] = max(window.get(wait, Fraction(0)), parts / kind.bandwidth)
        return [front(window) for window in found]


def loads(forest: Forest) -> Loads:
    """Return what each step of the first piece puts on every link of a sound forest."""
    topology, routes = forest.topology, forest.routes
    begin, weight = turns(forest), forest.weight[forest.tree].astype(np.int64)
    waits, kind = _route_waits(topology, routes)
    steps = int(begin.max(initial=-1)) + 1
    total = np.zeros((steps + 1, topology.num_links), dtype=np.int64)
    used = np.zeros((len(waits), steps + 1, topology.num_links), dtype=np.int32)
    order = np.argsort(begin, kind="stable")
    start = np.searchsorted(begin[order], np.arange(steps + 1))
    for step in range(steps):
        rows = order[start[step] : start[step + 1]]
        route = forest.route[rows]
        per_route = np.zeros(len(routes), dtype=np.int64)
        np.add.at(per_route, route, weight[rows])
        here = np.unique(route).astype(np.int64)
        links = [routes.links[_places(routes, here[kind[here] == w])] for w in range(len(waits))]
        np.add.at(total[step + 1], routes.links[_places(routes, here)], _each(routes, here, per_route))
        for which, crossed in enumerate(links):
            used[which, step + 1, crossed] = 1
    return Loads(topology, np.cumsum(total, axis=0), waits, np.cumsum(used, axis=1))


def _places(routes: Routes, chosen: Array) -> Array:
    """Return the places in ``routes.links`` of the links of the chosen routes."""
    start = routes.start.astype(np.int64)
    length = start[chosen + 1] - start[chosen]
    return np.repeat(start[chosen] - np.cumsum(length) + length, length) + np.arange(int(length.sum()))


def _each(routes: Routes, chosen: Array, amount: Array) -> Array:
    """Return the amounts of the chosen routes, once for every link of them."""
    start = routes.start.astype(np.int64)
    return np.repeat(amount[chosen], start[chosen + 1] - start[chosen])


def _route_waits(topology: Topology, routes: Routes) -> tuple[tuple[Fraction, ...], Array]:
    """Return the latencies that routes have, and which of them each route has: the sum of its links' latencies."""
    latency = [kind.latency for kind in topology.classes]
    unit = lcm(*(wait.denominator for wait in latency))
    numbers = [int(wait * unit) for wait in latency]
    wide = sum(numbers) * (len(routes.links) + 1) >= 1 << 62
    along = np.array(numbers, dtype=object if wide else np.int64)[topology.link_class[routes.links]]
    ends = np.append(0 * along[:1], np.cumsum(along)) if len(along) else np.zeros(1, dtype=np.int64)
    length = ends[routes.start[1:].astype(np.int64)] - ends[routes.start[:-1].astype(np.int64)]
    values, kind = np.unique(length, return_inverse=True)
    return tuple(Fraction(int(value), unit) for value in values.tolist()), kind.reshape(-1)


def front(most: dict[Fraction, Fraction]) -> tuple[tuple[Fraction, Fraction], ...]:
    """Return the pairs (latency, load) that no other exceeds in both, latencies falling and loads rising."""
    found: list[tuple[Fraction, Fraction]] = []
    for wait in sorted(most, reverse=True):
        if most[wait] > (found[-1][1] if found else 0):
            found.append((wait, most[wait]))
    return tuple(found)
