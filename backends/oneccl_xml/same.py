"""Is what a file makes ranks execute the program that was to be emitted?

A file orders a program's instructions anew, in steps, and has memory of its own to put data aside, so what is compared
is what the program does to the outside: which chunks every connection carries, in which order, and what the ranks hold
at the end, which the verifier finds by executing the file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from collc.ir.program import Buffer, Opcode, Program
from collc.ir.verify import adds_once

from ..mpi_c.scratch import span
from .model import Document

__all__ = ["differences"]

#: connections (from, to, channel) and the chunks of a count that they carry, in order; -1 where unknown
_Carried = dict[tuple[int, int, int], list[int]]
_READS = np.array([op.reads_src for op in Opcode])
_WRITES = np.array([op.writes_dst for op in Opcode])


def differences(document: Document, wanted: Program) -> Iterator[str]:
    """Yield what a file that is right in itself does otherwise than ``wanted``."""
    collective = wanted.collective
    for name in ("kind", "num_ranks", "root", "reduces"):
        found, due = getattr(document.collective, name), getattr(collective, name)
        if found != due:
            yield f"{name} is {found}, not {due}"
    if document.chunks != span(wanted):
        yield f"a count is cut in {document.chunks} chunks, not {span(wanted)}"
        return
    if collective.reduces and ("sum" in document.ops) != adds_once(wanted):
        yield f"it is for {' '.join(document.ops)}, which is not what the program is for"
    sent, due = _sent(document, wanted.num_channels), _to_send(wanted)
    for link in sorted({*sent, *due}):
        source, target, channel = link
        here, there = sent.get(link, []), due.get(link, [])
        where = f"from rank {source} to rank {target} on channel {channel}"
        if len(here) != len(there):
            yield f"{len(here)} chunks go {where}, not {len(there)}"
        elif any(b >= 0 and a != b for a, b in zip(here, there, strict=True)):
            yield f"other chunks go {where}"


def _sent(document: Document, channels: int) -> _Carried:
    """Return what is sent: a connection's messages of one step have channels of their own, its lanes."""
    carried: _Carried = defaultdict(list)
    for r, rank in enumerate(document.ranks):
        for thread in rank.threads:
            for step in thread.steps:
                for message in sorted((m for m in step.messages if m.sends), key=lambda m: m.channel):
                    chunks = [(message.chunk + k) % document.chunks for k in range(message.count)]
                    carried[r, message.peer, message.channel % channels] += chunks
    return carried


def _to_send(program: Program) -> _Carried:
    """Return what a program sends; which chunk lies in scratch it does not say."""
    cut = span(program)
    carried: _Carried = defaultdict(list)
    sends = np.flatnonzero(np.array([op.sends for op in Opcode])[program.opcode])
    block = program.block[sends]
    opcode = program.opcode[sends]
    offset = np.full(len(sends), -1, dtype=np.int64)
    for side, used in (("dst", _WRITES), ("src", _READS)):
        known = used[opcode] & (getattr(program, f"{side}_buffer")[sends] != Buffer.SCRATCH)
        offset = np.where(known, getattr(program, f"{side}_offset")[sends], offset)
    columns = program.block_rank[block], program.send_peer[block], program.channel[block], offset, program.count[sends]
    for r, peer, channel, first, count in zip(*(column.tolist() for column in columns), strict=True):
        carried[r, peer, channel] += [(first + k) % cut if first >= 0 else -1 for k in range(count)]
    return carried
