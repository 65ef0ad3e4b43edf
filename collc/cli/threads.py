"""Imports of numpy that start no threads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["without_threads"]

_THREADS = "OPENBLAS_NUM_THREADS"


@contextmanager
def without_threads() -> Iterator[None]:
    """Let numpy's OpenBLAS start no threads if it is loaded now: collc multiplies no large matrices.

    What is started later, such as programs that `collc launch` runs, sees the variable as it was.
    """
    if _THREADS in os.environ:
        yield
        return
    os.environ[_THREADS] = "1"
    try:
        yield
    finally:
        os.environ.pop(_THREADS, None)
