"""How long a program takes by a simple model of threadblocks, in integers. Passes compare strategies by it.

Every instruction takes ``alpha`` to start, and ``unit`` for every chunk that it sends. Copies within a rank's memory
are ``MEMORY`` times as fast. A receive may start when its send has started, and ends at least ``alpha`` after the send.
So fused instructions forward data while they arrive, and others store them first. A connection holds ``depth``
messages. The model ignores the load of links, because all strategies send the same data over them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from collc.ir.arrays import Array, lexsort
from collc.ir.frozen import frozen
from collc.ir.machine import connections, execute, message_links, partners
from collc.ir.program import Program
from collc.ir.ragged import inverse
from collc.ir.waves import Needed, Waves, some_waves, waves_within

__all__ = ["MEMORY", "Times", "duration", "play"]

#: speed of a rank's memory relative to a connection
MEMORY = 8


def duration(
    program: Program, alpha: int, unit: int, depth: int | None = None, finished: Array | None = None
) -> int | None:
    """Return when the last instruction ends; None if the program deadlocks.

    ``finished`` is a known order in which instructions may finish, or None. Times are in units of ``1 / MEMORY`` of the
    unit of ``alpha`` and ``unit``, so that all are integers.
    """
    found = waves_within(program, depth)
    if found is not None:
        return int(_wide_times(program, found, alpha, unit, depth)[1].max(initial=0))
    if finished is None:
        run = execute(program, depth)
        if run.deadlock:
            return None
        finished = run.finished
    return max(_times(program, finished, alpha, unit, depth)[1], default=0)


@frozen(eq=False)
class Times:
    """When each instruction begins and ends, and when its turn is: a receive's is when its data have arrived, so that
    its block may do something else until then.
    """

    begin: Array
    end: Array
    due: Array

    def places(self, finished: Array) -> Array:
        """Return each instruction's position in the order of turns, those of one time as in ``finished``."""
        return inverse(finished[lexsort([self.due[finished]])])


def play(program: Program, alpha: int, unit: int, finished: Callable[[], Array]) -> Times:
    """Return when instructions begin and end if all begin as soon as they can, with FIFOs of unlimited depth.

    ``finished`` returns an order in which they may finish.
    """
    found = some_waves(program)  # times do not depend on the order in which they are computed
    if found is not None:
        begin, end = _wide_times(program, found, alpha, unit, None)
    else:
        begin, end = (np.array(times, dtype=np.int64) for times in _times(program, finished(), alpha, unit, None))
    return Times(begin, end, np.maximum(begin, end - _durations(program, alpha, unit)))


def _times(program: Program, finished: Array, alpha: int, unit: int, depth: int | None) -> tuple[list[int], list[int]]:
    """Return when each instruction begins and ends."""
    links, partner = connections(program), partners(program)
    block, source, arrives = program.block.tolist(), partner.tolist(), program.receives.tolist()
    inward, outward = (column.tolist() for column in message_links(program, links))
    durations = _durations(program, alpha, unit).tolist()
    dep_start, deps = program.dep_start.tolist(), program.deps.tolist()
    begin, end = [0] * program.num_instructions, [0] * program.num_instructions
    free = [0] * program.num_blocks
    taken: list[list[int]] = [[] for _ in range(len(links))]  # connection -> when each of its messages was received
    sent = [0] * len(links)
    latency = alpha * MEMORY
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
            start = max(start, begin[source[i]] + latency)
            stop = end[source[i]] + latency
        begin[i] = start
        end[i] = free[block[i]] = max(stop, start + durations[i])
        if inward[i] >= 0:
            taken[inward[i]].append(end[i])
    return begin, end


def _wide_times(program: Program, order: Waves, alpha: int, unit: int, depth: int | None) -> tuple[Array, Array]:
    """Return the same as :func:`_times`, computed wave by wave."""
    n, latency, rows = program.num_instructions, alpha * MEMORY, order.instruction
    before = np.where(program.step > 0, np.arange(n) - 1, n).take(rows)
    freed = _slots(program, depth).take(rows)
    source = np.where(program.receives, partners(program), n + 1).take(rows)
    durations = _durations(program, alpha, unit).take(rows)
    needed = Needed(program, order)
    begin, end = np.zeros((2, n + 2), dtype=np.int64)  # the last two stand for "no instruction": as early, never
    begin[-1] = end[-1] = np.iinfo(np.int64).min // 2
    for a, b in zip(order.start[:-1].tolist(), order.start[1:].tolist(), strict=True):
        start = np.maximum(end.take(before[a:b]), end.take(freed[a:b]))
        needed.raise_to(start, end, a)
        sent = source[a:b]
        start = np.maximum(start, begin.take(sent) + latency)
        begin[rows[a:b]], end[rows[a:b]] = start, np.maximum(end.take(sent) + latency, start + durations[a:b])
    return begin[:-2], end[:-2]


def _slots(program: Program, depth: int | None) -> Array:
    """Return for each send the receive that frees its slot, ``depth`` messages before; n if there is none."""
    n = program.num_instructions
    result = np.full(n, n, dtype=np.int64)
    if depth is None:
        return result
    partner = partners(program)
    receives = np.flatnonzero(partner >= 0)
    link = connections(program).inward[program.block[receives]]
    by_link = lexsort([link])  # of one connection, in the order of its messages
    receives, link = receives[by_link], link.take(by_link)
    same = link[depth:] == link[:-depth]
    result[partner[receives[depth:][same]]] = receives[:-depth][same]
    return result


def _durations(program: Program, alpha: int, unit: int) -> Array:
    """Return how long each instruction takes by itself."""
    moves = program.count.astype(np.int64) * unit
    return np.where(program.sends, moves * MEMORY, moves) + alpha * MEMORY
