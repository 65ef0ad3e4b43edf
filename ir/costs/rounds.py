"""The exact loads of links by pipelined trees, round by round, for any number of pieces, without writing out the steps.

If the first piece uses an edge in step t, piece j uses it in step t + j. Let D be the steps of the first piece (the sum
of the heights), and L_t(e) the load of link e by whole shares on edges of step t. Then P pieces put the load

    (L_a(e) + .. + L_b(e)) / P,   a = max(0, s - P + 1),  b = min(s, D - 1)

on link e in step s: a window of steps. There are D + P - 1 rounds and at most 2 D different windows. If P >= D, they
are the beginnings of 0 .. D - 1, the whole of it P - D + 1 times, and its ends. The usual estimate is (D + P - 1)
(latency + time of all / P), as if every link had in each round its average load; no forest exceeds it. This module is
exact: it gives the same cost as :func:`.cost.cost` of the steps written out.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm

import attrs
import numpy as np

from ..arrays import Array, distinct
from ..bundles import loading
from ..frozen import frozen
from ..pipelining import first_steps
from ..ragged import group_starts
from ..schedule import Forest, Routes
from ..symmetric_forest import SymmetricForest
from ..symmetries import Symmetries
from ..topology import Topology

__all__ = ["Loads", "Round", "front", "loads", "reduced_parts"]
#: how often a round occurs, and (latency, parts per unit of bandwidth) of its links that may be the slowest
Round = tuple[int, tuple[tuple[Fraction, Fraction], ...]]


@frozen(eq=False)
class Loads:
    """The loads of links by the first piece's steps, as running sums, so that a window is one difference.

    ``total`` (steps + 1, links) counts parts; ``used`` (latencies, steps + 1, links) counts routes of each latency;
    ``added`` (steps + 1, ranks) counts the parts that a rank receives and adds.
    """

    topology: Topology
    total: Array
    latencies: tuple[Fraction, ...]
    used: Array
    added: Array

    @property
    def steps(self) -> int:
        """Steps that the first piece takes."""
        return len(self.total) - 1

    @property
    def busiest(self) -> Fraction:
        """The parts per unit of bandwidth that the busiest link carries in all steps."""
        each = self.total[-1]
        classes = enumerate(self.topology.classes)
        parts = [(int(each[self.topology.link_class == number].max(initial=0)), kind) for number, kind in classes]
        return max((most / kind.bandwidth for most, kind in parts if most), default=Fraction(0))

    def rounds(self, pieces: int) -> tuple[Round, ...]:
        """Return the rounds of ``pieces`` pieces; a round's parts are of whole shares, to be divided by ``pieces``."""
        if not self.steps:
            return ()
        times, first, end = _ranges(self.steps, pieces)
        return tuple(zip(times, self._windows(first, end), strict=True))

    def reduced(self, pieces: int) -> int:
        """Return the sum over the rounds of the most that a rank adds, as parts of whole shares, as in ``rounds``."""
        return _reduced(self.added, pieces)

    def _windows(self, first: Array, end: Array) -> list[tuple[tuple[Fraction, Fraction], ...]]:
        """Return for each window of steps ``first`` .. ``end`` (exclusive) the (latency, parts per unit of bandwidth)
        of the links that may be the slowest; a link of a route of several links has the latency of the route.
        """
        load = self.total[end] - self.total[first]
        found: list[dict[Fraction, Fraction]] = [{} for _ in first]
        for latency, used in zip(self.latencies, self.used, strict=True):
            here = used[end] > used[first]
            busy = np.where(here, load, 0)
            for number, kind in enumerate(self.topology.classes):
                most = busy[:, self.topology.link_class == number].max(axis=1, initial=0)
                for window, parts in zip(found, most.tolist(), strict=True):
                    window[latency] = max(window.get(latency, Fraction(0)), parts / kind.bandwidth)
        return [front(window) for window in found]


def _ranges(steps: int, pieces: int) -> tuple[list[int], Array, Array]:
    """Return how often every different round occurs, and its first and last step (exclusive) of the first piece."""
    different = min(pieces, steps) + steps - 1
    first = np.maximum(np.arange(different) - min(pieces, steps) + 1, 0)
    end = np.minimum(np.arange(different), steps - 1) + 1
    times = [1] * different
    times[steps - 1] += max(pieces - steps, 0)  # how often the round of all steps is repeated
    return times, first, end


def _reduced(added: Array, pieces: int) -> int:
    steps = len(added) - 1
    if not steps:
        return 0
    times, first, end = _ranges(steps, pieces)
    most = (added[end] - added[first]).max(axis=1, initial=0).tolist()
    return sum(count * parts for count, parts in zip(times, most, strict=True))


def reduced_parts(forest: Forest, pieces: int) -> int:
    """Return what :meth:`Loads.reduced` does, without the loads of links."""
    return _reduced(np.cumsum(_added(forest, first_steps(forest)), axis=0), pieces)


def loads(forest: Forest | SymmetricForest) -> Loads:
    """Return the loads of every link by each step of the first piece of a well-formed forest."""
    if isinstance(forest, Forest):
        return _loads(forest)
    if not forest.stays.any():
        return _moved(_loads(forest.seed), forest.group)
    stays = forest.stays[forest.seed.tree]
    moved, kept = _moved(_loads(forest.seed, ~stays), forest.group), _loads(forest.seed, stays)
    return attrs.evolve(
        moved, total=moved.total + kept.total, used=moved.used + kept.used, added=moved.added + kept.added
    )


def _moved(seed: Loads, group: Symmetries) -> Loads:
    """Return the loads of a template's images together, from those of the template."""
    used = np.stack([group.summed(one, group.link_orbit) for one in seed.used])
    total, added = group.summed(seed.total, group.link_orbit), group.summed(seed.added, group.rank_orbit)
    return Loads(seed.topology, total, seed.latencies, used, added)


def _loads(forest: Forest, among: Array | None = None) -> Loads:
    """Return the loads of the edges in a mask, by default all."""
    topology, (own, routes) = forest.topology, loading(forest)
    begin, weight = first_steps(forest), forest.amount[forest.tree]
    latencies, kind = _route_latencies(topology, routes)
    steps = int(begin.max(initial=-1)) + 1
    total = np.zeros((steps + 1, topology.num_links), dtype=weight.dtype)
    used = np.zeros((len(latencies), steps + 1, topology.num_links), dtype=np.int32)
    order = np.argsort(begin, kind="stable")
    order = order if among is None else order[among[order]]
    start = group_starts(begin[order], steps)
    for step in range(steps):
        rows = order[start[step] : start[step + 1]]
        route = own[rows]
        per_route = np.zeros(len(routes), dtype=weight.dtype)
        np.add.at(per_route, route, weight[rows])
        here = distinct(route).astype(np.int64)
        links = [routes.links[routes.places(here[kind[here] == w])] for w in range(len(latencies))]
        places = routes.places(here)
        load = routes.loads(places, np.repeat(per_route[here], routes.lengths[here]))
        np.add.at(total[step + 1], routes.links[places], load)
        for which, crossed in enumerate(links):
            used[which, step + 1, crossed] = 1
    return Loads(
        topology,
        np.cumsum(total, axis=0),
        latencies,
        np.cumsum(used, axis=1),
        np.cumsum(_added(forest, begin, among), axis=0),
    )


def _added(forest: Forest, begin: Array, among: Array | None = None) -> Array:
    """Return the parts that every rank adds in the step before each of 0 .. steps, by the edges in a mask or all."""
    added = np.zeros((int(begin.max(initial=-1)) + 2, forest.topology.num_ranks), dtype=forest.amount.dtype)
    inward = np.flatnonzero(forest.inward[forest.tree] if among is None else among & (forest.inward[forest.tree] == 1))
    heads = forest.routes.heads(forest.topology)[forest.route[inward]]
    route, routes = loading(forest)
    arriving = routes.loads(routes.start[route[inward] + 1] - 1, forest.amount[forest.tree[inward]])
    np.add.at(added, (begin[inward] + 1, heads), arriving)
    return added


def _route_latencies(topology: Topology, routes: Routes) -> tuple[tuple[Fraction, ...], Array]:
    """Return the latencies that routes have, and which of them each route has: the sum of its links' latencies."""
    latencies = [kind.latency for kind in topology.classes]
    unit = lcm(*(latency.denominator for latency in latencies))
    numbers = [int(latency * unit) for latency in latencies]
    wide = sum(numbers) * (len(routes.links) + 1) >= 1 << 62
    along = np.array(numbers, dtype=object if wide else np.int64)[topology.link_class[routes.links]]
    ends = np.append(0 * along[:1], np.cumsum(along)) if len(along) else np.zeros(1, dtype=np.int64)
    length = ends[routes.start[1:].astype(np.int64)] - ends[routes.start[:-1].astype(np.int64)]
    values, kind = np.unique(length, return_inverse=True)
    return tuple(Fraction(int(value), unit) for value in values.tolist()), kind.reshape(-1)


def front(most: dict[Fraction, Fraction]) -> tuple[tuple[Fraction, Fraction], ...]:
    """Return the pairs (latency, load) that no other exceeds in both, latencies falling and loads rising."""
    found: list[tuple[Fraction, Fraction]] = []
    for latency in sorted(most, reverse=True):
        if most[latency] > (found[-1][1] if found else 0):
            found.append((latency, most[latency]))
    return tuple(found)
