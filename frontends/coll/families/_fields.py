"""Finite fields of a few elements as tables, and the points of projective spaces over them."""

from __future__ import annotations

from functools import lru_cache
from itertools import product

import attrs
import numpy as np

from collc.ir.arrays import Array

__all__ = ["Field", "field", "points"]

#: order of a field, not prime -> (prime, coefficients of an irreducible monic polynomial, lowest first)
_EXTENSIONS = {4: (2, (1, 1, 1)), 8: (2, (1, 1, 0, 1)), 9: (3, (1, 0, 1))}


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
    """Return the field of ``q`` elements: a prime, or 4, 8 or 9, whose elements are digits of polynomials.

    >>> int(field(4).times[2, 3])
    1
    """
    if q not in _EXTENSIONS:
        numbers = np.arange(q)
        return Field(q, (numbers[:, None] + numbers) % q, numbers[:, None] * numbers % q)
    prime, modulus = _EXTENSIONS[q]
    degree = len(modulus) - 1
    weights = prime ** np.arange(degree)
    digits = np.arange(q)[:, None] // weights % prime
    plus = (digits[:, None] + digits) % prime @ weights
    times = np.array([[_product(a, b, modulus, prime) for b in digits.tolist()] for a in digits.tolist()])
    return Field(q, plus, times @ weights)


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
