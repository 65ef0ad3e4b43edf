"""The parts of an instruction: at most one incoming message, one local operation and one outgoing message.

This module divides fused instructions into such pieces. Data that a rank must add arrive in a *landing*, private memory
of the block. So they may arrive before the dependencies of the instruction have finished.
"""

from __future__ import annotations

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.collective import CUSTOM, Collective
from collc.ir.diagnostic import CollcError, error
from collc.ir.program import Buffer, Opcode, Program
from collc.ir.progress import counting
from collc.ir.ragged import owners

from ..mpi_c.scratch import Segments, lay_out, span
from .model import Place

__all__ = ["IN", "LOCAL", "OUT", "Piece", "Pieces", "in_blocks"]

IN, LOCAL, OUT = range(3)


@attrs.frozen
class Piece:
    """One piece. It reads ``src`` and writes ``dst``; a local piece may have a ``second`` operand.

    A nop has neither ``src`` nor ``dst``. If ``waits``, the dependencies of the instruction must finish before the
    piece. ``last`` marks the last piece of its instruction.
    """

    kind: int
    instruction: int
    src: Place | None
    dst: Place | None
    second: Place | None
    waits: bool
    last: bool


class Pieces:
    """A program with scratch in segments, and the pieces of each of its blocks.

    ``segments[r]`` are those of rank r as (first chunk or None, chunks). Landings follow the program's own segments. A
    block uses at most ``landings`` of them, in rotation. ``chunk`` is the first chunk of the vector of each
    instruction.
    """

    def __init__(self, program: Program, landings: int = 1):
        self.landings = landings
        self.program, layout = _lay_out(in_blocks(program))
        self.span = span(self.program)
        self.segments = _segments(self.program, layout)
        self.room = [sum(count for _, count in listed) for listed in self.segments]
        self.chunk = _first_chunks(self.program, layout, self.span).tolist()
        self.count: list[int] = self.program.count.tolist()
        self.blocks = [self._block(b) for b in counting(range(self.program.num_blocks), "dividing threadblocks")]

    def reserve(self, rank: int, chunks: int) -> Place:
        """Return a new segment of a rank for any ``chunks`` chunks."""
        self.segments[rank].append((None, chunks))
        self.room[rank] += chunks
        return Buffer.SCRATCH, self.room[rank] - chunks

    def _block(self, b: int) -> list[Piece]:
        program = self.program
        rows = range(int(program.block_start[b]), int(program.block_start[b + 1]))
        landed = [i for i in rows if Opcode(int(program.opcode[i])) in _LANDING]
        rank, number = int(program.block_rank[b]), self.landings
        reserved = [
            self.reserve(rank, max(self.count[i] for i in landed[k::number])) for k in range(min(number, len(landed)))
        ]
        landing = {i: reserved[k % number] for k, i in enumerate(landed)}
        return [piece for i in rows for piece in self._pieces(i, landing.get(i))]

    def _pieces(self, i: int, landing: Place | None) -> list[Piece]:
        program = self.program
        op = Opcode(int(program.opcode[i]))
        src = (Buffer(int(program.src_buffer[i])), int(program.src_offset[i])) if op.reads_src else None
        dst = (Buffer(int(program.dst_buffer[i])), int(program.dst_offset[i])) if op.writes_dst else None
        pieces: list[Piece] = []
        if op in _LANDING:
            assert landing is not None
            into = dst or landing
            pieces = [
                Piece(IN, i, None, landing, None, False, False),
                Piece(LOCAL, i, src, into, landing, True, not op.sends),
            ]
            return [*pieces, Piece(OUT, i, into, None, None, False, True)] if op.sends else pieces
        if op.receives:
            pieces = [Piece(IN, i, None, dst, None, True, not op.sends)]
            return [*pieces, Piece(OUT, i, dst, None, None, False, True)] if op.sends else pieces
        if op.sends:
            return [Piece(OUT, i, src, None, None, True, True)]
        return [Piece(LOCAL, i, src, dst, dst if op is Opcode.REDUCE else None, True, True)]


_LANDING = frozenset({Opcode.RECV_REDUCE_COPY, Opcode.RECV_REDUCE_SEND, Opcode.RECV_REDUCE_COPY_SEND})


def in_blocks(program: Program) -> Program:
    """Return a program of equal blocks that its collective tells apart by their places only.

    The shards of a custom collective are blocks of one size, as those of an all-to-all are.
    """
    if program.collective.kind != CUSTOM:
        return program
    return attrs.evolve(program, collective=Collective("alltoall", program.num_ranks))


def _lay_out(program: Program) -> tuple[Program, Segments]:
    try:
        return lay_out(program)
    except CollcError as problem:
        first = problem.diagnostics[0]
        raise error("C0750", first.message, notes=first.notes) from None


def _segments(program: Program, layout: Segments) -> list[list[tuple[int | None, int]]]:
    found: list[list[tuple[int | None, int]]] = []
    for rank in range(program.num_ranks):
        rows = slice(int(layout.first[rank]), int(layout.first[rank + 1]))
        ends = np.append(layout.cell[rows], layout.cells[rank]).astype(np.int64)
        found.append(list(zip(layout.chunk[rows].tolist(), np.diff(ends).tolist(), strict=True)))
    return found


def _first_chunks(program: Program, layout: Segments, cut: int) -> Array:
    """Return the first chunk of the vector that each instruction moves (0 for a nop)."""
    reads = program.reads_src
    writes = program.writes_dst
    buffer = np.where(reads, program.src_buffer, program.dst_buffer)
    offset = np.where(reads, program.src_offset, program.dst_offset).astype(np.int64)
    chunk = offset % cut
    inside = np.flatnonzero((reads | writes) & (buffer == Buffer.SCRATCH))
    if len(inside):
        rank = program.rank[inside]
        room = int(layout.cells.max(initial=0)) + 1
        keys = owners(np.diff(layout.first)) * room + layout.cell
        row = np.searchsorted(keys, rank * room + offset[inside], side="right") - 1
        chunk[inside] = (layout.chunk[row] + offset[inside] - layout.cell[row]) % cut
    return np.where(reads | writes, chunk, 0)
