"""What every instruction knows to be done when it begins, by the waits of its own rank: vector clocks.

An instruction of block b that begins knows how many steps of each block of its rank are finished: those of b before it,
those it waits for, and what they knew. Messages through other ranks tell more, but a wait that only they make
unnecessary is kept: not every transport lets one rely on their order.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from collc.ir.machine import execute
from collc.ir.program import Program

__all__ = ["Clocks", "clocks", "without_implied"]

Array = np.ndarray[Any, np.dtype[Any]]


@attrs.frozen(eq=False)
class Clocks:
    """``known[i]`` holds for every block of instruction i's rank how many of its steps are finished when i begins."""

    known: list[tuple[int, ...]]
    block_id: list[int]
    step: list[int]

    def before(self, first: int, second: int) -> bool:
        """Return whether one instruction of a rank is always finished when another begins."""
        return self.known[second][self.block_id[first]] > self.step[first]


def clocks(program: Program) -> Clocks:
    """Return the clocks of all instructions."""
    return _walk(program)[0]


def without_implied(program: Program) -> Program:
    """Return the program without the waits that others imply: the transitive reduction, which is unique."""
    deps = _walk(program)[1]
    start = np.cumsum([0, *(len(waits) for waits in deps)])
    return attrs.evolve(program, dep_start=start, deps=[d for waits in deps for d in waits])


def _walk(program: Program) -> tuple[Clocks, list[list[int]]]:
    blocks = np.diff(program.rank_blocks).tolist()
    block, step = program.block.tolist(), program.step.tolist()
    rank_of, name = program.block_rank.tolist(), program.block_id.tolist()
    block_id = [name[b] for b in block]
    known: list[tuple[int, ...]] = [()] * program.num_instructions
    now: list[tuple[int, ...]] = [(0,) * blocks[rank_of[b]] for b in range(program.num_blocks)]
    dep_start, deps = program.dep_start.tolist(), program.deps.tolist()
    kept: list[list[int]] = [[] for _ in range(program.num_instructions)]
    for i in execute(program).finished.tolist():
        mine = now[block[i]]
        if dep_start[i] < dep_start[i + 1]:
            waits = [d for d in deps[dep_start[i] : dep_start[i + 1]] if mine[block_id[d]] <= step[d]]
            if len(waits) > 1:
                waits = [
                    d for d in dict.fromkeys(waits)
                    if not any(e != d and _tells(known[e], block_id[e], step[e], block_id[d], step[d]) for e in waits)
                ]  # fmt: skip
            for d in waits:
                told = list(map(max, mine, known[d]))
                told[block_id[d]] = max(told[block_id[d]], step[d] + 1)
                mine = tuple(told)
            kept[i] = sorted(waits)
        known[i] = mine
        after = list(mine)
        after[block_id[i]] = step[i] + 1
        now[block[i]] = tuple(after)
    return Clocks(known, block_id, step), kept


def _tells(known: tuple[int, ...], block: int, step: int, of: int, at: int) -> bool:
    """Return whether who waits for a step of one block knows a step of another to be done."""
    return known[of] > at or (block == of and step > at)
