"""Doing without copies: reading what was copied where it was, writing it where it is to be."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs
import numpy as np

from collc.ir.layout import layout, locations
from collc.ir.machine import execute
from collc.ir.program import INSTRUCTION_COLUMNS, Buffer, Opcode, Program

from .base import Pass
from .hazards import sequential_order, synchronize

__all__ = ["EliminateCopies"]

Array = np.ndarray[Any, np.dtype[Any]]

_READS_SRC = np.array([op.reads_src for op in Opcode])
_WRITES_DST = np.array([op.writes_dst for op in Opcode])
#: what writes its dst whatever was there
_STORES = np.isin(
    np.arange(len(Opcode)),
    [Opcode.RECV, Opcode.COPY, Opcode.RECV_COPY_SEND, Opcode.RECV_REDUCE_COPY, Opcode.RECV_REDUCE_COPY_SEND],
)


@attrs.frozen
class EliminateCopies(Pass):
    """Leave out copies that nobody needs.

    Whoever reads what a copy has left, before either place changes, reads where it was copied from. What is received or
    reduced only to be copied on is written where it goes to. A copy that nobody reads, and whose place is scratch or is
    overwritten, goes. Places of input and output that are one in place are taken to be one.
    """

    name: ClassVar[str] = "eliminate-copies"
    summary: ClassVar[str] = "leave out copies by reading and writing where data come from and go to"
    takes: ClassVar[type] = Program
    gives: ClassVar[type] = Program

    def run(self, ir: Program) -> Program:
        if not (ir.opcode == Opcode.COPY).any():
            return ir
        work = _Work(ir)
        while sum(work.visit(c) for c in np.flatnonzero(work.code == Opcode.COPY).tolist()):
            pass
        after = work.result()
        bare = execute(ir, 1, 1).deadlock is None
        # Who waits for less may wait elsewhere: a receive into its final place, for instance.
        return ir if bare and execute(after, 1, 1).deadlock else after


class _Work:
    """A program in the making: columns that change, and where they lie in place. Instructions that go are nops."""

    def __init__(self, program: Program):
        self.program, self.order = program, sequential_order(program)
        self.column = {c: getattr(program, c).astype(np.int64) for c in INSTRUCTION_COLUMNS}
        self.rank = program.block_rank[program.block]
        self.rows = [np.flatnonzero(self.rank == r) for r in range(program.num_ranks)]
        self.base = layout(program, inplace=True).base
        src, dst = locations(program, layout(program, inplace=True))
        self.src, self.dst = src.astype(np.int64), dst.astype(np.int64)

    @property
    def code(self) -> Array:
        return self.column["opcode"]

    def visit(self, c: int) -> bool:
        """Do what can be done about one copy; return whether anything changed."""
        if self.code[c] != Opcode.COPY:
            return False
        if self._same(c):
            self.code[c] = Opcode.NOP
            return True
        changed = self._forward(c)
        if self._unread(c, "dst"):
            self.code[c] = Opcode.NOP
            return True
        return self._backward(c) or changed

    def _same(self, c: int) -> bool:
        k = self.column
        return bool(k["src_buffer"][c] == k["dst_buffer"][c] and k["src_offset"][c] == k["dst_offset"][c])

    # ---- who touches what

    def _touching(self, c: int, end: str) -> tuple[Array, Array, Array]:
        """Return the other instructions of the rank that touch a copy's ``src`` or ``dst``, and which read or write it.

        What copies a place onto itself in place writes only the buffer that it names.
        """
        lo, buffer = int(getattr(self, end)[c]), self.column[f"{end}_buffer"][c]
        rows = self.rows[self.rank[c]]
        rows = rows[rows != c]
        hi, count, code = lo + int(self.column["count"][c]), self.column["count"][rows], self.code[rows]
        at_src = (self.src[rows] < hi) & (lo < self.src[rows] + count)
        at_dst = (self.dst[rows] < hi) & (lo < self.dst[rows] + count)
        reads = (at_src & _READS_SRC[code]) | (at_dst & (code == Opcode.REDUCE))
        idle = (code == Opcode.COPY) & (self.src[rows] == self.dst[rows]) & (self.column["dst_buffer"][rows] != buffer)
        writes = at_dst & _WRITES_DST[code] & ~idle
        any_ = reads | writes
        return rows[any_], reads[any_], writes[any_]

    def _covers(self, rows: Array, c: int, lo: int, buffer: int) -> Array:
        """Return which instructions overwrite all chunks of a copy's place, in the same buffer."""
        count = self.column["count"]
        whole = (self.dst[rows] <= lo) & (lo + count[c] <= self.dst[rows] + count[rows])
        return whole & _STORES[self.code[rows]] & (self.column["dst_buffer"][rows] == buffer)

    def _unread(self, c: int, end: str) -> bool:
        """Return whether after a copy nobody reads its ``src`` or ``dst``: it is overwritten, or left in scratch."""
        lo, buffer = int(getattr(self, end)[c]), int(self.column[f"{end}_buffer"][c])
        rows, reads, _ = self._touching(c, end)
        later = self.order[rows] > self.order[c]
        rows, reads = rows[later], reads[later]
        over = self.order[rows[self._covers(rows, c, lo, buffer)]]
        # who overwrites may read first
        if (self.order[rows[reads]] <= int(over.min(initial=len(self.order)))).any():
            return False
        return buffer == Buffer.SCRATCH or len(over) > 0

    # ---- what is done

    def _forward(self, c: int) -> bool:
        """Let who reads the copy read the original, as long as both are what they were."""
        k, now = self.column, self.order[c]
        end = len(self.order)
        for place in ("src", "dst"):
            rows, _, writes = self._touching(c, place)
            times = self.order[rows[writes]]
            end = min(end, int(times[times > now].min(initial=end)))
        rows, reads, _ = self._touching(c, "dst")
        # who reads and then changes it is among the readers
        rows = rows[reads & (self.order[rows] > now) & (self.order[rows] <= end)]
        inside = (self.dst[c] <= self.src[rows]) & (self.src[rows] + k["count"][rows] <= self.dst[c] + k["count"][c])
        rows = rows[inside & _READS_SRC[self.code[rows]] & (k["src_buffer"][rows] == k["dst_buffer"][c])]
        rows = rows[(self.order[rows] < end) | ~self._overlaps(rows, c)]
        if not len(rows):
            return False
        k["src_buffer"][rows] = k["src_buffer"][c]
        k["src_offset"][rows] += k["src_offset"][c] - k["dst_offset"][c]
        self.src[rows] += self.src[c] - self.dst[c]
        return True

    def _overlaps(self, rows: Array, c: int) -> Array:
        """Return which instructions write what would be their new src at another place than they read."""
        new = self.src[rows] + self.src[c] - self.dst[c]
        count = self.column["count"][rows]
        crosses = (self.dst[rows] < new + count) & (new < self.dst[rows] + count) & (self.dst[rows] != new)
        return _WRITES_DST[self.code[rows]] & crosses

    def _backward(self, c: int) -> bool:
        """Let who wrote what is copied write it where it is copied to."""
        k, now, lo = self.column, self.order[c], int(self.src[c])
        rows, _, writes = self._touching(c, "src")
        before = rows[writes & (self.order[rows] < now)]
        if not len(before):
            return False
        p = int(before[np.argmax(self.order[before])])
        exact = self.dst[p] == lo and k["count"][p] == k["count"][c] and k["dst_buffer"][p] == k["src_buffer"][c]
        if not exact or not _STORES[self.code[p]]:
            return False
        between = rows[(self.order[rows] > self.order[p]) & (self.order[rows] < now)]
        if len(between) or not self._unread(c, "src"):
            return False
        rows, _, _ = self._touching(c, "dst")
        if ((self.order[rows] >= self.order[p]) & (self.order[rows] < now)).any():
            return False
        k["dst_buffer"][p], k["dst_offset"][p], self.dst[p] = k["dst_buffer"][c], k["dst_offset"][c], self.dst[c]
        self.code[c] = Opcode.NOP
        return True

    def result(self) -> Program:
        """Return the program without what went, with fresh waits, and without blocks that have become empty."""
        rows = np.flatnonzero((self.code != Opcode.NOP) | (self.program.opcode == Opcode.NOP))
        owner = self.program.block[rows]
        kept = np.unique(owner)
        columns: dict[str, Any] = {c: values[rows] for c, values in self.column.items()}
        columns |= {c: getattr(self.program, c)[kept] for c in ("block_rank", "send_peer", "recv_peer", "channel")}
        made = attrs.evolve(
            self.program, block_start=np.searchsorted(owner, np.append(kept, self.program.num_blocks)),
            dep_start=np.zeros(len(rows) + 1, dtype=np.int64), deps=[], **columns,
        )  # fmt: skip
        return synchronize(made, self.order[rows])
