"""A group in C: every element as a short product of generators, and what multiplying by each of these gives.

Element x is the generator ``first[x]`` times the element ``rest[x]``, and so on until 0, the identity. So rank g finds
g * x without memory of its own: it multiplies g by one generator after the other. Element g times generator k is
``times[k * order + g]``.
"""

from __future__ import annotations

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.group import Direct, Group, Metacyclic, Translations

__all__ = ["NO_WORDS", "Words", "shape_of", "words_of"]

#: elements that are tried as the next generator where none is seen to double what is covered
_TRIED = 32


@attrs.frozen(eq=False)
class Words:
    """The tables of a group: ``first`` and ``rest`` have a number for each element, ``times`` a row a generator."""

    first: Array
    rest: Array
    times: Array


NO_WORDS = Words(*(np.zeros(0, dtype=np.int64) for _ in range(3)))


def shape_of(group: Group) -> tuple[int, ...] | None:
    """Return the sizes of the vectors that a group's numbers are, last coordinate fastest; None for other groups.

    >>> shape_of(Direct(Translations((2, 3)), Metacyclic(4, 5, 1))), shape_of(Metacyclic(4, 2, -1))
    ((2, 3, 4, 5), None)
    """
    if isinstance(group, Translations):
        return group.shape
    if isinstance(group, Metacyclic) and group.s == 0 and group.r == 1 % group.m:
        return group.m, group.k
    if isinstance(group, Direct):
        one, two = shape_of(group.one), shape_of(group.two)
        return (*one, *two) if one is not None and two is not None else None
    return None


def words_of(group: Group) -> Words:
    """Return the words of all elements; each takes any generator at most once, and the last generators first.

    What the generators so far give is doubled by the next, so there are little more than log2(order) of them.
    """
    order = group.order
    first, rest = np.zeros(order, dtype=np.int64), np.zeros(order, dtype=np.int64)
    covered = np.zeros(1, dtype=np.int64)
    known = np.zeros(order, dtype=bool)
    known[0] = True
    generators = list[int]()
    while len(covered) < order:
        generator = _next(group, covered, known)
        products = group.multiply(generator, covered)
        fresh = ~known[products]
        first[products[fresh]], rest[products[fresh]] = len(generators), covered[fresh]
        known[products[fresh]] = True
        covered = np.concatenate([covered, products[fresh]])
        generators.append(generator)
    elements = np.arange(order)
    times = [group.multiply(elements, generator) for generator in generators]
    return Words(first, rest, np.concatenate([*times, np.zeros(0, dtype=np.int64)]))


def _next(group: Group, covered: Array, known: Array) -> int:
    """Return the generator that covers most; the first of those that are tried if several do."""
    missing = np.flatnonzero(~known)
    places = np.unique(np.arange(_TRIED) * len(missing) // _TRIED)
    best, most = 0, 0
    for candidate in missing[places].tolist():
        gain = int((~known[group.multiply(candidate, covered)]).sum())
        if gain > most:
            best, most = candidate, gain
        if gain == min(len(covered), len(missing)):
            break
    return best
