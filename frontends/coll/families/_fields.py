"""Finite fields of a few elements as tables, and the points of projective spaces over them."""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from math import isqrt, log

import attrs
import numpy as np

from collc.ir.arrays import Array

__all__ = ["Field", "field", "points", "prime_of"]


@attrs.frozen(eq=False)
class Field:
    """The field of ``order`` elements 0 .. order-1; 0 and 1 are its zero and one; sums and products are tables."""

    order: int
    plus: Array
    times: Array

    def dot(self, a: Array, b: Array) -> Array:
        """Return the sums of products along the last axis; the others broadcast."""
        terms = self.times[a, b]
        total = terms[..., 0]
        for i in range(1, terms.shape[-1]):
            total = self.plus[total, terms[..., i]]
        return total

    @property
    def minus(self) -> Array:
        """The negative of every element."""
        minus: Array = np.argmin(self.plus, axis=1)
        return minus


@lru_cache
def field(q: int) -> Field:
    """Return the field of ``q`` elements, a prime power; if q is no prime, its elements are digits of polynomials.

    >>> int(field(4).times[2, 3])
    1
    """
    prime = prime_of(q)
    if prime is None or prime == q:
        numbers = np.arange(q)
        return Field(q, (numbers[:, None] + numbers) % q, numbers[:, None] * numbers % q)
    degree = round(log(q, prime))
    modulus = _irreducible(prime, degree)
    weights = prime ** np.arange(degree)
    digits = np.arange(q)[:, None] // weights % prime
    plus = (digits[:, None] + digits) % prime @ weights
    times = np.array([[_product(a, b, modulus, prime) for b in digits.tolist()] for a in digits.tolist()])
    return Field(q, plus, times @ weights)


def prime_of(q: int) -> int | None:
    """Return the prime that ``q`` is a power of, if it is a power of one.

    >>> prime_of(27), prime_of(7), prime_of(12), prime_of(1)
    (3, 7, None, None)
    """
    prime = next((p for p in range(2, isqrt(q) + 1) if q % p == 0), q)
    rest = q
    while rest > 1 and rest % prime == 0:
        rest //= prime
    return prime if q > 1 and rest == 1 else None


def _irreducible(prime: int, degree: int) -> tuple[int, ...]:
    """Return the first monic polynomial without a factor of lower degree, its coefficients lowest first.

    >>> _irreducible(2, 2), _irreducible(2, 3), _irreducible(3, 2)
    ((1, 1, 1), (1, 1, 0, 1), (1, 0, 1))
    """
    low = [_monic(prime, of) for of in range(1, degree // 2 + 1)]
    for candidate in _monic(prime, degree):
        if all(any(_remainder(candidate, factor, prime)) for factors in low for factor in factors):
            return candidate
    raise ValueError(f"no irreducible polynomial of degree {degree} over {prime} elements")


def _monic(prime: int, degree: int) -> list[tuple[int, ...]]:
    return [(*reversed(digits), 1) for digits in product(range(prime), repeat=degree)]


def _remainder(a: tuple[int, ...], divisor: tuple[int, ...], prime: int) -> list[int]:
    """Return the coefficients of the remainder of a polynomial by a monic one."""
    rest, degree = list(a), len(divisor) - 1
    for top in range(len(a) - 1, degree - 1, -1):
        factor = rest[top]
        for i, coefficient in enumerate(divisor):
            rest[top - degree + i] = (rest[top - degree + i] - factor * coefficient) % prime
    return rest[:degree]


def _product(a: list[int], b: list[int], modulus: tuple[int, ...], prime: int) -> list[int]:
    degree = len(modulus) - 1
    result = [0] * (2 * degree - 1)
    for (i, x), (j, y) in product(enumerate(a), enumerate(b)):
        result[i + j] += x * y
    for top in range(len(result) - 1, degree - 1, -1):
        for i, coefficient in enumerate(modulus):
            result[top - degree + i] -= result[top] * coefficient if i < degree else 0
        result[top] = 0
    return [x % prime for x in result[:degree]]


def points(q: int, dimension: int) -> Array:
    """Return the points of PG(dimension, q), a row each: vectors whose first entry that is not 0 is 1, ascending.

    >>> len(points(3, 2))
    13
    """
    vectors = np.array(list(product(range(q), repeat=dimension + 1)))[1:]
    first = np.take_along_axis(vectors, np.argmax(vectors != 0, axis=1)[:, None], axis=1)[:, 0]
    normal: Array = vectors[first == 1]
    return normal
