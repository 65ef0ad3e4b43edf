"""Which events write the packets that an event waits for. A slot is written once a launch, and holds nothing else."""

from __future__ import annotations

import numpy as np

from ...arrays import Array, distinct, distinct_pairs
from ...frozen import frozen
from ...program import Buffer
from ...ragged import owners, ranges, starts
from ..opcodes import Op
from ..program import OneSided
from ._events import Events
from ._form import MOST, doing, nth_item
from ._memory import Memory

__all__ = ["Packets", "packets"]


@frozen(eq=False)
class Packets:
    """Access ``reader[k]`` waits for packets of the events ``writer[start[k]:start[k + 1]]``; by event, ascending.

    ``whole`` says of each of these whether the access waits for all that the event writes there, by item ``number`` of
    its destinations, and ``equal`` whether for nothing else.
    """

    reader: Array
    start: Array
    writer: Array
    whole: Array
    equal: Array
    number: Array


def packets(program: OneSided, seen: Events, memory: Memory) -> tuple[list[str], Packets]:
    """Return the slots that are not used as slots, and who waits for whom."""
    rows = np.flatnonzero(seen.slot)
    none = Packets(rows[:0], np.zeros(1, dtype=np.int64), rows[:0], rows[:0] > 0, rows[:0] > 0, rows[:0])
    if not len(rows):
        return [], none
    points = distinct(np.concatenate([seen.lo[rows], seen.hi[rows]]))
    low, high = np.searchsorted(points, seen.lo[rows]), np.searchsorted(points, seen.hi[rows])
    write = seen.write[rows]
    problems = _plain(program, seen, memory, points, low, high)
    writer = np.full(len(points), -1, dtype=np.int64)
    to = np.flatnonzero(write)
    place, access = ranges(low[to], high[to] - low[to]), to[owners(high[to] - low[to])]
    writer[place] = access
    count = np.bincount(place, minlength=len(points))
    for k in np.flatnonzero(count > 1)[:MOST].tolist():
        one, other = seen.event[rows[access[np.flatnonzero(place == k)[:2]]]].tolist()
        problems.append(
            f"{_of(program, seen, one)} and {_of(program, seen, other)} both write "
            f"{memory.name(int(points[k]), True)} in one launch, and the flag of a packet does not tell them apart"
        )
    from_ = np.flatnonzero(~write & (program.opcode[seen.row[seen.event[rows]]] != Op.PPKT))
    size = high[from_] - low[from_]
    needed, of = writer[ranges(low[from_], size)], owners(size)
    lacking = np.flatnonzero(needed < 0)
    for k in lacking[:MOST].tolist():
        event = int(seen.event[rows[from_[of[k]]]])
        where = memory.name(int(points[ranges(low[from_], size)[k]]), True)
        problems.append(f"{_of(program, seen, event)} waits for {where}, which no operation writes")
    if problems:
        return problems, none
    of, needed = (column.astype(np.int64) for column in distinct_pairs(of, needed))
    reader = from_[of]
    whole = (low[reader] <= low[needed]) & (high[needed] <= high[reader])
    equal = (low[reader] == low[needed]) & (high[needed] == high[reader])
    found = starts(np.bincount(of, minlength=len(from_)))
    number = nth_item(program)[seen.item[rows[needed]]]
    return [], Packets(rows[from_], found, seen.event[rows[needed]], whole, equal, number)


def _plain(program: OneSided, seen: Events, memory: Memory, points: Array, low: Array, high: Array) -> list[str]:
    """Return the accesses without packets of addresses that hold packets."""
    covered = np.zeros(len(points) + 1, dtype=np.int64)
    np.add.at(covered, low, 1)
    np.add.at(covered, high, -1)
    held = (np.cumsum(covered)[: len(points)] > 0).astype(np.int64)
    before = starts(held[:-1] * np.diff(points))

    def amount(address: Array) -> Array:
        at = np.clip(np.searchsorted(points, address, side="right") - 1, 0, len(points) - 1)
        found: Array = before[at] + held[at] * np.maximum(address - points[at], 0)
        return found

    rank = memory.rank(seen.lo)
    plain = ~seen.slot & (seen.lo >= memory.base[rank, Buffer.SCRATCH])
    mixed = np.flatnonzero(plain & (amount(seen.hi) > amount(seen.lo)))
    return [
        f"{_of(program, seen, int(seen.event[k]))} {'writes' if seen.write[k] else 'reads'} "
        f"{memory.name(int(seen.lo[k]))} without packets, but packets are there"
        for k in mixed[:MOST].tolist()
    ]


def _of(program: OneSided, seen: Events, event: int) -> str:
    return doing(program, int(seen.row[event]))
