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

from ..analysis.arrange import reblock
from ..analysis.hazards import conflicts, sequential_order
from ..analysis.timing import duration
from ..base import Pass
from ..ranges import AT_LEAST_1

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

    def run(self, ir: Program) -> Program:
        if ir.placed or not ir.num_instructions:
            return ir
        order = _by_urgency(ir, sequential_order(ir))
        if order is None:
            return ir
        after = reblock(ir, inverse(order), {c: getattr(ir, c) for c in BLOCK_COLUMNS}, ir.block)
        depth = self.fifo_depth or 2
        before = duration(ir, _ALPHA, _UNIT, depth)
        now = duration(after, _ALPHA, _UNIT, depth)
        if now is None or (before is not None and now >= before):
            return ir
        return ir if execute(after, depth, 1).deadlock and not execute(ir, depth, 1).deadlock else after


def _by_urgency(program: Program, order: Array) -> Array | None:
    """Return all instructions in their new order; None if a message that is sent first must be received last."""
    n = program.num_instructions
    later, earlier = conflicts(program, order)
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
