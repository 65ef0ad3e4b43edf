"""Progress of long work, for an observer that the work does not know.

The observer is stored in the caller's context, so that compilations in several threads do not share it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

__all__ = ["counting", "is_watched", "progress", "watched"]

T = TypeVar("T")
#: reports of one loop, about: more cannot be seen, and loops of microseconds would take longer
_REPORTS = 500

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


def is_watched() -> bool:
    """Return whether an observer takes this thread's reports."""
    return _OBSERVER.get() is not None


def progress(what: str, done: int = 0, total: int = 0) -> None:
    """Report the current work and how much of it is done; cheap enough for every round of a loop of milliseconds."""
    observer = _OBSERVER.get()
    if observer is not None:
        observer(what, done, total)


def counting(items: Collection[T], what: str) -> Iterable[T]:
    """Return items for a loop that reports how many of them are done, about 500 times in all.

    Without an observer it returns ``items`` themselves, so the loop costs nothing more.

    >>> with watched(lambda what, done, total: print(f"{done} of {total} {what}")):
    ...     letters = [letter for letter in counting("ab", "letters")]
    0 of 2 letters
    1 of 2 letters
    """
    return items if _OBSERVER.get() is None else _reporting(items, what)


def _reporting(items: Collection[T], what: str) -> Iterator[T]:
    total = len(items)
    every = 1 + total // _REPORTS
    for done, item in enumerate(items):
        if done % every == 0:
            progress(what, done, total)
        yield item
