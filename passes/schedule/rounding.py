"""Round a schedule to fewer chunks than its parts need, and find the number of chunks with the least loss."""

from __future__ import annotations

from fractions import Fraction

import attrs
import numpy as np

from collc.ir.arrays import Array, distinct, times
from collc.ir.progress import progress
from collc.ir.schedule import Schedule
from collc.ir.symmetric import AnySchedule, SymmetricSchedule

from .step_times import Crossed, seed_of, time_with_messages

__all__ = ["best_rounding", "numbers_to_try", "round_parts"]

#: every number is tried up to this many rounded transfers and numbers; beyond that only likely numbers
_WORK, _EVERY = 1 << 23, 512
_LIKELY = 64
#: units of the offsets at which the ends of a template's parts are rounded
_OFFSETS = 16


def round_parts(schedule: Schedule, chunks: int) -> Schedule:
    """Return the discrete schedule with ``chunks`` chunks per shard, without rows that become empty.

    An end at x of shard v becomes floor(chunks * x + offset). The offset (below 1) differs from shard to shard, so that
    the roundings of different shards do not all load the same link. 0 stays 0, and 1 becomes ``chunks``. The map is
    monotone, so parts that covered an interval cover its image.
    """
    return _rounded(schedule, *_Ends.of(schedule).images(chunks, 0), chunks)


@attrs.frozen(eq=False)
class _Ends:
    """The different ends of the ``parts`` parts of a shard: the offset and the place of each, and which each row has.

    Many rows move the same part, each over another route: rounding is done once for each end. Offsets are in units of
    1/``units``.
    """

    parts: int
    units: int
    offset: Array
    place: Array
    lo: Array
    hi: Array

    @classmethod
    def of(cls, schedule: AnySchedule) -> _Ends:
        seed = seed_of(schedule)
        shard, parts = seed.shard.astype(np.int64), int(seed.parts)
        if (int(shard.max(initial=0)) + 1) * (parts + 1) >= 2**62:
            rows = np.arange(len(shard))
            ends = np.concatenate([seed.lo, seed.hi]).astype(np.int64)
            return cls(parts, *_offsets(schedule, np.tile(shard, 2)), ends, rows, rows + len(shard))
        key = [shard * (parts + 1) + ends for ends in (seed.lo, seed.hi)]
        named = np.union1d(*(distinct(one) for one in key))
        lo, hi = (np.searchsorted(named, one) for one in key)
        shard, ends = np.divmod(named, parts + 1)
        return cls(parts, *_offsets(schedule, shard), ends, lo, hi)

    def images(self, chunks: int, start: int) -> tuple[Array, Array]:
        """Return the rounded ends of all rows; ``start`` units are added to all offsets."""
        parts, units = self.parts, self.units
        kind = object if parts * max(chunks, 1) * units >= 2**61 else np.int64  # Python's integers do not overflow
        ends, offset = self.place, (self.offset.astype(kind) + start) % units
        inner = (ends.astype(kind) * (chunks * units) + offset * parts) // (parts * units)
        rounded = np.minimum(inner, chunks).astype(np.int64)
        found = np.where(ends == 0, 0, np.where(ends == parts, chunks, rounded))
        return found.take(self.lo), found.take(self.hi)


def _offsets(schedule: AnySchedule, shard: Array) -> tuple[int, Array]:
    """Return the units of offsets, and those of shards.

    All images of a shard have its offset, so a template remains one. Its shards are few, and errors of a few may add up
    on one link: so :func:`best_rounding` tries to add each of ``_OFFSETS`` units to all offsets.
    """
    if isinstance(schedule, SymmetricSchedule):
        return _OFFSETS, shard * (7 * _OFFSETS) // max(schedule.shards, 1) % _OFFSETS
    count = max(schedule.collective.num_shards, 1)
    kind = object if count >= 2**59 else np.int64
    return count, shard.astype(kind) * 7 % count


def _rounded(schedule: Schedule, lo: Array, hi: Array, chunks: int) -> Schedule:
    """Return the schedule with these ends of its rows, without rows that become empty."""
    kept = attrs.evolve(schedule, parts=chunks, lo=lo, hi=hi, discrete=True)
    return kept.rows(np.flatnonzero(lo < hi))


def best_rounding(schedule: AnySchedule, most: int, longest: int | None = None) -> tuple[AnySchedule, int]:
    """Return the rounding to 1 to ``most`` chunks with the least bandwidth time (of equals, the fewest chunks), and how
    many numbers were tried.

    With ``longest``, a message of more chunks is several, and each further one costs a latency. The rounding of a
    template is a template.
    """
    seed, starts = seed_of(schedule), range(_OFFSETS if isinstance(schedule, SymmetricSchedule) else 1)
    numbers = numbers_to_try(seed, most, len(starts))
    ends, crossed = _Ends.of(schedule), Crossed.of(schedule)

    def rounding(chunks: int, start: int) -> AnySchedule:
        found = _rounded(seed, *ends.images(chunks, start), chunks)
        return attrs.evolve(schedule, seed=found) if isinstance(schedule, SymmetricSchedule) else found

    def time(chunks: int, start: int) -> Fraction:
        if longest is not None:
            return time_with_messages(rounding(chunks, start), longest)
        lo, hi = ends.images(chunks, start)
        c, amount = schedule.collective, hi - lo
        amount = amount if c.weights is None else times(amount, c.weight[seed.shard])
        return crossed.time(schedule, amount, chunks * c.whole)

    best = list[tuple[Fraction, int, int]]()
    for number, chunks in enumerate(numbers):
        progress("trying numbers of chunks", number, len(numbers))
        best = [min([*best, *((time(chunks, start), chunks, start) for start in starts)])]
    return rounding(*best[0][1:]), len(numbers)


def numbers_to_try(schedule: Schedule, most: int, times: int = 1) -> list[int]:
    """Return numbers of chunks in ascending order, each tried ``times`` times: all up to ``most`` if there are few.

    Otherwise return the largest numbers, the largest divisors of the exact number, and the numbers for which the ends
    of parts are nearest to whole chunks.
    """
    if most <= _EVERY and len(schedule) * most * times <= _WORK:
        return list(range(1, most + 1))
    divisors = [k for k in range(1, most + 1) if schedule.parts % k == 0]
    chunks = np.arange(1, most + 1)
    ends = np.unique(np.concatenate([schedule.lo, schedule.hi])).astype(np.float64) / schedule.parts
    ends = ends[:: max(len(ends) // 256, 1)]
    off = np.zeros(most)
    for end in ends:  # floats only choose the numbers to try; each trial is exact
        off = np.maximum(off, np.abs(chunks * end - np.rint(chunks * end)))
    likely = chunks[np.argsort(off / chunks, kind="stable")][:_LIKELY]
    return sorted({most, *divisors[-2:], *likely.tolist(), *range(max(1, most - 3), most)})
