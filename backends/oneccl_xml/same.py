"""Compares a file with the emitted program.

A file arranges the instructions of a program in its own steps, with its own scratch. So this module compares the
messages: the chunks of every connection, in order. The verifier executes the file and checks what the ranks hold at the
end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from collc.ir.program import Buffer, Program
from collc.ir.verify import adds_once

from ..mpi_c.scratch import span
from .model import Document
from .pieces import in_blocks

__all__ = ["differences"]

#: connections (from, to, channel) and the chunks of a count that they carry, in order; -1 where unknown
_Carried = dict[tuple[int, int, int], list[int]]


def differences(document: Document, emitted: Program) -> Iterator[str]:
    """Yield the differences between a correct file and the emitted program."""
    collective = emitted.collective
    for name in ("kind", "num_ranks", "members", "root", "reduces", "pre", "post"):
        found, due = getattr(document.collective, name), getattr(collective, name)
        if found != due:
            yield f"{name} is {found}, not {due}"
    if document.chunks != span(in_blocks(emitted)):
        yield f"a count is cut in {document.chunks} chunks, not {span(in_blocks(emitted))}"
        return
    if collective.reduces and ("sum" in document.ops) != adds_once(emitted):
        yield f"its operations are {' '.join(document.ops)}, which are not those of the program"
    sent, due = _sent(document, emitted.num_channels), _to_send(emitted)
    for link in sorted({*sent, *due}):
        source, target, channel = link
        here, there = sent.get(link, []), due.get(link, [])
        where = f"from rank {source} to rank {target} on channel {channel}"
        if len(here) != len(there):
            yield f"{len(here)} chunks go {where}, not {len(there)}"
        elif any(b >= 0 and a != b for a, b in zip(here, there, strict=True)):
            yield f"other chunks go {where}"


def _sent(document: Document, channels: int) -> _Carried:
    """Return the chunks that a file sends; the messages of a connection in one step have a channel each, its lanes."""
    carried: _Carried = defaultdict(list)
    for r, rank in enumerate(document.ranks):
        for thread in rank.threads:
            for step in thread.steps:
                for message in sorted((m for m in step.messages if m.sends), key=lambda m: m.channel):
                    chunks = [(message.chunk + k) % document.chunks for k in range(message.count)]
                    carried[r, message.peer, message.channel % channels] += chunks
    return carried


def _to_send(program: Program) -> _Carried:
    """Return the chunks that a program sends; those in scratch are unknown."""
    cut = span(in_blocks(program))
    carried: _Carried = defaultdict(list)
    sends = np.flatnonzero(program.sends)
    block = program.block[sends]
    offset = np.full(len(sends), -1, dtype=np.int64)
    for side in ("dst", "src"):
        known = program.uses(side)[sends] & (getattr(program, f"{side}_buffer")[sends] != Buffer.SCRATCH)
        offset = np.where(known, getattr(program, f"{side}_offset")[sends], offset)
    columns = program.block_rank[block], program.send_peer[block], program.channel[block], offset, program.count[sends]
    for r, peer, channel, first, count in zip(*(column.tolist() for column in columns), strict=True):
        carried[r, peer, channel] += [(first + k) % cut if first >= 0 else -1 for k in range(count)]
    return carried
