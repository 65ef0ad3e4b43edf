"""One sequential order of a program, in which one thread can execute each rank.

Instructions are sorted by *level*, the length of the longest chain of messages before them, and within a level by
*depth*, the same for instructions. Every instruction follows its dependencies, and every receive is in a later level
than its send. So ranks that post sends without waiting for them cannot deadlock.
"""

from __future__ import annotations

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.machine import execute, partners
from collc.ir.program import Program
from collc.ir.ragged import inverse

__all__ = ["Order", "order"]


@attrs.frozen(eq=False)
class Order:
    """Columns over the instructions: ``level``, ``place`` in the order, and ``sender``, the instruction that sends the
    message of a receive (-1: none).
    """

    level: Array
    place: Array
    sender: Array


def order(program: Program) -> Order:
    """Return the order of a verified program."""
    sender = partners(program)
    level, depth = _times(program, sender.tolist())
    return Order(level, inverse(np.lexsort((depth, level))), sender)


def _times(program: Program, sender: list[int]) -> tuple[Array, Array]:
    """Return level and depth of every instruction."""
    level, depth = [0] * program.num_instructions, [0] * program.num_instructions
    first = set(program.block_start[:-1].tolist())
    start, deps = program.dep_start.tolist(), program.deps.tolist()
    receives = program.receives.tolist()
    for i in execute(program).finished.tolist():
        before = deps[start[i] : start[i + 1]]
        if i not in first:
            before.append(i - 1)
        at = max((level[d] for d in before), default=0)
        deepest = max((depth[d] for d in before), default=0)
        if receives[i]:
            at, deepest = max(at, level[sender[i]] + 1), max(deepest, depth[sender[i]])
        level[i], depth[i] = at, deepest + 1
    return np.array(level, dtype=np.int64), np.array(depth, dtype=np.int64)
