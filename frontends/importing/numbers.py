"""Numbers in files, exact and bounded: nothing that takes long to read or to print."""

from __future__ import annotations

import re
from fractions import Fraction

__all__ = ["decimal", "whole"]

_WHOLE = re.compile(r"[0-9]{1,18}")
_DECIMAL = re.compile(r"(?:[0-9]{1,18}(?:\.[0-9]{0,18})?|\.[0-9]{1,18})(?:[eE][+-]?[0-9]{1,2})?")


def whole(text: str) -> int | None:
    """Return a whole number from 0 of at most 18 digits; None for another text.

    >>> whole("16"), whole("1.5"), whole("9" * 40)
    (16, None, None)
    """
    return int(text) if _WHOLE.fullmatch(text) else None


def decimal(text: str) -> Fraction | None:
    """Return a decimal number from 0; None for another text, such as `nan`.

    >>> decimal("936.25"), decimal("4e2"), decimal("-1"), decimal("inf")
    (Fraction(3745, 4), Fraction(400, 1), None, None)
    """
    return Fraction(text) if _DECIMAL.fullmatch(text) else None
