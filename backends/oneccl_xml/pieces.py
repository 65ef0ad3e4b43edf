"""What an instruction is made of: at most a message that comes in, one thing done locally, a message that goes out.

Fused instructions become such pieces here. What must be added to data of the rank arrives in a *landing*, memory of its
block that nobody else touches, so it may come before what the instruction waits for has happened.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from collc.ir.diagnostic import CollcError, error
from collc.ir.program import Buffer, Opcode, Program

from ..mpi_c.scratch import Segments, lay_out, span
from .model import Place

__all__ = ["IN", "LOCAL", "OUT", "Piece", "Pieces"]

IN, LOCAL, OUT = range(3)
Array = np.ndarray[Any, np.dtype[Any]]


@attrs.frozen
class Piece:
    """One piece. ``src`` is read, ``dst`` written; of a local one ``second`` is the other operand, and both may miss
    (a nop). ``waits`` says whether the dependencies of its instruction must have finished, ``last`` whether it ends it.
    """

    kind: int
    instruction: int
    src: Place | None
    dst: Place | None
    second: Place | None
    waits: bool
    last: bool


class Pieces:
    """A program whose scratch is laid out in segments, and the pieces of each of its blocks.

    ``segments[r]`` are rank r's as (first chunk or nothing, chunks); landings come after the program's own, at most
    ``landings`` a block, which it uses in turn. ``chunk`` is the first chunk of the vector that each instruction moves.
    """

    def __init__(self, program: Program, landings: int = 1):
        self.landings = landings
        self.program, made = _laid_out(program)
        self.span = span(self.program)
        self.segments = _segments(self.program, made)
        self.room = [sum(count for _, count in listed) for listed in self.segments]
        self.chunk = _first_chunks(self.program, made, self.span).tolist()
        self.count: list[int] = self.program.count.tolist()
        self.blocks = [self._block(b) for b in range(self.program.num_blocks)]

    def reserve(self, rank: int, chunks: int) -> Place:
        """Return a new segment of a rank that may hold any ``chunks`` chunks."""
        self.segments[rank].append((None, chunks))
        self.room[rank] += chunks
        return Buffer.SCRATCH, self.room[rank] - chunks

    def _block(self, b: int) -> list[Piece]:
        program = self.program
        rows = range(int(program.block_start[b]), int(program.block_start[b + 1]))
        landed = [i for i in rows if Opcode(int(program.opcode[i])) in _LANDING]
        rank, turns = int(program.block_rank[b]), self.landings
        reserved = [
            self.reserve(rank, max(self.count[i] for i in landed[k::turns])) for k in range(min(turns, len(landed)))
        ]
        into = {i: reserved[k % turns] for k, i in enumerate(landed)}
        return [piece for i in rows for piece in self._pieces(i, into.get(i))]

    def _pieces(self, i: int, landing: Place | None) -> list[Piece]:
        program = self.program
        op = Opcode(int(program.opcode[i]))
        src = (Buffer(int(program.src_buffer[i])), int(program.src_offset[i])) if op.reads_src else None
        dst = (Buffer(int(program.dst_buffer[i])), int(program.dst_offset[i])) if op.writes_dst else None
        made: list[Piece] = []
        if op in _LANDING:
            assert landing is not None
            into = dst or landing
            made = [
                Piece(IN, i, None, landing, None, False, False),
                Piece(LOCAL, i, src, into, landing, True, not op.sends),
            ]
            return [*made, Piece(OUT, i, into, None, None, False, True)] if op.sends else made
        if op.receives:
            made = [Piece(IN, i, None, dst, None, True, not op.sends)]
            return [*made, Piece(OUT, i, dst, None, None, False, True)] if op.sends else made
        if op.sends:
            return [Piece(OUT, i, src, None, None, True, True)]
        return [Piece(LOCAL, i, src, dst, dst if op is Opcode.REDUCE else None, True, True)]


_LANDING = frozenset({Opcode.RECV_REDUCE_COPY, Opcode.RECV_REDUCE_SEND, Opcode.RECV_REDUCE_COPY_SEND})


def _laid_out(program: Program) -> tuple[Program, Segments]:
    try:
        return lay_out(program)
    except CollcError as problem:
        first = problem.diagnostics[0]
        raise error("C0750", first.message, notes=first.notes) from None


def _segments(program: Program, made: Segments) -> list[list[tuple[int | None, int]]]:
    found: list[list[tuple[int | None, int]]] = []
    for rank in range(program.num_ranks):
        rows = slice(int(made.first[rank]), int(made.first[rank + 1]))
        ends = np.append(made.cell[rows], made.cells[rank]).astype(np.int64)
        found.append(list(zip(made.chunk[rows].tolist(), np.diff(ends).tolist(), strict=True)))
    return found


def _first_chunks(program: Program, made: Segments, cut: int) -> Array:
    """Return the first chunk of the vector that each instruction moves (0 for a nop)."""
    reads = np.array([op.reads_src for op in Opcode])[program.opcode]
    writes = np.array([op.writes_dst for op in Opcode])[program.opcode]
    buffer = np.where(reads, program.src_buffer, program.dst_buffer)
    offset = np.where(reads, program.src_offset, program.dst_offset).astype(np.int64)
    chunk = offset % cut
    inside = np.flatnonzero((reads | writes) & (buffer == Buffer.SCRATCH))
    if len(inside):
        rank = program.block_rank[program.block[inside]].astype(np.int64)
        room = int(made.cells.max(initial=0)) + 1
        keys = np.repeat(np.arange(program.num_ranks), np.diff(made.first)) * room + made.cell
        row = np.searchsorted(keys, rank * room + offset[inside], side="right") - 1
        chunk[inside] = (made.chunk[row] + offset[inside] - made.cell[row]) % cut
    return np.where(reads | writes, chunk, 0)
