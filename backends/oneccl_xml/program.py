"""Document -> the Program that the executor performs, with the places of the file."""

from __future__ import annotations

from math import lcm

import attrs

from collc.ir.program import Buffer, Opcode, Program

from .model import Document, Local, Message, Step, Thread, is_whole

__all__ = ["Located", "located", "to_program"]

_NOWHERE = (Buffer.INPUT, 0)
#: an instruction for Program.build, with its dependencies as (block, row) of its rank
_Row = tuple[Opcode, Buffer, int, Buffer, int, int, list[tuple[int, int]]]


@attrs.frozen(eq=False)
class Located(Program):
    """A program to verify. ``places[i]`` is the place of instruction i in a file."""

    places: tuple[str, ...] = ()

    def place(self, instruction: int) -> str:
        """Return ``rank R, step T.S, line L``."""
        return self.places[instruction]


def to_program(document: Document) -> Program:
    """Return the program of a document, for passes and targets (see :func:`located`)."""
    found = located(document)
    return Program(**{f.name: getattr(found, f.name) for f in attrs.fields(Program)})


def located(document: Document) -> Located:
    """Return the program of a document; its rules (:func:`.rules.broken_rules`) must hold.

    A thread becomes a block for the local operations and the limits of its steps, and a block for each end that it
    owns. Messages depend on the begin of their step. A reduction whose operands both differ from its destination
    becomes a copy and a reduction. A Program cuts shards in whole chunks, but a file can cut the whole vector in any
    number. So each chunk of the file becomes several, which move together.
    """
    collective = document.collective
    shards = collective.num_shards if is_whole(collective) else 1
    scale = lcm(document.chunks, shards) // document.chunks
    ranks = [_RankRows(r, document, scale) for r in range(len(document.ranks))]
    blocks, rows, places, first = [], [], [], 0
    for one in ranks:
        starts = []
        for listed in one.rows:
            starts.append(first)
            first += len(listed)
        blocks += one.blocks
        places += [place for listed in one.places for place in listed]
        rows += [[(*row[:6], [starts[b] + k for b, k in row[6]]) for row in listed] for listed in one.rows]
    scratch = [sum(s.count for s in rank.segments) * scale for rank in document.ranks]
    built = Program.build(
        collective, document.chunks * scale // shards, scratch, blocks, rows, name=document.name, scheduler="oneccl-xml"
    )
    columns = {f.name: getattr(built, f.name) for f in attrs.fields(Program)}
    return Located(**columns, places=tuple(places))


class _RankRows:
    """The blocks of one rank, their instructions, and the place of each."""

    def __init__(self, number: int, document: Document, scale: int):
        self.number, self.scale = number, scale
        self.blocks: list[tuple[int, int, int, int]] = []
        self.rows: list[list[_Row]] = []
        self.places: list[list[str]] = []
        #: (thread, step) -> (block, row) that ends it; a sync may name a step of a later thread
        self.ends: dict[tuple[int, int], tuple[int, int]] = {}
        self.pending: list[tuple[list[tuple[int, int]], tuple[tuple[int, int], ...]]] = []
        for t, thread in enumerate(document.ranks[number].threads):
            self._thread(t, thread)
        for dependencies, syncs in self.pending:
            dependencies += [self.ends[sync] for sync in syncs]

    def _open(self, send: int, recv: int, channel: int) -> int:
        self.blocks.append((self.number, send, recv, channel))
        self.rows.append([])
        self.places.append([])
        return len(self.blocks) - 1

    def _add(self, block: int, row: _Row, place: str) -> tuple[int, int]:
        self.rows[block].append(row)
        self.places[block].append(place)
        return block, len(self.rows[block]) - 1

    def _thread(self, t: int, thread: Thread) -> None:
        own = self._open(-1, -1, 0)
        ends = {(True, e.peer, e.channel): self._open(e.peer, -1, e.channel) for e in thread.outs}
        ends |= {(False, e.peer, e.channel): self._open(-1, e.peer, e.channel) for e in thread.ins}
        last: list[tuple[int, int]] = []
        for s, step in enumerate(thread.steps):
            last = [self._step(f"rank {self.number}, step {t}.{s}", step, own, ends, last)]
            self.ends[t, s] = last[0]

    def _step(
        self, name: str, step: Step, own: int, ends: dict[tuple[bool, int, int], int], last: list[tuple[int, int]]
    ) -> tuple[int, int]:
        """Add a step; return the instruction that ends it."""
        if step.syncs:
            dependencies: list[tuple[int, int]] = []
            self.pending.append((dependencies, step.syncs))
            last = [self._add(own, (Opcode.NOP, *_NOWHERE, *_NOWHERE, 0, dependencies), f"{name}, line {step.line}")]
        sent = [
            self._add(ends[m.sends, m.peer, m.channel], self._message(m, list(last)), f"{name}, line {m.line}")
            for m in step.messages
        ]
        if sent:
            last = [self._add(own, (Opcode.NOP, *_NOWHERE, *_NOWHERE, 0, sent), f"{name}, line {step.line}")]
        for local in step.locals:
            for row in self._local(local):
                last = [self._add(own, row, f"{name}, line {local.line}")]
        return last[0]

    def _message(self, m: Message, dependencies: list[tuple[int, int]]) -> _Row:
        place, count = (m.place[0], m.place[1] * self.scale), m.count * self.scale
        if m.sends:
            return Opcode.SEND, *place, *_NOWHERE, count, dependencies
        return Opcode.RECV, *_NOWHERE, *place, count, dependencies

    def _local(self, local: Local) -> list[_Row]:
        count = local.count * self.scale
        src, dst = ((b, offset * self.scale) for b, offset in (local.src, local.dst))
        if local.second is None:
            return [(Opcode.COPY, *src, *dst, count, [])]
        second = (local.second[0], local.second[1] * self.scale)
        if second == dst:
            return [(Opcode.REDUCE, *src, *dst, count, [])]
        add: _Row = (Opcode.REDUCE, *second, *dst, count, [])
        return [add] if src == dst else [(Opcode.COPY, *src, *dst, count, []), add]
