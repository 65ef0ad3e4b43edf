"""Sending contiguous chunks in one message, and others where packing them pays."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import attrs
import numpy as np

from collc.ir.diagnostic import error
from collc.ir.machine import execute, partners
from collc.ir.program import INSTRUCTION_COLUMNS, Opcode, Program
from collc.ir.progress import progress

from .arrange import merge_rows, places
from .base import Pass, remark
from .coalesce_packing import Group, pack, pays
from .hazards import conflicts, sequential_order, synchronize, with_all_waits

__all__ = ["Coalesce"]

Array = np.ndarray[Any, np.dtype[Any]]

_READS = np.array([op.reads_src for op in Opcode])
_WRITES = np.array([op.writes_dst for op in Opcode])
_SENDS = np.array([op.sends for op in Opcode])
_RECEIVES = np.array([op.receives for op in Opcode])
#: how many instructions one arrival may take: receive, copy what it is added to, add
_PERIODS = (2, 3)
_PACKS = ("auto", "never", "always")


@attrs.frozen
class Coalesce(Pass):
    """Join consecutive messages of a connection whose places are contiguous at both ends, and contiguous local copies.

    Messages are joined where both could go at the same time, counted in messages from the start, so that no data wait
    for later ones; where even that would make ranks wait for each other, only messages without waits of their own.

    With ``pack`` what is left of a connection's messages that could go at the same time is copied into scratch, sent
    in one message, and copied or added from scratch where it does not lie in one place there; the parts stand in the
    order in which they lie at one end, where that saves copies at it. ``auto`` packs what the
    model of :mod:`.coalesce_packing` says is sooner there packed, at the collective's size; where that has none,
    nothing: a large call loses what a small one gains. Nor is a rank given more copies than ``max-steps`` lets one
    threadblock have.
    """

    name: ClassVar[str] = "coalesce"
    summary: ClassVar[str] = "send contiguous chunks in one message"
    takes: ClassVar[type] = Program
    gives: ClassVar[type] = Program

    max_count: int | None = attrs.field(default=None, metadata={"help": "the most chunks a message may have"})
    pack: Literal["auto", "never", "always"] = attrs.field(
        default="auto", metadata={"help": "copy what is not contiguous together: where it pays, never, or always"}
    )
    size: int | None = attrs.field(
        default=None, metadata={"help": "bytes of a call, to see what packing pays; unless given the collective's own"}
    )
    start: int = attrs.field(default=1 << 16, metadata={"help": "bytes that a link moves while one message starts"})
    max_steps: int | None = attrs.field(default=None, metadata={"help": "the most steps of a threadblock"})

    def run(self, ir: Program) -> Program:
        for name in ("max_count", "size", "start", "max_steps"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise error("C0508", f"coalesce needs {name.replace('_', '-')} of at least 1, found {value}")
        if self.pack not in _PACKS:
            raise error("C0599", f"coalesce packs {', '.join(_PACKS)}, found `{self.pack}`", exit_status=2)
        joined = self._coalesced(ir)
        return joined if self.pack == "never" else self._packed(joined)

    def _coalesced(self, ir: Program) -> Program:
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

    def _packed(self, program: Program) -> Program:
        """Pack messages of one connection that could go at the same time, where that pays."""
        size = program.collective.size if self.size is None else self.size
        partner, code = partners(program), program.opcode
        before = np.concatenate([[-1], code[:-1]])
        plain = (code == Opcode.SEND) | (code == Opcode.RECV) | (code == Opcode.RECV_REDUCE_COPY)
        near = np.concatenate([[False], program.block[1:] == program.block[:-1]])
        age = _ages(program, partner)
        wish = plain & (before == code) & near & (np.concatenate([[-1], age[:-1]]) == age)
        chunk = (size or 0) / (program.collective.num_ranks * program.chunks)

        def worth(group: Group) -> bool:
            if self.pack == "always" or group.copies == (0, 0):
                return True
            return bool(size) and pays(group, chunk, self.start)

        joined = self._joined(program, partner, wish)
        packed = pack(program, joined, _other_ends(program, partner), worth, self.max_steps)
        if packed is None:
            return program
        sends = [int(_SENDS[p.opcode].sum()) for p in (packed, program)]
        remark(f"coalesce: {sends[0]} messages, packed in scratch, where {sends[1]} would be sent")
        return packed

    def _joined(self, program: Program, partner: Array, wish: Array) -> Array:
        """Return the rows to join to the row before: wished for at both ends, and not too long."""
        other = _other_ends(program, partner)
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


def _other_ends(program: Program, partner: Array) -> Array:
    """Return the receive of each send and the send of each receive, -1 where there is none."""
    receiver = np.full(program.num_instructions, -1, dtype=np.int64)
    received = np.flatnonzero(partner >= 0)
    receiver[partner[received]] = received
    return np.where(_RECEIVES[program.opcode], partner, receiver)


def _sorted_runs(program: Program) -> Program:
    """Put what recurs side by side: receive, add, receive, add becomes receive, receive, add, add.

    Only where every row continues the one of its kind before it, and no two that conflict change places.
    """
    order = sequential_order(program)
    place = np.arange(program.num_instructions)
    later, earlier = conflicts(program, order)
    near = program.block[later] == program.block[earlier]
    later, earlier = later[near], earlier[near]
    for turn, period in enumerate(_PERIODS):
        progress("placing messages side by side", turn, len(_PERIODS))
        moved = _side_by_side(program, place, period)
        wrong = np.zeros(program.num_blocks, dtype=bool)
        wrong[program.block[later[moved[later] < moved[earlier]]]] = True
        place = np.where(wrong[program.block], place, moved)
    if (place == np.arange(len(place))).all():
        return program
    after = _permuted(with_all_waits(program), place)
    run = execute(after)
    return program if run.deadlock else synchronize(after, places(run.finished))


def _permuted(program: Program, place: Array) -> Program:
    """Return the program with every row at its ``place``, which is in the same block, and the same waits."""
    rows = np.argsort(place)
    start = program.dep_start.astype(np.int64)
    waits = (start[1:] - start[:-1])[rows]
    dep_start = np.concatenate([[0], np.cumsum(waits)])
    index = np.arange(dep_start[-1]) - np.repeat(dep_start[:-1] - program.dep_start[rows], waits)
    columns: dict[str, Any] = {c: getattr(program, c)[rows] for c in INSTRUCTION_COLUMNS}
    return attrs.evolve(program, dep_start=dep_start, deps=place[program.deps[index]], **columns)


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
