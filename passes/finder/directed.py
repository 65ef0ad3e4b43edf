"""Search networks with links one way: directed polycirculants, and smaller ones with a node in the middle of links.

They exist for every N, also where all groups of order N are nearly abelian: few steps then need a network whose nodes
are not all alike. Every node has d links out and d links in. An allgather and a reduce-scatter may cost differently, so
a climb lowers the sum of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from random import Random

import attrs

from collc.ir.costs.bounds import moore_steps

from .bits import MOST_LINKS, Balls, balls
from .database import Row
from .evaluate import load_unit
from .exclude import NOTHING, Excluded
from .polycirculants import periods
from .turns import Link, below

__all__ = ["DirectedLift", "draw_directed", "search_directed", "search_led"]

_PATIENCE = 150  # evaluations without progress before a climb starts anew
_TARGETS = 4  # numbers of steps that are tried, from Moore's bound
_BASES = 2  # numbers of steps of the networks that a node is inserted into
_SETS_OF_LINKS = 50  # of all nodes, for each evaluation that may be spent


@attrs.frozen
class DirectedLift:
    """A directed polycirculant: the links out of nodes 0 .. period-1. Those of the other nodes are their shifts."""

    nodes: int
    degree: int
    period: int
    links: tuple[Link, ...]

    @property
    def is_simple(self) -> bool:
        """Return whether no links are parallel, and none ends where it starts."""
        return len(set(self.links)) == len(self.links) and all(tail != head for tail, head in self.links)

    @property
    def heads(self) -> list[list[int]]:
        """The heads of the links out of nodes 0 .. period-1."""
        found: list[list[int]] = [[] for _ in range(self.period)]
        for tail, head in self.links:
            found[tail].append(head)
        return found

    @property
    def tails(self) -> list[list[int]]:
        """The tails of the links into nodes 0 .. period-1."""
        found: list[list[int]] = [[] for _ in range(self.period)]
        for tail, head in self.links:
            like = head % self.period
            found[like].append((tail - head + like) % self.nodes)
        return found

    @property
    def expression(self) -> str:
        """The topology in the language.

        >>> DirectedLift(10, 2, 2, ((0, 1), (0, 4), (1, 3), (1, 6))).expression
        'directed_polycirculant(10, {1, 4}, {2, 5})'
        """
        sets: list[list[int]] = [[] for _ in range(self.period)]
        for tail, head in self.links:
            sets[tail].append((head - tail) % self.nodes)
        texts = ", ".join(f"{{{', '.join(map(str, sorted(own)))}}}" for own in sets)
        return f"directed_polycirculant({self.nodes}, {texts})"


def draw_directed(nodes: int, period: int, degree: int, random: Random) -> DirectedLift:
    """Return a lift of a random digraph with d links out of each node and d into it; its links may be parallel."""
    ends = [node for node in range(period) for _ in range(degree)]
    tails = list(ends)
    for last in range(len(ends) - 1, 0, -1):
        other = below(last + 1, random)
        ends[last], ends[other] = ends[other], ends[last]
    copies = nodes // period
    links = tuple((tail, end + period * below(copies, random)) for tail, end in zip(tails, ends, strict=True))
    return DirectedLift(nodes, degree, period, links)


def _changed(lift: DirectedLift, random: Random) -> DirectedLift:
    """Return the lift with another voltage, or with the heads of two links exchanged."""
    links, copies, m = list(lift.links), lift.nodes // lift.period, lift.period
    first = below(len(links), random)
    tail, head = links[first]
    links[first] = tail, head % m + m * below(copies, random)
    if below(5, random) >= 3:
        second = below(len(links), random)
        other, end = links[second]
        links[first] = tail, end % m + m * below(copies, random)
        links[second] = other, head % m + m * below(copies, random)
    return attrs.evolve(lift, links=tuple(links))


@attrs.define
class _Search:
    """The best lifts by number of steps, each with the loads of both collectives, and the evaluations that are left."""

    nodes: int
    degree: int
    random: Random
    left: int
    best: dict[int, tuple[int, int, DirectedLift]] = attrs.field(factory=dict)

    @property
    def optimum(self) -> int:
        """The least load of one collective."""
        return load_unit(self.degree) // self.degree * (self.nodes - 1)

    def climb(self, period: int, target: int, evaluations: int) -> None:
        """Bring all nodes within ``target`` steps, then lower the load."""
        far = 2 * load_unit(self.degree) * self.nodes  # more than any load
        end = max(self.left - evaluations, 0)
        lift: DirectedLift | None = None
        value, waited = 0, 0
        while self.left > end:
            self.left -= 1
            fresh = lift is None or waited > _PATIENCE
            if lift is None or fresh:
                other = draw_directed(self.nodes, period, self.degree, self.random)
            else:
                other = _changed(lift, self.random)
            if not other.is_simple:
                continue
            found = balls(other.tails, self.nodes, self.degree, target)
            new = far * found.unreached if found.unreached else self._record(other, found, far if fresh else value)
            waited = 0 if fresh or new < value else waited + 1
            if fresh or new <= value:
                lift, value = other, new
            if value == 2 * self.optimum:
                return

    def _record(self, lift: DirectedLift, there: Balls, most: int) -> int:
        """Keep the lift if it is the best of its steps; return its load, or more than ``most`` if it is above."""
        known = self.best.get(there.steps)
        bound = most if known is None else max(most, known[0] + known[1] - 1)
        gather = there.load(bound - self.optimum)
        if gather is None:
            return most + 1
        scatter = balls(lift.heads, self.nodes, self.degree, there.steps).load(bound - gather)
        if scatter is None:
            return most + 1
        if known is None or gather + scatter < known[0] + known[1]:
            self.best[there.steps] = gather, scatter, lift
        return gather + scatter


def search_directed(
    nodes: int, degree: int, *, evaluations: int = 2000, seed: int = 0, exclude: Excluded = NOTHING
) -> list[Row]:
    """Return the directed polycirculants that a search with this number of evaluations finds, the best of each number
    of steps. The same arguments give the same result. There are none of primes, and of more than
    :data:`.bits.MOST_LINKS` links.
    """
    if not exclude.allows("directed_polycirculant()"):
        return []
    best = _best_lifts(nodes, degree, evaluations, seed)
    return [_row(lift.expression, nodes, degree, steps, gather, scatter) for steps, (gather, scatter, lift) in
            sorted(best.items())]  # fmt: skip


def _best_lifts(nodes: int, degree: int, evaluations: int, seed: int) -> dict[int, tuple[int, int, DirectedLift]]:
    tried = periods(nodes)
    search = _Search(nodes, degree, Random(f"{nodes} {degree} {seed} directed"), evaluations)
    if not 1 < degree <= MOST_LINKS or nodes <= degree + 1:
        return {}
    bound = moore_steps(nodes, degree)
    for period in tried:
        for target in range(bound, bound + _TARGETS):
            search.climb(period, target, evaluations // (len(tried) * _TARGETS))
    return search.best


def _row(expression: str, nodes: int, degree: int, steps: int, gather: int, scatter: int) -> Row:
    both = (Fraction(degree * load, load_unit(degree) * nodes) for load in (gather, scatter))
    return Row(expression, nodes, degree, steps, next(both), steps, False, reduce_scatter_T_B=next(both))


def search_led(
    nodes: int, degree: int, *, evaluations: int = 2000, seed: int = 0, exclude: Excluded = NOTHING
) -> list[Row]:
    """Return directed polycirculants of a node less with a node in the middle of d of their links; of each base
    those that cost less than the ones before. There are none of numbers of nodes with a period.
    """
    if not exclude.allows("inserted(directed_polycirculant())") or periods(nodes) or nodes <= degree + 2:
        return []
    best = _best_lifts(nodes - 1, degree, evaluations, seed)
    tries = max(_SETS_OF_LINKS * evaluations // (nodes << degree), _BASES)
    random, found = Random(f"{nodes} {degree} {seed} led"), list[Row]()
    for steps in sorted(best)[:_BASES]:
        found += _tried(best[steps][2], tries // _BASES, random)
    return found


def _tried(lift: DirectedLift, tries: int, random: Random) -> list[Row]:
    heads = [[(head + node - node % lift.period) % lift.nodes for head in lift.heads[node % lift.period]]
             for node in range(lift.nodes)]  # fmt: skip
    nodes, degree, most, found = lift.nodes + 1, lift.degree, None, list[Row]()
    for _ in range(tries):
        cut = _drawn_links(heads, degree, random)
        out = _led(heads, cut)
        there = balls(_reversed(out), nodes, degree, nodes)
        gather = None if there.unreached else there.load(most)
        if gather is None:
            continue
        scatter = balls(out, nodes, degree, there.steps).load(None if most is None else most - gather)
        if scatter is None:
            continue
        most = gather + scatter - 1
        shown = ", ".join(f"{tail} -> {head}" for tail, head in cut)
        found.append(_row(f"inserted({lift.expression}, {{{shown}}})", nodes, degree, there.steps, gather, scatter))
    return found


def _drawn_links(heads: Sequence[Sequence[int]], count: int, random: Random) -> list[Link]:
    """Draw links without common tails and without common heads."""
    found: list[Link] = []
    while len(found) < count:
        tail = below(len(heads), random)
        head = heads[tail][below(len(heads[tail]), random)]
        if all(tail != one and head != two for one, two in found):
            found.append((tail, head))
    return found


def _led(heads: Sequence[Sequence[int]], cut: Sequence[Link]) -> list[list[int]]:
    """Return the heads of all nodes, and of a new one in the middle of the links that are cut."""
    found = [*map(list, heads), [head for _, head in cut]]
    for tail, head in cut:
        found[tail][found[tail].index(head)] = len(heads)
    return found


def _reversed(heads: Sequence[Sequence[int]]) -> list[list[int]]:
    tails: list[list[int]] = [[] for _ in heads]
    for node, own in enumerate(heads):
        for head in own:
            tails[head].append(node)
    return tails
