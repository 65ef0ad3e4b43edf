"""Rearrange the instructions of a program: merge groups of them, or move them to other blocks."""

from __future__ import annotations

import numpy as np

from collc.ir.arrays import Array, distinct_pairs, lexsort
from collc.ir.editing import shifted, take, with_dependencies
from collc.ir.machine import linearization
from collc.ir.program import Program
from collc.ir.ragged import inverse, nth, owners
from collc.ir.waves import waves

from .hazards import synchronize

__all__ = ["completes_merged", "merge_rows", "reblock", "split_counts"]


def merge_rows(program: Program, joined: Array) -> Program | None:
    """Merge every row that ``joined`` marks into the row before it (same block, same opcode, adjacent places).

    Returns the program with recomputed dependencies; None if merged rows would depend on each other in a cycle.
    """
    merged = _merged(program, joined)
    finished = linearization(merged)
    return None if len(finished) < merged.num_instructions else synchronize(merged, inverse(finished))


def completes_merged(program: Program, joined: Array) -> bool:
    """Return whether :func:`merge_rows` certainly finds an order: only wide programs are tried."""
    return waves(_merged(program, joined)) is not None


def _merged(program: Program, joined: Array) -> Program:
    group = np.cumsum(~joined) - 1
    heads = np.flatnonzero(~joined)
    count = np.add.reduceat(program.count.astype(np.int64), heads) if len(heads) else program.count
    return with_dependencies(
        take(program, heads, count=count), *distinct_pairs(group[program.dependent], group[program.deps])
    )


def split_counts(program: Program, order: Array, most: int) -> tuple[Program, Array]:
    """Cut instructions of more than ``most`` chunks into several; return the program, without dependencies, and its
    order.
    """
    count = program.count.astype(np.int64)
    number = np.maximum(-(-count // most), 1)
    row, begin = owners(number), nth(number) * most
    cut = take(program, row, count=np.minimum(count[row] - begin, most), **shifted(program, row, begin))
    return cut, inverse(lexsort([order[row]]))


def reblock(program: Program, order: Array, blocks: dict[str, Array], owner: Array) -> Program:
    """Move every instruction to block ``owner`` of ``blocks`` (columns of the new blocks, sorted by rank).

    Within a block, instructions are in ``order``. Returns the program with recomputed dependencies.
    """
    rows = lexsort((order, owner))
    return synchronize(take(program, rows, owner[rows], blocks), order[rows])
