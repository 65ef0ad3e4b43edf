"""Letting data that are never there at the same time lie in the same scratch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import attrs
import numpy as np

from collc.ir.program import Buffer, Opcode, Program

from .base import Pass
from .clocks import Clocks, clocks

__all__ = ["ReuseScratch"]

Array = np.ndarray[Any, np.dtype[Any]]

_READS_SRC = np.array([op.reads_src for op in Opcode])
_WRITES_DST = np.array([op.writes_dst for op in Opcode])


@attrs.frozen
class ReuseScratch(Pass):
    """Move what lies in scratch so that less is needed: into places whose last use is always over by then.

    What instructions access together stays together. It may take a place only where the program's waits already see to
    it that every use of the old data is finished before any use of the new begins, so no wait is added and nothing gets
    slower. Places are given first fit, in the order of first use. Scratch is allocated for the largest call, in
    proportion to its chunks.
    """

    name: ClassVar[str] = "reuse-scratch"
    summary: ClassVar[str] = "let data that are never there at the same time share scratch"
    takes: ClassVar[type] = Program
    gives: ClassVar[type] = Program

    def run(self, ir: Program) -> Program:
        if not ir.scratch.any():
            return ir
        objects = _objects(ir)
        known = clocks(ir)
        moved: dict[str, Array] = {c: getattr(ir, c).astype(np.int64) for c in ("src_offset", "dst_offset")}
        scratch = np.zeros(ir.num_ranks, dtype=np.int64)
        for rank, mine in objects.items():
            placed = _Placed(mine, known)
            for thing in mine:
                at = placed.first_fit(thing.size)
                scratch[rank] = max(scratch[rank], at + thing.size)
                for column, row in thing.places:
                    moved[column][row] += at - thing.start
        if (scratch >= ir.scratch).all():
            return ir
        columns: dict[str, Any] = {"scratch": scratch, **moved}
        return attrs.evolve(ir, **columns)


@attrs.frozen(eq=False)
class _Object:
    """Chunks of one rank's scratch that are accessed together: ``places`` are (column of offsets, instruction)."""

    start: int
    size: int
    places: list[tuple[str, int]]
    rows: list[int]


def _objects(program: Program) -> dict[int, list[_Object]]:
    """Return what lies in each rank's scratch, in the order of first use."""
    found: dict[int, list[tuple[int, int, str, int]]] = {}
    rank_of = program.block_rank[program.block].tolist()
    count = program.count.tolist()
    for end, used in (("src", _READS_SRC), ("dst", _WRITES_DST)):
        offset = getattr(program, f"{end}_offset").tolist()
        for i in np.flatnonzero(used[program.opcode] & (getattr(program, f"{end}_buffer") == Buffer.SCRATCH)).tolist():
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
    """What has been given a place in a rank's scratch, and when it is used there."""

    def __init__(self, things: Sequence[_Object], known: Clocks):
        width = known.known.shape[1]
        self.begins = np.zeros((len(things), width), dtype=np.int64)
        self.ends = np.zeros((len(things), width), dtype=np.int64)
        for k, thing in enumerate(things):
            rows = np.array(thing.rows)
            self.begins[k] = known.known[rows].min(axis=0)  # what all its uses know to be done
            np.maximum.at(self.ends[k], known.block_id[rows], known.step[rows] + 1)  # what must be done after it
        self.places: list[tuple[int, int]] = []

    def first_fit(self, size: int) -> int:
        """Place the next object as low as can be: where what lies there is over before it begins, or begins after."""
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
