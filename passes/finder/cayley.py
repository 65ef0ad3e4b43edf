"""Search over Cayley digraphs: groups of the order, generator sets drawn at random, then climbing from the best.

The cost of a Cayley digraph is one node's, so a core looks at thousands a second; random ones are already better than
what is built from small bases by expansions (section 5 of the direct-connect paper).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from itertools import groupby, islice
from math import ceil

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.group import Group

from ..synthesis.flow.cayley import cayley_rate
from .climb import Draws, climb, goal
from .evaluate import NEVER, Costs, Evaluator, cayley_heads, load_unit
from .found import Found, pareto
from .groups import groups_of_order, written

__all__ = ["Candidate", "candidates", "cayley_expression", "least_steps", "search_cayley"]

_DRAWN = 0.3  # of all evaluations are random draws
_TIES = 12  # of equal cost whose all-to-all rate is computed
_FEW_TIES = 2  # the same with more than 4 links, where it takes longer
_RATED = 400  # the same where the rate is an objective
_KEPT = 24  # of each number of steps in a group
_STARTS = 8  # sets that a climb starts from
_CLIMBED = 6  # groups for each number of steps
_FURTHER = 4  # more steps than the fewest that are tried for less bandwidth time
_NARROW = 8  # links; with more, sets of more than _SLACK steps above the least are left out
_SLACK = 3
_FEWEST = 48  # draws of a group


@attrs.frozen
class Candidate:
    """A Cayley digraph and its cost; ``T_B`` is in units of M/B."""

    group: Group
    generators: tuple[int, ...]
    T_L: int
    T_B: Fraction

    def found(self, bidirectional: bool) -> Found:
        """Return it as what a search finds."""
        expression = cayley_expression(self.group, self.generators)
        nodes, degree = self.group.order, len(self.generators)
        return Found(expression, nodes, degree, self.T_L, self.T_B, self.T_L, bidirectional)


def cayley_expression(group: Group, generators: Sequence[int]) -> str:
    """Return the topology as the language writes it, generators ascending.

    >>> from collc.ir.group import parse_group
    >>> cayley_expression(parse_group("cyclic(16)"), [4, 1])
    'cayley(cyclic(16), {1, 4})'
    """
    return f"cayley({written(group)}, {{{', '.join(map(str, sorted(generators)))}}})"


def least_steps(nodes: int, degree: int) -> int:
    """Return the least T_L by the Moore bound (Definition 10).

    >>> least_steps(1024, 4), least_steps(5, 4)
    (5, 1)
    """
    steps, reached, layer = 0, 1, 1
    while reached < nodes:
        layer *= degree
        steps, reached = steps + 1, reached + layer
    return steps


def search_cayley(
    nodes: int,
    degree: int,
    *,
    bidirectional: bool = False,
    evaluations: int = 20000,
    seed: int = 0,
    alltoall: bool = False,
) -> list[Found]:
    """Return the Pareto frontier of the Cayley digraphs that a search of so many evaluations finds.

    With ``bidirectional`` every link has its reverse. Up to degree 8 all have their all-to-all rate, and of several of
    equal T_L and T_B the one with the best is returned; beyond, a rate takes seconds and is left out. With ``alltoall``
    the rate is a third objective at any degree, and all evaluations are spent.
    The same arguments always find the same. Nothing where nodes are fewer than degree + 1: a Cayley digraph without
    parallel links needs as many.
    """
    found = candidates(
        nodes, degree, bidirectional=bidirectional, evaluations=evaluations, seed=seed, many=alltoall
    )  # fmt: skip
    tried = found[:_RATED] if alltoall else _frontier(found)
    if degree > _NARROW and not alltoall:
        return pareto(each.found(bidirectional) for each in tried)
    return pareto((_rated(each.found(bidirectional), each) for each in tried), alltoall=alltoall)


def _rated(found: Found, candidate: Candidate) -> Found:
    heads = cayley_heads(candidate.group, candidate.generators)
    return attrs.evolve(found, alltoall_rate=cayley_rate(heads)[0])


def candidates(
    nodes: int,
    degree: int,
    *,
    bidirectional: bool = False,
    evaluations: int = 20000,
    seed: int = 0,
    many: bool = False,
) -> list[Candidate]:
    """Return the frontier and what comes near it, in order of cost.

    With ``many`` all evaluations are spent, on more of equal cost: bases whose line graphs differ in theirs.
    """
    if nodes <= degree or degree < 1:
        return []
    search = _Search(nodes, degree, bidirectional, evaluations, seed, many)
    search.draw()
    search.climb()
    return search.candidates()


def _frontier(found: list[Candidate]) -> list[Candidate]:
    """Return the candidates of the frontier, a few of each point."""
    best: list[Candidate] = []
    for _, same in groupby(found, key=lambda one: (one.T_L, one.T_B)):
        several = list(islice(same, _TIES if len(found[0].generators) <= 4 else _FEW_TIES))
        if not best or several[0].T_B < best[-1].T_B:
            best += several
    return best


class _Kept:
    """The best sets of one group: the lightest of each number of steps, and the nearest to every target."""

    def __init__(self) -> None:
        self.by_steps: dict[int, dict[tuple[int, ...], int]] = {}
        self.nearest: dict[int, dict[tuple[int, ...], int]] = {}

    def add(self, sets: Array, costs: Costs) -> None:
        """Keep what is good among sets that were evaluated."""
        reached = np.unique(costs.steps[costs.steps >= 0]).tolist()
        for steps in reached:
            _merge(self.by_steps.setdefault(steps, {}), sets, costs.loads, np.flatnonzero(costs.steps == steps), _KEPT)
        every = np.arange(len(sets))
        for target in range(reached[0] - 2, reached[0] + 3) if reached else ():
            _merge(self.nearest.setdefault(target, {}), sets, goal(costs, target), every, _STARTS)

    def starts(self, target: int) -> list[tuple[int, ...]]:
        """Return the sets to climb from, best first."""
        return list(self.nearest.get(target, {}))

    def promise(self, target: int) -> int:
        """Return the best value of the goal."""
        return min(self.nearest.get(target, {}).values(), default=NEVER)


def _merge(kept: dict[tuple[int, ...], int], sets: Array, values: Array, rows: Array, most: int) -> None:
    """Put rows among the ``most`` of least value, in order of value, then of the sets."""
    rows = rows[np.argsort(values[rows], kind="stable")[:most]]
    worst = max(kept.values()) if len(kept) >= most else NEVER
    new = {tuple(sorted(sets[row].tolist())): int(values[row]) for row in rows if values[row] < worst}
    if new:
        order = sorted({**kept, **new}.items(), key=lambda item: (item[1], item[0]))
        kept.clear()
        kept.update(order[:most])


class _Search:
    def __init__(self, nodes: int, degree: int, bidirectional: bool, evaluations: int, seed: int, many: bool):
        self.nodes, self.degree, self.evaluations, self.many = nodes, degree, evaluations, many
        self.rng = np.random.Generator(np.random.PCG64([nodes, degree, int(bidirectional), seed]))
        groups = groups_of_order(nodes, max(min(96, int(evaluations * _DRAWN) // _FEWEST), 2))
        self.evaluators = [Evaluator(group) for group in groups]
        self.draws = [Draws(each, degree, bidirectional) for each in self.evaluators]
        self.kept = [_Kept() for _ in groups]
        self.exhausted = [False for _ in groups]  # all sets were evaluated
        self.spent = 0
        self.unit = load_unit(degree)
        # Of more steps than a bandwidth-optimal one nothing is wanted; with many links even random sets take few, and
        # steps are dear, since there are so many sets of links.
        self.limit = nodes if degree <= _NARROW else least_steps(nodes, degree) + _SLACK
        self.optimal = False

    def _record(self, index: int, sets: Array, costs: Costs) -> None:
        self.kept[index].add(sets, costs)
        optimal = costs.loads * self.degree == (self.nodes - 1) * costs.unit
        if optimal.any():
            self.limit = min(self.limit, int(costs.steps[optimal].min()))
            self.optimal = True

    def draw(self) -> None:
        """Draw from every group alike; all of its sets where there are no more."""
        share = max(int(self.evaluations * _DRAWN) // max(len(self.draws), 1), 1)
        for index, draws in enumerate(self.draws):
            self.exhausted[index] = draws.count <= share
            sets = draws.all() if self.exhausted[index] else draws.random(share, self.rng)
            for first in range(0, len(sets), 64):
                part = sets[first : first + 64]
                self._record(index, part, self.evaluators[index].costs(part, self.limit))
            self.spent += len(sets)

    def climb(self) -> None:
        """Climb until all evaluations are spent or nothing is left to improve, one step further down each time."""
        before = -1
        while self.spent < self.evaluations and self.spent > before:
            before = self.spent
            self._climb(self._targets())

    def _targets(self) -> list[int]:
        """Return the numbers of steps to climb towards: one less than reached, up to where the best is reached."""
        reached = [steps for kept in self.kept for steps in kept.by_steps]
        if not reached:
            return []
        first = max(min(reached) - 1, least_steps(self.nodes, self.degree))
        last = self.limit - (not self.many) if self.optimal else min(reached) + _FURTHER
        return list(range(first, last + 1))[: _FURTHER + 2]

    def _climb(self, targets: list[int]) -> None:
        """Climb towards each target in the most promising groups; what a climb leaves over goes to those after it."""
        tasks = [(target, index) for target in targets for index in self._groups(target)]
        for number, (target, index) in enumerate(tasks):
            left = self.evaluations - self.spent
            if left <= 0:
                return
            if self.optimal and target >= self.limit and not self.many:
                continue
            start = np.array(self.kept[index].starts(target), dtype=np.int64).reshape(-1, self.degree)
            self.spent += climb(
                self.evaluators[index], self.draws[index], start, target, ceil(left / (len(tasks) - number)), self.rng,
                partial(self._record, index), self.many,
            )  # fmt: skip

    def _groups(self, target: int) -> list[int]:
        """Return the groups to climb in: those that came nearest to the goal."""
        open_ones = [index for index, done in enumerate(self.exhausted) if not done]
        return sorted(open_ones, key=lambda index: (self.kept[index].promise(target), index))[:_CLIMBED]

    def candidates(self) -> list[Candidate]:
        rows = [
            (steps, load, index, each)
            for index, kept in enumerate(self.kept)
            for steps, sets in kept.by_steps.items()
            for each, load in sets.items()
        ]  # fmt: skip
        return [
            Candidate(
                self.evaluators[index].group, each, steps, Fraction(self.degree * load, self.unit * self.nodes)
            )
            for steps, load, index, each in sorted(rows)
        ]  # fmt: skip
