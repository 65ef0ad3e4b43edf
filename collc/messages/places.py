"""The exit status of mistakes, by their places."""

from __future__ import annotations

from collections.abc import Iterable

from collc.ir.diagnostic import Span

__all__ = ["usage_status"]


def usage_status(spans: Iterable[Span | None]) -> int:
    """Return the exit status of mistakes at these places: 1 if one is in a file, 2 if all are on the command line."""
    return 1 if any(span is not None and not span.source.path.startswith("<-") for span in spans) else 2
