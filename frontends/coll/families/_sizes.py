"""Sizes of graphs before they are built: products and powers that saturate beyond any limit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from collc.ir.diagnostic import CollcError, Diagnostic, error

__all__ = ["HUGE", "DomainError", "domain", "power", "prod"]

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


class DomainError(CollcError):
    """Arguments that make no graph: ``at`` is the parameter that is wrong, and ``item`` the member of its set."""

    def __init__(self, diagnostics: Sequence[Diagnostic], at: str | None = None, item: int | None = None):
        super().__init__(diagnostics)
        self.at, self.item = at, item


def domain(
    message: str, hint: str | None = None, at: str | None = None, item: int | None = None, code: str = "C0311"
) -> DomainError:
    """Return the error for arguments that make no graph: of one parameter, of a member of its set, or of several."""
    return DomainError(error(code, message, hint=hint).diagnostics, at, item)
