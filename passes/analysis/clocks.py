"""Vector clocks: the steps of its rank that are certainly finished when an instruction begins.

When an instruction of block b begins, it knows how many steps of each block of its rank are finished: the earlier steps
of b, its dependencies, and the steps that those know. Messages through other ranks imply more. They are ignored,
because not every transport keeps their order.
"""

from __future__ import annotations

import numpy as np

from collc.ir.arrays import Array, distinct_pairs
from collc.ir.editing import with_dependencies
from collc.ir.frozen import frozen
from collc.ir.program import Program
from collc.ir.ragged import owners, ranges, starts
from collc.ir.waves import all_waves

__all__ = ["Clocks", "clocks", "without_implied"]


@frozen(eq=False)
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
        latest = known[rows - 1]
        latest[step[rows] == 0] = 0
        latest[np.arange(len(rows)), name[rows]] = step[rows]
        dependent = np.flatnonzero(start[rows] < start[rows + 1])
        if len(dependent):
            low, size = start[rows[dependent]], program.num_dependencies[rows[dependent]]
            entry, first = ranges(low, size), starts(size)[:-1]
            inherited = known[deps[entry]]
            inherited[np.arange(len(entry)), name[deps[entry]]] = step[deps[entry]] + 1
            latest[dependent] = np.maximum(latest[dependent], np.maximum.reduceat(inherited, first, axis=0))
        known[rows] = latest
    return Clocks(known, name, step)


def without_implied(program: Program) -> Program:
    """Return the program without the dependencies that others imply: the transitive reduction, which is unique."""
    clock = clocks(program)
    dependent, dep = distinct_pairs(program.dependent, program.deps)
    before = np.where(clock.step[dependent] > 0, clock.known[dependent - 1, clock.block_id[dep]], 0)
    fresh = before <= clock.step[dep]  # no earlier instruction of the block depends on it
    dependent, dep = dependent[fresh], dep[fresh]
    # Each dependency implies itself; one that two imply is redundant.
    size = np.bincount(dependent, minlength=program.num_instructions)[dependent]
    other, start, entry = ranges(np.searchsorted(dependent, dependent), size), starts(size)[:-1], owners(size)
    implies = (clock.known[dep[other], clock.block_id[dep[entry]]] > clock.step[dep[entry]]) | (
        (clock.block_id[dep[other]] == clock.block_id[dep[entry]]) & (dep[other] >= dep[entry])
    )
    kept = (np.add.reduceat(implies.astype(np.int64), start) if len(start) else size) < 2
    return with_dependencies(program, dependent[kept], dep[kept])
