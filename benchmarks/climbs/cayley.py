"""Climbs to Cayley graphs, and all Cayley graphs of few links."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from math import prod

import attrs
import numpy as np

from collc.ir.group import Group, Translations
from collc.passes.finder.cayley import cayley_expression
from collc.passes.finder.groups import generating

from .compiled import LINKS, PATIENCE, STEPS, BestSet, library
from .search import Search

__all__ = ["GENERAL", "Cayley", "Elements", "every_set"]

GENERAL = 4  # links up to which all groups are tried completely
_POOL = 200  # pairs of elements of a group that sets are drawn from
_SETS = 1_000_000  # of one kind of a group
_CLIMBED = 4  # groups, those whose random sets are the best


@attrs.frozen
class Elements:
    """Some elements of a group, closed under inverses: their products with all elements, the places of inverses."""

    group: Group
    numbers: np.ndarray
    inverse: np.ndarray
    right: np.ndarray

    @classmethod
    def of(cls, group: Group) -> Elements:
        """Draw up to :data:`_POOL` elements and add their inverses; a third may be their own."""
        every = np.arange(group.order)
        inverse, random = group.inverse(every), np.random.Generator(np.random.PCG64(group.order))
        own, halves = every[1:][inverse[1:] == every[1:]], every[inverse > every]
        if len(own) + len(halves) > _POOL:
            own = random.permutation(own)[: _POOL // 3]
            halves = random.permutation(halves)[: _POOL - len(own)]
        numbers = np.unique(np.concatenate([own, halves, inverse[halves]]))
        place = np.searchsorted(numbers, inverse[numbers]).astype(np.int32)
        return cls(group, numbers, place, group.multiply(every, numbers[:, None]).astype(np.uint16))


def every_set(group: Group, degree: int) -> Iterator[np.ndarray]:
    """Yield all sets of d elements with their inverses, shape (sets, d), by kind: one of each set's images.

    A set and its images under an automorphism give the same graph. So the first element is the first of its class. Five
    or more elements are pairs only. Of a kind with more than :data:`_SETS` sets they are random ones.
    """
    every = np.arange(group.order)
    inverse, random = group.inverse(every), np.random.Generator(np.random.PCG64(group.order))
    own, half = every[1:][inverse[1:] == every[1:]], every[inverse > every]
    alone, pairs = own[:, None], np.stack([half, inverse[half]], axis=1)
    first = classes(group) == every
    led_alone, led = alone[first[own]], pairs[first[half]]
    kinds = [[led, *[pairs] * (degree // 2 - 1)]] if degree % 2 == 0 else []
    if degree == 3:
        kinds += [[led_alone, alone, alone], [led_alone, pairs]]
    elif degree == 4:
        kinds += [[led_alone, alone, alone, alone], [led_alone, alone, pairs]]
    for kind in kinds:
        shape = tuple(map(len, kind))
        count = prod(shape)
        places = np.arange(count) if count <= _SETS else random.integers(count, size=_SETS)
        rows = np.unravel_index(places, shape)
        sets = np.concatenate([part[row] for part, row in zip(kind, rows, strict=True)], axis=1)
        rising = np.ones(len(sets), dtype=bool)  # of the same parts, each set once
        for one, two, a, b in zip(kind[1:], kind[2:], rows[1:], rows[2:], strict=False):
            rising &= (a < b) if one is two else True
        distinct = (np.diff(np.sort(sets, axis=1), axis=1) > 0).all(axis=1)
        yield sets[rising & distinct].astype(np.int32)


def classes(group: Group) -> np.ndarray:
    """Return the least image of each element under some automorphisms and inversion, shape (N,): all of a cyclic group,
    those by conjugation of others.
    """
    every = np.arange(group.order)
    if isinstance(group, Translations) and len(group.shape) == 1:
        return np.gcd(every, group.order) % group.order
    inverse = group.inverse(every)
    maps = [inverse, *(group.multiply(group.multiply(inverse[one], every), one) for one in generating(group))]
    least, before = every.copy(), np.zeros(0)
    while not np.array_equal(least, before):
        before = least.copy()
        for image in maps:
            np.minimum.at(least, image, before)
            least = np.minimum(least, least[image])
    return least


class Cayley(Search):
    """The search among Cayley graphs."""

    def cayley(self, groups: Sequence[Elements]) -> None:
        """Climb in the groups: for the fewest steps, for the fewest at the least T_B, and between."""
        tried: set[int] = set()
        groups = [one for one in groups if len(one.numbers) >= self.degree]
        while targets := self._targets() - tried:
            target = max(targets)
            tried.add(target)
            self._climb(groups, target)

    def _targets(self) -> set[int]:
        first, last = max(self.least - 1, self.bound), self.fastest - 1
        return {steps for steps in (first, (first + last) // 2, last) if self.bound <= steps <= last}

    def _climb(self, groups: Sequence[Elements], target: int) -> None:
        """Draw sets of all groups for a number of steps, then climb from the best."""
        drawn = []
        for place, group in enumerate(groups):
            start = (ctypes.c_int * LINKS)()
            drawn.append((self._set(group, target, start, self.evaluations // 16, 0), place, start))
            if self.fastest <= target:
                return
        for _, place, start in sorted(drawn, key=lambda one: one[:2])[:_CLIMBED]:
            self._set(groups[place], target, start, self.evaluations, 1)
            if self.fastest <= target:
                return

    def _set(
        self, elements: Elements, target: int, start: ctypes.Array[ctypes.c_int], evaluations: int, started: int
    ) -> int:
        best = (BestSet * STEPS)()
        for one, load in zip(best, self.loads(), strict=True):
            one.load, one.set[0] = load, -1
        value = int(library().climb_cayley(
            elements.right.ctypes.data, elements.inverse.ctypes.data, self.nodes, len(elements.numbers), self.degree,
            target, evaluations, PATIENCE, self.seed(), ctypes.byref(best), start, started,
        ))  # fmt: skip
        for steps, one in enumerate(best):
            if one.set[0] >= 0:
                generators = elements.numbers[list(one.set[: self.degree])].tolist()
                self.add(steps, one.load, cayley_expression(elements.group, generators))
        return value

    def complete(self, groups: Sequence[Group]) -> None:
        """Try the Cayley graphs of these groups, all unless there are too many (:func:`every_set`)."""
        every = np.arange(self.nodes)
        for group in groups:
            right = np.ascontiguousarray(group.multiply(every, every[:, None]).astype(np.uint16))
            for sets in every_set(group, self.degree):
                best = (BestSet * STEPS)()
                for one, load in zip(best, self.loads(), strict=True):
                    one.load, one.set[0] = load, -1
                library().try_sets(
                    right.ctypes.data, self.nodes, self.degree, sets.ctypes.data, len(sets), self.fastest,
                    ctypes.byref(best),
                )  # fmt: skip
                for steps, one in enumerate(best):
                    if one.set[0] >= 0:
                        self.add(steps, one.load, cayley_expression(group, list(one.set[: self.degree])))
