"""What every instruction knows to be done when it begins, by the waits of its own rank: vector clocks.

An instruction of block b that begins knows how many steps of each block of its rank are finished: those of b before it,
those it waits for, and what they knew. Messages through other ranks tell more, but a wait that only they make
unnecessary is kept: not every transport lets one rely on their order.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from collc.ir.program import Program
from collc.ir.waves import all_waves

__all__ = ["Clocks", "clocks", "without_implied"]

Array = np.ndarray[Any, np.dtype[Any]]


@attrs.frozen(eq=False)
class Clocks:
    """``known[i, b]`` is how many steps of block b of instruction i's rank are finished when i begins."""

    known: Array
    block_id: Array
    step: Array

    def before(self, first: int, second: int) -> bool:
        """Return whether one instruction of a rank is always finished when another begins."""
        return bool(self.known[second, self.block_id[first]] > self.step[first])


def clocks(program: Program) -> Clocks:
    """Return the clocks of all instructions."""
    name, step = program.block_id[program.block], program.step
    known = np.zeros((program.num_instructions, int(name.max(initial=0)) + 1), dtype=np.int32)
    start, deps = program.dep_start.astype(np.int64), program.deps.astype(np.int64)
    order = all_waves(program)
    for a, b in zip(order.start[:-1].tolist(), order.start[1:].tolist(), strict=True):
        rows = order.instruction[a:b]
        mine = known[rows - 1]
        mine[step[rows] == 0] = 0
        mine[np.arange(len(rows)), name[rows]] = step[rows]
        waiting = np.flatnonzero(start[rows] < start[rows + 1])
        if len(waiting):
            entry, first = _spans(start[rows[waiting]], start[rows[waiting] + 1])
            told = known[deps[entry]]
            told[np.arange(len(entry)), name[deps[entry]]] = step[deps[entry]] + 1
            mine[waiting] = np.maximum(mine[waiting], np.maximum.reduceat(told, first, axis=0))
        known[rows] = mine
    return Clocks(known, name, step)


def without_implied(program: Program) -> Program:
    """Return the program without the waits that others imply: the transitive reduction, which is unique."""
    told, n = clocks(program), np.int64(max(program.num_instructions, 1))
    waits: Array = np.diff(program.dep_start.astype(np.int64))
    waiter = np.repeat(np.arange(program.num_instructions), waits)
    pairs = np.unique(waiter * n + program.deps)
    waiter, dep = pairs // n, pairs % n
    before = np.where(told.step[waiter] > 0, told.known[waiter - 1, told.block_id[dep]], 0)
    fresh = before <= told.step[dep]  # not waited for earlier in the block
    waiter, dep = waiter[fresh], dep[fresh]
    # Each wait tells of itself; one of which two tell is implied.
    size = np.bincount(waiter, minlength=program.num_instructions)[waiter]
    first = np.searchsorted(waiter, waiter)
    other, start = _spans(first, first + size)
    mine = np.repeat(np.arange(len(waiter)), size)
    tells = (told.known[dep[other], told.block_id[dep[mine]]] > told.step[dep[mine]]) | (
        (told.block_id[dep[other]] == told.block_id[dep[mine]]) & (dep[other] >= dep[mine])
    )
    kept = (np.add.reduceat(tells.astype(np.int64), start) if len(start) else size) < 2
    dep_start = np.zeros(program.num_instructions + 1, dtype=np.int64)
    np.cumsum(np.bincount(waiter[kept], minlength=program.num_instructions), out=dep_start[1:])
    return attrs.evolve(program, dep_start=dep_start, deps=dep[kept])


def _spans(begin: Array, end: Array) -> tuple[Array, Array]:
    """Return the numbers of several ranges, none of them empty, one after the other, and where each range starts."""
    size = end - begin
    start = np.cumsum(size) - size
    return np.arange(int(size.sum())) + np.repeat(begin - start, size), start
