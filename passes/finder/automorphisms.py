"""Automorphisms of groups: generator sets that one maps to another give the same Cayley digraph.

A search of all sets needs only those that hold a representative of an orbit of elements, beside elements of this orbit
and later ones. For links both ways on a cyclic group of prime order that is one of N/d sets. Not all automorphisms are
known of every kind of group, so some sets may still be equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

import numpy as np

from collc.ir.arrays import Array
from collc.ir.group import Direct, Group, Metacyclic, Semidirect, Translations

from .groups import generating

__all__ = ["automorphisms", "orbits"]


def orbits(group: Group) -> Array:
    """Return the least element of each element's orbit under the known automorphisms, shape (N,).

    >>> orbits(Translations((6,))).tolist()
    [0, 1, 2, 3, 2, 1]
    """
    least = np.arange(group.order)
    maps = list(automorphisms(group))
    before = None
    while before is None or not np.array_equal(before, least):
        before = least.copy()
        for each in maps:
            power, steps = each, 1
            while steps < group.order:  # the least of a cycle, of twice as many of its elements each time
                least = np.minimum(least, least[power])
                power, steps = power[power], 2 * steps
    return least


def automorphisms(group: Group) -> Iterator[Array]:
    """Yield the images of all elements under some automorphisms, shape (N,) each; those that they generate are not
    yielded."""
    elements = np.arange(group.order)
    if isinstance(group, Translations):
        yield from _of_vectors(group.shape)
        return
    for each in generating(group):
        yield group.multiply(group.multiply(each, elements), group.inverse(each))
    if isinstance(group, Metacyclic):
        yield from _of_metacyclic(group)
    elif isinstance(group, Semidirect):
        vectors = np.stack(np.unravel_index(elements // group.k, group.shape))
        for unit in _units(int(np.lcm.reduce(group.shape))):  # multiples commute with every matrix
            sizes = np.array(group.shape)[:, None]
            yield np.ravel_multi_index(tuple(vectors * unit % sizes), group.shape) * group.k + elements % group.k
    elif isinstance(group, Direct):
        first, second = np.divmod(elements, group.two.order)
        yield from (each[first] * group.two.order + second for each in automorphisms(group.one))
        yield from (first * group.two.order + each[second] for each in automorphisms(group.two))


def _units(modulus: int) -> list[int]:
    """Return units that generate all units of a modulus: each is the least that those before it do not generate.

    >>> _units(7), _units(8), _units(2)
    ([2, 3], [3, 5], [])
    """
    reached, found = {1 % modulus}, list[int]()
    for unit in range(2, modulus):
        if gcd(unit, modulus) > 1 or unit in reached:
            continue
        found.append(unit)
        power, whole = unit, set(reached)
        while power not in reached:
            whole |= {power * one % modulus for one in reached}
            power = power * unit % modulus
        reached = whole
    return found


def _of_vectors(shape: tuple[int, ...]) -> Iterator[Array]:
    """Yield multiples of one coordinate, and sums of a multiple of one to another."""
    vectors = np.stack(np.unravel_index(np.arange(int(np.prod(shape))), shape))
    for i, size in enumerate(shape):
        changes = [(i, unit - 1) for unit in _units(size)]
        changes += [(j, size // gcd(size, other)) for j, other in enumerate(shape) if j != i]
        for j, factor in changes:
            moved = vectors.copy()
            moved[i] = (vectors[i] + factor * vectors[j]) % size
            yield np.ravel_multi_index(tuple(moved), shape)


def _of_metacyclic(group: Metacyclic) -> Iterator[Array]:
    """Yield the maps of A to a power of itself, and of B to A^w B, if these have the relations of A and B."""
    m, k, r, s = group.m, group.k, group.r, group.s
    first, second = np.divmod(np.arange(group.order), k)
    for unit in _units(m):
        if s * (unit - 1) % m == 0:
            yield first * unit % m * k + second
    sums = np.zeros(k + 1, dtype=np.int64)  # (A^w B)^b = A^(w * sums[b]) B^b
    for b in range(k):
        sums[b + 1] = (sums[b] + pow(r, b, m)) % m
    w = m // gcd(m, int(sums[k]))
    yield (first + w * sums[second]) % m * k + second
