"""One sequential order of a program, in which its ranks can be played by one thread each.

Instructions are sorted by *level*, the number of messages that must have followed each other before them, and within a
level by *depth*, the number of instructions. Every instruction stands after all that it waits for, and every receive
in a later level than its send, so ranks that post sends without waiting for them always have somebody who can go on.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from collc.ir.machine import execute, partners
from collc.ir.program import Opcode, Program

__all__ = ["Order", "order"]

Array = np.ndarray[Any, np.dtype[Any]]


@attrs.frozen(eq=False)
class Order:
    """Columns over the instructions: ``level``, ``place`` in the order, and ``sender``, the instruction that sends what
    one receives (-1: none).
    """

    level: Array
    place: Array
    sender: Array


def order(program: Program) -> Order:
    """Return the order of a verified program."""
    sender = partners(program)
    level, depth = _times(program, sender.tolist())
    place = np.empty(program.num_instructions, dtype=np.int64)
    place[np.lexsort((depth, level))] = np.arange(program.num_instructions)
    return Order(level, place, sender)


def _times(program: Program, sender: list[int]) -> tuple[Array, Array]:
    """Return level and depth of every instruction."""
    level, depth = [0] * program.num_instructions, [0] * program.num_instructions
    first = set(program.block_start[:-1].tolist())
    start, deps = program.dep_start.tolist(), program.deps.tolist()
    receives = np.array([op.receives for op in Opcode])[program.opcode].tolist()
    for i in execute(program).finished.tolist():
        before = deps[start[i] : start[i + 1]]
        if i not in first:
            before.append(i - 1)
        at = max((level[d] for d in before), default=0)
        late = max((depth[d] for d in before), default=0)
        if receives[i]:
            at, late = max(at, level[sender[i]] + 1), max(late, depth[sender[i]])
        level[i], depth[i] = at, late + 1
    return np.array(level, dtype=np.int64), np.array(depth, dtype=np.int64)
