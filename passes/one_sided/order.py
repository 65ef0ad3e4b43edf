"""What happens before what in a one-sided program: who signals whom, and one order of all events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from collc.ir.arrays import Array, distinct, fit, lexsort
from collc.ir.frozen import frozen
from collc.ir.one_sided.opcodes import SIGNALS, WAITS, Op, table
from collc.ir.one_sided.program import OneSided
from collc.ir.one_sided.waves import Spread, arranged, levels
from collc.ir.program import Buffer
from collc.ir.ragged import first_of_group, ranges

from .rows import OPCODE, SOURCES, Rows, packet_items, rows_of

__all__ = ["Clocks", "Order", "clocks", "last_clocks", "levels_of", "moments", "order_of", "renumbered", "sequence_of"]

_ACQUIRES = table(Op.SEM_ACQUIRE)
_RELEASES = table(Op.SEM_RELEASE)


@frozen(eq=False)
class Order:
    """Operation ``later[k]`` waits for ``earlier[k]``; sorted by ``later``."""

    later: Array
    earlier: Array

    def waits(self, operations: Array) -> list[int | list[int]]:
        """Return what each of these operations waits for: one operation, or a list of any number."""
        before, many = self.earlier.tolist(), np.bincount(self.later, minlength=int(operations.max(initial=-1)) + 1)
        first = np.searchsorted(self.later, operations)
        pairs = zip(first.tolist(), many[operations].tolist(), strict=True)
        return [before[low] if number == 1 else before[low : low + number] for low, number in pairs]


def order_of(program: OneSided) -> Order | None:
    """Return the order of a program; None if it hangs, or if the order of blocks decides which signal ends a wait.

    It depends on the order if several blocks signal on one channel, or wait on it; the same with semaphores. A program
    with barriers or loops has none here either.
    """
    if "order" not in program.found:
        program.found["order"] = _order_of(program)
    found: Order | None = program.found["order"]
    return found


def renumbered(result: OneSided, program: OneSided, place: Array) -> OneSided:
    """Return ``result``, which has the signals and packets of ``program``; operation k is now ``place[k]``.

    Its order is then known without another search.
    """
    known: Order | None = program.found.get("order")
    if known is not None:
        by = lexsort((place[known.earlier], place[known.later]))
        result.found["order"] = Order(place[known.later][by], place[known.earlier][by])
        if "sequence" in program.found:
            result.found["sequence"] = place[program.found["sequence"]]
    return result


def levels_of(program: OneSided, order: Order) -> Array:
    """Return for each operation how many come before it on the longest path."""
    if "levels" not in program.found:
        program.found["levels"] = levels(program.block_start.astype(np.int64), order.later, order.earlier)
    found: Array = program.found["levels"]
    return found


def _order_of(program: OneSided) -> Order | None:
    rows = rows_of(program)
    if (rows.fixed[:, OPCODE] == Op.BARRIER).any() or len(program.loop_unit):
        return None
    pairs = [_of_channels(program, rows), _of_semaphores(program, rows), _of_packets(rows)]
    if any(pair is None for pair in pairs):
        return None
    later, earlier = np.concatenate([pair for pair in pairs if pair is not None], axis=1)
    by = lexsort((earlier, later))
    later, earlier = later[by], earlier[by]
    level = levels(program.block_start.astype(np.int64), later, earlier)
    if level is None:
        return None
    program.found["levels"] = level
    return Order(later, earlier)


def _of_channels(program: OneSided, rows: Rows) -> Array | None:
    opcode = program.opcode[program.link_operation]
    partner = program.partner
    signals, waits = np.flatnonzero(SIGNALS[opcode]), np.flatnonzero(WAITS[opcode])
    return _nth(program, rows.links[waits], waits, partner[rows.links[signals]], signals)


def _of_semaphores(program: OneSided, rows: Rows) -> Array | None:
    if program.semaphore_value.any():
        return None
    opcode = program.opcode[program.link_operation]
    acquires, releases = np.flatnonzero(_ACQUIRES[opcode]), np.flatnonzero(_RELEASES[opcode])
    return _nth(program, rows.links[acquires], acquires, rows.links[releases], releases)


def _nth(program: OneSided, ended: Array, waits: Array, ending: Array, signals: Array) -> Array | None:
    """Return the pairs (wait, signal) of operations: the k-th wait on a link ends by its k-th signal."""
    if len(ended) != len(ending):
        return None
    first, second = lexsort([ended]), lexsort([ending])
    link, operation = ended[first], program.link_operation[waits[first]]
    other, signal = ending[second], program.link_operation[signals[second]]
    if (link != other).any() or not (_one_block(program, link, operation) and _one_block(program, other, signal)):
        return None
    return np.stack([operation, signal])


def _one_block(program: OneSided, link: Array, operation: Array) -> bool:
    """Return whether all operations of each link, which ascends, are in one block."""
    block = program.block[operation]
    return bool(((block[1:] == block[:-1]) | (link[1:] != link[:-1])).all())


def _of_packets(rows: Rows) -> Array | None:
    """Return the pairs (reader, writer) of packets."""
    item = np.flatnonzero(packet_items(rows))
    operation = np.repeat(np.arange(len(rows)), rows.item_count)[item]
    written = ranges(0, rows.item_count)[item] >= rows.fixed[operation, SOURCES]
    place = rows.items[item, 0] * np.int64(rows.items[:, 2:4].sum(axis=1).max(initial=0) + 1) + rows.items[item, 2]
    order = lexsort([place[written]])
    low, count, writer = place[written][order], rows.items[item, 3][written][order], operation[written][order]
    if (low[1:] < (low + count)[:-1]).any() or (rows.items[item, 1] != Buffer.SCRATCH).any():
        return None  # a slot has two writers
    start, size = place[~written], rows.items[item, 3][~written]
    first = np.searchsorted(low + count, start, side="right")
    last = np.searchsorted(low, start + size, side="left")
    number = np.maximum(last - first, 0)
    if (number < 1).any():
        return None  # packets that no operation writes
    return np.stack([np.repeat(operation[~written], number), writer[ranges(first, number)]])


def sequence_of(program: OneSided, order: Order) -> Array:
    """Return the operations that wait or that others wait for, in an order that respects all waits."""
    if "sequence" not in program.found:
        program.found["sequence"] = _sequence(program, order)
    found: Array = program.found["sequence"]
    return found


def _sequence(program: OneSided, order: Order) -> Array:
    events = np.zeros(program.num_operations, dtype=bool)
    events[order.later] = events[order.earlier] = True
    rows = np.flatnonzero(events)
    ends = np.append(np.flatnonzero(first_of_group(program.block[rows])), len(rows)).tolist()
    found = _run(rows.tolist(), ends, order.waits(rows), bytearray(program.num_operations))
    return np.array(found, dtype=np.int64)


def _run(rows: Sequence[int], ends: Sequence[int], waits: Sequence[int | list[int]], done: bytearray) -> list[int]:
    """Return rows in an order that respects all waits, of one row or several; there is one."""
    found: list[int] = []
    asleep: dict[int, list[int]] = {}
    at = list(ends[:-1])
    ready = list(range(len(at) - 1, -1, -1))
    while ready:
        one = ready.pop()
        begin, end = at[one], ends[one + 1]
        for place in range(begin, end):
            wait, row = waits[place], rows[place]
            if type(wait) is int:
                missing = -1 if done[wait] else wait
            else:
                missing = next((before for before in wait if not done[before]), -1) if wait else -1  # type: ignore[union-attr]
            if missing >= 0:
                asleep.setdefault(missing, []).append(one)
                end = place
                break
            done[row] = 1
            if row in asleep:
                ready += asleep.pop(row)
        found += rows[begin:end]
        at[one] = end
    return found


def moments(program: OneSided, order: Order) -> Array:
    """Return for each operation a number that grows along happens-before, except within a block between events."""
    moment = np.full(program.num_operations, -1, dtype=np.int64)
    row = sequence_of(program, order)
    moment[row] = np.arange(len(row))
    # within a block, moments of events grow, so the largest so far is that of the last event
    height = moment + program.block * np.int64(len(row) + 1)
    found: Array = np.maximum.accumulate(np.where(moment >= 0, height, -1)) if len(height) else height
    return np.maximum(found - program.block * np.int64(len(row) + 1), -1)


@frozen(eq=False)
class Clocks:
    """What has happened before each of some operations.

    ``value[node[k], b]`` is the last operation of block b that has happened before operation k by the events of its
    block, counted from the first of block b; -1 if none has.
    """

    program: OneSided
    operation: Array
    node: Array
    value: Array

    def know(self, which: Array, other: Array) -> Array:
        """Return whether operations ``other`` have happened before the ``which``-th ones; the arrays broadcast."""
        block, of = self.program.block[other], self.operation[which]
        found: Array = self.value[self.node[which], block] > other - self.program.block_start[block]
        return np.where(block == self.program.block[of], other < of, found)


def clocks(program: OneSided, order: Order, operations: Array) -> Clocks:
    """Return what has happened before each of some operations."""
    known = _Knowledge.of(program, order)
    return Clocks(program, operations, known.place[_node(program, known.waiting, operations, "left")], known.value)


def last_clocks(program: OneSided, order: Order) -> Array:
    """Return what each block knows to have happened at its end: shape (blocks, blocks).

    All operations of block b that are below entry b have happened.
    """
    known, start = _Knowledge.of(program, order), program.block_start.astype(np.int64)
    last = _node(program, known.waiting, start[1:] - 1, "right", np.arange(program.num_blocks))
    ends = known.value[known.place[last]].astype(fit(-1, program.num_operations))
    ends += start[:-1].astype(ends.dtype)
    telling = distinct(order.earlier)
    ends[program.block[telling], program.block[telling]] = telling
    return ends


@frozen(eq=False)
class _Knowledge:
    """What the starts of blocks and then the operations that wait, ``waiting``, know: rows ``place`` of ``value``.

    A row has an entry for each block, as in :class:`Clocks`.
    """

    waiting: Array
    place: Array
    value: Array

    @classmethod
    def of(cls, program: OneSided, order: Order) -> _Knowledge:
        blocks, block, start = program.num_blocks, program.block, program.block_start.astype(np.int64)
        waiting = distinct(order.later)
        level = levels_of(program, order)
        reached = np.concatenate([np.full(blocks, -1, dtype=np.int64), level[waiting]])
        own = np.searchsorted(waiting, order.later) + blocks
        after = np.arange(len(waiting)) + blocks
        later = np.concatenate([after, own])
        previous = np.where(first_of_group(block[waiting]), block[waiting], after - 1)
        earlier = np.concatenate([previous, _node(program, waiting, order.earlier, "right")])
        place = arranged(reached, later)
        other = block[order.earlier]
        value = np.full((len(reached), blocks), -1, dtype=fit(-1, int(np.diff(start).max(initial=0))))
        spread = Spread(np.sort(reached), place[later], place[earlier])
        spread.into(value, place[own], other, order.earlier - start[other])
        return cls(waiting, place, value)


def _node(
    program: OneSided, waiting: Array, operations: Array, side: Literal["left", "right"], block: Array | None = None
) -> Array:
    """Return the last node of the block of each operation, up to it; with ``left``, before it."""
    of = program.block[operations] if block is None else block
    at = np.searchsorted(waiting, operations, side=side) - 1
    there = at >= 0
    there[there] = program.block[waiting[at[there]]] == of[there]
    found: Array = np.where(there, at + program.num_blocks, of)
    return found
