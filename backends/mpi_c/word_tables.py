"""Tables of words -> the group that they are, checked. It shares no code with the writer."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from collc.ir.arrays import Array
from collc.ir.frozen import frozen
from collc.ir.group import Group, Translations

from .cursor import Unreadable

__all__ = ["WordGroup", "group_differs", "word_group"]

#: products of which all are kept at most
_MOST_PRODUCTS = 1 << 22


@frozen(eq=False)
class WordGroup(Group):
    """The group of a file's tables: x is generator ``first[x]`` times ``rest[x]``; ``times`` has a row a generator.

    Element g is multiplied by x when the generators of x are applied to it, one after the other.
    """

    first: Array
    rest: Array
    times: Array

    @property
    def order(self) -> int:
        return len(self.first)

    @property
    def expression(self) -> str:
        return f"generated({self.order}, {len(self.times)})"

    @property
    def generators(self) -> Array:
        """The elements that the rows of ``times`` multiply by."""
        column: Array = self.times[:, 0]
        return column

    def multiply(self, a: Array | int, b: Array | int) -> Array:
        a, b = np.asarray(a, dtype=np.int64), np.asarray(b, dtype=np.int64)
        if self._products is not None:
            known: Array = self._products[b, a].astype(np.int64)
            return known
        if a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0] == 1 and b.size >= self.order:
            rows: Array = self._by_all(a[:, 0])[b[0]].T.astype(np.int64)
            return rows
        a, b = np.broadcast_arrays(a, b)
        found, left = a.copy(), b.copy()
        while (going := left != 0).any():
            found = np.where(going, self.times[self.first[left], found], found)
            left = np.where(going, self.rest[left], 0)
        return found

    @cached_property
    def _products(self) -> Array | None:
        """All products, with a row for each second factor, of a group that is small enough."""
        return self._by_all(np.arange(self.order)) if self.order**2 <= _MOST_PRODUCTS else None

    def _by_all(self, elements: Array) -> Array:
        """Return the products of some elements and all elements, shape (order, elements).

        The generators of the words of many second factors are applied together, each to all first factors.
        """
        found = np.empty((self.order, len(elements)), dtype=np.int32)
        rows = max(1, _MOST_PRODUCTS // max(len(elements), 1))
        for first in range(0, self.order, rows):
            here = slice(first, first + rows)
            left = np.arange(self.order)[here]
            block = np.repeat(elements[None].astype(np.int32), len(left), axis=0)
            while (going := np.flatnonzero(left)).size:
                block[going] = self._narrow[self.first[left[going], None], block[going]]
                left = np.where(left != 0, self.rest[left], 0)
            found[here] = block
        return found

    @cached_property
    def _narrow(self) -> Array:
        return self.times.astype(np.int32)

    def inverse(self, a: Array | int) -> Array:
        inverse: Array = self._inverses[np.asarray(a, dtype=np.int64)]
        return inverse

    @cached_property
    def _inverses(self) -> Array:
        """All inverses: that of a word is the product of its generators' inverses, the last first."""
        undone = np.argmin(self.times, axis=1)  # row k has 0, the least, at the inverse of generator k
        found, left = np.zeros(self.order, dtype=np.int64), np.arange(self.order)
        while (going := left != 0).any():
            found = np.where(going, self.multiply(undone[self.first[left]], found), found)
            left = np.where(going, self.rest[left], 0)
        return found


def word_group(first: Array, rest: Array, times: Array) -> WordGroup:
    """Return the group of three tables; raise Unreadable if they are no group in which each word gives its element.

    Rows of ``times`` are permutations, and the words from 0 reach every element, so the rows generate a group R that
    takes 0 to every element. Row k is right multiplication by s_k = times[k, 0]; left multiplication by s_j applies the
    word of x to s_j. If all of these commute with all rows, so do their products, which take 0 to every element too: an
    element of R that keeps one element then keeps all. So for every x one element of R takes 0 to x, that of its word.
    """
    order, wrong = len(first), ""
    if len(times) % order or not (0 <= first.min() and first.max() < max(len(times) // order, 1)):
        raise Unreadable("`word_generator` names a generator that `generator_times` does not have")
    rows = times.reshape(-1, order)
    if not np.array_equal(np.sort(rows, axis=1), np.broadcast_to(np.arange(order), rows.shape)):
        raise Unreadable("a generator of `generator_times` does not permute the elements")
    if rest.min() < 0 or rest.max() >= order or first[0] or rest[0] or _endless(rest):
        raise Unreadable("a word of `word_rest` does not end with the identity")
    group = WordGroup(first, rest, rows)
    elements = np.arange(order)
    if not np.array_equal(group.multiply(0, elements), elements):
        wrong = "a word gives another element than its own"
    for left in group.generators.tolist():
        moved = group.multiply(left, elements)
        if not np.array_equal(moved[rows], rows[:, moved]):
            wrong = wrong or "the generators of `generator_times` are no group of that many elements"
    if wrong:
        raise Unreadable(wrong)
    return group


def _endless(rest: Array) -> bool:
    """Return whether a word goes on after as many generators as there are elements."""
    left, steps = rest, 1
    while steps < len(rest):
        left, steps = left[left], 2 * steps
    return bool(left.any())


def group_differs(found: Group, emitted: Group) -> bool:
    """Return whether a group of tables has other products than another group of the same elements.

    Both are groups, so they agree if they do on products with elements that generate the first.
    """
    if found.order != emitted.order:
        return True
    if isinstance(found, WordGroup):
        generators = found.generators
    else:
        assert isinstance(found, Translations), "vectors or words"
        generators = np.array([int(np.prod(found.shape[at + 1 :])) for at, size in enumerate(found.shape) if size > 1])
    elements = np.arange(found.order)[:, None]
    return not np.array_equal(found.multiply(elements, generators), emitted.multiply(elements, generators))
