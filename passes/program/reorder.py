"""Reorder messages: the longest chain of dependent instructions first, received in the order sent."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import ClassVar

import attrs
import numpy as np

from collc.ir.arrays import Array, distinct_pairs
from collc.ir.machine import connections, execute, message_links, partners, receivers
from collc.ir.program import BLOCK_COLUMNS, Program
from collc.ir.ragged import group_starts, inverse
from collc.ir.symmetric_program import AnyProgram, SymmetricProgram

from ..analysis.arrange import reblock
from ..analysis.hazards import conflicts, sequential_order
from ..analysis.timing import duration
from ..base import Pass
from ..ranges import AT_LEAST_1
from .orbit_messages import in_order, message_conflicts, message_order

__all__ = ["ReorderFifo"]

_ALPHA, _UNIT = 1, 4


@attrs.frozen
class ReorderFifo(Pass):
    """Order the instructions of every block by the longest chain of instructions that depend on them.

    If several messages are ready for one connection, a rank sends the one with the longest remaining chain first. A
    connection is a FIFO, so its receiver receives in the same order. If that takes longer by the model of
    :mod:`..analysis.timing`, or deadlocks with FIFOs of ``fifo_depth`` messages (default 2) that sufficed before, the
    program does not change.
    """

    name: ClassVar[str] = "reorder-fifo"
    summary: ClassVar[str] = "reorder sends by critical path; receive in send order"
    takes: ClassVar[type] = Program
    gives: ClassVar[type] = Program

    fifo_depth: int | None = attrs.field(
        default=None, metadata={"help": "messages a connection holds; default 2", "range": AT_LEAST_1}
    )

    def works_by_orbits(self, ir: SymmetricProgram) -> bool:
        return True

    def run(self, ir: AnyProgram) -> AnyProgram:
        if isinstance(ir, SymmetricProgram):
            return self._of_template(ir)
        if ir.placed or not ir.num_instructions:
            return ir
        order = sequential_order(ir)
        new = _by_urgency(ir, order, conflicts(ir, order))
        if new is None:
            return ir
        after = reblock(ir, inverse(new), {c: getattr(ir, c) for c in BLOCK_COLUMNS}, ir.block)
        return after if self._is_better(after, ir) else ir

    def _of_template(self, ir: SymmetricProgram) -> SymmetricProgram:
        order = message_order(ir)
        new = _by_urgency(ir.batched, order, message_conflicts(ir, order))
        if new is None:
            return ir
        after = in_order(ir, inverse(new))
        return after if self._is_better(after.batched, ir.batched) else ir

    def _is_better(self, after: Program, before: Program) -> bool:
        """Return whether a program takes less time than ``before``, and completes where that does."""
        depth = self.fifo_depth or 2
        then, now = (duration(program, _ALPHA, _UNIT, depth) for program in (before, after))
        if now is None or (then is not None and now >= then):
            return False
        return not execute(after, depth, 1).deadlock or bool(execute(before, depth, 1).deadlock)


def _by_urgency(program: Program, order: Array, clashes: tuple[Array, Array]) -> Array | None:
    """Return all instructions in their new order; None if a message that is sent first must be received last.

    ``clashes`` are the conflicts (later, earlier) in the old ``order``.
    """
    n = program.num_instructions
    later, earlier = clashes
    partner = partners(program)
    received = np.flatnonzero(partner >= 0)
    a, b = distinct_pairs(np.concatenate([earlier, partner[received]]), np.concatenate([later, received]))
    a, b = a[a != b], b[a != b]
    start = group_starts(a, n).tolist()
    after, missing = b.tolist(), np.bincount(b, minlength=n).tolist()
    urgency = _urgency(program, order, start, after)
    links = connections(program)
    source, sink = (column.tolist() for column in message_links(program, links))
    follows, queue, taken = receivers(partner).tolist(), [list[int]() for _ in range(len(links))], [0] * len(links)
    heap: list[tuple[int, int, int]] = []
    place, done = order.tolist(), list[int]()

    def offer(i: int) -> None:
        if missing[i] == 0 and (source[i] < 0 or queue[source[i]][taken[source[i]] : taken[source[i]] + 1] == [i]):
            heappush(heap, (-urgency[i], place[i], i))

    for i in range(n):
        offer(i)
    while heap:
        i = heappop(heap)[2]
        done.append(i)
        if sink[i] >= 0 and follows[i] >= 0:
            queue[sink[i]].append(follows[i])
        for k in range(start[i], start[i + 1]):
            missing[after[k]] -= 1
            offer(after[k])
        link = source[i]
        if link >= 0:
            taken[link] += 1
            if taken[link] < len(queue[link]):
                offer(queue[link][taken[link]])
    return np.array(done, dtype=np.int64) if len(done) == n else None


def _urgency(program: Program, order: Array, start: list[int], after: list[int]) -> list[int]:
    """Return for each instruction the duration of the longest chain that begins with it."""
    costs = (_ALPHA + program.count.astype(np.int64) * _UNIT * program.sends).tolist()
    total = [0] * program.num_instructions
    for i in np.argsort(-order).tolist():
        total[i] = costs[i] + max((total[after[k]] for k in range(start[i], start[i + 1])), default=0)
    return total
