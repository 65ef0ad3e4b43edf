"""Compute the dependencies of a program from the locations that threadblocks of a rank read and write.

Every pass on programs ends here. It arranges instructions in blocks and gives a correct sequential order. This module
computes the dependencies that make every concurrent execution equal to that order.
"""

from __future__ import annotations

import numpy as np

from collc.ir.arrays import Array, distinct_pairs, lexsort, numbered
from collc.ir.diagnostic import error
from collc.ir.editing import with_dependencies
from collc.ir.layout import layout, locations
from collc.ir.machine import execute, linearization
from collc.ir.program import Opcode, Program
from collc.ir.ragged import first_of_group, inverse, last_true, next_true, ranges

__all__ = [
    "accesses",
    "agree",
    "conflicts",
    "is_synchronized",
    "known_conflicts",
    "needed",
    "neighbours",
    "note_conflicts",
    "ordered_by",
    "sequential_order",
    "synchronize",
    "with_all_dependencies",
]


def sequential_order(program: Program) -> Array:
    """Return each instruction's position in one execution of the program (all executions give the same result).

    Raises C0401 if the program deadlocks, which only a program that no verifier has seen may do.
    """
    found = linearization(program)
    if len(found) < program.num_instructions:
        deadlock = execute(program).deadlock
        notes = [deadlock.describe(program)] if deadlock else []
        raise error("C0401", f"the program of `{program.name}` is wrong: it deadlocks", notes=notes)
    return inverse(found)


def synchronize(program: Program, order: Array) -> Program:
    """Return the program with the dependencies that its accesses need, at most one per instruction and other block.

    ``order`` gives each instruction its position in a correct sequential execution. Two accesses to one location by
    different blocks, one of them a write, keep that order. Input and output alias as they do in place, so the program
    is correct in place and out of place.
    """
    later, earlier = conflicts(program, order)
    result = ordered_by(program, later, earlier)
    note_conflicts(result, later, earlier)
    return result


def is_synchronized(program: Program) -> bool:
    """Return whether a program is known to have just the dependencies that its known conflicts need."""
    return "synchronized" in program.found


def ordered_by(program: Program, later: Array, earlier: Array) -> Program:
    """Return the program with the dependencies that these conflicts need: :func:`synchronize` with known conflicts."""
    result = with_dependencies(program, *needed(program.block, later, earlier))
    result.found["synchronized"] = True
    return result


def needed(block: Array, later: Array, earlier: Array) -> tuple[Array, Array]:
    """Return the dependencies (dependent, dependency) that conflicts need, ordered by both.

    ``block[i]`` is the block of instruction i. Instructions of one block have ascending numbers.
    """
    of_later, of_earlier = block.take(later), block.take(earlier)
    between = of_later != of_earlier
    later, earlier, of_later, of_earlier = (
        column.compress(between).astype(np.int64, copy=False) for column in (later, earlier, of_later, of_earlier)
    )
    if not len(later):
        return later, earlier
    bits, of_block = len(block).bit_length(), int(block.max()).bit_length()
    if 2 * (bits + of_block) >= _WORD:
        return _latest_of_many(of_later << of_block | of_earlier, later, earlier, len(block))
    return _latest(of_later << of_block | of_earlier, later, earlier, bits)


def with_all_dependencies(program: Program) -> Program:
    """Return the program with a dependency for every conflict between blocks, even if program order implies it.

    They remain sufficient if instructions without a conflict change their order within a block.
    """
    later, earlier = conflicts(program, sequential_order(program))
    between = program.block[later] != program.block[earlier]
    return with_dependencies(program, *distinct_pairs(later[between], earlier[between]))


def conflicts(program: Program, order: Array) -> tuple[Array, Array]:
    """Return the pairs (later, earlier) of neighbouring conflicting accesses to each location, each at least once.

    Locations are those in place, where most accesses share a location. Copies that move no data in place count out of
    place. Known conflicts (:func:`note_conflicts`) are those of every order that agrees with them.
    """
    known: tuple[Array, Array] | None = program.found.get("conflicts")
    if known is None or not agree(order, *known):
        known = _conflicts(program, order)
        note_conflicts(program, *known)
    return known


def known_conflicts(program: Program) -> tuple[Array, Array]:
    """Return the :func:`conflicts` of any correct order: those noted, if there are any."""
    known: tuple[Array, Array] | None = program.found.get("conflicts")
    return conflicts(program, sequential_order(program)) if known is None else known


def note_conflicts(program: Program, later: Array, earlier: Array) -> None:
    """Note the conflicts of a program, which another program or order has told."""
    program.found["conflicts"] = later, earlier


def agree(order: Array, later: Array, earlier: Array) -> bool:
    """Return whether an order has the neighbouring conflicts that another order has.

    Each write of a location stays between the same accesses if no pair changes its order, so pairs stay neighbours.
    """
    return bool(((order.take(later) > order.take(earlier)) | (later == earlier)).all())


def _conflicts(program: Program, order: Array) -> tuple[Array, Array]:
    pairs = _neighbours(program, order, True)
    idle = _idle(program)
    if not idle.any():
        return pairs[0], pairs[1]
    apart = _neighbours(program, order, False)
    with_idle = np.concatenate([pairs, apart[:, idle[apart].any(axis=0)]], axis=1)
    return with_idle[0], with_idle[1]


def _idle(program: Program) -> Array:
    """Return which copies move no data in place: their source is their target."""
    src, dst = locations(program, layout(program, inplace=True))
    idle: Array = (program.opcode == Opcode.COPY) & (src == dst)
    return idle


def _neighbours(program: Program, order: Array, inplace: bool) -> Array:
    """Return the neighbouring conflicts as rows (later, earlier)."""
    instruction, location, write, _ = accesses(program, inplace)
    return neighbours(instruction, location, write, order)


def neighbours(instruction: Array, location: Array, write: Array, order: Array) -> Array:
    """Return the neighbouring conflicts of accesses as rows (later, earlier), shape (2, conflicts).

    Access i is that of ``instruction[i]`` to ``location[i]``, and writes if ``write[i]``. ``order`` gives each
    instruction its position. Neighbours are a write and the accesses back to the write before it.
    """
    by_time = lexsort((write, order.take(instruction), location))
    instruction, location, write = instruction.take(by_time), location.take(by_time), write.take(by_time)
    first = first_of_group(location)
    before = np.append(-1, last_true(write))[: len(write)]
    after_write = before >= last_true(first)  # reads after the write before them, writes after the write before them
    raw = [instruction.compress(after_write), instruction.take(before.compress(after_write))]
    next_write = next_true(write)  # of a write itself
    group_end = np.append(np.flatnonzero(first), len(write)).take(np.cumsum(first))
    overwritten = ~write & (next_write < group_end)
    war = [instruction.take(next_write.compress(overwritten)), instruction.compress(overwritten)]
    return np.stack([np.concatenate(rows) for rows in zip(raw, war, strict=True)])


def accesses(program: Program, inplace: bool = True) -> tuple[Array, Array, Array, Array]:
    """Return every access as (instruction, location, whether it writes, address of the location).

    A location is a run of chunks that every instruction accesses as a whole or not at all. A copy of a place onto
    itself, such as a copy from input to output in place, is no access.
    """
    src, dst = locations(program, layout(program, inplace))
    moves = (program.opcode != Opcode.COPY) | (src != dst)
    rows = [np.flatnonzero(uses & moves) for uses in (program.reads_src, program.reads_dst, program.writes_dst)]
    instruction = np.concatenate(rows)
    low = np.concatenate([src.take(rows[0]), dst[rows[1]], dst.take(rows[2])])
    high = low + program.count.take(instruction)
    write = np.repeat([False, False, True], [len(r) for r in rows])
    ends, number = numbered(np.concatenate([low, high]))
    first, last = np.split(number, 2)
    widths = last - first
    location = ranges(first, widths)
    return np.repeat(instruction, widths), location, np.repeat(write, widths), ends.take(location)


#: bits of a number that holds a pair of blocks and a pair of instructions
_WORD = 63


def _latest(pair: Array, dependent: Array, dependency: Array, bits: int) -> tuple[Array, Array]:
    """Keep each instruction's last dependency on each other block, unless an earlier instruction implies it.

    ``pair`` numbers the pair of blocks. Instructions have at most ``bits`` bits. A dependency is kept if it is later
    than all dependencies of earlier instructions of its pair. One running maximum serves all pairs, because a height
    begins with the pair.
    """
    most = (1 << bits) - 1
    key = ((pair << bits | dependent) << bits) | (dependency ^ most)  # of one instruction, the last dependency first
    key.sort()
    height = (key >> 2 * bits) << bits
    height |= (key & most) ^ most
    keep = np.ones(len(key), dtype=bool)
    np.greater(height[1:], np.maximum.accumulate(height)[:-1], out=keep[1:])
    kept = key.compress(keep)
    kept = ((kept >> bits & most) << bits) | ((kept & most) ^ most)  # no pair of instructions is in it twice
    kept.sort()
    return kept >> bits, kept & most


def _latest_of_many(pair: Array, dependent: Array, dependency: Array, number: int) -> tuple[Array, Array]:
    """Return what :func:`_latest` does, for numbers that do not fit one word; there are ``number`` instructions."""
    order = lexsort((-dependency, dependent, pair))
    pair, dependent, dependency = pair[order], dependent[order], dependency[order]
    is_first = first_of_group(pair)
    # Adding a multiple of the number of instructions lets one running maximum serve all pairs of blocks.
    height = dependency + np.cumsum(is_first) * np.int64(number)
    highest = np.concatenate([[-1], np.maximum.accumulate(height)[:-1]])
    keep = is_first | (height > highest)
    return distinct_pairs(dependent[keep], dependency[keep])
