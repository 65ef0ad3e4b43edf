"""Running a program several times side by side, each time on a part of every chunk."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar

import attrs
import numpy as np

from collc.ir.diagnostic import error
from collc.ir.machine import partners
from collc.ir.program import BLOCK_COLUMNS, INSTRUCTION_COLUMNS, Buffer, Opcode, Program

from .base import Pass
from .hazards import sequential_order, synchronize
from .limits import check_limits

__all__ = ["Replicate"]

Array = np.ndarray[Any, np.dtype[Any]]

_READS_SRC = np.array([op.reads_src for op in Opcode])
_WRITES_DST = np.array([op.writes_dst for op in Opcode])
#: collectives whose ranks have whole vectors, whatever shards they are cut in
_VECTORS = frozenset({"allreduce", "broadcast", "reduce"})


@attrs.frozen
class Replicate(Pass):
    """Cut every chunk in n parts, and let n copies of the program, each on channels of its own, move one part each.

    One threadblock does not fill a fast link; n do. Copy i uses channels ``i C .. (i + 1) C`` where the program has C.
    Of collectives of whole vectors copy i does part i of n of the vector, so that messages stay as they are; of others
    it does part i of every shard, and what is contiguous over shards is sent shard by shard. Scratch is laid out copy
    by copy. Raises C0509 where there would be more channels or threadblocks than the limits.
    """

    name: ClassVar[str] = "replicate"
    summary: ClassVar[str] = "run copies of the program side by side on parts of the data, on channels of their own"
    takes: ClassVar[type] = Program
    gives: ClassVar[type] = Program

    instances: int = attrs.field(default=2, metadata={"help": "how many copies run side by side"})
    max_channels: int | None = attrs.field(default=None, metadata={"help": "the most channels"})
    max_threadblocks: int | None = attrs.field(default=None, metadata={"help": "the most threadblocks of a rank"})

    def run(self, ir: Program) -> Program:
        check_limits(self)
        n = self.instances
        if n == 1 or not ir.num_instructions:
            return ir
        channels = ir.num_channels
        self._fits("channels", channels * n, self.max_channels)
        self._fits("threadblocks of a rank", int(np.diff(ir.rank_blocks).max(initial=0)) * n, self.max_threadblocks)
        whole = ir.collective.kind in _VECTORS
        if not whole:
            ir = _within_shards(ir)
        return _copies(ir, n, channels, whole)

    def _fits(self, what: str, found: int, most: int | None) -> None:
        if most is not None and found > most:
            raise error(
                "C0509", f"{self.instances} instances would need {found} {what}; the limit is {most}",
                hint=f"use at most {most * self.instances // found} instances", exit_status=3,
            )  # fmt: skip


def _copies(ir: Program, n: int, channels: int, whole: bool) -> Program:
    """Return the copies, those of one block side by side."""
    copy_of_block = np.tile(np.arange(n), ir.num_blocks)
    block = np.repeat(np.arange(ir.num_blocks), n)
    rank_order = np.lexsort((block, copy_of_block, ir.block_rank[block]))
    block, copy = block[rank_order], copy_of_block[rank_order]
    first = ir.block_start.astype(np.int64)
    size = (first[1:] - first[:-1])[block]
    start = np.concatenate([[0], np.cumsum(size)])
    row = np.arange(start[-1]) - np.repeat(start[:-1] - ir.block_start[block], size)
    mine = np.repeat(copy, size)
    columns: dict[str, Any] = {c: getattr(ir, c)[row] for c in INSTRUCTION_COLUMNS}
    rank = ir.block_rank[ir.block[row]]
    for end, used in (("src", _READS_SRC), ("dst", _WRITES_DST)):
        buffer, offset = columns[f"{end}_buffer"], columns[f"{end}_offset"].astype(np.int64)
        if whole:
            moved = offset + mine * ir.chunks * ir.collective.num_shards
        else:
            moved = offset // ir.chunks * (ir.chunks * n) + mine * ir.chunks + offset % ir.chunks
        moved = np.where(buffer == Buffer.SCRATCH, offset + mine * ir.scratch[rank].astype(np.int64), moved)
        columns[f"{end}_offset"] = np.where(used[columns["opcode"]], moved, 0)
    blocks: dict[str, Any] = {c: getattr(ir, c)[block] for c in BLOCK_COLUMNS}
    blocks["channel"] = blocks["channel"] + copy * channels
    place = np.zeros((n, ir.num_instructions), dtype=np.int64)
    place[mine, row] = np.arange(len(row))
    waits = np.diff(ir.dep_start.astype(np.int64))[row]
    dep_start = np.concatenate([[0], np.cumsum(waits)])
    index = np.arange(dep_start[-1]) - np.repeat(dep_start[:-1] - ir.dep_start[row], waits)
    return attrs.evolve(
        ir, chunks=ir.chunks * n, scratch=ir.scratch.astype(np.int64) * n, block_start=start, dep_start=dep_start,
        deps=place[np.repeat(mine, waits), ir.deps[index]], **columns, **blocks,
    )  # fmt: skip


def _within_shards(ir: Program) -> Program:
    """Cut what spans shards, wherever the same message does: at both ends, and where it is passed on."""
    group = _messages(ir)
    cuts: dict[int, set[int]] = {}
    for end, used in (("src", _READS_SRC), ("dst", _WRITES_DST)):
        offset, buffer = getattr(ir, f"{end}_offset").astype(np.int64), getattr(ir, f"{end}_buffer")
        first = ir.chunks - offset % ir.chunks
        spans = used[ir.opcode] & (buffer != Buffer.SCRATCH) & (first < ir.count)
        for i in np.flatnonzero(spans).tolist():
            cuts.setdefault(group[i], set()).update(range(int(first[i]), int(ir.count[i]), ir.chunks))
    if not cuts:
        return ir
    count = ir.count.tolist()
    rows, begins, sizes = [], [], []
    for i, g in enumerate(group):
        at = [0, *sorted(cuts.get(g, ())), count[i]]
        rows += [i] * (len(at) - 1)
        begins += at[:-1]
        sizes += [b - a for a, b in pairwise(at)]
    row, begin = np.array(rows), np.array(begins)
    columns: dict[str, Any] = {c: getattr(ir, c)[row] for c in INSTRUCTION_COLUMNS if c != "count"}
    for c, used in (("src_offset", _READS_SRC), ("dst_offset", _WRITES_DST)):
        columns[c] = columns[c] + np.where(used[columns["opcode"]], begin, 0)
    cut = attrs.evolve(
        ir, count=sizes, block_start=np.searchsorted(row, ir.block_start), dep_start=np.zeros(len(row) + 1, dtype=int),
        deps=[], **columns,
    )  # fmt: skip
    order = sequential_order(ir)[row]
    return synchronize(cut, np.argsort(np.argsort(order, kind="stable"), kind="stable"))


def _messages(ir: Program) -> list[int]:
    """Return for each instruction the first that handles the same data: sends it, receives it, or passes it on."""
    root = list(range(ir.num_instructions))

    def find(x: int) -> int:
        while root[x] != x:
            root[x] = root[root[x]]
            x = root[x]
        return x

    for i, sender in enumerate(partners(ir).tolist()):
        if sender >= 0:
            a, b = find(i), find(sender)
            root[max(a, b)] = min(a, b)
    return [find(i) for i in range(len(root))]
