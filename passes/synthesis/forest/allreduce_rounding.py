"""Floating point as whole numbers over one denominator: the likely fractions, or values near them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import lcm

from collc.ir.arrays import Array

__all__ = ["whole"]

_MOST = 2**60
_FINE = 2**30


def whole(columns: Sequence[Array], most: int) -> tuple[list[list[int]], int]:
    """Return columns of values of at least 0 as whole numbers, and their common denominator.

    Values are rounded to fractions of denominators up to ``most``, or all to one fine grid if those have no common
    denominator of reasonable size.

    >>> import numpy as np
    >>> whole([np.array([0.5, 1 / 3]), np.array([2.0])], 10)
    ([[3, 2], [12]], 6)
    """
    rounded = [[Fraction(max(x, 0.0)).limit_denominator(most) for x in column.tolist()] for column in columns]
    common = 1
    for x in {x for column in rounded for x in column}:
        common = lcm(common, x.denominator)
        if common > _MOST:
            return [[round(max(x, 0.0) * _FINE) for x in column.tolist()] for column in columns], _FINE
    return [[x.numerator * (common // x.denominator) for x in column] for column in rounded], common
