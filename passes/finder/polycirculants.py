"""Search polycirculants: graphs on a ring of N nodes, with links both ways, that look the same after a shift by m.

They are lifts of a graph of m nodes with voltages in a cyclic group. Cayley graphs of cyclic groups are those with
m = 1, and many of other groups are among those with a small m. But polycirculants exist for every N that is no prime,
also if all groups of order N are nearly abelian. Their cost is that of m nodes.

A climb replaces a voltage, or exchanges the ends of two links of the small graph. It first brings all nodes near, one
step nearer each time, then lowers the bandwidth time within a number of steps. Between, it climbs to the least
bandwidth time from small graphs whose nodes are all alike (:mod:`.shapes`), and replaces only voltages; and from graphs
that a turn keeps (:mod:`.turns`), and replaces cycles of links.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from random import Random

import attrs

from collc.ir.costs.bounds import moore_graph_steps

from .bits import MOST_LINKS, Balls, balls
from .evaluate import load_unit
from .exclude import NOTHING, Excluded
from .found import Found, pareto
from .shapes import PERIODS, shapes
from .turns import Link, Turn, below, completed, turns

__all__ = ["Lift", "best_lifts", "draw", "periods", "search_polycirculants", "shaped", "turned"]

#: periods that are tried, the nearest that divide the number of nodes
_PERIODS = (2, 4, 6, 10, 16)
_LEAST_COPIES = 3
_PATIENCE = 150  # evaluations without progress before a climb starts anew
_SHARE = 4  # of all evaluations one in this number is for each: first graphs, shapes, turns, less bandwidth time
_TURNED = 50  # evaluations of a turn
_DRAWS = 20  # tries to draw a graph that a turn keeps
_FARTHEST = 6  # times Moore's bound: steps up to which a first graph is searched


@attrs.frozen
class Lift:
    """A polycirculant: links from nodes 0 .. period-1 to any node; those of the other nodes are their shifts.

    If a ``turn`` keeps it, ``some`` are the links whose cycles are all.
    """

    nodes: int
    degree: int
    period: int
    links: tuple[Link, ...]
    turn: Turn | None = None
    some: tuple[Link, ...] = ()

    @property
    def neighbours(self) -> list[list[int]] | None:
        """The neighbours of nodes 0 .. period-1; None if links are parallel, end where they start, or are too few."""
        found: list[list[int]] = [[] for _ in range(self.period)]
        for tail, head in self.links:
            found[tail].append(head)
            back = (tail - head) % self.nodes
            if head % self.period != tail or back != (head - tail) % self.nodes:
                found[head % self.period].append((head % self.period + back) % self.nodes)
        simple = all(node not in own and len(own) == len(set(own)) == self.degree for node, own in enumerate(found))
        return found if simple else None

    @property
    def expression(self) -> str:
        """The topology in the language.

        >>> Lift(10, 3, 2, ((0, 1), (0, 2), (1, 5))).expression
        'polycirculant(10, {1, 2}, {4})'
        """
        sets: list[list[int]] = [[] for _ in range(self.period)]
        for tail, head in self.links:
            sets[tail].append((head - tail) % self.nodes)
        texts = ", ".join(f"{{{', '.join(map(str, sorted(own)))}}}" for own in sets)
        return f"polycirculant({self.nodes}, {texts})"


def periods(nodes: int) -> list[int]:
    """Return the periods that a search tries.

    >>> periods(1996), periods(720), periods(1994), periods(1999)
    ([2, 4], [2, 4, 6, 10, 16], [2], [])
    """
    divisors = [m for m in range(2, 2 * _PERIODS[-1]) if nodes % m == 0 and nodes // m >= _LEAST_COPIES]
    return sorted({min(divisors, key=lambda m: (abs(m - near), m)) for near in _PERIODS} if divisors else ())


def draw(nodes: int, period: int, degree: int, random: Random) -> Lift:
    """Return a lift of a random graph with random voltages; its links may be parallel."""
    copies = nodes // period
    alone = period * degree % 2 + 2 * (copies % 2 == 0 and below(4, random) == 0)
    ends = [node for node in range(period) for _ in range(degree)]
    for last in range(len(ends) - 1, 0, -1):
        other = below(last + 1, random)
        ends[last], ends[other] = ends[other], ends[last]
    own = [(node, (node + nodes // 2) % nodes) for node in ends[:alone]]  # links that are their own reverse
    pairs = zip(ends[alone::2], ends[alone + 1 :: 2], strict=True)
    return Lift(nodes, degree, period, (*own, *((a, b + period * below(copies, random)) for a, b in pairs)))


def shaped(nodes: int, period: int, shape: Sequence[Link], random: Random) -> Lift:
    """Return a lift of a shape with random voltages; its links may be parallel."""
    copies, degree = nodes // period, 2 * len(shape) // period
    links = tuple((one, two + period * below(copies, random)) for one, two in shape)
    return Lift(nodes, degree, period, links)


def turned(nodes: int, degree: int, turn: Turn, some: Sequence[Link], random: Random) -> Lift | None:
    """Return a random lift that a turn keeps, with the cycles of ``some`` links; None if none is drawn soon.

    Its links may be parallel.
    """
    for _ in range(_DRAWS):
        found = completed(nodes, degree, turn, some, random)
        if found is not None:
            return Lift(nodes, degree, len(turn.next), tuple(found[1]), turn, tuple(found[0]))
    return None


def _changed(lift: Lift, random: Random, keep: bool = False) -> Lift:
    """Return the lift with another voltage, or unless its shape is to ``keep`` with the ends of two links exchanged.

    Of a lift that a turn keeps, one or two cycles of links are replaced.
    """
    if lift.turn is not None:
        some = list(lift.some)
        for _ in range(min(1 + below(2, random), len(some))):
            some.pop(below(len(some), random))
        return turned(lift.nodes, lift.degree, lift.turn, some, random) or lift
    links, copies, m = list(lift.links), lift.nodes // lift.period, lift.period
    first = below(len(links), random)
    tail, head = links[first]
    if keep or below(5, random) < 3 or len(links) < 2:
        links[first] = tail, head % m + m * below(copies, random)
        return attrs.evolve(lift, links=tuple(links))
    second = (first + 1 + below(len(links) - 1, random)) % len(links)
    other, end = links[second]
    kept, moved = (other, end % m) if below(2, random) else (end % m, other)
    links[first] = tail, moved + m * below(copies, random)
    links[second] = kept, head % m + m * below(copies, random)
    return attrs.evolve(lift, links=tuple(links))


@attrs.define
class _Search:
    """The best lifts by number of steps, and the evaluations that are left."""

    nodes: int
    degree: int
    random: Random
    left: int
    best: dict[int, tuple[int, Lift]] = attrs.field(factory=dict)

    @property
    def optimum(self) -> int:
        """The least load, of a bandwidth-optimal network."""
        return load_unit(self.degree) // self.degree * (self.nodes - 1)

    @property
    def fastest(self) -> int | None:
        """The least number of steps of a bandwidth-optimal lift."""
        return min((steps for steps, (load, _) in self.best.items() if load == self.optimum), default=None)

    def seen(self, lift: Lift, limit: int) -> Balls | None:
        """Return what the lift's nodes see within a number of steps; None for parallel links."""
        self.left -= 1
        tails = lift.neighbours
        return None if tails is None else balls(tails, self.nodes, self.degree, limit)

    def record(self, lift: Lift, found: Balls, most: int) -> int:
        """Keep the lift if it is the best of its steps; return its load, or one above ``most`` if it has more."""
        known = self.best.get(found.steps)
        bound = max(most, known[0] if known else 0) if known else None
        if bound is not None and found.least_load > bound:
            return most + 1
        load = found.load(bound)
        if load is None:
            return most + 1
        if known is None or load < known[0]:
            self.best[found.steps] = load, lift
        return load

    def first(self, period: int, limit: int) -> tuple[Lift, Balls] | None:
        """Return a drawn lift that is connected within the limit; None if draws of some number have none."""
        for _ in range(_PATIENCE):
            if self.left <= 0:
                return None
            lift = draw(self.nodes, period, self.degree, self.random)
            found = self.seen(lift, limit)
            if found is not None and not found.unreached:
                return lift, found
        return None

    def approach(self, period: int, evaluations: int, limit: int) -> None:
        """Lower the number of steps one by one, by the number of pairs that are still further apart."""
        end, start = self.left - evaluations, None
        while self.left > max(end, 0):
            start = start or self.first(period, limit)
            if start is None:
                return
            lift, found = start
            self.record(lift, found, load_unit(self.degree) * self.nodes)
            start = self._nearer(lift, found.steps - 1, end)

    def _nearer(self, lift: Lift, target: int, end: int) -> tuple[Lift, Balls] | None:
        value, waited = self.nodes * self.nodes, 0
        while self.left > max(end, 0) and waited < _PATIENCE:
            other = _changed(lift, self.random)
            found = self.seen(other, target)
            waited += 1
            if found is None or found.unreached > value:
                continue
            if found.unreached < value:
                waited = 0
            lift, value = other, found.unreached
            if not value:
                return lift, found
        return None

    def lighten(self, period: int, evaluations: int, target: int) -> None:
        """Lower the load within ``target`` steps, and the steps once it is the least."""
        end = self.left - evaluations
        while self.left > max(end, 0):
            known = [(load, steps) for steps, (load, lift) in self.best.items()
                     if lift.period == period and steps <= target]  # fmt: skip
            start = None if below(2, self.random) or not known else self.best[min(known)[1]][1]
            lift = start or draw(self.nodes, period, self.degree, self.random)
            target = self._lighter(lift, target, end)

    def shape(self, period: int, shape: Sequence[Link], evaluations: int, most: int) -> None:
        """Lower the load of lifts of a shape, within fewer steps once it is the least."""
        end, target = self.left - evaluations, most
        while self.left > max(end, 0):
            target = self._lighter(shaped(self.nodes, period, shape, self.random), target, end, keep=True)

    def turn(self, turn: Turn, evaluations: int, most: int) -> None:
        """Lower the load of lifts that a turn keeps, within fewer steps once it is the least."""
        end, target = self.left - evaluations, most
        while self.left > max(end, 0):
            lift = turned(self.nodes, self.degree, turn, (), self.random)
            if lift is None:
                return
            target = self._lighter(lift, target, end)

    def _lighter(self, lift: Lift, target: int, end: int, keep: bool = False) -> int:
        far = load_unit(self.degree) * self.nodes  # more than any load
        value, waited = far * self.nodes * self.nodes, 0
        while self.left > max(end, 0) and waited < _PATIENCE:
            other = _changed(lift, self.random, keep)
            found = self.seen(other, target)
            waited += 1
            if found is None:
                continue
            new = far * found.unreached if found.unreached else self.record(other, found, min(value, far))
            if new <= value:
                waited = 0 if new < value else waited
                lift, value = other, new
            if new == self.optimum:
                return found.steps - 1
        return target


def search_polycirculants(
    nodes: int, degree: int, *, evaluations: int = 2000, seed: int = 0, exclude: Excluded = NOTHING
) -> list[Found]:
    """Return the frontier of the polycirculants that a search with this number of evaluations finds.

    The same arguments give the same result. It is empty for primes, and for more than :data:`.bits.MOST_LINKS` links.
    """
    if not exclude.allows("polycirculant()"):
        return []
    best = best_lifts(nodes, degree, evaluations=evaluations, seed=seed)
    unit = load_unit(degree) * nodes
    return pareto(
        Found(lift.expression, nodes, degree, steps, Fraction(degree * load, unit), steps, True)
        for steps, (load, lift) in best.items()
    )


def best_lifts(nodes: int, degree: int, *, evaluations: int, seed: int) -> dict[int, tuple[int, Lift]]:
    """Return the least load that was found for each number of steps, in load units, with its lift."""
    tried = periods(nodes)
    search = _Search(nodes, degree, Random(f"{nodes} {degree} {seed}"), evaluations)
    if not 2 < degree <= MOST_LINKS or nodes * degree % 2 or nodes <= 2 * degree:
        return {}
    bound = moore_graph_steps(nodes, degree)
    for period in tried:
        search.approach(period, evaluations // (_SHARE * len(tried)), _FARTHEST * bound)
    some = [m for m in PERIODS if nodes % m == 0 and nodes // m >= _LEAST_COPIES]
    kinds = [(m, shape) for m in some for shape in shapes(m, degree)]
    for period, shape in kinds:
        most = 2 * bound + 1 if search.fastest is None else search.fastest - 1
        if most >= bound:
            search.shape(period, shape, evaluations // (_SHARE * len(kinds)), most)
    kept = sorted((turn for m in tried for turn in turns(nodes // m, m, degree)), key=lambda turn: turn.cycles)
    kept = kept[: max(evaluations // (_SHARE * _TURNED), 1)]
    for turn in kept:
        most = 2 * bound + 1 if search.fastest is None else search.fastest - 1
        if most >= bound:
            search.turn(turn, evaluations // (_SHARE * len(kept)), most)
    for number, period in enumerate(tried):
        most = max(search.best, default=bound) + 2 * bound if search.fastest is None else search.fastest - 1
        search.lighten(period, search.left // (len(tried) - number), most)
    return search.best
