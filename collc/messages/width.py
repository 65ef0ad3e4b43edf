"""The number of terminal columns of a text."""

from __future__ import annotations

import unicodedata

__all__ = ["width"]


def width(text: str) -> int:
    """Return terminal columns: wide characters take two, combining ones none.

    >>> width("torus"), width("網")
    (5, 2)
    """
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in ("W", "F") else 1 for c in text
    )
