"""Remove copies: read from a copy's source, or write to its target."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from collc.ir.arrays import Array, Columns, distinct, lexsort
from collc.ir.editing import take, without_empty_blocks
from collc.ir.layout import layout, locations
from collc.ir.machine import execute
from collc.ir.opcodes import READS_SRC, STORES, WRITES_DST
from collc.ir.program import INSTRUCTION_COLUMNS, Buffer, Opcode, Program
from collc.ir.ragged import inverse
from collc.ir.symmetric_program import AnyProgram, SymmetricProgram

from ..analysis.hazards import sequential_order, synchronize
from ..base import Pass
from .orbit_messages import message_order, waiting_as_needed

__all__ = ["EliminateCopies"]


@attrs.frozen
class EliminateCopies(Pass):
    """Remove copies that are not needed.

    An instruction that reads a copy's target, before either place changes, reads the source instead. An instruction
    that receives or reduces data only for a copy writes to the copy's target instead. A copy is removed if no
    instruction reads its target, and the target is scratch or is overwritten. Places of input and output that are equal
    in place count as equal.
    """

    name: ClassVar[str] = "eliminate-copies"
    summary: ClassVar[str] = "remove copies"
    takes: ClassVar[type] = Program
    gives: ClassVar[type] = Program

    def works_by_orbits(self, ir: SymmetricProgram) -> bool:
        return not len(ir.numbering)

    def run(self, ir: AnyProgram) -> AnyProgram:
        if isinstance(ir, SymmetricProgram):
            return _of_template(ir)
        if ir.placed or not (ir.opcode == Opcode.COPY).any():
            return ir
        draft = _Draft(ir, sequential_order(ir))
        if not draft.run():
            return ir
        after, rows = draft.result()
        after = synchronize(without_empty_blocks(after), draft.order[rows])
        return after if _completes_too(after, ir) else ir


def _of_template(ir: SymmetricProgram) -> SymmetricProgram:
    """Return a template without copies that are not needed; the ranks of the seed access their own memory only."""
    if not (ir.seed.opcode == Opcode.COPY).any():
        return ir
    order, row = message_order(ir), np.arange(ir.seed.num_instructions)
    draft = _Draft(ir.seed, inverse(lexsort((row, order[ir.message]))))
    if not draft.run():
        return ir
    seed, rows = draft.result()
    found = attrs.evolve(ir, seed=without_empty_blocks(seed), joined=ir.joined[rows])
    message = ir.message[rows[found.message_start[:-1]]]
    after = waiting_as_needed(found, inverse(lexsort([order[message]])))
    return after if _completes_too(after.batched, ir.batched) else ir


def _completes_too(after: Program, before: Program) -> bool:
    """Return whether a program completes with FIFOs of one slot, if ``before`` does.

    Without a copy an instruction may have other dependencies: a receive into its final place, for instance.
    """
    return execute(before, 1, 1).deadlock is not None or execute(after, 1, 1).deadlock is None


class _Draft:
    """A program that changes: its columns, and their addresses in place. Removed instructions are nops.

    ``order`` is the position of each instruction in a correct execution.
    """

    def __init__(self, program: Program, order: Array):
        self.program, self.order = program, order
        self.column: dict[str, Array] = {c: getattr(program, c).astype(np.int64) for c in INSTRUCTION_COLUMNS}
        self.rank = program.rank
        self.rows = {r: np.flatnonzero(self.rank == r) for r in distinct(self.rank).tolist()}
        self.base = layout(program, inplace=True).base
        src, dst = locations(program, layout(program, inplace=True))
        self.src, self.dst = src.astype(np.int64), dst.astype(np.int64)

    @property
    def code(self) -> Array:
        return self.column["opcode"]

    def run(self) -> bool:
        """Remove all copies that are not needed; return whether the program changed."""
        changed = False
        while sum(self.remove(c) for c in np.flatnonzero(self.code == Opcode.COPY).tolist()):
            changed = True
        return changed

    def remove(self, c: int) -> bool:
        """Remove one copy, or redirect instructions past it, if possible; return whether the program changed."""
        if self.code[c] != Opcode.COPY:
            return False
        if self._is_idle(c):
            self.code[c] = Opcode.NOP
            return True
        changed = self._redirect_reads(c)
        if self._is_unread(c, "dst"):
            self.code[c] = Opcode.NOP
            return True
        return self._redirect_write(c) or changed

    def _is_idle(self, c: int) -> bool:
        k = self.column
        return bool(k["src_buffer"][c] == k["dst_buffer"][c] and k["src_offset"][c] == k["dst_offset"][c])

    # ---- accesses to a copy's places

    def _accessing(self, c: int, end: str) -> tuple[Array, Array, Array]:
        """Return the rank's other instructions that access a copy's ``src`` or ``dst``, and which read or write it.

        A copy of a place onto itself in place writes only the buffer that it names.
        """
        lo, buffer = int(getattr(self, end)[c]), self.column[f"{end}_buffer"][c]
        rows = self.rows[int(self.rank[c])]
        rows = rows[rows != c]
        hi, count, code = lo + int(self.column["count"][c]), self.column["count"][rows], self.code[rows]
        at_src = (self.src[rows] < hi) & (lo < self.src[rows] + count)
        at_dst = (self.dst[rows] < hi) & (lo < self.dst[rows] + count)
        reads = (at_src & READS_SRC[code]) | (at_dst & (code == Opcode.REDUCE))
        idle = (code == Opcode.COPY) & (self.src[rows] == self.dst[rows]) & (self.column["dst_buffer"][rows] != buffer)
        writes = at_dst & WRITES_DST[code] & ~idle
        any_ = reads | writes
        return rows[any_], reads[any_], writes[any_]

    def _covers(self, rows: Array, c: int, lo: int, buffer: int) -> Array:
        """Return which instructions overwrite all chunks of a copy's place, in the same buffer."""
        count = self.column["count"]
        whole = (self.dst[rows] <= lo) & (lo + count[c] <= self.dst[rows] + count[rows])
        covers: Array = whole & STORES[self.code[rows]] & (self.column["dst_buffer"][rows] == buffer)
        return covers

    def _is_unread(self, c: int, end: str) -> bool:
        """Return whether no instruction after a copy reads its ``src`` or ``dst``, which is scratch or overwritten."""
        lo, buffer = int(getattr(self, end)[c]), int(self.column[f"{end}_buffer"][c])
        rows, reads, _ = self._accessing(c, end)
        later = self.order[rows] > self.order[c]
        rows, reads = rows[later], reads[later]
        over = self.order[rows[self._covers(rows, c, lo, buffer)]]
        # an instruction that overwrites may read first
        if (self.order[rows[reads]] <= int(over.min(initial=len(self.order)))).any():
            return False
        return buffer == Buffer.SCRATCH or len(over) > 0

    # ---- changes

    def _redirect_reads(self, c: int) -> bool:
        """Let instructions that read the copy's target read its source, until either place changes."""
        k, now = self.column, self.order[c]
        end = len(self.order)
        for place in ("src", "dst"):
            rows, _, writes = self._accessing(c, place)
            times = self.order[rows[writes]]
            end = min(end, int(times[times > now].min(initial=end)))
        rows, reads, _ = self._accessing(c, "dst")
        # an instruction that reads and then changes the place is among the readers
        rows = rows[reads & (self.order[rows] > now) & (self.order[rows] <= end)]
        inside = (self.dst[c] <= self.src[rows]) & (self.src[rows] + k["count"][rows] <= self.dst[c] + k["count"][c])
        rows = rows[inside & READS_SRC[self.code[rows]] & (k["src_buffer"][rows] == k["dst_buffer"][c])]
        rows = rows[(self.order[rows] < end) | ~self._overlaps(rows, c)]
        if not len(rows):
            return False
        k["src_buffer"][rows] = k["src_buffer"][c]
        k["src_offset"][rows] += k["src_offset"][c] - k["dst_offset"][c]
        self.src[rows] += self.src[c] - self.dst[c]
        return True

    def _overlaps(self, rows: Array, c: int) -> Array:
        """Return which instructions write to a part of their new source, but not exactly to it."""
        new = self.src[rows] + self.src[c] - self.dst[c]
        count = self.column["count"][rows]
        crosses = (self.dst[rows] < new + count) & (new < self.dst[rows] + count) & (self.dst[rows] != new)
        overlaps: Array = WRITES_DST[self.code[rows]] & crosses
        return overlaps

    def _redirect_write(self, c: int) -> bool:
        """Let the instruction that wrote a copy's source write to its target."""
        k, now, lo = self.column, self.order[c], int(self.src[c])
        rows, _, writes = self._accessing(c, "src")
        before = rows[writes & (self.order[rows] < now)]
        if not len(before):
            return False
        p = int(before[np.argmax(self.order[before])])
        exact = self.dst[p] == lo and k["count"][p] == k["count"][c] and k["dst_buffer"][p] == k["src_buffer"][c]
        if not exact or not STORES[self.code[p]]:
            return False
        between = rows[(self.order[rows] > self.order[p]) & (self.order[rows] < now)]
        if len(between) or not self._is_unread(c, "src"):
            return False
        rows, _, _ = self._accessing(c, "dst")
        if ((self.order[rows] >= self.order[p]) & (self.order[rows] < now)).any():
            return False
        k["dst_buffer"][p], k["dst_offset"][p], self.dst[p] = k["dst_buffer"][c], k["dst_offset"][c], self.dst[c]
        self.code[c] = Opcode.NOP
        return True

    def result(self) -> tuple[Program, Array]:
        """Return the program without removed instructions and without dependencies, and the rows that are left."""
        rows = np.flatnonzero((self.code != Opcode.NOP) | (self.program.opcode == Opcode.NOP))
        columns: Columns = {c: values[rows] for c, values in self.column.items()}
        return take(self.program, rows, **columns), rows
