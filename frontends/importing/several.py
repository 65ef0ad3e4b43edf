"""How many files a reader takes."""

from __future__ import annotations

from collections.abc import Sequence

from collc.ir.diagnostic import Source, Span, error

__all__ = ["only"]


def only(sources: Sequence[Source], what: str) -> Source:
    """Return the only text; raise C0970 for a second one."""
    if len(sources) > 1:
        second = sources[1]
        message = f"found {len(sources)} files of {what}, needed one"
        raise error("C0970", message, span=Span(second, 1, 1, 1, 2), hint="import each by itself")
    return sources[0]
