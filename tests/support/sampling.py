"""How much is tried: everything with ``COLLC_EXHAUSTIVE=1``, else the same sample of each kind in every run.

``pytest -m quick`` tries an eighth of the sample of Hypothesis. With ``COLLC_EXHAUSTIVE=1`` Hypothesis draws other
examples in each run.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import ModuleType
from typing import TypeVar

__all__ = ["EXHAUSTIVE", "QUICK", "draw_no_constants_of_modules", "every", "examples"]

T = TypeVar("T")

#: whether only quick tests run: ``conftest.py`` says so before any test is read
QUICK = False

EXHAUSTIVE = os.environ.get("COLLC_EXHAUSTIVE", "0") not in ("", "0")


def every(step: int, items: Sequence[T], turn: int = 0) -> list[T]:
    """Return every so many-th of the items, another part for each ``turn``: all of them in ``step`` turns."""
    return list(items if EXHAUSTIVE else items[turn % step :: step])


def examples(most: int) -> int:
    """Return how many examples Hypothesis is to try: these, or four times as many if all is tried, at least 100."""
    return max(100, 4 * most) if EXHAUSTIVE else min(most, max(5, most // 8)) if QUICK else most


def draw_no_constants_of_modules(providers: ModuleType) -> None:
    """Keep Hypothesis from drawing the constants of loaded modules: a process draws the same, whatever it has loaded.

    Otherwise the examples of a test depend on the tests that the worker of xdist has run before. Where Hypothesis keeps
    them elsewhere, this fails: ``tests/whole/test_sampling.py`` says what must hold.
    """
    none = type(providers._local_constants)()
    assert callable(providers._get_local_constants)
    providers._get_local_constants = lambda: none
