"""Share scratch between data with disjoint lifetimes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import attrs
import numpy as np

from collc.ir.arrays import Array, Columns
from collc.ir.frozen import frozen
from collc.ir.program import Buffer, Program

from ..analysis.clocks import Clocks, clocks
from ..base import Pass

__all__ = ["ReuseScratch"]


@frozen
class ReuseScratch(Pass):
    """Move data in scratch to places whose last use is always finished by then, so that less scratch is needed.

    Data that instructions access together stay together. Data take a place only if the program's dependencies already
    finish every use of the old data before any use of the new begins. So the pass adds no dependency and costs no time.
    Placement is first fit, in the order of first use. Scratch is allocated for the largest call, in proportion to its
    chunks.
    """

    name: ClassVar[str] = "reuse-scratch"
    summary: ClassVar[str] = "share scratch between data with disjoint lifetimes"
    takes: ClassVar[type] = Program
    gives: ClassVar[type] = Program

    def run(self, ir: Program) -> Program:
        if ir.placed or not ir.scratch.any():
            return ir
        objects = _objects(ir)
        known = clocks(ir)
        moved: dict[str, Array] = {c: getattr(ir, c).astype(np.int64) for c in ("src_offset", "dst_offset")}
        scratch = np.zeros(ir.num_ranks, dtype=np.int64)
        for rank, rank_objects in objects.items():
            placed = _Placed(rank_objects, known)
            for one in rank_objects:
                at = placed.first_fit(one.size)
                scratch[rank] = max(scratch[rank], at + one.size)
                for column, row in one.places:
                    moved[column][row] += at - one.start
        if (scratch >= ir.scratch).all():
            return ir
        columns: Columns = {"scratch": scratch, **moved}
        return attrs.evolve(ir, **columns)


@frozen(eq=False)
class _Object:
    """Chunks of one rank's scratch that are accessed together: ``places`` are (column of offsets, instruction)."""

    start: int
    size: int
    places: list[tuple[str, int]]
    rows: list[int]


def _objects(program: Program) -> dict[int, list[_Object]]:
    """Return the objects in each rank's scratch, in the order of first use."""
    found: dict[int, list[tuple[int, int, str, int]]] = {}
    rank_of = program.rank.tolist()
    count = program.count.tolist()
    for end in ("src", "dst"):
        offset = getattr(program, f"{end}_offset").tolist()
        for i in np.flatnonzero(program.uses(end, Buffer.SCRATCH)).tolist():
            found.setdefault(rank_of[i], []).append((offset[i], offset[i] + count[i], f"{end}_offset", i))
    return {rank: _unions(accesses) for rank, accesses in sorted(found.items())}


def _unions(accesses: list[tuple[int, int, str, int]]) -> list[_Object]:
    """Return the unions of overlapping accesses."""
    result: list[_Object] = []
    start = stop = 0
    places: list[tuple[str, int]] = []

    def close() -> None:
        if places:
            result.append(_Object(start, stop - start, list(places), sorted({row for _, row in places})))

    for lo, hi, column, row in sorted(accesses):
        if not places or lo >= stop:
            close()
            start, stop, places = lo, hi, []
        stop = max(stop, hi)
        places.append((column, row))
    close()
    return result


class _Placed:
    """The objects that have a place in a rank's scratch, and when each is used."""

    def __init__(self, objects: Sequence[_Object], known: Clocks):
        width = known.known.shape[1]
        self.begins = np.zeros((len(objects), width), dtype=np.int64)
        self.ends = np.zeros((len(objects), width), dtype=np.int64)
        for k, one in enumerate(objects):
            rows = np.array(one.rows)
            self.begins[k] = known.known[rows].min(axis=0)  # the steps that are finished before every use
            np.maximum.at(self.ends[k], known.block_id[rows], known.step[rows] + 1)  # the steps that use it
        self.places: list[tuple[int, int]] = []

    def first_fit(self, size: int) -> int:
        """Place the next object as low as possible, beside every object whose lifetime overlaps with its own."""
        k = len(self.places)
        after = (self.ends[:k] <= self.begins[k]).all(axis=1)
        meets = np.flatnonzero(~(after | (self.ends[k] <= self.begins[:k]).all(axis=1)))
        at = 0
        for lo, hi in sorted(self.places[i] for i in meets.tolist()):
            if at + size <= lo:
                break
            at = max(at, hi)
        self.places.append((at, at + size))
        return at
