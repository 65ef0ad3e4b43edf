"""Word of how far long work is, for whoever watches it: neither rooms nor the API know who does.

It stands in the context of the caller, so that compilations in several threads do not hear each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["progress", "watched"]

#: ``tell(what, done, total)``; a total of 0 says that nobody knows it
Tell = Callable[[str, int, int], None]

_TELL: ContextVar[Tell | None] = ContextVar("tell", default=None)


@contextmanager
def watched(tell: Tell) -> Iterator[None]:
    """Have ``tell`` called, in this thread, by all work inside that says how far it is."""
    token = _TELL.set(tell)
    try:
        yield
    finally:
        _TELL.reset(token)


def progress(what: str, done: int = 0, total: int = 0) -> None:
    """Say what is being done, and how much of it; cheap enough for every round of a loop of milliseconds."""
    tell = _TELL.get()
    if tell is not None:
        tell(what, done, total)
