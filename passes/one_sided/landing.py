"""Which messages can land in their final place."""

from __future__ import annotations

import numpy as np

from collc.ir.arrays import Array, lexsort
from collc.ir.frozen import frozen
from collc.ir.one_sided.opcodes import Op
from collc.ir.one_sided.program import OneSided
from collc.ir.program import Buffer
from collc.ir.ragged import first_of_group, ranges, starts

from .accesses import accesses
from .order import Clocks
from .rows import OPCODE, Rows

__all__ = ["Slots", "landed", "slots_of"]


@frozen(eq=False)
class Slots:
    """Messages in scratch: the ``writer`` (an operation) writes ``put`` (an item), and no other operation writes there.

    Entries ``start[m]`` to ``start[m + 1]`` (exclusive) of ``readers`` are the items of the receiver in message m's
    slot. Messages are sorted by slot: by rank, then by offset.
    """

    writer: Array
    put: Array
    start: Array
    readers: Array


def slots_of(rows: Rows, rank: Array) -> Slots:
    """Return the messages whose slots no other message overlaps, and that the receiver uses only within the slot.

    ``rank`` is the rank of each operation.
    """
    operation = np.repeat(np.arange(len(rows)), rows.item_count)
    item = np.flatnonzero(rows.items[:, 1] == Buffer.SCRATCH)
    width = np.int64(rows.items[:, 2:4].sum(axis=1).max(initial=0) + 1)
    low = rows.items[item, 0] * width + rows.items[item, 2]
    remote = rows.items[item, 0] != rank[operation[item]]
    put = item[remote][lexsort([low[remote]])]
    begin = rows.items[put, 0] * width + rows.items[put, 2]
    end = begin + rows.items[put, 3]
    alone = np.append(True, begin[1:] >= end[:-1])[: len(put)] & np.append(begin[1:] >= end[:-1], True)[: len(put)]
    local, at = item[~remote], low[~remote]
    first = np.searchsorted(end, at, side="right")
    after = np.searchsorted(begin, at + rows.items[local, 3], side="left")
    hit = np.flatnonzero(after > first)
    inside = (after[hit] == first[hit] + 1) & (begin[first[hit]] <= at[hit])
    inside &= at[hit] + rows.items[local[hit], 3] <= end[first[hit]]
    for k in hit[~inside].tolist():
        alone[first[k] : after[k]] = False
    place = np.cumsum(alone) - 1
    kept = hit[inside & alone[first[hit]]]
    message = place[first[kept]]
    by = lexsort([message])
    counts = np.bincount(message, minlength=int(alone.sum()))
    return Slots(operation[put[alone]], put[alone], starts(counts), local[kept][by])


def landed(program: OneSided, rows: Rows, slots: Slots, clock: Clocks, moment: Array) -> tuple[Rows, Array, Array]:
    """Return the operations of which messages land in their final place, where they may.

    Also return which messages do, and the copies that are no longer needed. ``clock`` is what has happened before each
    message's writer, ``moment`` that of operations.
    """
    operation = np.repeat(np.arange(len(rows)), rows.item_count)
    message, copy = _copied(rows, operation, slots)
    done = np.zeros(len(slots.put), dtype=bool)
    if len(message):
        fits = _fits(program, _moved(rows, slots, message, copy), clock, message, copy, moment)
        message, copy = message[fits], copy[fits]
        rows = _moved(rows, slots, message, copy)
        done[message] = True
    return rows, done, copy


def _copied(rows: Rows, operation: Array, slots: Slots) -> tuple[Array, Array]:
    """Return the messages that are copied as a whole by one operation, and that operation."""
    message = np.repeat(np.arange(len(slots.put)), np.diff(slots.start))
    reader = operation[slots.readers]
    whole = (rows.items[slots.readers, 2:4] == rows.items[slots.put[message], 2:4]).all(axis=1)
    copies = np.flatnonzero((rows.fixed[reader, OPCODE] == Op.COPY) & whole)
    copies = copies[first_of_group(message[copies])]
    return message[copies], reader[copies]


def _moved(rows: Rows, slots: Slots, message: Array, copy: Array) -> Rows:
    """Return the operations that write and read messages where the copies would put them."""
    items = rows.items.copy()
    target = items[starts(rows.item_count)[copy] + 1]
    source = items[slots.put[message]]
    count = np.diff(slots.start)[message]
    entries = slots.readers[ranges(slots.start[message], count)]
    by = np.repeat(np.arange(len(message)), count)
    items[entries, 2] += (target[:, 2] - source[:, 2])[by]
    items[entries, 1] = target[by, 1]
    items[slots.put[message], 1:3] = target[:, 1:3]
    return Rows(rows.fixed, rows.link_count, rows.links, rows.item_count, items)


def _fits(program: OneSided, moved: Rows, clock: Clocks, landing: Array, copy: Array, moment: Array) -> Array:
    """Return which messages can land: all accesses to their places that come before the copy precede the writer."""
    found = accesses(program, moved)
    message = np.full(len(moved), -1, dtype=np.int64)
    message[copy] = np.arange(len(copy))
    # The write of the copy stands for the message, so the one of its writer is left out.
    local = moved.items[found.item, 0] == program.rank[found.operation]
    location, operation, write = found.location[local], found.operation[local], found.write[local]
    copied = np.flatnonzero((message[operation] >= 0) & write)
    first, last = (np.searchsorted(location, location[copied], side=side) for side in ("left", "right"))
    pair = np.repeat(copied, last - first)
    other = operation[ranges(first, last - first)]
    own = operation[pair]
    earlier = (moment[other] < moment[own]) | ((moment[other] == moment[own]) & (other < own))
    of, other = message[own[earlier]], other[earlier]
    fits = np.ones(len(copy), dtype=bool)
    fits[of[~clock.know(landing[of], other)]] = False
    return fits
