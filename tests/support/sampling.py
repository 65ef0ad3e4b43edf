"""How much is tried: everything with ``COLLC_EXHAUSTIVE=1``, else the same sample of each kind in every run.

``pytest -m quick`` tries an eighth of the sample of Hypothesis.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

__all__ = ["EXHAUSTIVE", "QUICK", "every", "examples"]

T = TypeVar("T")

#: whether only quick tests run: ``conftest.py`` says so before any test is read
QUICK = False

EXHAUSTIVE = os.environ.get("COLLC_EXHAUSTIVE", "0") not in ("", "0")


def every(step: int, items: Sequence[T], turn: int = 0) -> list[T]:
    """Return every so many-th of the items, another part for each ``turn``: all of them in ``step`` turns."""
    return list(items if EXHAUSTIVE else items[turn % step :: step])


def examples(most: int) -> int:
    """Return how many examples Hypothesis is to try: 100, or fewer where each takes long."""
    return max(100, most) if EXHAUSTIVE else min(most, max(5, most // 8)) if QUICK else most
