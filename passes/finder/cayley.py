"""Search Cayley digraphs: draw generator sets of groups of the order at random, then climb from the best.

The cost of a Cayley digraph is the cost of one node, so a core evaluates thousands per second. Random ones are already
better than expansions of small bases (section 5 of the direct-connect paper).
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
from collc.ir.group import Group, Translations
from collc.ir.progress import progress

from ..synthesis.flow.cayley import cayley_rate
from .climb import Draws, climb, goal
from .evaluate import NEVER, Costs, Evaluator, cayley_heads, load_unit
from .exclude import NOTHING, Excluded
from .found import Found, pareto
from .groups import group_expression, groups_of_order

__all__ = ["Candidate", "candidates", "cayley_expression", "least_steps", "rated", "search_cayley"]

_RANDOM_SHARE = 0.3  # of all evaluations
_RATED_TIES = 12  # digraphs of equal cost whose all-to-all rate is computed
_RATED_TIES_IF_WIDE = 2  # the same with more than 4 links: their rates take longer
_RATED_NEAR = 3  # digraphs off the frontier whose rate is computed, for each number of steps
_MOST_NODES_RATED = 10_000  # nodes up to which rates are computed unasked
_MOST_RATED = 400  # digraphs whose rate is computed if it is an objective
_KEPT_BY_STEPS = 24  # sets kept for each number of steps in a group
_START_SETS = 8  # sets that a climb starts from
_CLIMBED_GROUPS = 6  # groups for each number of steps
_MORE_STEPS = 4  # steps above the fewest that are tried for less bandwidth time
_NARROW_DEGREE = 8  # with more links, sets of more than _STEP_SLACK steps above the least are left out
_STEP_SLACK = 3
_FEWEST_DRAWS = 48  # draws of a group


@attrs.frozen
class Candidate:
    """A Cayley digraph and its cost; ``T_B`` is in units of M/B."""

    group: Group
    generators: tuple[int, ...]
    T_L: int
    T_B: Fraction

    def found(self, bidirectional: bool) -> Found:
        """Return it as the result of a search."""
        expression = cayley_expression(self.group, self.generators)
        nodes, degree = self.group.order, len(self.generators)
        return Found(expression, nodes, degree, self.T_L, self.T_B, self.T_L, bidirectional)


def cayley_expression(group: Group, generators: Sequence[int]) -> str:
    """Return the topology as an expression of the language, generators ascending.

    >>> from collc.ir.group import parse_group
    >>> cayley_expression(parse_group("cyclic(16)"), [4, 1])
    'cayley(cyclic(16), {1, 4})'
    """
    return f"cayley({group_expression(group)}, {{{', '.join(map(str, sorted(generators)))}}})"


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
    near: bool = False,
    exclude: Excluded = NOTHING,
) -> list[Found]:
    """Return the Pareto frontier of the Cayley digraphs that a search finds with this number of evaluations.

    With ``bidirectional`` every link has its reverse. Up to 4,096 nodes the results have their
    all-to-all rate, and the best rate decides
    between equal T_L and T_B. With ``near`` the rate is a third objective, and a few sets of greater T_L or T_B are
    rated too. With ``alltoall`` it is one among hundreds of sets, and the search spends all evaluations. The same
    arguments give the same result. It is empty for fewer than degree + 1 nodes, which no Cayley digraph without
    parallel links has.
    """
    found = candidates(
        nodes, degree, bidirectional=bidirectional, evaluations=evaluations, seed=seed, spend_all=alltoall,
        exclude=exclude,
    )  # fmt: skip
    tried = found[:_MOST_RATED] if alltoall else _frontier(found, _RATED_NEAR if near else 0)
    if nodes > _MOST_NODES_RATED and not alltoall:
        return pareto(each.found(bidirectional) for each in tried)
    return pareto((rated(each.found(bidirectional), each) for each in tried), alltoall=alltoall or near)


def rated(found: Found, candidate: Candidate) -> Found:
    """Return the result with the all-to-all rate of the candidate."""
    heads = cayley_heads(candidate.group, candidate.generators)
    return attrs.evolve(found, alltoall_rate=cayley_rate(heads)[0])


def candidates(
    nodes: int,
    degree: int,
    *,
    bidirectional: bool = False,
    evaluations: int = 20000,
    seed: int = 0,
    spend_all: bool = False,
    exclude: Excluded = NOTHING,
) -> list[Candidate]:
    """Return the frontier and the candidates near it, in order of cost.

    With ``spend_all`` the search goes on to find more candidates of equal cost: their line graphs may differ in cost.
    """
    if nodes <= degree or degree < 1 or not exclude.allows("cayley()"):
        return []
    most = max(min(96, int(evaluations * _RANDOM_SHARE) // _FEWEST_DRAWS), 2)
    search = _Search(groups_of_order(nodes, most, exclude), nodes, degree, bidirectional, evaluations, seed, spend_all)
    search.draw()
    search.climb()
    return search.candidates()


def _frontier(found: list[Candidate], near: int) -> list[Candidate]:
    """Return the candidates of the frontier, a few of each point, and up to ``near`` others of each number of steps."""
    best: list[Candidate] = []
    others: list[Candidate] = []
    for _, same in groupby(found, key=lambda one: (one.T_L, one.T_B)):
        several = list(islice(same, _RATED_TIES if len(found[0].generators) <= 4 else _RATED_TIES_IF_WIDE))
        if not best or several[0].T_B < best[-1].T_B:
            best += several
        elif sum(other.T_L == several[0].T_L for other in others) < near:
            others.append(several[0])
    return [*best, *others]


class _Kept:
    """The best sets of one group: those of least load for each number of steps, and those nearest to every target."""

    def __init__(self) -> None:
        self.by_steps: dict[int, dict[tuple[int, ...], int]] = {}
        self.nearest: dict[int, dict[tuple[int, ...], int]] = {}

    def add(self, sets: Array, costs: Costs) -> None:
        """Keep the best of the sets that were evaluated."""
        reached = np.unique(costs.steps[costs.steps >= 0]).tolist()
        for steps in reached:
            _merge(
                self.by_steps.setdefault(steps, {}),
                sets,
                costs.loads,
                np.flatnonzero(costs.steps == steps),
                _KEPT_BY_STEPS,
            )
        every = np.arange(len(sets))
        for target in range(reached[0] - 2, reached[0] + 3) if reached else ():
            _merge(self.nearest.setdefault(target, {}), sets, goal(costs, target), every, _START_SETS)

    def starts(self, target: int) -> list[tuple[int, ...]]:
        """Return the sets to climb from, best first."""
        return list(self.nearest.get(target, {}))

    def least_value(self, target: int) -> int:
        """Return the least value of the goal."""
        return min(self.nearest.get(target, {}).values(), default=NEVER)


def _merge(kept: dict[tuple[int, ...], int], sets: Array, values: Array, rows: Array, most: int) -> None:
    """Insert rows into the ``most`` sets of least value, in order of value, then of the sets."""
    rows = rows[np.argsort(values[rows], kind="stable")[:most]]
    worst = max(kept.values()) if len(kept) >= most else NEVER
    new = {tuple(sorted(sets[row].tolist())): int(values[row]) for row in rows if values[row] < worst}
    if new:
        order = sorted({**kept, **new}.items(), key=lambda item: (item[1], item[0]))
        kept.clear()
        kept.update(order[:most])


def _abelian_last(groups: Sequence[Group]) -> tuple[Group, ...]:
    """Return the groups, abelian ones at the end.

    Links both ways on an abelian group take many steps, and a step takes time to evaluate. A set of another group that
    is bandwidth-optimal limits the steps of all later ones.
    """
    return tuple(sorted(groups, key=lambda group: isinstance(group, Translations)))


class _Search:
    def __init__(
        self, groups: tuple[Group, ...], nodes: int, degree: int, bidirectional: bool, evaluations: int, seed: int,
        spend_all: bool,
    ):  # fmt: skip
        self.nodes, self.degree, self.evaluations, self.spend_all = nodes, degree, evaluations, spend_all
        self.rng = np.random.Generator(np.random.PCG64([nodes, degree, int(bidirectional), seed]))
        if bidirectional:
            groups = _abelian_last(groups)
        self.evaluators = [Evaluator(group) for group in groups]
        self.draws = [Draws(each, degree, bidirectional) for each in self.evaluators]
        self.kept = [_Kept() for _ in groups]
        self.exhausted = [False for _ in groups]  # all sets were evaluated
        self.spent = 0
        self.unit = load_unit(degree)
        # Sets with more steps than a bandwidth-optimal one are useless. With many links even random sets take few
        # steps, and a step takes long to evaluate, because it has many sets of links.
        self.limit = nodes if degree <= _NARROW_DEGREE else least_steps(nodes, degree) + _STEP_SLACK
        self.optimal = False

    def _record(self, index: int, sets: Array, costs: Costs) -> None:
        self.kept[index].add(sets, costs)
        optimal = costs.loads * self.degree == (self.nodes - 1) * costs.unit
        if optimal.any():
            self.limit = min(self.limit, int(costs.steps[optimal].min()))
            self.optimal = True

    def draw(self) -> None:
        """Draw the same number of sets from every group; all sets of a group that has no more up to automorphism."""
        share = max(int(self.evaluations * _RANDOM_SHARE) // max(len(self.draws), 1), 1)
        for index, draws in enumerate(self.draws):
            self.exhausted[index] = draws.distinct_count(share) <= share
            sets = draws.distinct() if self.exhausted[index] else draws.random(share, self.rng)
            for first in range(0, len(sets), 64):
                progress("sets of generators", first, len(sets))
                part = sets[first : first + 64]
                self._record(index, part, self.evaluators[index].costs(part, self.limit))
            self.spent += len(sets)

    def climb(self) -> None:
        """Climb until all evaluations are spent or no set improves, one step further down each time."""
        before = -1
        while self.spent < self.evaluations and self.spent > before:
            before = self.spent
            self._climb(self._targets())

    def _targets(self) -> list[int]:
        """Return the numbers of steps to climb towards: from one less than the fewest reached up to the limit."""
        reached = [steps for kept in self.kept for steps in kept.by_steps]
        if not reached:
            return []
        first = max(min(reached) - 1, least_steps(self.nodes, self.degree))
        last = self.limit - (not self.spend_all) if self.optimal else min(reached) + _MORE_STEPS
        return list(range(first, last + 1))[: _MORE_STEPS + 2]

    def _climb(self, targets: list[int]) -> None:
        """Climb towards each target in the nearest groups; later climbs may use what evaluations a climb has left."""
        tasks = [(target, index) for target in targets for index in self._groups(target)]
        for number, (target, index) in enumerate(tasks):
            left = self.evaluations - self.spent
            if left <= 0:
                return
            if self.optimal and target >= self.limit and not self.spend_all:
                continue
            start = np.array(self.kept[index].starts(target), dtype=np.int64).reshape(-1, self.degree)
            self.spent += climb(
                self.evaluators[index], self.draws[index], start, target, ceil(left / (len(tasks) - number)), self.rng,
                partial(self._record, index), self.spend_all,
            )  # fmt: skip

    def _groups(self, target: int) -> list[int]:
        """Return the groups to climb in: those with the least values of the goal."""
        unfinished = [index for index, done in enumerate(self.exhausted) if not done]
        return sorted(unfinished, key=lambda index: (self.kept[index].least_value(target), index))[:_CLIMBED_GROUPS]

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
