"""The events of one launch: every operation of every turn of a loop, and the addresses that it reads and writes."""

from __future__ import annotations

from fractions import Fraction
from math import gcd, lcm

import numpy as np

from ...arrays import Array, distinct, distinct_rows
from ...frozen import frozen
from ...ragged import group_starts, nth, owners, ranges, starts
from ..opcodes import Op, table
from ..program import OneSided, Transport
from ._form import slots
from ._memory import Memory

__all__ = ["PARTS", "Events", "as_executed", "events", "lengths", "parts_needed", "shortest"]

#: operations whose items in the executor's memory of a peer all take the buffer of the first source
_FIRST_BUFFER = table(Op.PUT, Op.PWS, Op.PWSF, Op.PPKT)
#: operations that end a phase of their block, in which all its threads meet
PARTS = table(Op.NOP, Op.BARRIER)


@frozen(eq=False)
class Events:
    """The events of all blocks, block by block: event e is operation ``row[e]`` in turn ``turn[e]`` of its loop.

    Those of block b are ``start[b]`` to ``start[b + 1]`` (exclusive). Access k is of event ``event[k]``: it reads or
    (``write``) writes addresses ``lo[k]`` to ``hi[k]``, as packets if ``slot``. ``item`` is its item. ``first`` are the
    first accesses of events, whose sources stand before their destinations.
    """

    row: Array
    turn: Array
    start: Array
    block: Array
    event: Array
    item: Array
    lo: Array
    hi: Array
    write: Array
    slot: Array
    first: Array

    def phases(self, program: OneSided) -> tuple[Array, Array]:
        """Return the phase of each event in its block, from 0, and the number of phases of each block."""
        parts = PARTS[program.opcode[self.row]].astype(np.int64)
        before = starts(parts)
        first = before[self.start]
        return before[:-1] - first[self.block], np.diff(first) + 1


def as_executed(program: OneSided) -> tuple[Array, Array]:
    """Return the buffer and offset of each item as the executor has them, which differ for two operations.

    A put on memory channels takes all sources from the buffer of the first. A get reads at the offset of its
    destination, and writes at the offset of its source.
    """
    buffer, offset = program.item_buffer.astype(np.int64), program.item_offset.astype(np.int64)
    of = program.item_operation
    start = program.item_start.astype(np.int64)[of]
    op = program.opcode[of]
    puts = np.flatnonzero(
        _FIRST_BUFFER[op] & program.item_is_source & (program.transport[of] == Transport.MEMORY)
    )  # fmt: skip
    buffer[puts] = program.item_buffer[start[puts]]
    gets = np.flatnonzero((op == Op.GET) & program.item_is_source)
    other = gets + program.sources[of[gets]].astype(np.int64)
    offset[gets], offset[other] = program.item_offset[other], program.item_offset[gets]
    return buffer, offset


def lengths(program: OneSided, chunk: Fraction) -> list[Fraction]:
    """Return the turns of each loop if a chunk has ``chunk`` bytes; a fraction stands for a last turn that is cut."""
    return [chunk * ratio for ratio in _turns_per_byte(program)]


def shortest(program: OneSided) -> Fraction:
    """Return the turns per byte of a chunk of the loop that has the fewest."""
    return min(_turns_per_byte(program))


def _turns_per_byte(program: OneSided) -> list[Fraction]:
    pairs = zip(program.loop_unit.tolist(), program.loop_chunks.tolist(), strict=True)
    return [Fraction(count, unit) for unit, count in pairs]


def parts_needed(program: OneSided, turns: list[Fraction]) -> int:
    """Return the parts of a chunk that all shares and turns are whole numbers of."""
    of = program.item_operation
    pairs = distinct_rows(np.stack([program.item_count, program.shares[of]], axis=1)).tolist()
    parts = lcm(*(g // gcd(n, g) for n, g in pairs))
    for loop, number in enumerate(turns):
        inside = program.loop[of] == loop
        for count in distinct(program.item_count[inside]).tolist():
            parts = lcm(parts, (Fraction(count) / number).denominator)
    return parts


def events(program: OneSided, memory: Memory, turns: list[Fraction]) -> Events:
    """Return the events of a program whose loops have these ``turns``."""
    row, turn, start = _rows(program, turns)
    number = np.diff(program.item_start.astype(np.int64))[row]
    item = ranges(program.item_start.astype(np.int64)[row], number)
    event = owners(number)
    lo, hi = _spans(program, memory, turns, row, turn, event, item)
    slot = slots(program)[item]
    rank = program.item_rank.astype(np.int64)
    channel = program.item_channel.astype(np.int64)[item]
    owner = rank[item]
    if (channel >= 0).any():
        joined = np.where(channel >= 0, np.diff(program.group_start.astype(np.int64))[channel], 1)
        again = owners(joined)
        member = nth(joined)
        through = channel[again] >= 0
        at = program.group_start.astype(np.int64)[np.maximum(channel[again], 0)] + member
        owner = np.where(through, program.groups[np.minimum(at, len(program.groups) - 1)], owner[again])
        event, item, lo, hi, slot = event[again], item[again], lo[again], hi[again], slot[again]
    base = memory.base[owner, as_executed(program)[0][item]]
    scale = np.where(slot, 2, 1)
    write = ~program.item_is_source[item]
    used = program.opcode[row][event] != Op.FLUSH
    keep = np.flatnonzero(used)
    first = group_starts(event[keep], len(row))
    block = program.block[row]
    return Events(
        row, turn, start, block, event[keep], item[keep], (base + scale * lo)[keep], (base + scale * hi)[keep],
        write[keep], slot[keep], first,
    )  # fmt: skip


def _rows(program: OneSided, turns: list[Fraction]) -> tuple[Array, Array, Array]:
    """Return the operation and turn of each event, and the first event of each block."""
    if not turns or not (program.loop >= 0).any():
        rows = np.arange(program.num_operations)
        return rows, np.zeros(len(rows), dtype=np.int64), program.block_start.astype(np.int64)
    row: list[int] = []
    turn: list[int] = []
    count = np.zeros(program.num_blocks, dtype=np.int64)
    loop = program.loop.tolist()
    bounds = program.block_start.tolist()
    for block in range(program.num_blocks):
        i, end, before = bounds[block], bounds[block + 1], len(row)
        while i < end:
            stop = i + 1
            while loop[i] >= 0 and stop < end and loop[stop] == loop[i]:
                stop += 1
            times = 1 if loop[i] < 0 else -(-turns[loop[i]] // 1)
            for k in range(int(times)):
                row += range(i, stop)
                turn += [k] * (stop - i)
            i = stop
        count[block] = len(row) - before
    return np.array(row, dtype=np.int64), np.array(turn, dtype=np.int64), starts(count)


def _spans(
    program: OneSided, memory: Memory, turns: list[Fraction], row: Array, turn: Array, event: Array, item: Array
) -> tuple[Array, Array]:
    """Return the first and last (exclusive) part of the buffer that each access touches."""
    op = row[event]
    size = program.item_count.astype(np.int64)[item] * memory.parts
    share, shares = program.share.astype(np.int64)[op], program.shares.astype(np.int64)[op]
    at = as_executed(program)[1][item] * memory.parts
    lo, hi = at + size * share // shares, at + size * (share + 1) // shares
    for loop, number in enumerate(turns):
        inside = np.flatnonzero(program.loop[op] == loop)
        if len(inside):
            unit = size[inside] * number.denominator // number.numerator
            lo[inside] = at[inside] + unit * turn[event[inside]]
            hi[inside] = np.minimum(lo[inside] + unit, at[inside] + size[inside])
    return lo, hi
