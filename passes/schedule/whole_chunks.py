"""Turn a collective whose shards differ in size into one of equal shards, for runtimes whose chunks are all equal."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from collc.ir.collective import Collective
from collc.ir.equal_shards import in_equal_shards, units
from collc.ir.frozen import frozen
from collc.ir.ragged import owners, ranges, starts
from collc.ir.schedule import Action, Schedule

from ..base import Pass, remark

__all__ = ["WholeChunks"]


@frozen
class WholeChunks(Pass):
    """Cut every shard of weight w into w equal shards, so that all chunks have one size.

    Weights are divided by their greatest common divisor first. The result is a custom collective: its shards lie in
    every rank's buffers in the order of the shards that they are cut from. A shard of weight 0 is gone. So what follows
    serves exactly these proportions. A schedule of equal shards is unchanged.

    Raises C0542 (a collective that reduces) and C0543 (too many shards).
    """

    name: ClassVar[str] = "whole-chunks"
    summary: ClassVar[str] = "cut shards that differ in size into equal ones"
    takes: ClassVar[type] = Schedule
    gives: ClassVar[type] = Schedule

    def turned(self, collective: Collective, found: Collective) -> Collective:
        return in_equal_shards(collective)

    def run(self, ir: Schedule) -> Schedule:
        given, collective = ir.collective, in_equal_shards(ir.collective)
        if collective is given:
            return ir
        weight = units(given)
        remark(f"whole-chunks: {len(collective.pre or ())} equal shards in place of {given.num_shards} of {given.name}")
        w = weight[ir.shard]
        lo, hi = (ends.astype(np.int64) * w for ends in (ir.lo, ir.hi))
        first, end = lo // ir.parts, -(-hi // ir.parts)
        row = owners(end - first)
        unit = ranges(first, end - first)
        base = unit * ir.parts
        return attrs.evolve(
            ir, collective=collective, step=ir.step[row], action=np.full(len(row), Action.COPY, dtype=np.uint8),
            shard=starts(weight)[ir.shard[row]] + unit, lo=np.maximum(lo[row] - base, 0),
            hi=np.minimum(hi[row] - base, ir.parts), route=ir.route[row], discrete=False,
            placement=None if ir.placement is None else ir.placement.rows(row),
        )  # fmt: skip
