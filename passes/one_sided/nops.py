"""The nops that a block needs so that its threads see each other's work, and no more."""

from __future__ import annotations

import numpy as np

from collc.ir.arrays import Array, lexsort
from collc.ir.one_sided.opcodes import FLAGS, Op, table
from collc.ir.one_sided.program import OneSided
from collc.ir.progress import progress
from collc.ir.ragged import first_of_group, inverse, ranges

from .accesses import accesses
from .addresses import bases
from .order import renumbered
from .rows import BLOCK, OPCODE, Rows, emit, joined, program_of, rows_of

__all__ = ["with_nops"]

#: operations by one thread that tell others of the work before them
_TELLS = table(Op.SIGNAL, Op.SEM_RELEASE)
#: the same, but they also send
_SENDS = table(Op.PWS, Op.PWSF)
#: operations by one thread that learn of others' work
_LEARNS = table(Op.WAIT, Op.RLXWAIT, Op.SEM_ACQUIRE, Op.FLUSH)
_JOINS = table(Op.NOP, Op.BARRIER)
_WORKS = ~(_LEARNS | _JOINS | table(Op.SIGNAL, Op.RLXSIGNAL, Op.SEM_RELEASE))
#: operations that learned work must precede
_FOLLOWS = _WORKS | _TELLS


def with_nops(program: OneSided) -> OneSided:
    """Return the program with the fewest nops that join the threads of each block where an operation needs it.

    A nop stands between work and the signal or release that tells of it, between a wait or acquire and the work or
    signal after it, and between two conflicting accesses of a block. Packets need none: each thread waits for its own.
    """
    old = rows_of(program)
    kept = old.fixed[:, OPCODE] != Op.NOP
    rows = old if kept.all() else old.take(np.flatnonzero(kept))
    progress(f"joining the threads of {len(rows):,} operations")
    before = _nops_before(rows, _conflicts(program, rows))
    nops = emit(rows.fixed[before, BLOCK], Op.NOP)
    order = lexsort([np.append(2 * np.arange(len(rows)) + 1, 2 * before)])
    place = inverse(order)[: len(rows)]
    result = program_of(program, joined([rows, nops]).take(order))
    return renumbered(result, program, place[np.maximum(np.cumsum(kept) - 1, 0)] if len(rows) else place)


def _nops_before(rows: Rows, conflict: Array) -> Array:
    """Return the operations before which a nop must stand; ``conflict`` is each one's last conflicting one, or -1."""
    opcode = rows.fixed[:, OPCODE]
    need = np.maximum(conflict, np.where(_TELLS[opcode], _last(rows, _WORKS[opcode]), -1))
    need = np.maximum(need, np.where(_SENDS[opcode], _last(rows, (_WORKS & ~_SENDS)[opcode]), -1))
    need = np.maximum(need, np.where(_FOLLOWS[opcode], _last(rows, _LEARNS[opcode]), -1))
    need = np.maximum(need, _other_threads(rows))
    joins = _JOINS[opcode]
    need = np.where(joins, np.arange(len(rows)), need)  # a join is a nop itself
    nops = _fewest(need, rows.fixed[:, BLOCK])
    return nops[~joins[nops]]


def _fewest(need: Array, block: Array) -> Array:
    """Return the fewest operations such that each with ``need[k] >= 0`` is one, or has one after that before it.

    One after the other, the first operation without a nop since the operation that it needs gets one. An operation that
    needs no later one than some operation before it needs nothing more.
    """
    latest = np.maximum.accumulate(np.append(-1, need))
    some = np.flatnonzero(need > latest[:-1])
    following = np.searchsorted(need[some], some)  # the first that needs this one, or a later one
    chosen = np.zeros(len(some) + 1, dtype=bool)
    at = np.flatnonzero(first_of_group(block[some]))
    while len(at):  # one after the other in all blocks
        chosen[at] = True
        at = following[at[following[at] < len(some)]]
        at = at[~chosen[at]]
    return some[chosen[:-1]]


def _other_threads(rows: Rows) -> Array:
    """Return for each operation the last one of its block that uses one of its links by another thread, or -1.

    Thread k uses the k-th link of an operation. The count of a link is no count of several threads.
    """
    operation = np.repeat(np.arange(len(rows)), rows.link_count)
    opcode, thread = rows.fixed[operation, OPCODE], ranges(0, rows.link_count)
    kind = np.select([_TELLS[opcode] | _SENDS[opcode] | (opcode == Op.RLXSIGNAL), _LEARNS[opcode]], [1, 2], 0)
    semaphore = np.isin(opcode, (Op.SEM_ACQUIRE, Op.SEM_RELEASE))
    key = ((rows.links * 3 + kind) * 2 + semaphore) * np.int64(rows.fixed[:, BLOCK].max(initial=0) + 1)
    key += rows.fixed[operation, BLOCK]
    by = lexsort((operation, key))
    again = np.flatnonzero((key[by][1:] == key[by][:-1]) & (thread[by][1:] != thread[by][:-1]))
    found = np.full(len(rows), -1, dtype=np.int64)
    np.maximum.at(found, operation[by][again + 1], operation[by][again])
    return found


def _last(rows: Rows, mask: Array) -> Array:
    """Return for each operation the last one of its block before it that the mask has; -1 if there is none."""
    index, block = np.arange(len(rows)), rows.fixed[:, BLOCK]
    first = np.maximum.accumulate(np.where(first_of_group(block), index, 0)) if len(index) else index
    latest = np.maximum.accumulate(np.where(mask, index, -1))
    before = np.append(-1, latest[:-1])[: len(index)]
    found: Array = np.where(before >= first, before, -1)
    return found


def _conflicts(program: OneSided, rows: Rows) -> Array:
    """Return the last operation of the block before each one that accesses the same chunks, and one of them writes.

    Packets count only as the threads of their operations: if all accesses to some chunks are of operations on packets,
    and of the same chunks, then each thread accesses its own elements.
    """
    found = accesses(program, rows)  # of one location by operation, and so by block
    group = found.location * np.int64(program.num_blocks) + rows.fixed[found.operation, BLOCK]
    exempt = _elementwise(rows, found.operation, group, *_span(program, rows, found.item))
    return _latest(len(rows), found.operation, group, found.write, exempt)


def _span(program: OneSided, rows: Rows, item: Array) -> tuple[Array, Array]:
    """Return the first address of items, and the one after their last."""
    low = bases(program)[rows.items[item, 0], rows.items[item, 1]] + rows.items[item, 2]
    return low, low + rows.items[item, 3]


def _elementwise(rows: Rows, operation: Array, group: Array, low: Array, high: Array) -> Array:
    """Return which accesses are in a group where all are of operations on packets, with one range of chunks."""
    if not len(group):
        return np.zeros(0, dtype=bool)
    fresh = first_of_group(group)
    start = np.flatnonzero(fresh)
    of = np.cumsum(fresh) - 1
    same = FLAGS[rows.fixed[operation, OPCODE]] & (low == low[start][of]) & (high == high[start][of])
    found: Array = np.logical_and.reduceat(same, start)[of]
    return found


def _latest(number: int, operation: Array, group: Array, write: Array, exempt: Array) -> Array:
    found = np.full(number, -1, dtype=np.int64)
    if not len(group):
        return found
    index = np.arange(len(group))
    # An operation's own accesses do not conflict: look before its first entry of the group.
    fresh = first_of_group(group)
    own = fresh | np.append(True, operation[1:] != operation[:-1])
    head = np.maximum.accumulate(np.where(own, index, 0))
    start = np.maximum.accumulate(np.where(fresh, index, 0))
    wrote = np.append(-1, np.maximum.accumulate(np.where(write, index, -1)))[head]  # the last write before the head
    before = np.where(write, head - 1, wrote)
    valid = (before >= start) & ~exempt
    np.maximum.at(found, operation[valid], operation[before[valid]])
    return found
