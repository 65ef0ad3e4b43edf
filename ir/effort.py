"""Limits on counted work, so that a long search ends at the same step on every machine.

A search counts its elementary steps with :func:`spend`. Whoever starts it may limit them; the search does not know the
limit. Limits are stored in the caller's context, so that compilations in several threads do not share them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

import attrs

__all__ = ["Effort", "EffortSpent", "limited", "spend", "within"]

T = TypeVar("T")


class EffortSpent(Exception):
    """Work went beyond its limit; ``most`` is the limit that it reached."""

    def __init__(self, most: int) -> None:
        super().__init__(most)
        self.most = most


@attrs.define(eq=False)
class Effort:
    """Elementary steps of work: at most ``most``, and ``spent`` so far; ``outer`` is the limit around this one."""

    most: int
    outer: Effort | None = None
    spent: int = 0


_LIMIT: ContextVar[Effort | None] = ContextVar("effort", default=None)


@contextmanager
def limited(most: int) -> Iterator[Effort]:
    """Limit the work inside to ``most`` steps; more raise EffortSpent. Limits around this one count the same steps.

    >>> with limited(10) as effort:
    ...     spend(3)
    >>> effort.spent
    3
    """
    effort = Effort(most, _LIMIT.get())
    token = _LIMIT.set(effort)
    try:
        yield effort
    finally:
        _LIMIT.reset(token)


def spend(steps: int) -> None:
    """Count steps of work; raise EffortSpent if they exceed a limit. Without a limit this costs next to nothing."""
    effort = _LIMIT.get()
    while effort is not None:
        effort.spent += steps
        if effort.spent > effort.most:
            raise EffortSpent(effort.most)
        effort = effort.outer


def within(most: int, work: Callable[[], T]) -> T | None:
    """Return the result of work, or None if it takes more than ``most`` steps.

    >>> within(10, lambda: spend(11)) is None
    True
    """
    try:
        with limited(most) as effort:
            return work()
    except EffortSpent:
        if effort.spent <= effort.most:
            raise  # it is the limit around this one that was reached
        return None
