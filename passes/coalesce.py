"""Sending contiguous chunks in one message."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs
import numpy as np

from collc.ir.diagnostic import error
from collc.ir.machine import execute, partners
from collc.ir.program import Opcode, Program

from .arrange import merge_rows
from .base import Pass

__all__ = ["Coalesce"]

Array = np.ndarray[Any, np.dtype[Any]]

_READS = np.array([op.reads_src for op in Opcode])
_WRITES = np.array([op.writes_dst for op in Opcode])
_SENDS = np.array([op.sends for op in Opcode])
_RECEIVES = np.array([op.receives for op in Opcode])


@attrs.frozen
class Coalesce(Pass):
    """Join consecutive messages of a connection whose places are contiguous at both ends, and contiguous local copies.

    Messages are joined where both could go at the same time, counted in messages from the start, so that no data wait
    for later ones; where even that would make ranks wait for each other, only messages without waits of their own.
    """

    name: ClassVar[str] = "coalesce"
    summary: ClassVar[str] = "send contiguous chunks in one message"
    takes: ClassVar[type] = Program
    gives: ClassVar[type] = Program

    max_count: int | None = attrs.field(default=None, metadata={"help": "the most chunks a message may have"})

    def run(self, ir: Program) -> Program:
        if self.max_count is not None and self.max_count < 1:
            raise error("C0508", f"coalesce needs max-count of at least 1, found {self.max_count}")
        partner = partners(ir)
        contiguous = _contiguous(ir)
        age = _ages(ir, partner)
        together = contiguous & (np.concatenate([[-1], age[:-1]]) == age)
        merged = merge_rows(ir, self._joined(ir, partner, together))
        if merged is None:
            ready = contiguous & (np.diff(ir.dep_start.astype(np.int64)) == 0)
            merged = merge_rows(ir, self._joined(ir, partner, ready))
        return ir if merged is None else merged

    def _joined(self, program: Program, partner: Array, wish: Array) -> Array:
        """Return the rows to join to the row before: wished for at both ends, and not too long."""
        rows = np.arange(program.num_instructions)
        sender = np.full(len(rows), -1, dtype=np.int64)
        received = np.flatnonzero(partner >= 0)
        sender[partner[received]] = received
        other = np.where(_RECEIVES[program.opcode], partner, sender)
        local = ~_SENDS[program.opcode] & ~_RECEIVES[program.opcode]
        # Both rows must meet consecutive rows at the other end.
        paired = (other >= 1) & wish[other] & (np.concatenate([[-1], other[:-1]]) == other - 1)
        joined = wish & (local | paired)
        fused = _SENDS[program.opcode] & _RECEIVES[program.opcode]
        joined &= ~fused & ~fused[other]
        return joined if self.max_count is None else self._limit(program, joined, other)

    def _limit(self, program: Program, joined: Array, other: Array) -> Array:
        """Break runs where the sum would exceed the limit; the break of a send is the break of its receive."""
        result = joined.copy()
        total, most = 0, self.max_count or 0
        sends = ~_RECEIVES[program.opcode]
        for i, count in enumerate(program.count.tolist()):
            if joined[i] and sends[i]:
                total += count
                if total > most:
                    result[i] = False
                    if other[i] >= 0:
                        result[other[i]] = False
                    total = count
            elif sends[i]:
                total = count
        return result


def _contiguous(program: Program) -> Array:
    """Return for each row whether it continues the row before it: same block and opcode, places next to each other."""
    result = np.zeros(program.num_instructions, dtype=bool)
    if program.num_instructions < 2:
        return result
    code = program.opcode
    same = (code[1:] == code[:-1]) & (program.block[1:] == program.block[:-1])
    length = program.count[:-1].astype(np.int64)
    for used, buffer, offset in (
        (_READS, program.src_buffer, program.src_offset), (_WRITES, program.dst_buffer, program.dst_offset),
    ):  # fmt: skip
        next_to = (buffer[1:] == buffer[:-1]) & (offset[:-1] + length == offset[1:])
        same &= next_to | ~used[code[1:]]
    result[1:] = same & (code[1:] != Opcode.NOP)
    return result


def _ages(program: Program, partner: Array) -> Array:
    """Return for each instruction the most messages on a chain of waits that ends at it."""
    age = [0] * program.num_instructions
    dep_start, deps, source = program.dep_start.tolist(), program.deps.tolist(), partner.tolist()
    first = set(program.block_start.tolist())
    for i in execute(program).finished.tolist():
        now = age[i - 1] if i not in first else 0
        for k in range(dep_start[i], dep_start[i + 1]):
            now = max(now, age[deps[k]])
        if source[i] >= 0:
            now = max(now, age[source[i]] + 1)
        age[i] = now
    return np.array(age, dtype=np.int64)
