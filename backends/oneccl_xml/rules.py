"""The rules that a schema cannot state: R2 to R14 of ``oneccl.xsd``, except R11, which needs an execution.

The reader checks R1, R15 and R16.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from itertools import accumulate, islice

import attrs

from collc.ir.layout import sizes
from collc.ir.program import Buffer, Program

from .model import Document, End, Local, Message, Place, Rank, is_whole

__all__ = ["Finding", "broken_rules", "pairs"]

#: the maximum number of findings
_MOST = 100

#: a message by (rank, thread, step, number in the step)
Where = tuple[int, int, int, int]


@attrs.frozen
class Finding:
    """A broken rule, and its line."""

    rule: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.message} ({self.rule})"


def broken_rules(document: Document) -> list[Finding]:
    """Return the violations in a document that is valid against the schema, in document order; messages last."""
    found = list(islice(_Rules(document).all(), _MOST))
    if not found:
        found = list(islice(_unmatched(document), _MOST))
    return found


class _Rules:
    def __init__(self, document: Document):
        self.document = document
        shape = Program.build(document.collective, 1, [0] * len(document.ranks), [], [])
        # the buffers of a call in chunks of the file: of whole blocks, or of one whole vector
        held = sizes(shape)[:, :2]
        parts = held > 0 if is_whole(document.collective) else held
        self.held = parts * document.chunks

    def all(self) -> Iterator[Finding]:
        """Yield the violations of R2 to R6, R8 to R10 and R12 to R14: of the whole file, then in document order."""
        document = self.document
        if not (document.inplace or document.outofplace):
            yield Finding("R13", document.line, "the file serves neither calls in place nor calls out of place")
        if document.max_bytes is not None and document.max_bytes < document.min_bytes:
            found = f"maxBytes {document.max_bytes} is less than minBytes {document.min_bytes}"
            yield Finding("R14", document.line, found)
        for r, rank in enumerate(document.ranks):
            yield from self._rank(r, rank)

    def _rank(self, r: int, rank: Rank) -> Iterator[Finding]:
        chunks = self.document.chunks
        for name, found, need in zip(
            ("input", "output"), (rank.input, rank.output), self.held[r].tolist(), strict=True
        ):
            if found != need:
                what = f"rank {r} needs {name} {need} for {self.document.collective.kind}, found {found}"
                yield Finding("R12", rank.line, what)
        for segment in rank.segments:
            if segment.chunk is not None and segment.chunk >= chunks:
                yield Finding(
                    "R4", segment.line, f"chunk {segment.chunk} of a segment is beyond the {chunks} of the count"
                )
        places = _Places(rank, chunks)
        for thread in rank.threads:
            for end in (*thread.outs, *thread.ins):
                yield from self._end(r, end)
            for step in thread.steps:
                if not (step.syncs or step.messages or step.locals):
                    yield Finding("R10", step.line, "the step is empty")
                for message in step.messages:
                    yield from self._data(message, places)
                for local in step.locals:
                    yield from self._data(local, places)

    def _end(self, r: int, end: End) -> Iterator[Finding]:
        if end.peer == r:
            yield Finding("R2", end.line, f"rank {r} is its own peer")
        if end.channel >= self.document.channels:
            found = f"channel {end.channel} is beyond the {self.document.channels} of the file"
            yield Finding("R3", end.line, found)

    def _data(self, one: Message | Local, places: _Places) -> Iterator[Finding]:
        if one.chunk >= self.document.chunks:
            found = f"chunk {one.chunk} is beyond the {self.document.chunks} of the count"
            yield Finding("R5", one.line, found)
            return
        at = [one.place] if isinstance(one, Message) else [p for p in (one.src, one.second, one.dst) if p is not None]
        for place in at:
            if wrong := places.wrong(place, one.chunk, one.count):
                yield Finding("R6", one.line, wrong)
                return
        if isinstance(one, Message):
            return
        if one.second is not None and not self.document.collective.reduces:
            yield Finding("R9", one.line, f"{self.document.collective.kind} has no reductions")
        for k, a in enumerate(at):
            for b in at[k + 1 :]:
                if a[0] is b[0] and a[1] != b[1] and abs(a[1] - b[1]) < one.count:
                    found = f"{_named(a)} and {_named(b)}, {one.count} chunks each, overlap"
                    yield Finding("R8", one.line, found)


class _Places:
    """The chunks in the buffers of a rank."""

    def __init__(self, rank: Rank, chunks: int):
        self.chunks, self.segments = chunks, rank.segments
        self.starts = list(accumulate((s.count for s in rank.segments), initial=0))
        self.size = {Buffer.INPUT: rank.input, Buffer.OUTPUT: rank.output, Buffer.SCRATCH: self.starts[-1]}

    def wrong(self, place: Place, chunk: int, count: int) -> str:
        """Return the fault of an access to chunks at a place, or ""."""
        buffer, offset = place
        name, end = buffer.name.lower(), offset + count
        if end > self.size[buffer]:
            return f"{name} chunks {offset} to {end - 1} are beyond the {self.size[buffer]} that the rank has"
        if buffer is not Buffer.SCRATCH:
            held = offset % self.chunks
            return "" if held == chunk else f"{_named(place)} holds chunk {held} of the count, not chunk {chunk}"
        number = bisect_right(self.starts, offset) - 1
        start, segment = self.starts[number], self.segments[number]
        if end > start + segment.count:
            return f"scratch chunks {offset} to {end - 1} are in more than one segment"
        if segment.chunk is None:
            return (
                "" if offset == start else f"{_named(place)} is inside a segment that holds any chunks from {start} on"
            )
        held = (segment.chunk + offset - start) % self.chunks
        return "" if held == chunk else f"{_named(place)} is for chunk {held} of the count, not for chunk {chunk}"


def _named(place: Place) -> str:
    return f"{place[0].name.lower()} chunk {place[1]}"


# ---- messages


def pairs(document: Document) -> dict[tuple[int, int, int], tuple[list[Where], list[Where]]]:
    """Return the sends and the receives of every connection (from, to, channel), in order."""
    found: dict[tuple[int, int, int], tuple[list[Where], list[Where]]] = defaultdict(lambda: ([], []))
    for r, rank in enumerate(document.ranks):
        for t, thread in enumerate(rank.threads):
            for s, step in enumerate(thread.steps):
                for m, message in enumerate(step.messages):
                    ends = (r, message.peer) if message.sends else (message.peer, r)
                    found[*ends, message.channel][not message.sends].append((r, t, s, m))
    return dict(found)


def _unmatched(document: Document) -> Iterator[Finding]:
    for (source, target, channel), (sends, receives) in pairs(document).items():
        link = f"from rank {source} to rank {target} on channel {channel}"
        for k in range(min(len(sends), len(receives))):
            out, into = _message(document, sends[k]), _message(document, receives[k])
            if (out.chunk, out.count) != (into.chunk, into.count):
                sent = f"message {k} {link} is sent as {out.count} chunks from {out.chunk} on (line {out.line})"
                yield Finding("R7", into.line, f"{sent}, but received as {into.count} from {into.chunk} on")
        for kind, here, there in (("received", sends, receives), ("sent", receives, sends)):
            if len(here) > len(there):
                line = _message(document, here[len(there)]).line
                yield Finding("R7", line, f"message {len(there)} {link} is never {kind}")


def _message(document: Document, where: Where) -> Message:
    r, t, s, m = where
    return document.ranks[r].threads[t].steps[s].messages[m]
