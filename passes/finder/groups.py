"""List groups of a given order, as expressions of the language, for Cayley digraphs.

The list has many groups of different kinds, not all of the order: cyclic and other abelian groups, metacyclic ones,
extensions of vectors by a matrix, permutations, matrices over finite fields, and direct products. Isomorphic groups are
removed if that is cheap: by canonical parameters, then by the numbers of elements by order, centre and square roots.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import product
from math import factorial, gcd, lcm, prod

import numpy as np

from collc.ir.arrays import Array
from collc.ir.group import Direct, Group, Linear, Metacyclic, Permutations, Semidirect, Translations

from .exclude import NOTHING, Excluded

__all__ = ["generating", "group_expression", "groups_of_order", "has_other_groups"]

_MOST_MATRICES = 4096  # tried for one shape
_MOST_RANK = 6  # of an elementary abelian group on which a matrix acts
#: groups of matrices over fields, of orders to 10,000, without those isomorphic to groups of the other kinds
_LINEAR = (
    Linear("sl", 5), Linear("psl", 7), Linear("pgl", 7), Linear("sl", 7), Linear("psl", 8), Linear("pgl", 9),
    Linear("sl", 9), Linear("psl", 11), Linear("pgl", 11), Linear("sl", 11), Linear("psl", 13), Linear("pgl", 13),
    Linear("sl", 13), Linear("psl", 16), Linear("psl", 17), Linear("pgl", 17), Linear("sl", 17), Linear("psl", 19),
    Linear("pgl", 19), Linear("sl", 19), Linear("psl", 23), Linear("psl", 25), Linear("psl", 27),
)  # fmt: skip


def group_expression(group: Group) -> str:
    """Return the group as an expression of the language; a single cyclic factor becomes ``cyclic``.

    >>> group_expression(Translations((16,)))
    'cyclic(16)'
    """
    if isinstance(group, Translations) and len(group.shape) == 1:
        return f"cyclic({group.shape[0]})"
    return group.expression


@lru_cache(maxsize=64)
def groups_of_order(order: int, most: int = 96, exclude: Excluded = NOTHING) -> tuple[Group, ...]:
    """Return at most ``most`` groups of an order of at least 1 without excluded names, no two known to be isomorphic.

    The kinds alternate, so a short list has some of each. The same arguments give the same list.

    >>> [group_expression(group) for group in groups_of_order(6)]
    ['metacyclic(3, 2, 2)', 'cyclic(6)']
    """
    kinds = (_metacyclic, _abelian, _extensions, _permutations, _linear, _products)
    found: dict[tuple[object, ...], Group] = {}
    for group in _round_robin([kind(order) for kind in kinds]):
        if len(found) >= most:
            break
        if exclude.allows(group_expression(group)):
            found.setdefault(_fingerprint(group), group)
    return tuple(found.values())


def has_other_groups(order: int) -> bool:
    """Return whether there is a group of this order that is not abelian.

    There is none exactly if no cube of a prime divides the order, and no prime divides p^i - 1 for a power p^i that
    does (Dickson, Definitions of a group and a field by independent postulates, 1905).

    >>> [order for order in range(1, 40, 2) if has_other_groups(order)]
    [21, 27, 39]
    """
    factors = _factors(order)
    return any(
        most > 2 or any((prime**i - 1) % other == 0 for i in range(1, most + 1) for other in factors)
        for prime, most in factors.items()
    )


def _round_robin(kinds: list[Iterator[Group]]) -> Iterator[Group]:
    while kinds:
        for kind in list(kinds):
            group = next(kind, None)
            if group is None:
                kinds.remove(kind)
            else:
                yield group


# ---- kinds


def _divisors(number: int) -> list[int]:
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]


def _factors(number: int) -> dict[int, int]:
    """Return the prime factors with their exponents.

    >>> _factors(360)
    {2: 3, 3: 2, 5: 1}
    """
    result: dict[int, int] = {}
    prime = 2
    while number > 1:
        while number % prime == 0:
            result[prime] = result.get(prime, 0) + 1
            number //= prime
        prime += 1
    return result


def _partitions(number: int, most: int) -> Iterator[tuple[int, ...]]:
    if number == 0:
        yield ()
    for first in range(min(number, most), 0, -1):
        for rest in _partitions(number - first, first):
            yield (first, *rest)


def _abelian(order: int) -> Iterator[Group]:
    """Yield all abelian groups, fewest factors first; each cyclic factor is a multiple of the next."""
    factors = _factors(order)
    shapes = set()
    for choice in product(*(list(_partitions(e, e)) for e in factors.values())):
        rank = max((len(parts) for parts in choice), default=1)
        sizes = [1] * rank
        for prime, parts in zip(factors, choice, strict=True):
            for i, exponent in enumerate(parts):
                sizes[i] *= prime**exponent
        shapes.add(tuple(sizes))
    for shape in sorted(shapes, key=lambda sizes: (len(sizes), sizes)):
        yield Translations(shape)


@lru_cache
def _powers(base: int, modulus: int) -> tuple[int, ...]:
    """Return 1, base, base^2, .. up to the first repeat; the base is a unit."""
    result, at = [1 % modulus], base % modulus
    while at != 1 % modulus:
        result.append(at)
        at = at * base % modulus
    return tuple(result)


def _metacyclic(order: int) -> Iterator[Group]:
    """Yield the non-abelian metacyclic groups, those with the most equal orders of the two generators first.

    If s = 0, values of r that generate the same subgroup of units give the same group. s is determined up to units.
    """
    for m in sorted(_divisors(order), key=lambda m: (max(m, order // m), m)):
        k = order // m
        seen = set()
        for r in range(2, m):
            if gcd(r, m) > 1 or pow(r, k, m) != 1:
                continue
            powers = _powers(r, m)
            least = min(powers[i] for i in range(1, len(powers)) if gcd(i, len(powers)) == 1)
            if least in seen:
                continue
            seen.add(least)
            factor = m // gcd(m, least - 1)  # of every s
            for s in (0, *(s for s in _divisors(m)[:-1] if s % factor == 0)):
                yield Metacyclic(m, k, least, s)


def _extensions(order: int) -> Iterator[Group]:
    """Yield vectors over Z_q extended by a cyclic group, which acts as a companion or diagonal matrix of its order."""
    for k in sorted(_divisors(order)[1:], key=lambda k: (max(k, order // k), k)):
        for rank in range(2, _MOST_RANK + 1):
            size = round((order // k) ** (1 / rank))
            if size < 2 or size**rank != order // k:
                continue
            for matrix in _matrices(size, rank):
                if _order_of(matrix, size, k):
                    yield Semidirect((size,) * rank, k, matrix)


def _matrices(size: int, rank: int) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Yield companion matrices of polynomials whose constant term is a unit, then diagonal matrices."""
    for i, last in enumerate(product(range(size), repeat=rank)):
        if i >= _MOST_MATRICES:
            break
        if gcd(last[0], size) == 1:
            yield tuple(
                tuple(last[row] if column == rank - 1 else int(row == column + 1) for column in range(rank))
                for row in range(rank)
            )
    units = [unit for unit in range(1, size) if gcd(unit, size) == 1]
    for i, diagonal in enumerate(product(units, repeat=rank)):
        if i >= _MOST_MATRICES:
            break
        if list(diagonal) == sorted(diagonal):
            yield tuple(tuple(diagonal[row] if row == c else 0 for c in range(rank)) for row in range(rank))


def _order_of(matrix: tuple[tuple[int, ...], ...], size: int, most: int) -> int:
    """Return the order of the matrix modulo ``size`` if it is above 1 and divides ``most``, otherwise 0."""
    one = np.array(matrix, dtype=np.int64) % size
    unit = np.eye(len(matrix), dtype=np.int64)
    power, order = one, 1
    while not np.array_equal(power, unit):
        power, order = power @ one % size, order + 1
        if order > most:
            return 0
    return order if order > 1 and most % order == 0 else 0


def _permutations(order: int) -> Iterator[Group]:
    """Yield symmetric and alternating groups on at least four points, and their products with a cyclic group."""
    for degree in range(4, 8):
        for even in (True, False):
            size = factorial(degree) // (2 if even else 1)
            if order % size == 0:
                group = Permutations(degree, even)
                yield group if order == size else Direct(group, Translations((order // size,)))


def _linear(order: int) -> Iterator[Group]:
    """Yield the groups of 2 x 2 matrices over small fields, and their products with a cyclic group."""
    for group in _LINEAR:
        if order % group.order == 0:
            yield group if order == group.order else Direct(group, Translations((order // group.order,)))


def _products(order: int) -> Iterator[Group]:
    """Yield direct products of a cyclic group with a non-abelian one, and of two non-abelian ones."""
    for size in _divisors(order)[1:-1]:
        smaller = order // size
        for group in _non_abelian(smaller):
            yield Direct(group, Translations((size,)))
        if smaller >= size >= 6:
            for one, two in product(_non_abelian(smaller)[:8], _non_abelian(size)[:8]):
                yield Direct(one, two)


@lru_cache
def _non_abelian(order: int) -> tuple[Group, ...]:
    """Return some non-abelian groups of an order, without repeats and without those built as direct products."""
    found: dict[tuple[object, ...], Group] = {}
    for group in _round_robin([_metacyclic(order), _extensions(order)]):
        if len(found) >= 24:
            break
        found.setdefault(_fingerprint(group), group)
    return tuple(found.values())


# ---- invariants


def _fingerprint(group: Group) -> tuple[object, ...]:
    """Return an invariant of isomorphism: the numbers of elements by order, centre, and number of square roots."""
    if isinstance(group, Translations):
        return ("abelian", _invariant_factors(group.shape))
    elements = np.arange(group.order)
    orders = _orders(group)
    squares = np.bincount(group.multiply(elements, elements), minlength=group.order)
    central = np.ones(group.order, dtype=bool)
    for each in generating(group):
        central &= group.multiply(elements, each) == group.multiply(each, elements)
    if central.all():
        return ("abelian", _factors_from_orders(orders))
    kinds, counts = np.unique(np.stack([orders, central, squares], axis=1), axis=0, return_counts=True)
    return (group.order, kinds.tobytes(), counts.tobytes())


def _invariant_factors(shape: Iterable[int]) -> tuple[int, ...]:
    """Return how many elements each divisor of the exponent kills: abelian groups are isomorphic if these agree."""
    sizes = list(shape)
    return tuple(prod(gcd(size, divisor) for size in sizes) for divisor in _divisors(lcm(*sizes)))


def _factors_from_orders(orders: Array) -> tuple[int, ...]:
    exponent = int(np.lcm.reduce(np.unique(orders)))
    return tuple(int((divisor % orders == 0).sum()) for divisor in _divisors(exponent))


def _orders(group: Group) -> Array:
    """Return every element's order, shape (N,)."""
    elements = np.arange(group.order)
    result = np.ones(group.order, dtype=np.int64)
    for prime, exponent in _factors(group.order).items():
        part = _power(group, elements, group.order // prime**exponent)
        for _ in range(exponent):
            result[part != 0] *= prime
            part = _power(group, part, prime)
    return result


def _power(group: Group, elements: Array, exponent: int) -> Array:
    result, square = np.zeros_like(elements), elements
    while exponent:
        if exponent % 2:
            result = group.multiply(result, square)
        square, exponent = group.multiply(square, square), exponent // 2
    return result


def generating(group: Group) -> list[int]:
    """Return few elements that generate the group: each is the last one that those before it do not generate."""
    chosen: list[int] = []
    inside = np.zeros(group.order, dtype=bool)
    inside[0] = True
    while not inside.all():
        chosen.append(int(np.flatnonzero(~inside)[-1]))
        fresh = np.flatnonzero(inside)
        while len(fresh):
            reached = np.unique(group.multiply(fresh[:, None], np.array(chosen)))
            fresh = reached[~inside[reached]]
            inside[fresh] = True
    return chosen
