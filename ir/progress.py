"""Progress of long work, for an observer that the work does not know.

The observer is stored in the caller's context, so that compilations in several threads do not share it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["progress", "watched"]

#: ``observer(what, done, total)``; a total of 0 means that it is unknown
Observer = Callable[[str, int, int], None]

_OBSERVER: ContextVar[Observer | None] = ContextVar("observer", default=None)


@contextmanager
def watched(observer: Observer) -> Iterator[None]:
    """Call ``observer``, in this thread, whenever work inside reports its progress."""
    token = _OBSERVER.set(observer)
    try:
        yield
    finally:
        _OBSERVER.reset(token)


def progress(what: str, done: int = 0, total: int = 0) -> None:
    """Report the current work and how much of it is done; cheap enough for every round of a loop of milliseconds."""
    observer = _OBSERVER.get()
    if observer is not None:
        observer(what, done, total)
