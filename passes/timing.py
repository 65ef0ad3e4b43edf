"""How long a program takes on a plain model of threadblocks: what strategies are compared by. All numbers are integers.

Every instruction takes ``alpha`` to start, and then ``unit`` for every chunk that it puts on a connection; what only
moves within a rank's memory goes ``MEMORY`` times as fast. A receive may start when the send has and ends no earlier
than ``alpha`` after it; so fused instructions pass data on while they come, and others first store them. A connection
holds ``depth`` messages. Links are taken to be no bottleneck: all strategies send the same over them.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from collc.ir.machine import RECEIVES, SENDS, connections, execute, partners
from collc.ir.program import Program

__all__ = ["MEMORY", "Times", "duration", "play"]

Array = np.ndarray[Any, np.dtype[Any]]

#: how many times as fast as a connection a rank's memory is
MEMORY = 8


def duration(
    program: Program, alpha: int, unit: int, depth: int | None = None, finished: Array | None = None
) -> int | None:
    """Return when the last instruction ends, or nothing where the program gets stuck.

    ``finished`` is an order in which instructions may finish, where one is known. Times are in units of ``1 / MEMORY``
    of those that ``alpha`` and ``unit`` are in, so that all stay whole.
    """
    if finished is None:
        run = execute(program, depth)
        if run.deadlock:
            return None
        finished = run.finished
    return max(_times(program, finished, alpha, unit, depth)[1], default=0)


@attrs.frozen(eq=False)
class Times:
    """When each instruction begins and ends, and its place in the order in which they begin."""

    begin: Array
    end: Array
    place: Array


def play(program: Program, alpha: int, unit: int, finished: Array | None = None) -> Times:
    """Return when instructions begin and end where all begin as soon as they can and connections hold any number.

    ``finished`` is an order in which they may finish, where one is known.
    """
    finished = execute(program).finished if finished is None else finished
    begin, end = (np.array(times, dtype=np.int64) for times in _times(program, finished, alpha, unit, None))
    # A receive stands where what it receives has come, so that who waits for it may do something else until then.
    due = np.maximum(begin, end - _lasts(program, alpha, unit))
    place = np.empty(len(finished), dtype=np.int64)
    place[finished[np.argsort(due[finished], kind="stable")]] = np.arange(len(finished))
    return Times(begin, end, place)


def _times(program: Program, finished: Array, alpha: int, unit: int, depth: int | None) -> tuple[list[int], list[int]]:
    """Return when each instruction begins and ends."""
    links, partner = connections(program), partners(program)
    sends, receives = SENDS[program.opcode], RECEIVES[program.opcode]
    outward = np.where(sends, links.outward[program.block], -1).tolist()
    block, source, arrives = program.block.tolist(), partner.tolist(), receives.tolist()
    inward = np.where(receives, links.inward[program.block], -1).tolist()
    lasts = _lasts(program, alpha, unit).tolist()
    dep_start, deps = program.dep_start.tolist(), program.deps.tolist()
    begin, end = [0] * program.num_instructions, [0] * program.num_instructions
    free = [0] * program.num_blocks
    taken: list[list[int]] = [[] for _ in range(len(links))]  # connection -> when its messages were received
    sent = [0] * len(links)
    wait = alpha * MEMORY
    for i in finished.tolist():
        start = free[block[i]]
        for k in range(dep_start[i], dep_start[i + 1]):
            start = max(start, end[deps[k]])
        link = outward[i]
        if link >= 0:
            if depth and sent[link] >= depth and sent[link] - depth < len(taken[link]):
                start = max(start, taken[link][sent[link] - depth])
            sent[link] += 1
        stop = start
        if arrives[i]:
            start = max(start, begin[source[i]] + wait)
            stop = end[source[i]] + wait
        begin[i] = start
        end[i] = free[block[i]] = max(stop, start + lasts[i])
        if inward[i] >= 0:
            taken[inward[i]].append(end[i])
    return begin, end


def _lasts(program: Program, alpha: int, unit: int) -> Array:
    """Return how long each instruction takes by itself."""
    moves = program.count.astype(np.int64) * unit
    return np.where(SENDS[program.opcode], moves * MEMORY, moves) + alpha * MEMORY
