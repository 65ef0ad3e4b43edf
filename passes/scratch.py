"""Letting data that are never there at the same time lie in the same scratch."""

from __future__ import annotations

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
            placed: list[tuple[int, _Object]] = []
            for thing in mine:
                at = _first_fit(placed, thing, known)
                placed.append((at, thing))
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


def _first_fit(placed: list[tuple[int, _Object]], thing: _Object, known: Clocks) -> int:
    """Return the lowest place where all that lies there is over before the new begins, or the other way round."""
    taken = sorted((at, at + other.size) for at, other in placed if not _apart(other, thing, known))
    at = 0
    for lo, hi in taken:
        if at + thing.size <= lo:
            break
        at = max(at, hi)
    return at


def _apart(a: _Object, b: _Object, known: Clocks) -> bool:
    """Return whether all uses of one are finished before any use of the other begins."""
    return _over(a, b, known) or _over(b, a, known)


def _over(first: _Object, second: _Object, known: Clocks) -> bool:
    return all(known.before(x, y) for x in first.rows for y in second.rows)
