"""``--profile``: what took the time of a run, as a Chrome trace that Perfetto opens."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from types import SimpleNamespace

from collc.ir.diagnostic import CollcError

from ..driver.spans import Record, Span, recorded, span
from ..files.texts import STDOUT, Output, check_writable, is_folder, write_all
from .arguments import Verb, usage_error
from .console import Console
from .watcher import show_timings

__all__ = ["profiled", "trace_json"]

Event = dict[str, object]


def profiled(
    verb: Verb, options: SimpleNamespace, console: Console, work: Callable[[SimpleNamespace, Console], int]
) -> int:
    """Run a verb and record its spans; write them to ``--profile``, also if the verb fails or a signal ends it.

    The table of ``--time-passes`` then has the steps until the end.

    Raises C0001, C0004 or C0021 for a trace that cannot be written, before the work if that is known then.
    """
    if options.profile:
        _require_own_place(options.profile, verb, options)
    record = Record()
    try:
        with recorded(record), span(f"collc {verb.name}", "command"):
            status = int(work(options, console))
    except BaseException:
        _write_after_failure(record, options, console)
        raise
    if options.profile:
        write_all([Output(options.profile, trace_json(record))])
    return status


def _require_own_place(path: str, verb: Verb, options: SimpleNamespace) -> None:
    """Raise C0001 if standard output would hold more than the trace, C0021 if another output has its place."""
    given = [getattr(options, opt.dest) for _, group in verb.groups for opt in group if opt.writes]
    others = [place for value in given for place in (value if isinstance(value, list) else [value]) if place]
    others.remove(path)
    # Only compilation prints nothing by itself.
    if path == STDOUT and (verb.name != "compile" or options.json or options.M or STDOUT in others):
        message = "--profile - and the output of this command would both write to standard output"
        raise usage_error(message, "write the trace to a file")
    check_writable([path, *(place for place in others if not is_folder(place))])


def _write_after_failure(record: Record, options: SimpleNamespace, console: Console) -> None:
    """Write what was recorded until a failure, which is raised whether that can be written or not."""
    try:
        if options.profile:
            write_all([Output(options.profile, trace_json(record))])
        if getattr(options, "time_passes", None) and record.timings:
            show_timings(record.timings, options, console)
    except CollcError as problem:
        console.fail(problem.diagnostics)


def trace_json(record: Record) -> str:
    """Return a record in the Trace Event Format, an event a line: a complete event for each span, and counters."""
    lines = ",\n".join(json.dumps(event, ensure_ascii=False) for event in _events(record))
    return f'{{"displayTimeUnit": "ms", "traceEvents": [\n{lines}\n]}}\n'


def _events(record: Record) -> Iterator[Event]:
    """Yield the names of tracks, then spans and counters by time; times are microseconds from the first span."""
    process = os.getpid()
    yield {"name": "process_name", "ph": "M", "pid": process, "tid": 0, "args": {"name": "collc"}}
    if not record.spans:
        return
    first = record.spans[0]
    name = {"name": "passes"}
    yield {"name": "thread_name", "ph": "M", "pid": process, "tid": first.thread, "args": name}
    timed = [one for each in record.spans for one in _of_span(each, process, first.start)]
    yield from (event for _, event in sorted(timed, key=lambda pair: pair[0]))


def _of_span(one: Span, process: int, zero: float) -> Iterator[tuple[int, Event]]:
    """Yield the events of a span with their times in nanoseconds."""
    begin, end = (round((seconds - zero) * 10**9) for seconds in (one.start, one.start + one.seconds))
    yield begin, {
        "name": one.name, "cat": one.kind, "ph": "X", "ts": begin / 1000, "dur": (end - begin) / 1000, "pid": process,
        "tid": one.thread, "args": _arguments(one),
    }  # fmt: skip
    for time, memory in ((begin, one.before), (end, one.after)):
        found = {"held": memory.held, "peak": memory.peak}
        if known := {name: size / 1e6 for name, size in found.items() if size is not None}:
            yield time, _counter("memory (MB)", process, time, known)
    if one.rows is not None:
        yield end, _counter("rows", process, end, {"rows": one.rows})


def _counter(name: str, process: int, time: int, values: dict[str, float]) -> Event:
    return {"name": name, "ph": "C", "ts": time / 1000, "pid": process, "tid": 0, "args": values}


def _arguments(one: Span) -> dict[str, object]:
    found: dict[str, object] = {"completed": one.completed}
    if one.rows is not None:
        found["rows"] = one.rows
    if one.after.peak is not None and one.growth is not None:
        found |= {"peak MB": one.after.peak / 1e6, "more MB": one.growth / 1e6}
    return found
