"""Draw generator sets of a group, and climb from them to better ones.

Rows are sets: an array of shape (sets, d), without the identity and without repeats. If links must go both ways, a set
holds the inverse of each of its elements. An element that is its own inverse counts once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.progress import progress

from .automorphisms import orbits
from .evaluate import Costs, Evaluator, load_unit

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["Draws", "climb", "goal"]

_CHAINS = 16
_PROPOSALS = 8  # for each chain at once
_PATIENCE = 60  # rounds without progress before a chain starts anew


@attrs.frozen(eq=False)
class _Part:
    """The sets that hold the first elements, and of the others numbers (of pairs, of single elements)."""

    first: tuple[int, ...]
    halves: Array
    alone: Array
    shapes: list[tuple[int, int]]


class Draws:
    """The generator sets of one size of a group, and how to draw them."""

    def __init__(self, evaluator: Evaluator, degree: int, bidirectional: bool):
        self.nodes, self.degree, self.bidirectional = evaluator.nodes, degree, bidirectional
        self.group, self.inverse = evaluator.group, evaluator.inverse
        elements = np.arange(1, self.nodes)
        own = self.inverse[1:] == elements
        self.alone = elements[own] if bidirectional else elements  # elements that a set may hold alone
        self.halves = elements[self.inverse[1:] > elements] if bidirectional else elements[:0]  # one of every g, g^-1

    @property
    def count(self) -> int:
        """The number of sets."""
        return self._count(len(self.halves), len(self.alone), self._shapes())

    def distinct_count(self, most: int) -> int:
        """Return the number of :meth:`distinct` sets, or one above ``most`` if it is larger."""
        if self.count > most * self.nodes * self.degree:  # more than automorphisms make equal
            return most + 1
        return min(sum(self._count(len(part.halves), len(part.alone), part.shapes) for part in self._parts), most + 1)

    @staticmethod
    def _count(halves: int, alone: int, shapes: Sequence[tuple[int, int]]) -> int:
        return sum(comb(halves, p) * comb(alone, s) for p, s in shapes)

    def _shapes(self) -> list[tuple[int, int]]:
        """Return the numbers (of pairs, of single elements) that a set can have."""
        most = self.degree // 2 if self.bidirectional else 0
        shapes = [(pairs, self.degree - 2 * pairs) for pairs in range(most, -1, -1)]
        return [(p, s) for p, s in shapes if p <= len(self.halves) and s <= len(self.alone)]

    def all(self) -> Array:
        """Return every set, in lexicographic order of its pairs and single elements."""
        return self._rows(list(self._sets((), self.halves, self.alone, self._shapes())))

    def distinct(self) -> Array:
        """Return sets of which every set is an image under the known automorphisms of the group."""
        return self._rows([row for part in self._parts
                           for row in self._sets(part.first, part.halves, part.alone, part.shapes)])  # fmt: skip

    def _sets(
        self, first: tuple[int, ...], halves: Array, alone: Array, shapes: Sequence[tuple[int, int]]
    ) -> Iterator[tuple[int, ...]]:
        for pairs, single in shapes:
            for some in combinations(halves.tolist(), pairs):
                both = [x for g in some for x in (g, int(self.inverse[g]))]
                yield from ((*first, *both, *others) for others in combinations(alone.tolist(), single))

    @cached_property
    def _parts(self) -> list[_Part]:
        """The sets by the first orbit of elements that they meet, the largest orbit first: a set's image holds the
        orbit's first element."""
        least = orbits(self.group)
        labels = np.minimum(least, least[self.inverse]) if self.bidirectional else least
        classes = np.concatenate([self.halves, self.alone])
        found, sizes = np.unique(labels[classes], return_counts=True)
        parts, halves, alone = list[_Part](), self.halves, self.alone
        for label in found[np.argsort(-sizes, kind="stable")]:
            inside = halves[labels[halves] == label]
            paired = bool(len(inside))
            first = int(inside[0] if paired else alone[labels[alone] == label][0])
            shapes = [(p - paired, s - (not paired)) for p, s in self._shapes()]
            parts.append(_Part(
                (first, int(self.inverse[first])) if paired else (first,), halves[halves != first],
                alone[alone != first], [shape for shape in shapes if min(shape) >= 0],
            ))  # fmt: skip
            halves, alone = halves[labels[halves] != label], alone[labels[alone] != label]
        return parts

    def _rows(self, rows: Sequence[ArrayLike]) -> Array:
        return np.array(rows, dtype=np.int64).reshape(-1, self.degree)

    def random(self, count: int, rng: np.random.Generator) -> Array:
        """Draw ``count`` sets; each number of pairs is equally likely."""
        if not self.count:
            return self._rows([])
        if self.bidirectional:
            return self._rows([self._with_inverses(rng) for _ in range(count)])
        sets = rng.integers(1, self.nodes, (count, self.degree))
        while len(bad := np.flatnonzero(_repeats(sets))):
            if self.degree * 3 > self.nodes:  # few draws would do
                rows = [rng.permutation(self.nodes - 1)[: self.degree] + 1 for _ in bad]
                sets[bad] = self._rows(rows)
            else:
                sets[bad] = rng.integers(1, self.nodes, (len(bad), self.degree))
        return sets

    def _with_inverses(self, rng: np.random.Generator) -> list[int]:
        shapes = self._shapes()
        pairs, single = shapes[int(rng.integers(len(shapes)))]
        halves = rng.choice(self.halves, pairs, replace=False) if pairs else self.halves[:0]
        alone = rng.choice(self.alone, single, replace=False) if single else self.alone[:0]
        return [*(int(x) for g in halves for x in (g, self.inverse[g])), *alone.tolist()]

    def neighbours(self, sets: Array, rng: np.random.Generator) -> Array:
        """Return sets with one generator replaced (with ``bidirectional`` its inverse too), a row for each."""
        if self.bidirectional:
            return self._rows([self._with_one_replaced(row, rng) for row in sets.tolist()])
        result = sets.copy()
        rows = np.arange(len(sets))
        place = rng.integers(0, self.degree, len(sets))
        while len(rows):
            result[rows, place[rows]] = rng.integers(1, self.nodes, len(rows))
            if self.degree >= self.nodes - 1:
                break
            rows = np.flatnonzero(_repeats(result))
        return result

    def _with_one_replaced(self, row: list[int], rng: np.random.Generator) -> list[int]:
        """Replace a pair or self-inverse elements by the same number of others."""
        kept = set(row)
        removed = row[int(rng.integers(len(row)))]
        kept -= {removed, int(self.inverse[removed])}
        alone = [x for x in row if x in kept and self.inverse[x] == x]
        if self.degree - len(kept) == 1 and alone and rng.integers(2):
            kept.discard(alone[int(rng.integers(len(alone)))])  # makes room for a pair
        while (missing := self.degree - len(kept)) > 0:
            free = self.alone if missing == 1 or not len(self.halves) else None
            if free is None:
                free = self.alone if len(self.alone) > 1 and rng.integers(4) == 0 else self.halves
            new = int(free[int(rng.integers(len(free)))])
            if free is self.alone and len(kept.intersection(free.tolist())) == len(free):
                return row
            kept |= {new, int(self.inverse[new])}
        return sorted(kept)


def _repeats(sets: Array) -> Array:
    ordered = np.sort(sets, axis=1)
    repeats: Array = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    return repeats


def goal(costs: Costs, target: int) -> Array:
    """Return the value to minimize for ``target`` steps: the number of nodes further away, then the load."""
    unreached = costs.nodes - costs.sizes[:, : target + 1].sum(axis=1)
    return np.where(unreached > 0, unreached * (costs.unit * costs.nodes + 1), costs.loads)


@attrs.define
class _Chains:
    sets: Array
    value: Array
    unimproved: Array


def climb(
    evaluator: Evaluator,
    draws: Draws,
    start: Array,
    target: int,
    evaluations: int,
    rng: np.random.Generator,
    record: Callable[[Array, Costs], None],
    spend_all: bool = False,
) -> int:
    """Improve sets towards :func:`goal` by replacing one generator at a time; a set of equal value is accepted too.

    Every chain starts at a row of ``start``, and again at a random set if it is stuck. ``record`` gets all sets that
    are evaluated. The climb ends after ``evaluations``, or when a set is bandwidth-optimal within the target; with
    ``spend_all`` it goes on to other optimal sets. Returns the number of evaluations spent.
    """
    spent = 0
    optimum = load_unit(draws.degree) * (evaluator.nodes - 1)  # of the load times d

    def measure(sets: Array) -> Array:
        nonlocal spent
        progress("sets of generators", min(spent, evaluations), evaluations)  # also ends a search that was cancelled
        costs = evaluator.costs(sets, target)
        record(sets, costs)
        spent += len(sets)
        return goal(costs, target)

    first = np.concatenate([start, draws.random(max(_CHAINS - len(start), 0), rng)])[:_CHAINS]
    chains = _Chains(first, measure(first), np.zeros(len(first), dtype=np.int64))
    while spent < evaluations and len(chains.sets) and (spend_all or chains.value.min() * draws.degree > optimum):
        tried = draws.neighbours(np.repeat(chains.sets, _PROPOSALS, axis=0), rng)
        values = measure(tried).reshape(-1, _PROPOSALS)
        pick = values.argmin(axis=1)
        rows = np.arange(len(pick))
        value = values[rows, pick]
        better, accepted = value < chains.value, value <= chains.value
        chains.sets[accepted] = tried.reshape(len(rows), _PROPOSALS, -1)[rows, pick][accepted]
        chains.value[accepted] = value[accepted]
        chains.unimproved = np.where(better, 0, chains.unimproved + 1)
        stuck = np.flatnonzero(chains.unimproved > _PATIENCE)
        if len(stuck):
            chains.sets[stuck] = draws.random(len(stuck), rng)
            chains.value[stuck] = measure(chains.sets[stuck])
            chains.unimproved[stuck] = 0
    return spent
