"""The operations that the runtimes make of a file's steps. They differ from the steps.

The runtimes' parser folds a `nop` into the instruction after it, and merges runs of `re` into one reduction of many
sources. It numbers the result anew, and threadblocks wait for those numbers, not for the file's. This module does the
same. It keeps one row for each step, so that messages can name the step.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from collc.ir.arrays import Array
from collc.ir.ragged import owners, starts

from .model import Algorithm, Step, Threadblock
from .steps import DEPID, DEPS, DST, DST_OFFSET, HASDEP, KINDS_OF, NUMBER, SRC, TYPE

__all__ = ["Device", "Operation", "Wait", "device", "ending_operation", "executed", "operations"]


class Wait(NamedTuple):
    """A wait until threadblock ``block`` has flagged device step ``number``; ``row`` is the step that states it."""

    block: int
    number: int
    row: int


class Operation(NamedTuple):
    """One operation of the device, made of the steps ``rows`` in document order; only a `re` has several.

    ``number`` is the device's step number after the operation. ``flagged`` says whether it then sets the threadblock's
    flag. ``overtaken`` are waits that a merged run of `re` has passed: they take effect only here. ``refused`` marks an
    instruction that has waits of `nop` steps and none of its own, which the parsers reject.
    """

    rows: tuple[int, ...]
    number: int
    flagged: bool
    waits: tuple[Wait, ...] = ()
    overtaken: tuple[Wait, ...] = ()
    refused: bool = False


class Device(NamedTuple):
    """The waits of a file that the device executes as it is written, by the rows of the algorithm's table of steps.

    Step ``waiting[k]``, which is no `nop`, waits for step ``ending[k]`` of another threadblock of its rank.
    """

    waiting: Array
    ending: Array


def device(algorithm: Algorithm) -> Device | None:
    """Return the waits of an algorithm, computed once; None if the device executes anything but what is written.

    Every step but a `nop` is then one operation with the number of the step, and every wait ends with the step that it
    names. Ranks, threadblocks and steps are numbered as they stand, and no `re` are merged. Other files need
    :func:`operations`.
    """
    if not algorithm.devices:
        algorithm.devices.append(_device(algorithm))
    return algorithm.devices[0]


_NOP, _RE = KINDS_OF.index("nop"), KINDS_OF.index("re")


def _device(algorithm: Algorithm) -> Device | None:
    table, start = algorithm.table, algorithm.starts
    (ids, _, _, _, counts), (gpu, block_id, *_) = algorithm.rank_table.T, algorithm.block_table
    first = starts(counts)[:-1]
    if (ids != np.arange(len(ids)))[gpu].any() or (block_id != np.arange(len(gpu)) - first[gpu]).any():
        return None
    block, row = owners(np.diff(start)), np.arange(len(table))
    nop, ends = table[:, TYPE] == _NOP, start[1:][np.diff(start) > 0] - 1
    if nop[ends].any() or (table[:, NUMBER] != row - start.take(block)).any() or _merges(table, block, nop):
        return None
    # a `nop` is part of the next operation of its threadblock
    operation = np.minimum.accumulate(np.where(nop, len(row), row)[::-1])[::-1]
    wait = np.flatnonzero(table[:, DEPID] >= 0)
    waits = np.bincount(operation[wait], minlength=len(row))
    width = np.where(nop, 0, np.maximum(waits, 1))
    before = starts(width)
    number = before[1:] - before.take(start.take(block)) - 1
    refused = (waits > 0) & (table[:, DEPID] < 0)
    if refused.any() or (number != table[:, NUMBER]).compress(~nop).any():
        return None
    waiting, other, step = operation.take(wait), table[wait, DEPID].astype(np.int64), table[wait, DEPS].astype(np.int64)
    rank = gpu[block.take(waiting)]
    if (other >= counts[rank]).any():
        return None
    target = first[rank] + other
    if ((step < 0) | (step >= np.diff(start).take(target))).any():
        return None
    ending, own = start[target] + step, target == block.take(waiting)
    if (nop[ending] | (table[ending, HASDEP] == 0) | (own & (ending >= waiting))).any():
        return None
    return Device(waiting[~own], ending.compress(~own))


def _merges(table: Array, block: Array, nop: Array) -> bool:
    """Return whether the parsers may merge two `re` of these steps; a `nop` between them does not keep them apart."""
    if np.count_nonzero(table[:, TYPE] == _RE) < 2:
        return False
    table, block = table[~nop], block[~nop]
    both = (table[1:, TYPE] == _RE) & (table[:-1, TYPE] == _RE) & (block[1:] == block[:-1])
    key = (table[1:, (DST, DST_OFFSET, SRC)] == table[:-1, (DST, DST_OFFSET, SRC)]).all(axis=1)
    return bool((both & key & (table[1:, DEPID] == -1) & (table[:-1, HASDEP] == 0)).any())


def executed(block: Threadblock) -> list[Operation]:
    """Return the :func:`operations` of a threadblock, computed once. The caller must not change the list."""
    if not block.executed:
        block.executed.extend(operations(block))
    return block.executed


def operations(block: Threadblock, max_fused: int = 16) -> list[Operation]:
    """Return the operations of the device for one threadblock, in order.

    A `nop` becomes waits of the next operation; a `nop` at the end vanishes. A `re` without a wait joins the operation
    before it, if that is an unflagged `re` of the same destination and source buffer. The parsers do not compare
    counts, and ignore `nop` steps in between. The limit ``max_fused`` ends a run only at exactly that number of
    reductions of the threadblock.
    """
    found: list[Operation] = []
    pending: list[Wait] = []
    run: tuple[str, int, str] | None = None
    reductions, number = 0, -1
    for row, step in enumerate(block.steps):
        if step.depid >= 0:
            pending.append(Wait(step.depid, step.deps, row))
        if step.type == "nop":
            continue
        number += 1
        if step.type != "re":
            if pending:
                number += len(pending) - 1
                found.append(_operation(row, number, step, pending, found))
                pending = []
            else:
                found.append(Operation((row,), number, bool(step.hasdep)))
            run = None
            continue
        key = (step.dstbuf, step.dstoff, step.srcbuf)
        if run == key and step.depid == -1:
            last = found[-1]
            found[-1] = last._replace(rows=(*last.rows, row), number=number, flagged=bool(step.hasdep))
        else:
            number += max(len(pending) - 1, 0)
            found.append(_operation(row, number, step, pending, found))
            pending = []
        reductions += 1
        run = key if not step.hasdep and reductions != max_fused else None
    return found


def _operation(row: int, number: int, step: Step, pending: list[Wait], before: Sequence[Operation]) -> Operation:
    last_row = before[-1].rows[-1] if before else -1
    overtaken: tuple[Wait, ...] = ()
    if pending and pending[0].row < last_row:  # they are in the order of steps
        overtaken = tuple(wait for wait in pending if wait.row < last_row)
    return Operation((row,), number, bool(step.hasdep), tuple(pending), overtaken, bool(pending) and step.depid < 0)


def _number(operation: Operation) -> int:
    return operation.number


def ending_operation(flagged: Sequence[Operation], number: int) -> Operation | None:
    """Return the operation that ends a wait for ``number``: the first flagged one with at least that number, or None.

    ``flagged`` are the flagged operations of the other threadblock, in order.
    """
    position = bisect_left(flagged, number, key=_number)
    return flagged[position] if position < len(flagged) else None
