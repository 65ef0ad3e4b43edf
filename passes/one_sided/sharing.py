"""Messages that share scratch: one lands where another has been read."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from collc.ir.arrays import Array, lexsort
from collc.ir.one_sided.program import OneSided
from collc.ir.program import Buffer
from collc.ir.ragged import group_starts, ranges, starts

from .landing import Slots
from .order import Clocks
from .rows import Rows

__all__ = ["shared_slots"]


def shared_slots(
    program: OneSided, rows: Rows, slots: Slots, messages: Array, clock: Clocks, moment: Array
) -> tuple[Rows, int]:
    """Return the operations of which these messages share scratch, and the scratch that they need.

    A message takes the lowest place where all reads of the messages before it have happened when its sender writes.
    """
    return _packed(rows, slots, messages, _free(program, rows, slots, messages, clock, moment[slots.writer]))


def _free(
    program: OneSided, rows: Rows, slots: Slots, listed: Array, clock: Clocks, moment: Array
) -> list[tuple[Array, Array]]:
    """Return for each rank its messages, as they are sent, and which can lie where which others have been.

    Entry (y, x) says that all reads of x have happened when y is written.
    """
    operation = np.repeat(np.arange(len(rows)), rows.item_count)
    rank = rows.items[slots.put, 0]
    found = []
    for one in range(program.num_ranks):
        messages = listed[rank[listed] == one]
        messages = messages[lexsort((messages, moment[messages]))]
        counts = np.diff(slots.start)[messages]
        reader = operation[slots.readers[ranges(slots.start[messages], counts)]]
        over = clock.know(messages[:, None], reader)
        read = np.flatnonzero(counts)
        free = np.zeros((len(messages), len(messages)), dtype=bool)
        if len(read):
            free[:, read] = np.logical_and.reduceat(over, starts(counts)[read], axis=1)
        found.append((messages, free))
    return found


def _packed(rows: Rows, slots: Slots, listed: Array, free: Sequence[tuple[Array, Array]]) -> tuple[Rows, int]:
    """Return the operations whose messages lie behind all other scratch, each at the lowest free place."""
    counts = np.diff(slots.start)[listed]
    readers = slots.readers[ranges(slots.start[listed], counts)]
    scratch = rows.items[:, 1] == Buffer.SCRATCH
    scratch[slots.put[listed]] = scratch[readers] = False
    first = int(rows.items[scratch, 2:4].sum(axis=1).max(initial=0))
    size = rows.items[slots.put, 3]
    place = np.zeros(len(slots.put), dtype=np.int64)
    for messages, known in free:
        place[messages] = first + _first_fit(size[messages], known)
    by = (place - rows.items[slots.put, 2])[listed]
    items = rows.items.copy()
    items[slots.put[listed], 2] += by
    items[readers, 2] += np.repeat(by, counts)
    most = int((place + size)[listed].max(initial=first))
    return attrs.evolve(rows, items=items), most


def _first_fit(size: Array, free: Array) -> Array:
    """Return the offsets of messages of these sizes; ``free`` is that of :func:`_free`."""
    if not np.tril(free, -1).any():
        return starts(size)[:-1]
    later, earlier = np.nonzero(np.tril(~free, -1))
    first, others = group_starts(later, len(size)).tolist(), earlier.tolist()
    unit = int(np.gcd.reduce(size))
    lies: list[int] = []  # message -> the units that it takes, as bits
    found = []
    for k, count in enumerate((size // unit).tolist()):
        taken = 0
        for x in others[first[k] : first[k + 1]]:
            taken |= lies[x]
        at = _first_run(~taken, count)
        lies.append(((1 << count) - 1) << at)
        found.append(at * unit)
    return np.array(found, dtype=np.int64)


def _first_run(bits: int, count: int) -> int:
    """Return the lowest place from which on ``count`` bits are set.

    >>> _first_run(~0b1101, 1), _first_run(~0b1101, 2)
    (1, 4)
    """
    length = 1
    while length < count:
        more = min(length, count - length)
        bits &= bits >> more
        length += more
    return (bits & -bits).bit_length() - 1
