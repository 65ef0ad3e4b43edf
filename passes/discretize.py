"""Cutting every shard into equal chunks."""

from __future__ import annotations

from math import gcd
from typing import ClassVar

import attrs
import numpy as np

from collc.ir.cost import cost
from collc.ir.diagnostic import error
from collc.ir.schedule import Schedule
from collc.ir.symmetric import SymmetricSchedule

from .base import Pass, remark

__all__ = ["Discretize", "round_parts"]


_MOST_CHUNKS = 4096  # what is done chunk by chunk after this pass takes seconds then, and rounding costs 1/4096


@attrs.frozen
class Discretize(Pass):
    """Make intervals whole chunks: as many a shard as the intervals' denominators need, or at most ``max-chunks``.

    Without a limit nothing is lost, unless shards would be cut in more than 4096 chunks (links that differ divide data
    in odd parts); then 4096 is the limit. With one, every interval's ends are rounded down to whole chunks, by one rule
    for all rows of a shard, so data that was there before is there after: the schedule stays correct whatever it is,
    and no link carries a chunk more per piece than its share (the rounding of section E.2 of the direct-connect paper,
    with the bound of Theorem 20). Several chunk numbers up to the limit are tried; the least bandwidth time is taken,
    then the fewest chunks.
    """

    name: ClassVar[str] = "discretize"
    summary: ClassVar[str] = "cut every shard into equal chunks"
    takes: ClassVar[type] = Schedule
    gives: ClassVar[type] = Schedule
    takes_templates: ClassVar[bool] = True

    max_chunks: int | None = attrs.field(
        default=None, metadata={"help": "the most chunks a shard may be cut in; 4096 unless given"}
    )

    def run(self, ir: Schedule | SymmetricSchedule) -> Schedule | SymmetricSchedule:
        if self.max_chunks is not None and self.max_chunks < 1:
            raise error("C0507", f"discretize needs max-chunks of at least 1, found {self.max_chunks}")
        if isinstance(ir, SymmetricSchedule):
            seed = _reduced(ir.seed)
            if self.max_chunks is None or seed.parts <= self.max_chunks:
                return SymmetricSchedule(attrs.evolve(seed, discrete=True))
            ir = ir.unfold()  # what is rounded differs from shard to shard
        exact = _reduced(ir)
        most = _MOST_CHUNKS if self.max_chunks is None else self.max_chunks
        if exact.parts <= most:
            return attrs.evolve(exact, discrete=True)
        tried = _worth_trying(exact.parts, most)
        rounded = [round_parts(exact, chunks) for chunks in tried]
        best = min(rounded, key=lambda s: (cost(s).time_per_byte, s.parts))
        found, least = cost(best).time_per_byte, cost(exact).time_per_byte
        more = f"{float(found / least - 1):.3%} more bandwidth time than exactly" if least else "nothing to send"
        remark(f"discretize: {best.parts} chunks a shard where {exact.parts} would be exact: {more}")
        return best


def _worth_trying(parts: int, most: int) -> list[int]:
    """Return chunk numbers to try: the largest divisor of ``parts`` among them, since it rounds least."""
    divisors = [k for k in range(1, most + 1) if parts % k == 0]
    return sorted({most, *divisors[-2:], *range(max(1, most - 3), most)})


def _reduced(schedule: Schedule) -> Schedule:
    """Divide all intervals by what they have in common, so that ``parts`` is the LCM of their denominators."""
    common = schedule.parts
    for column in (schedule.lo, schedule.hi):
        common = gcd(common, int(np.gcd.reduce(column.astype(np.int64), initial=0)))
    if common == 1:
        return schedule
    scaled = {c: getattr(schedule, c) // np.int64(common) for c in ("lo", "hi")}
    return attrs.evolve(schedule, parts=schedule.parts // common, **scaled)


def round_parts(schedule: Schedule, chunks: int) -> Schedule:
    """Return the discrete schedule with ``chunks`` chunks a shard; rows that round to nothing are dropped.

    An end at x of shard v becomes floor(chunks * x + offset), where the offset (below 1) differs from shard to shard so
    that the roundings of different shards do not all load the same link; 0 stays 0 and 1 stays ``chunks``. The map does
    not decrease, so what covered an interval covers its image.
    """
    parts = np.int64(schedule.parts)
    shard = schedule.shard.astype(np.int64)
    count = np.int64(schedule.collective.num_shards)
    offset = (shard * 7) % count if count > 1 else shard * 0  # in units of 1/count

    def image(ends: np.ndarray) -> np.ndarray:
        wide = ends.astype(object) if schedule.parts * chunks * int(count) >= 2**62 else ends.astype(np.int64)
        inner = (wide * (chunks * count) + offset * parts) // (parts * count)
        rounded = np.minimum(inner, chunks).astype(np.int64)
        return np.where(ends == 0, 0, np.where(ends == parts, chunks, rounded))

    lo, hi = image(schedule.lo), image(schedule.hi)
    kept = attrs.evolve(schedule, parts=chunks, lo=lo, hi=hi, discrete=True)
    return kept.rows(np.flatnonzero(lo < hi))
