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
from collc.ir.waves import Waves, waves, waves_within

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
    swift = waves_within(program, depth)
    if swift is not None:
        return int(_wide_times(program, swift, alpha, unit, depth)[1].max(initial=0))
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
    swift = waves(program)
    if swift is not None:
        begin, end = _wide_times(program, swift, alpha, unit, None)
    else:
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


def _wide_times(program: Program, order: Waves, alpha: int, unit: int, depth: int | None) -> tuple[Array, Array]:
    """Return when each instruction begins and ends, as :func:`_times` finds, a wave at a time."""
    n, wait, lasts = program.num_instructions, alpha * MEMORY, _lasts(program, alpha, unit)
    source = np.where(RECEIVES[program.opcode], partners(program), n)
    freed = _slots(program, depth)
    before = np.where(program.step > 0, np.arange(n) - 1, n)
    dep_start, deps = program.dep_start.astype(np.int64), program.deps.astype(np.int64)
    begin, end = np.zeros((2, n + 1), dtype=np.int64)  # the last is for what does not exist
    for a, b in zip(order.start[:-1].tolist(), order.start[1:].tolist(), strict=True):
        rows = order.instruction[a:b]
        start = np.maximum(end[before[rows]], end[freed[rows]])
        late = np.flatnonzero(dep_start[rows] < dep_start[rows + 1])
        if len(late):
            low, high = dep_start[rows[late]], dep_start[rows[late] + 1]
            first = np.cumsum(high - low) - (high - low)
            at = np.arange(int((high - low).sum())) + np.repeat(low - first, high - low)
            start[late] = np.maximum(start[late], np.maximum.reduceat(end[deps[at]], first))
        arrives = source[rows] < n
        stop = np.where(arrives, end[source[rows]] + wait, start)
        start = np.where(arrives, np.maximum(start, begin[source[rows]] + wait), start)
        begin[rows], end[rows] = start, np.maximum(stop, start + lasts[rows])
    return begin[:-1], end[:-1]


def _slots(program: Program, depth: int | None) -> Array:
    """Return for each send the receive that frees its slot, ``depth`` messages before; n where there is none."""
    n = program.num_instructions
    result = np.full(n, n, dtype=np.int64)
    if depth is None:
        return result
    partner = partners(program)
    receives = np.flatnonzero(partner >= 0)
    link = connections(program).inward[program.block[receives]]
    by_link = np.argsort(link, kind="stable")  # of one connection, in the order of its messages
    receives, link = receives[by_link], link[by_link]
    same = link[depth:] == link[:-depth]
    result[partner[receives[depth:][same]]] = receives[:-depth][same]
    return result


def _lasts(program: Program, alpha: int, unit: int) -> Array:
    """Return how long each instruction takes by itself."""
    moves = program.count.astype(np.int64) * unit
    return np.where(SENDS[program.opcode], moves * MEMORY, moves) + alpha * MEMORY
