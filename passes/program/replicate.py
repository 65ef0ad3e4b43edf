"""Run a program in several parallel instances, each on its own part of the data."""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar

import attrs
import numpy as np

from collc.ir.arrays import Columns, lexsort
from collc.ir.diagnostic import Excess, error
from collc.ir.editing import shifted, take, with_dependencies
from collc.ir.machine import partners
from collc.ir.program import BLOCK_COLUMNS, Buffer, Program
from collc.ir.ragged import inverse, owners, ranges

from ..analysis.hazards import sequential_order, synchronize
from ..base import Pass
from ..ranges import AT_LEAST_1

__all__ = ["Replicate"]

#: collectives whose ranks hold whole vectors
_VECTORS = frozenset({"allreduce", "broadcast", "reduce"})


@attrs.frozen
class Replicate(Pass):
    """Divide every chunk into n chunks, and run n instances of the program, each on its own channels and chunks.

    One threadblock does not fill a fast link; n do. Instance i uses channels ``i C .. (i + 1) C`` of a program with C.
    If ranks hold whole vectors, instance i moves the i-th of n equal portions of the vector, and messages keep their
    form. Otherwise it moves the i-th portion of every shard, and a message of several shards becomes one per shard.
    Each instance has its own scratch. Raises C0509 if channels or threadblocks exceed the limits.
    """

    name: ClassVar[str] = "replicate"
    summary: ClassVar[str] = "run the program in parallel instances, each on its own data and channels"
    takes: ClassVar[type] = Program
    gives: ClassVar[type] = Program

    instances: int = attrs.field(default=2, metadata={"help": "number of parallel instances", "range": AT_LEAST_1})
    max_channels: int | None = attrs.field(default=None, metadata={"help": "the most channels", "range": AT_LEAST_1})
    max_threadblocks: int | None = attrs.field(
        default=None, metadata={"help": "the most threadblocks of a rank", "range": AT_LEAST_1}
    )

    def run(self, ir: Program) -> Program:
        n = self.instances
        if n == 1 or not ir.num_instructions:
            return ir
        channels = ir.num_channels
        self._fits("channels", channels * n, self.max_channels)
        self._fits("threadblocks", int(np.diff(ir.rank_blocks).max(initial=0)) * n, self.max_threadblocks, " of a rank")
        whole = ir.collective.kind in _VECTORS
        if not whole:
            ir = _within_shards(ir)
        return _instances(ir, n, channels, whole)

    def _fits(self, what: str, found: int, most: int | None, of: str = "") -> None:
        if most is not None and found > most:
            raise error(
                "C0509", f"{self.instances} instances would need {found} {what}{of}; the limit is {most}",
                hint=f"use at most {most * self.instances // found} instances", exit_status=3,
                excess=Excess(what, found, most),
            )  # fmt: skip


def _instances(ir: Program, n: int, channels: int, whole: bool) -> Program:
    """Return the program of all instances, sorted by rank, instance and block."""
    instance_of_block = np.tile(np.arange(n), ir.num_blocks)
    block = np.repeat(np.arange(ir.num_blocks), n)
    rank_order = lexsort((block, instance_of_block, ir.block_rank[block]))
    block, instance = block[rank_order], instance_of_block[rank_order]
    size = np.diff(ir.block_start.astype(np.int64))[block]
    row, owner = ranges(ir.block_start[block], size), owners(size)
    copy = instance[owner]
    columns: Columns = {}
    for end in ("src", "dst"):
        buffer, offset = getattr(ir, f"{end}_buffer")[row], getattr(ir, f"{end}_offset")[row].astype(np.int64)
        if whole:
            moved = offset + copy * ir.chunks * ir.collective.num_shards
        else:
            moved = offset // ir.chunks * (ir.chunks * n) + copy * ir.chunks + offset % ir.chunks
        moved = np.where(buffer == Buffer.SCRATCH, offset + copy * ir.scratch[ir.rank[row]].astype(np.int64), moved)
        columns[f"{end}_offset"] = np.where(ir.uses(end)[row], moved, 0)
    blocks: Columns = {c: getattr(ir, c)[block] for c in BLOCK_COLUMNS}
    blocks["channel"] = blocks["channel"] + instance * channels
    place = np.zeros((n, ir.num_instructions), dtype=np.int64)
    place[copy, row] = np.arange(len(row))
    scratch = ir.scratch.astype(np.int64) * n
    result = take(ir, row, owner, blocks, chunks=ir.chunks * n, scratch=scratch, **columns)
    count = ir.num_dependencies[row]
    dependent, dependency = owners(count), ir.deps[ranges(ir.dep_start[row], count)]
    return with_dependencies(result, dependent, place[copy[dependent], dependency])


def _within_shards(ir: Program) -> Program:
    """Cut messages that span shards, at both ends and where they are forwarded."""
    group = _messages(ir)
    cuts: dict[int, set[int]] = {}
    for end in ("src", "dst"):
        offset, buffer = getattr(ir, f"{end}_offset").astype(np.int64), getattr(ir, f"{end}_buffer")
        first = ir.chunks - offset % ir.chunks
        spans = ir.uses(end) & (buffer != Buffer.SCRATCH) & (first < ir.count)
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
    cut = take(ir, row, count=sizes, **shifted(ir, row, begin))
    return synchronize(cut, inverse(lexsort([sequential_order(ir)[row]])))


def _messages(ir: Program) -> list[int]:
    """Return for each instruction the first one that sends, receives or forwards the same data."""
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
