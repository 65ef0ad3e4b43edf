"""Iterations as a Chrome trace for Perfetto: a process for every network, its compute and its communication."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from fractions import Fraction

from collc.ir.costs.training import Iteration, Task

__all__ = ["trace_text"]

_NANOSECONDS = 10**9
_MICRO = 10**3  # ticks of a microsecond
_STREAMS = ("compute", "communication")

Event = dict[str, object]


def trace_text(iterations: Sequence[tuple[str, Iteration]]) -> str:
    """Return the trace of iterations with the names of their networks, an event a line; times are microseconds."""
    events = (json.dumps(event, ensure_ascii=False) for event in _events(iterations))
    return '{"displayTimeUnit": "ms", "traceEvents": [\n' + ",\n".join(events) + "\n]}\n"


def _events(iterations: Sequence[tuple[str, Iteration]]) -> Iterator[Event]:
    first = len(iterations)  # Perfetto takes thread 0, and that of the process's number, for one thread
    for process, (name, found) in enumerate(iterations):
        yield _named("process_name", process, 0, "name", name)
        yield _named("process_sort_index", process, 0, "sort_index", process)
        for thread, stream in enumerate(_STREAMS):
            yield _named("thread_name", process, first + thread, "name", stream)
        for task in found.tasks:
            yield _slice(process, first + _STREAMS.index(task.stream), task)


def _named(kind: str, process: int, thread: int, key: str, value: str | int) -> Event:
    return {"name": kind, "ph": "M", "pid": process, "tid": thread, "args": {key: value}}


def _slice(process: int, thread: int, task: Task) -> Event:
    """Return the slice of a task; both ends are cut to whole nanoseconds, so neighbours never overlap."""
    start, end = _ticks(task.start), _ticks(task.end)
    return {
        "name": task.name, "cat": task.kind, "ph": "X", "pid": process, "tid": thread,
        "ts": start / _MICRO, "dur": (end - start) / _MICRO,
        "args": {"kind": task.kind, **({"bytes": task.size} if task.size else {})},
    }  # fmt: skip


def _ticks(seconds: Fraction) -> int:
    return int(seconds * _NANOSECONDS)
