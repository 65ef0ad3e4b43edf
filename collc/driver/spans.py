"""Where the time of a run goes: spans of work, nested as the work is, with memory and rows.

The record is stored in the caller's context, so that compilations in several threads do not share it. Without a record
a span only takes its time. No choice depends on what is measured.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from collc.ir.frozen import frozen

from ..processes.memory import Memory, memory

__all__ = ["Record", "Span", "Timing", "measured", "noted", "recorded", "span"]

_NOTHING = Memory(None, None)


class Span:
    """One part of a run; ``start`` counts the seconds of a clock whose zero means nothing.

    ``rows`` is the size of the IR that it leaves, ``completed`` whether it ended without an exception. The memory
    before and after is measured only for a record.
    """

    __slots__ = ("after", "before", "completed", "kind", "name", "rows", "seconds", "start", "thread")

    def __init__(self, name: str, kind: str, before: Memory):
        self.name, self.kind, self.thread = name, kind, threading.get_native_id()
        self.before = self.after = before
        self.rows: int | None = None
        self.completed, self.seconds, self.start = False, 0.0, time.perf_counter()

    @property
    def growth(self) -> int | None:
        """The bytes by which the peak of the process grew; 0 for a span that an earlier peak covers."""
        before, after = self.before.peak, self.after.peak
        # Kernels count pages of each thread in batches, so a peak may seem to fall.
        return None if before is None or after is None else max(after - before, 0)


@frozen
class Timing:
    """Seconds that one step took: a pass, a verification, an emission.

    ``rows`` is the size of the IR after a pass (:func:`.levels.rows`). If the run is recorded (:mod:`.spans`), ``peak``
    is the most memory that the process has held until the end of the step, and ``growth`` by how much the step raised
    that, both in bytes.
    """

    collective: str
    step: str
    seconds: float
    peak: int | None = None
    growth: int | None = None
    rows: int | None = None

    @classmethod
    def of(cls, collective: str, span: Span) -> Timing:
        """Return the timing of a step by its span."""
        return cls(collective, span.name, span.seconds, span.after.peak, span.growth, span.rows)


class Record:
    """The spans of a run in the order in which they began; one that is not completed has ended by an exception.

    ``timings`` are those of its steps, in the order in which they ended.
    """

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.timings: list[Timing] = []


_RECORD: ContextVar[Record | None] = ContextVar("record", default=None)


@contextmanager
def recorded(record: Record) -> Iterator[Record]:
    """Keep all spans of the work inside in a record, in this thread."""
    token = _RECORD.set(record)
    try:
        yield record
    finally:
        _RECORD.reset(token)


@contextmanager
def span(name: str, kind: str) -> Iterator[Span]:
    """Yield a span of the work inside, and keep it in the record if there is one."""
    with measured(name, kind) as one:
        record = _RECORD.get()
        if record is not None:
            record.spans.append(one)
        yield one


@contextmanager
def measured(name: str, kind: str) -> Iterator[Span]:
    """Yield a span of the work inside that no record keeps; its memory is measured if there is a record."""
    look = _unknown if _RECORD.get() is None else memory
    one = Span(name, kind, look())
    try:
        yield one
        one.completed = True
    finally:
        one.seconds, one.after = time.perf_counter() - one.start, look()


def noted(collective: str, span: Span) -> Timing:
    """Return the timing of a step by its span, and keep it in the record if there is one."""
    timing = Timing.of(collective, span)
    record = _RECORD.get()
    if record is not None:
        record.timings.append(timing)
    return timing


def _unknown() -> Memory:
    return _NOTHING
