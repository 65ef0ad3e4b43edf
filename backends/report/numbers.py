"""Numbers of a page: columns as JSON lists, and decimals that are the same on every machine."""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

from collc.ir.arrays import Array

__all__ = ["Json", "decimal", "integers"]

#: what the page's data consist of
Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

_DIGITS = 6


def decimal(value: Fraction | float) -> float | int:
    """Return a number in six digits, as an integer if it is one.

    >>> decimal(Fraction(1, 3)), decimal(Fraction(12))
    (0.333333, 12)
    """
    found = float(f"{float(value):.{_DIGITS}g}")
    return int(found) if found.is_integer() and abs(found) < 1 << 53 else found


def integers(column: Array) -> list[Json]:
    """Return a column as a list of integers."""
    found: list[Json] = column.tolist()
    return found
