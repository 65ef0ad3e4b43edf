"""Which instructions must wait for which: what threadblocks of a rank read and write, turned into dependencies.

All passes on Programs end here: they arrange instructions in blocks and give a sequential order that is right; the
dependencies that make every concurrent execution equal to it are found anew.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from collc.ir.arrays import distinct
from collc.ir.layout import layout, locations
from collc.ir.machine import linearization
from collc.ir.program import Opcode, Program

__all__ = ["accesses", "conflicts", "sequential_order", "synchronize", "with_all_waits"]

Array = np.ndarray[Any, np.dtype[Any]]

_READS_SRC = np.array([op.reads_src for op in Opcode])
_READS_DST = np.array([op.reads_dst for op in Opcode])
_WRITES_DST = np.array([op.writes_dst for op in Opcode])


def sequential_order(program: Program) -> Array:
    """Return each instruction's place in one execution of the program (all executions give the same result)."""
    order = np.empty(program.num_instructions, dtype=np.int64)
    finished = linearization(program)
    order[finished] = np.arange(len(finished))
    return order


def synchronize(program: Program, order: Array) -> Program:
    """Return the program with the dependencies that its accesses need, no more than one per block waited for.

    ``order`` gives each instruction its place in a sequential execution whose result is right. Two accesses to one
    location by different blocks, one of them a write, are kept in that order. Input and output are taken to alias
    as they do in place, so the program is right in place and out of place.
    """
    return _waiting(program, *_latest(program, *_between_blocks(program, order)))


def with_all_waits(program: Program) -> Program:
    """Return the program with a wait for every conflict between blocks, those that the order in a block implies too.

    Such waits stay sufficient where instructions that do not conflict change places in their block.
    """
    waiting, awaited = np.unique(np.stack(_between_blocks(program, sequential_order(program))), axis=1)
    return _waiting(program, waiting, awaited)


def _between_blocks(program: Program, order: Array) -> tuple[Array, Array]:
    """Return the conflicts (later, earlier) of instructions of different blocks."""
    later, earlier = conflicts(program, order)
    between = program.block[later] != program.block[earlier]
    return later[between], earlier[between]


def _waiting(program: Program, waiting: Array, awaited: Array) -> Program:
    """Return the program with these waits in place of its own; ``waiting`` ascends."""
    dep_start = np.zeros(program.num_instructions + 1, dtype=np.int64)
    np.cumsum(np.bincount(waiting, minlength=program.num_instructions), out=dep_start[1:])
    return attrs.evolve(program, dep_start=dep_start, deps=awaited)


def conflicts(program: Program, order: Array) -> tuple[Array, Array]:
    """Return the pairs (later, earlier) of neighbouring conflicting accesses to each location.

    Locations are those in place, where the most accesses meet. Copies that are no accesses there are out of place.
    """
    pairs = _neighbours(program, order, True)
    idle = _idle(program)
    if not idle.any():
        return pairs[0], pairs[1]
    apart = _neighbours(program, order, False)
    with_idle = np.concatenate([pairs, apart[:, idle[apart].any(axis=0)]], axis=1)
    return with_idle[0], with_idle[1]


def _idle(program: Program) -> Array:
    """Return which copies move nothing in place: what they copy is there already."""
    src, dst = locations(program, layout(program, inplace=True))
    return (program.opcode == Opcode.COPY) & (src == dst)


def _neighbours(program: Program, order: Array, inplace: bool) -> Array:
    """Return the neighbouring conflicts as rows (later, earlier)."""
    instruction, location, write, _ = accesses(program, inplace)
    by_time = np.lexsort((write, order[instruction], location))
    instruction, location, write = instruction[by_time], location[by_time], write[by_time]
    index = np.arange(len(instruction))
    first = np.concatenate([[True], location[1:] != location[:-1]]) if len(index) else np.zeros(0, dtype=bool)
    group_start = np.maximum.accumulate(np.where(first, index, 0)) if len(index) else index
    last_write = np.maximum.accumulate(np.where(write, index, -1)) if len(index) else index
    before = np.concatenate([[-1], last_write[:-1]]) if len(index) else index
    after_write = before >= group_start  # reads after the write before them, writes after the write before them
    raw = np.stack([instruction[after_write], instruction[before[after_write]]])
    next_write = _next_write(write, len(index))
    group_end = np.append(np.flatnonzero(first)[1:], len(index))[np.cumsum(first) - 1] if len(index) else index
    overwritten = ~write & (next_write < group_end)
    war = np.stack([instruction[next_write[overwritten]], instruction[overwritten]])
    return np.concatenate([raw, war], axis=1)


def _next_write(write: Array, end: int) -> Array:
    """Return for each access the index of the next write after it, or ``end``."""
    if not end:
        return np.zeros(0, dtype=np.int64)
    at = np.where(write, np.arange(end), end)
    following = np.minimum.accumulate(at[::-1])[::-1]
    return np.append(following[1:], end)


def accesses(program: Program, inplace: bool = True) -> tuple[Array, Array, Array, Array]:
    """Return every access as (instruction, location, whether it writes, address where the location begins).

    A location is a run of chunks that all instructions access together or not at all. A copy of a place onto itself,
    as copies of input to output become in place, is no access.
    """
    code = program.opcode
    src, dst = locations(program, layout(program, inplace))
    moves = (code != Opcode.COPY) | (src != dst)
    rows = [np.flatnonzero(uses[code] & moves) for uses in (_READS_SRC, _READS_DST, _WRITES_DST)]
    instruction = np.concatenate(rows)
    low = np.concatenate([src[rows[0]], dst[rows[1]], dst[rows[2]]])
    high = low + program.count[instruction]
    write = np.repeat([False, False, True], [len(r) for r in rows])
    ends = distinct(np.concatenate([low, high]))
    first, last = np.searchsorted(ends, low), np.searchsorted(ends, high)
    widths = last - first
    location = np.arange(int(widths.sum())) - np.repeat(np.cumsum(widths) - widths - first, widths)
    return np.repeat(instruction, widths), location, np.repeat(write, widths), ends[location]


def _latest(program: Program, waiting: Array, awaited: Array) -> tuple[Array, Array]:
    """Keep, for each instruction and block waited for, the latest step, and only what was not waited for before."""
    if not len(waiting):
        return waiting, awaited
    block = program.block.astype(np.int64)
    own, other = block[waiting], block[awaited]
    order = np.lexsort((-awaited, waiting, other, own))
    waiting, awaited, own, other = waiting[order], awaited[order], own[order], other[order]
    stream = np.concatenate([[True], (own[1:] != own[:-1]) | (other[1:] != other[:-1])])
    # Adding a multiple of the number of instructions lets one running maximum serve all streams.
    height = awaited + np.cumsum(stream) * np.int64(program.num_instructions)
    highest = np.concatenate([[-1], np.maximum.accumulate(height)[:-1]])
    keep = stream | (height > highest)
    waiting, awaited = waiting[keep], awaited[keep]
    order = np.lexsort((awaited, waiting))
    return waiting[order], awaited[order]
