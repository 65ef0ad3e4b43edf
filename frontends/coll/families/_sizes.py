"""Sizes of graphs before they are built: products and powers that saturate beyond any limit."""

from __future__ import annotations

from collections.abc import Iterable

from collc.ir.diagnostic import CollcError, error

__all__ = ["HUGE", "domain", "power", "prod"]

#: Above any limit on nodes or links; larger sizes count as this.
HUGE = 2**62


def prod(factors: Iterable[int]) -> int:
    """Return the product of non-negative integers, or ``HUGE``.

    >>> prod([3, 4]), prod([10**9] * 10) == HUGE
    (12, True)
    """
    result, zero = 1, False
    for factor in factors:
        zero = zero or factor == 0
        result = min(result * max(factor, 1), HUGE)
    return 0 if zero else result


def power(base: int, exponent: int) -> int:
    """Return ``base ** exponent`` for a base of at least 1, or ``HUGE``, however large the exponent."""
    if base == 1:
        return 1
    return HUGE if exponent > 62 else prod([base] * exponent)


def domain(message: str, hint: str | None = None) -> CollcError:
    """Return the error for arguments that make no graph."""
    return error("C0311", message, hint=hint)
