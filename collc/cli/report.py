"""``collc report``."""

from __future__ import annotations

from types import SimpleNamespace

from .compile import compile
from .console import Console

__all__ = ["report"]


def report(options: SimpleNamespace, console: Console) -> int:
    """Write one page on all collectives of a file, as ``-t report`` does; return the exit status."""
    options.target, options.cache = ["report"], None  # files that collectives share are not kept
    return compile(options, console)
