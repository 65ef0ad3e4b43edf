"""The text that was compiled, and what each of its declarations became."""

from __future__ import annotations

from collections.abc import Iterator

from collc.ir.account import Account
from collc.ir.diagnostic import Source, Span
from collc.ir.quantities import show_size, show_time
from collc.ir.shown import counted

from ..pictures.networks import origin_text
from .goodput import seconds_at
from .numbers import Json

__all__ = ["MOST_TEXT", "source_of"]

#: characters of a source; a longer one is not shown
MOST_TEXT = 60_000


def source_of(account: Account) -> dict[str, Json] | None:
    """Return the text of the file that declares the collective, with notes: two offsets, and what is written between.

    None if the file is not shown: it is hidden, too long, or there is none.
    """
    found = [(span, text) for span, text in _notes(account) if span is not None]
    source = account.request.span.source if account.request.span is not None else None
    if source is None or source.hidden or len(source.text) > MOST_TEXT:
        return None
    notes = {(_offset(span.source, span.line, span.column), _offset(span.source, span.end_line, span.end_column)): text
             for span, text in found if span.source == source}  # fmt: skip
    return {
        "path": source.path, "text": source.text,
        "notes": [[start, end, text] for (start, end), text in sorted(notes.items()) if start < end],
    }  # fmt: skip


def _offset(source: Source, line: int, column: int) -> int:
    return source.start_of(line) + column - 1


def _notes(account: Account) -> Iterator[tuple[Span | None, str]]:
    """Yield places and what stands there became."""
    request, topology, algorithm = account.request, account.topology, account.algorithms[0]
    switches = f", {counted(topology.num_switches, 'switch')}" if topology.num_switches else ""
    size = f"{counted(topology.num_ranks, 'rank')}{switches}, {counted(topology.num_links, 'link')}"
    yield request.topology_span, f"{origin_text(topology) or topology.name}: {size}"
    own = account.own or (1 << 20)
    time = show_time(float(seconds_at(account, own)))
    yield request.span, f"{algorithm.cost.collective}: {algorithm.cost.steps} steps, {show_size(own)} in {time}"
    names = ", ".join(one.name for one in algorithm.passes)
    yield request.schedule.span, f"passes: {names}"
    for emit in request.emits:
        limits = [f"{one.what} {one.used:,} of {one.allowed:,}" for one in algorithm.allowances]
        yield emit.span, f"{emit.target}: {', '.join(limits) or 'no limits'}"
