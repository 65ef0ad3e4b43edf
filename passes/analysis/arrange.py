"""Rearrange the instructions of a program: merge groups of them, or move them to other blocks."""

from __future__ import annotations

import numpy as np

from collc.ir.arrays import Array, Columns, distinct_pairs, lexsort
from collc.ir.editing import shifted, take, with_dependencies
from collc.ir.frozen import frozen
from collc.ir.machine import linearization
from collc.ir.program import Program
from collc.ir.ragged import inverse, nth, owners
from collc.ir.waves import waves

from .hazards import (
    agree,
    conflicts,
    is_synchronized,
    known_conflicts,
    needed,
    note_conflicts,
    ordered_by,
    synchronize,
)  # fmt: skip

__all__ = ["Ordered", "Rearrangement", "completes_merged", "merge_rows", "reblock", "split_counts"]


def merge_rows(program: Program, joined: Array) -> Program | None:
    """Merge every row that ``joined`` marks into the row before it (same block, same opcode, adjacent places).

    Returns the program with recomputed dependencies; None if merged rows would depend on each other in a cycle.
    """
    group = _groups(joined)
    later, earlier = (group.take(column) for column in known_conflicts(program))
    if is_synchronized(program):
        # its dependencies and its conflicts imply each other, and so do those of the merged rows
        found = ordered_by(_merged_rows(program, joined), later, earlier)
        if waves(found) is not None:
            note_conflicts(found, later, earlier)
            return found
    merged = _merged(program, joined)
    finished = linearization(merged)
    if len(finished) < merged.num_instructions:
        return None
    order = inverse(finished)
    if agree(order, later, earlier):
        note_conflicts(merged, later, earlier)
    return synchronize(merged, order)


def completes_merged(program: Program, joined: Array) -> bool:
    """Return whether :func:`merge_rows` certainly finds an order: only wide programs are tried."""
    return waves(_merged(program, joined)) is not None


def _merged(program: Program, joined: Array) -> Program:
    group = _groups(joined)
    return with_dependencies(
        _merged_rows(program, joined), *distinct_pairs(group[program.dependent], group[program.deps])
    )


def _merged_rows(program: Program, joined: Array) -> Program:
    """Return the program of the merged rows, without dependencies."""
    heads = np.flatnonzero(~joined)
    count = np.add.reduceat(program.count.astype(np.int64), heads) if len(heads) else program.count
    return take(program, heads, count=count)


def _groups(joined: Array) -> Array:
    """Return the number of each row after rows that are ``joined`` are merged into the row before."""
    group: Array = np.cumsum(~joined) - 1
    return group


def split_counts(program: Program, order: Array, most: int) -> tuple[Program, Array]:
    """Cut instructions of more than ``most`` chunks into several; return the program and its order.

    Only a program without such instructions keeps its dependencies.
    """
    if int(program.count.max(initial=0)) <= most:
        return program, order
    count = program.count.astype(np.int64)
    number = np.maximum(-(-count // most), 1)
    row, begin = owners(number), nth(number) * most
    cut = take(program, row, count=np.minimum(count[row] - begin, most), **shifted(program, row, begin))
    return cut, inverse(lexsort([order[row]]))


def reblock(program: Program, order: Array, blocks: Columns, owner: Array) -> Program:
    """Move every instruction to block ``owner`` of ``blocks`` (columns of the new blocks, sorted by rank).

    Within a block, instructions are in ``order``. Returns the program with recomputed dependencies.
    """
    moves = Rearrangement.of(program, order)
    return moves.moved(blocks, owner, moves.dependencies(owner))


@frozen(eq=False)
class Ordered:
    """Instructions that move to other blocks and keep their ``order``, a correct sequential one.

    Their conflicts stay the same, so the dependencies of an arrangement are known before its program is built.
    ``later`` and ``earlier`` are the places in ``order`` of the instructions of each conflict.
    """

    order: Array
    later: Array
    earlier: Array

    def dependencies(self, owner: Array) -> tuple[Array, Array]:
        """Return the pairs (dependent, dependency) of places in the order, if instruction i is in ``owner[i]``."""
        return needed(owner.take(inverse(self.order)), self.later, self.earlier)

    def num_dependencies(self, dependencies: tuple[Array, Array]) -> Array:
        """Return the number of dependencies of each instruction."""
        number: Array = np.bincount(dependencies[0], minlength=len(self.order)).take(self.order)
        return number

    def part(self, rows: Array) -> Ordered:
        """Return some rows, all those of some ranks: conflicts are between instructions of one rank."""
        there = np.zeros(len(self.order), dtype=bool)
        there[self.order.take(rows)] = True
        place = np.cumsum(there) - 1
        kept = there.take(self.later)
        return Ordered(place[self.order.take(rows)], *(place[c.compress(kept)] for c in (self.later, self.earlier)))


@frozen(eq=False)
class Rearrangement(Ordered):
    """A program whose instructions move: :class:`Ordered` with what is needed to build the result."""

    program: Program

    @classmethod
    def of(cls, program: Program, order: Array) -> Rearrangement:
        """Return the program, its order and its conflicts."""
        later, earlier = conflicts(program, order)
        # each once, and in order, because each arrangement looks at all of them
        return cls(order, *distinct_pairs(order.take(later), order.take(earlier)), program)

    def moved(self, blocks: Columns, owner: Array, dependencies: tuple[Array, Array]) -> Program:
        """Return the program of these blocks, to which :meth:`dependencies` belong."""
        rows = lexsort((self.order, owner))
        row_at = inverse(self.order.take(rows))  # place in the order -> new row
        dependent, dependency = (row_at.take(column) for column in dependencies)
        by_row = lexsort((dependency, dependent))
        taken = take(self.program, rows, owner.take(rows), blocks)
        result = with_dependencies(taken, dependent.take(by_row), dependency.take(by_row))
        note_conflicts(result, row_at.take(self.later), row_at.take(self.earlier))
        return result
