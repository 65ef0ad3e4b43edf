"""The 2 x 2 matrices over a finite field, for :class:`collc.ir.group.Linear`.

Elements of its groups are matrices ``(a, b, c, d)``,
rows first, over the field of q = p^e elements. A field element is a number 0 .. q-1; its digits in base p are the
coefficients of a polynomial, constant term lowest.
"""

from __future__ import annotations

from functools import lru_cache

import attrs
import numpy as np

from .arrays import Array

__all__ = ["LINEAR_KINDS", "Field", "codes", "field_of", "matrices_of", "scaled"]

#: names of the groups: matrices of square determinant and of any determinant, both up to scalars; of determinant 1
LINEAR_KINDS = ("psl", "pgl", "sl")
_MOST_FIELD = 64  # elements; the groups then have up to 262,080


@attrs.frozen(eq=False)
class Field:
    """Tables of the field of ``size`` elements: sums and products, shape (q, q); negatives and inverses, shape (q,).

    The inverse of 0 is given as 0.
    """

    size: int
    plus: Array
    times: Array
    negative: Array
    inverse: Array


@lru_cache(maxsize=16)
def field_of(size: int) -> Field:
    """Return the field of ``size`` elements, 2 to 64; raise ValueError if there is none.

    Its polynomial is the first primitive one, so the numbers of the elements are the same everywhere.

    >>> field_of(4).times[2, 3]
    np.int64(1)
    """
    prime = next((p for p in range(2, size + 1) if size % p == 0), 0)
    exponent = next((e for e in range(1, 7) if prime**e == size), 0)
    if size < 2 or not exponent or size > _MOST_FIELD:
        raise ValueError(f"found {size} field elements, needed a prime power of at most {_MOST_FIELD}")
    digits = np.array([[x // prime**i % prime for i in range(exponent)] for x in range(size)], dtype=np.int64)
    weights = prime ** np.arange(exponent, dtype=np.int64)
    plus: Array = (digits[:, None] + digits[None]) % prime @ weights
    powers = next(filter(None, (_powers(plus, digits, low, prime) for low in range(1, size))))
    places = np.zeros(size, dtype=np.int64)
    places[powers] = np.arange(size - 1)
    times = np.array(powers, dtype=np.int64)[(places[:, None] + places[None]) % (size - 1)]
    times[0], times[:, 0] = 0, 0
    inverse = np.array(powers, dtype=np.int64)[-places % (size - 1)]
    inverse[0] = 0
    return Field(size, plus, times, -digits % prime @ weights, inverse)


def _powers(plus: Array, digits: Array, low: int, prime: int) -> list[int]:
    """Return the powers of x modulo x^e = ``low``, or of ``low`` itself if e is 1; empty if they miss an element."""
    size, exponent = digits.shape
    top = size // prime
    result = [1]
    while True:
        at = result[-1]
        if exponent == 1:
            at = at * low % prime
        else:
            carry, at = at // top, at % top * prime
            for _ in range(carry):
                at = int(plus[at, low])
        if at in (0, 1):
            return result if len(result) == size - 1 and at == 1 else []
        if len(result) == size:
            return []
        result.append(at)


def scaled(matrices: Array, field: Field) -> Array:
    """Return the multiples whose first entry other than 0 is 1."""
    first = np.where(matrices[..., 0] != 0, matrices[..., 0], matrices[..., 1])
    scaled: Array = field.times[matrices, field.inverse[first][..., None]]
    return scaled


def codes(matrices: Array, q: int) -> Array:
    """Return a number for each matrix, shape (..): lexicographic order of the entries, those with a = 1 first."""
    a, b, c, d = np.moveaxis(matrices, -1, 0)
    found: Array = (((a - 1) % q * q + b) * q + c) * q + d
    return found


@lru_cache(maxsize=8)
def matrices_of(kind: str, q: int) -> tuple[Array, Array]:
    """Return the matrices of a group in the order of their numbers, shape (order, 4), and their ascending codes."""
    field = field_of(q)
    first = np.arange(q) if kind == "sl" else np.arange(2)  # a is 0 or 1 up to scalars
    grid = np.stack(np.meshgrid(first, *[np.arange(q)] * 3, indexing="ij"), axis=-1).reshape(-1, 4)
    if kind != "sl":
        grid = grid[(grid[:, 0] == 1) | (grid[:, 1] == 1)]
    a, b, c, d = grid.T
    determinant = field.plus[field.times[a, d], field.negative[field.times[b, c]]]
    allowed = np.zeros(q, dtype=bool)
    allowed[{"sl": np.array([1]), "pgl": np.arange(1, q), "psl": np.diag(field.times)[1:]}[kind]] = True
    chosen = grid[allowed[determinant]].astype(np.int64)
    numbers = codes(chosen, q)
    order = np.argsort(numbers)
    return chosen[order], numbers[order]
