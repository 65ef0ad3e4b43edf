"""In which order messages go: first what others wait for longest; and they are received as they are sent."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any, ClassVar

import attrs
import numpy as np

from collc.ir.machine import RECEIVES, SENDS, connections, execute, partners
from collc.ir.program import BLOCK_COLUMNS, Program

from .arrange import reblock
from .base import Pass
from .hazards import conflicts, sequential_order
from .limits import check_limits
from .timing import duration

__all__ = ["ReorderFifo"]

Array = np.ndarray[Any, np.dtype[Any]]

_ALPHA, _UNIT = 1, 4


@attrs.frozen
class ReorderFifo(Pass):
    """Put the instructions of every block in the order of the longest chains that hang on them.

    A rank that has several messages ready for one connection sends first the one after which most is still to be done.
    A connection hands out messages in the order in which they were put in, so its receiver receives in that order.
    Where this takes longer by the model of :mod:`.timing`, or gets stuck with FIFOs of ``fifo_depth`` messages (unless
    given: 2) that were enough before, the program stays as it is.
    """

    name: ClassVar[str] = "reorder-fifo"
    summary: ClassVar[str] = "send first what others wait for longest, and receive in the order sent"
    takes: ClassVar[type] = Program
    gives: ClassVar[type] = Program

    fifo_depth: int | None = attrs.field(default=None, metadata={"help": "messages a connection holds; 2 unless given"})

    def run(self, ir: Program) -> Program:
        check_limits(self)
        if not ir.num_instructions:
            return ir
        order = _list(ir, sequential_order(ir))
        if order is None:
            return ir
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        after = reblock(ir, place, {c: getattr(ir, c) for c in BLOCK_COLUMNS}, ir.block)
        depth = self.fifo_depth or 2
        before = duration(ir, _ALPHA, _UNIT, depth)
        now = duration(after, _ALPHA, _UNIT, depth)
        if now is None or (before is not None and now >= before):
            return ir
        return ir if execute(after, depth, 1).deadlock and not execute(ir, depth, 1).deadlock else after


def _list(program: Program, order: Array) -> Array | None:
    """Return all instructions in their new order, or nothing where what is sent first must be received last."""
    n = program.num_instructions
    later, earlier = conflicts(program, order)
    partner = partners(program)
    received = np.flatnonzero(partner >= 0)
    pairs = np.unique(
        np.concatenate([earlier, partner[received]]) * np.int64(n) + np.concatenate([later, received])
    )  # fmt: skip
    a, b = pairs // n, pairs % n
    a, b = a[a != b], b[a != b]
    start = np.searchsorted(a, np.arange(n + 1)).tolist()
    after, missing = b.tolist(), np.bincount(b, minlength=n).tolist()
    urgency = _urgency(program, order, start, after)
    links = connections(program)
    source = np.where(RECEIVES[program.opcode], links.inward[program.block], -1).tolist()
    sink = np.where(SENDS[program.opcode], links.outward[program.block], -1).tolist()
    receiver = np.full(n, -1, dtype=np.int64)
    receiver[partner[received]] = received
    follows, queue, taken = receiver.tolist(), [list[int]() for _ in range(len(links))], [0] * len(links)
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
    """Return for each instruction the time that the longest chain from it on takes."""
    costs = (_ALPHA + program.count.astype(np.int64) * _UNIT * SENDS[program.opcode]).tolist()
    total = [0] * program.num_instructions
    for i in np.argsort(-order).tolist():
        total[i] = costs[i] + max((total[after[k]] for k in range(start[i], start[i + 1])), default=0)
    return total
