"""Sending contiguous chunks in one message."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs
import numpy as np

from collc.ir.diagnostic import error
from collc.ir.machine import execute, partners
from collc.ir.program import INSTRUCTION_COLUMNS, Opcode, Program

from .arrange import merge_rows
from .base import Pass
from .hazards import conflicts, sequential_order

__all__ = ["Coalesce"]

Array = np.ndarray[Any, np.dtype[Any]]

_READS = np.array([op.reads_src for op in Opcode])
_WRITES = np.array([op.writes_dst for op in Opcode])
_SENDS = np.array([op.sends for op in Opcode])
_RECEIVES = np.array([op.receives for op in Opcode])
#: how many instructions one arrival may take: receive, copy what it is added to, add
_PERIODS = (2, 3)


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
        given, ir = ir, _sorted_runs(ir)
        partner = partners(ir)
        contiguous = _contiguous(ir)
        age = _ages(ir, partner)
        together = contiguous & (np.concatenate([[-1], age[:-1]]) == age)
        merged = merge_rows(ir, self._joined(ir, partner, together))
        if merged is None:
            ready = contiguous & (np.diff(ir.dep_start.astype(np.int64)) == 0)
            merged = merge_rows(ir, self._joined(ir, partner, ready))
        return given if merged is None else merged

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


def _sorted_runs(program: Program) -> Program:
    """Put what recurs side by side: receive, add, receive, add becomes receive, receive, add, add.

    Only where every row continues the one of its kind before it, and no two that conflict change places.
    """
    order = sequential_order(program)
    place = np.arange(program.num_instructions)
    later, earlier = conflicts(program, order)
    near = program.block[later] == program.block[earlier]
    later, earlier = later[near], earlier[near]
    for period in _PERIODS:
        moved = _side_by_side(program, place, period)
        wrong = np.zeros(program.num_blocks, dtype=bool)
        wrong[program.block[later[moved[later] < moved[earlier]]]] = True
        place = np.where(wrong[program.block], place, moved)
    if (place == np.arange(len(place))).all():
        return program
    rows = np.argsort(place)
    start = program.dep_start.astype(np.int64)
    waits = (start[1:] - start[:-1])[rows]
    dep_start = np.concatenate([[0], np.cumsum(waits)])
    index = np.arange(dep_start[-1]) - np.repeat(dep_start[:-1] - program.dep_start[rows], waits)
    columns: dict[str, Any] = {c: getattr(program, c)[rows] for c in INSTRUCTION_COLUMNS}
    after = attrs.evolve(program, dep_start=dep_start, deps=place[program.deps[index]], **columns)
    return program if execute(after).deadlock else after


def _side_by_side(program: Program, place: Array, period: int) -> Array:
    """Return the places of rows where those of runs of this period stand kind by kind, else ``place``."""
    follows = _contiguous(program, period)
    follows &= place == np.arange(len(place))
    message = _SENDS[program.opcode] | _RECEIVES[program.opcode]
    result = place.copy()
    edges = np.flatnonzero(np.diff(np.concatenate([[False], follows, [False]])))
    for start, stop in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        first = start - period
        length = (stop - first) // period * period
        # the order of messages stays
        if (
            length >= 2 * period
            and message[first:start].sum() <= 1
            and (place[first:start] == np.arange(first, start)).all()
        ):
            rows = np.arange(length)
            result[first : first + length] = first + rows % period * (length // period) + rows // period
    return result


def _contiguous(program: Program, distance: int = 1) -> Array:
    """Return for each row whether it continues the row ``distance`` before it: same block and opcode, places next to
    each other."""
    d, result = distance, np.zeros(program.num_instructions, dtype=bool)
    if program.num_instructions <= d:
        return result
    code = program.opcode
    same = (code[d:] == code[:-d]) & (program.block[d:] == program.block[:-d])
    length = program.count[:-d].astype(np.int64)
    for used, buffer, offset in (
        (_READS, program.src_buffer, program.src_offset), (_WRITES, program.dst_buffer, program.dst_offset),
    ):  # fmt: skip
        next_to = (buffer[d:] == buffer[:-d]) & (offset[:-d] + length == offset[d:])
        same &= next_to | ~used[code[d:]]
    result[d:] = same & (code[d:] != Opcode.NOP)
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
