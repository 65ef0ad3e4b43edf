"""Share scratch between data with disjoint lifetimes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import attrs
import numpy as np

from collc.ir.arrays import Array, Columns, distinct, lexsort
from collc.ir.frozen import frozen
from collc.ir.laid_out import run_counts
from collc.ir.program import Buffer, Program
from collc.ir.progress import counting
from collc.ir.ragged import first_of_group, group_starts, nth_in_group
from collc.ir.symmetric_program import AnyProgram, SymmetricProgram

from ..analysis.clocks import Clocks, clocks
from ..base import Pass

__all__ = ["ReuseScratch", "first_fits"]

#: entries of a table of lifetimes: ranks are placed at once whose tables are not larger together
_ENTRIES = 1 << 22
#: a template keeps its runs rather than save less than 1/_LITTLE of its scratch
_LITTLE = 8


@frozen
class ReuseScratch(Pass):
    """Move data in scratch to places whose last use is always finished by then, so that less scratch is needed.

    Data that instructions access together stay together. Data take a place only if the program's dependencies already
    finish every use of the old data before any use of the new begins. So the pass adds no dependency and costs no time.
    Placement is first fit, in the order of first use. Scratch is allocated for the largest call, in proportion to its
    chunks.

    Data that a template's messages move together, in adjacent places, stay adjacent. If it would save less than an
    eighth of the scratch, and data lie apart that were one run, the pass does nothing. If it saves more, all ranks are
    listed. An ``unfused`` template does not change: `lay-out` adds scratch for received data, and then packs all of it.
    """

    name: ClassVar[str] = "reuse-scratch"
    summary: ClassVar[str] = "share scratch between data with disjoint lifetimes"
    takes: ClassVar[type] = Program
    gives: ClassVar[type] = Program

    def works_by_orbits(self, ir: SymmetricProgram) -> bool:
        found = self.run(ir)
        assert isinstance(found, SymmetricProgram), "a template stays one"
        return not _has_more_runs(found, ir)

    def run(self, ir: AnyProgram) -> AnyProgram:
        if isinstance(ir, SymmetricProgram):
            if ir.unfused:
                return ir
            if "reused" not in ir.found:
                ir.found["reused"] = _reused_in_template(ir)
            found: SymmetricProgram = ir.found["reused"]
            return found
        return _reused(ir, ir, None)


def _reused_in_template(ir: SymmetricProgram) -> SymmetricProgram:
    """Return a template with less scratch, or as it is.

    It does not change either if that saves little scratch, and data lie apart that were one run.
    """
    reused = _reused(ir.seed, ir.batched, ir.message)
    if reused is ir.seed:
        return ir
    found = attrs.evolve(ir, seed=reused)
    before, after = int(ir.seed.scratch.max()), int(reused.scratch.max())
    return ir if (before - after) * _LITTLE < before and _has_more_runs(found, ir) else found


def _has_more_runs(found: SymmetricProgram, ir: SymmetricProgram) -> bool:
    """Return whether messages need more instructions when they are laid out."""
    return found is not ir and int(run_counts(found).sum()) > int(run_counts(ir).sum())


def _reused(ir: Program, ordered: Program, message: Array | None) -> Program:
    """Return a program with less scratch, or as it is.

    ``message[i]`` is what instruction i is part of in the ``ordered`` program, which has the dependencies; None: it is
    the same program.
    """
    if ir.placed or not ir.scratch.any():
        return ir
    objects = _Objects.of(ir, message)
    by = objects if message is None else attrs.evolve(objects, row=message[objects.row])
    at = _placed(by, clocks(ordered), ordered.num_ranks)
    scratch = np.zeros(ir.num_ranks, dtype=np.int64)
    np.maximum.at(scratch, objects.rank, at + objects.size)
    if (scratch >= ir.scratch).all():
        return ir
    moved: Columns = {}
    for is_dst, end in enumerate(("src", "dst")):
        offset = getattr(ir, f"{end}_offset").astype(np.int64)
        these = objects.is_dst == is_dst
        of = objects.object[these]
        offset[objects.row[these]] += (at - objects.start)[of]
        moved[f"{end}_offset"] = offset
    return attrs.evolve(ir, scratch=scratch, **moved)


@frozen(eq=False)
class _Objects:
    """Chunks of one rank's scratch that are accessed together, by rank and place: ``rank``, ``start`` and ``size``.

    Access i is one of ``object[i]``, by instruction ``row[i]``, at its dst if ``is_dst[i]``, else at its src. Accesses
    are sorted by object.
    """

    rank: Array
    start: Array
    size: Array
    object: Array
    row: Array
    is_dst: Array

    @classmethod
    def of(cls, program: Program, message: Array | None) -> _Objects:
        """Return the unions of accesses that overlap, or that the same messages make to adjacent places."""
        rows = [np.flatnonzero(program.uses(end, Buffer.SCRATCH)) for end in ("src", "dst")]
        row, is_dst = np.concatenate(rows), np.repeat([0, 1], [len(of_end) for of_end in rows])
        low = np.concatenate([program.src_offset[rows[0]], program.dst_offset[rows[1]]]).astype(np.int64)
        high, rank = low + program.count[row], program.rank[row]
        order = lexsort((low, rank))
        row, is_dst, low, high, rank = (column[order] for column in (row, is_dst, low, high, rank))
        # Adding a multiple of the largest end lets one running maximum serve all ranks.
        until = np.maximum.accumulate(high + rank * (high.max(initial=0) + 1)) - rank * (high.max(initial=0) + 1)
        fresh = first_of_group(rank)
        fresh[1:] |= low[1:] >= until[:-1]
        if message is not None:
            adjacent = np.append(False, (rank[1:] == rank[:-1]) & (low[1:] == until[:-1]))
            fresh &= ~(adjacent & _as_before(np.cumsum(fresh) - 1, 2 * message[row] + is_dst))
        begin = np.flatnonzero(fresh)
        last = np.append(begin[1:], len(row))[: len(begin)] - 1
        return cls(rank[begin], low[begin], until[last] - low[begin], np.cumsum(fresh) - 1, row, is_dst)


def _as_before(group: Array, value: Array) -> Array:
    """Return for each row whether its group has the same set of values as the group before; groups ascend."""
    values = int(value.max(initial=0)) + 1
    group_of, value_of = np.divmod(distinct(group * values + value), values)
    count = np.bincount(group_of)
    alike = np.append(False, count[1:] == count[:-1])  # groups of one size
    before = np.arange(len(group_of)) - np.append(0, count[:-1])[group_of]
    alike[group_of[value_of != value_of[before]]] = False
    same: Array = alike[group]
    return same


def _placed(objects: _Objects, known: Clocks, num_ranks: int) -> Array:
    """Return the new place of each object."""
    begin = np.flatnonzero(first_of_group(objects.object))
    # the steps that are finished before every use, and those that use it
    begins = np.minimum.reduceat(known.known[objects.row], begin, axis=0) if len(begin) else known.known[:0]
    ends = np.zeros_like(begins)
    np.maximum.at(ends, (objects.object, known.block_id[objects.row]), known.step[objects.row].astype(ends.dtype) + 1)
    first = group_starts(objects.rank, num_ranks)
    number, nth = np.diff(first), nth_in_group(objects.rank)
    at = np.zeros(len(objects.rank), dtype=np.int64)
    for low, stop in counting(list(_batches(number, begins.shape[1])), "placing data in scratch"):
        here = slice(int(first[low]), int(first[stop]))
        cell = objects.rank[here] - low, nth[here]
        shape = stop - low, int(number[low:stop].max(initial=0))
        size = np.zeros(shape, dtype=np.int64)
        size[cell] = objects.size[here]
        lives = np.zeros((2, begins.shape[1], *shape), dtype=begins.dtype)
        lives[0][:, *cell], lives[1][:, *cell] = begins[here].T, ends[here].T
        at[here] = first_fits(size, *lives)[cell]
    return at


def _batches(number: Array, width: int) -> Iterator[tuple[int, int]]:
    """Yield runs of ranks (first, stop); ``number`` are the objects of each, ``width`` the entries of an object."""
    low, most = 0, 0
    for rank, objects in enumerate(number.tolist()):
        most = max(most, objects)
        if rank > low and most * (rank + 1 - low) * width > _ENTRIES:
            yield low, rank
            low, most = rank, objects
    yield low, len(number)


def first_fits(size: Array, begins: Array, ends: Array) -> Array:
    """Return the places of objects, of all ranks at a time: shape (ranks, objects), as ``size``.

    Each rank's objects are placed in order, each as low as possible beside all before it whose lifetime overlaps with
    its own. ``begins[b, r, k]`` steps of block b are finished when object k of rank r is first used, ``ends[b, r, k]``
    of them use it.
    """
    places = np.zeros_like(size)
    low, high, placed = (np.zeros_like(size) for _ in range(3))  # of the objects so far, by place
    ranks = np.arange(len(size))
    for k in range(size.shape[1]):
        after = (ends[:, :, :k] <= begins[:, :, k, None]).all(axis=0)
        after |= (ends[:, :, k, None] <= begins[:, :, :k]).all(axis=0)
        meets = ~np.take_along_axis(after, placed[:, :k], axis=1)
        free_from = np.zeros((len(size), k + 1), dtype=np.int64)
        np.maximum.accumulate(np.where(meets, high[:, :k], 0), axis=1, out=free_from[:, 1:])
        fits = np.ones((len(size), k + 1), dtype=bool)
        fits[:, :k] = meets & (free_from[:, :k] + size[:, k, None] <= low[:, :k])
        at = places[:, k] = free_from[ranks, fits.argmax(axis=1)]
        behind = (low[:, :k] < at[:, None]).sum(axis=1)
        for column, value in ((low, at), (high, at + size[:, k]), (placed, np.full(len(size), k))):
            _insert(column, k, behind, value)
    return places


def _insert(column: Array, number: int, place: Array, value: Array) -> None:
    """Insert a value into each row, before ``place``; the rows have ``number`` values."""
    later = np.arange(number) >= place[:, None]
    moved = np.where(later, column[:, :number], column[:, 1 : number + 1])
    column[:, 1 : number + 1] = moved
    column[np.arange(len(column)), place] = value
