"""Round a schedule to fewer chunks than its parts need, and find the number of chunks with the least loss."""

from __future__ import annotations

from fractions import Fraction

import attrs
import numpy as np

from collc.ir.arrays import Array, distinct, times
from collc.ir.costs.cost import DEFAULT_ALPHA, unit_seconds
from collc.ir.costs.pieces import USUAL_SIZE
from collc.ir.progress import progress
from collc.ir.ragged import owners
from collc.ir.schedule import Schedule
from collc.ir.topology import Topology

__all__ = ["best_rounding", "numbers_to_try", "round_parts", "time_per_byte", "time_with_messages"]

#: every number is tried up to this many rounded transfers and numbers; beyond that only likely numbers
_WORK, _EVERY = 1 << 23, 512
_LIKELY = 64


def round_parts(schedule: Schedule, chunks: int) -> Schedule:
    """Return the discrete schedule with ``chunks`` chunks per shard, without rows that become empty.

    An end at x of shard v becomes floor(chunks * x + offset). The offset (below 1) differs from shard to shard, so that
    the roundings of different shards do not all load the same link. 0 stays 0, and 1 becomes ``chunks``. The map is
    monotone, so parts that covered an interval cover its image.
    """
    return _Ends.of(schedule).rounded(schedule, chunks)


@attrs.frozen(eq=False)
class _Ends:
    """The different ends of the parts of a schedule: the shard and the place of each, and which ends each row has.

    Many rows move the same part, each over another route: rounding is done once for each end.
    """

    shard: Array
    place: Array
    lo: Array
    hi: Array

    @classmethod
    def of(cls, schedule: Schedule) -> _Ends:
        shard, parts = schedule.shard.astype(np.int64), int(schedule.parts)
        if (int(shard.max(initial=0)) + 1) * (parts + 1) >= 2**62:
            rows = np.arange(len(shard))
            ends = np.concatenate([schedule.lo, schedule.hi]).astype(np.int64)
            return cls(np.tile(shard, 2), ends, rows, rows + len(shard))
        key = [shard * (parts + 1) + ends for ends in (schedule.lo, schedule.hi)]
        named = np.union1d(*(distinct(one) for one in key))
        lo, hi = (np.searchsorted(named, one) for one in key)
        return cls(*np.divmod(named, parts + 1), lo, hi)

    def images(self, schedule: Schedule, chunks: int) -> tuple[Array, Array]:
        """Return the rounded ends of all rows."""
        parts, count = int(schedule.parts), schedule.collective.num_shards
        kind = object if parts * max(chunks, 1) * count >= 2**61 else np.int64  # Python's integers do not overflow
        shard, ends = self.shard.astype(kind), self.place
        offset = (shard * 7) % count if count > 1 else shard * 0  # in units of 1/count
        inner = (ends.astype(kind) * (chunks * count) + offset * parts) // (parts * count)
        rounded = np.minimum(inner, chunks).astype(np.int64)
        found = np.where(ends == 0, 0, np.where(ends == parts, chunks, rounded))
        return found.take(self.lo), found.take(self.hi)

    def rounded(self, schedule: Schedule, chunks: int) -> Schedule:
        """Return the schedule of :func:`round_parts`."""
        lo, hi = self.images(schedule, chunks)
        kept = attrs.evolve(schedule, parts=chunks, lo=lo, hi=hi, discrete=True)
        return kept.rows(np.flatnonzero(lo < hi))


@attrs.frozen(eq=False)
class _Crossed:
    """The links that rows cross: the row, and the number of the link in the loads of all steps."""

    row: Array
    load: Array

    @classmethod
    def of(cls, schedule: Schedule) -> _Crossed:
        row = owners(schedule.routes.lengths[schedule.route])
        link = schedule.routes.links[schedule.routes.places(schedule.route)]
        return cls(row, schedule.step.astype(np.int64)[row] * schedule.topology.num_links + link)

    def time(self, schedule: Schedule, amount: Array, vector: int) -> Fraction:
        """Return the time per byte of rows that move such amounts of a vector, in chunks."""
        size = schedule.num_steps * schedule.topology.num_links
        if len(amount) and int(amount.max()) * len(amount) < 2**53:  # all sums are exact
            load = np.bincount(self.load, weights=amount[self.row], minlength=size).astype(np.int64)
        else:
            load = np.zeros(size, dtype=amount.dtype)
            np.add.at(load, self.load, amount[self.row])
        return _time(schedule.topology, load.reshape(schedule.num_steps, schedule.topology.num_links)) / vector


def time_per_byte(schedule: Schedule) -> Fraction:
    """Return the bandwidth time per byte of M, the same as :func:`~collc.ir.costs.cost.cost` computes."""
    return _Crossed.of(schedule).time(schedule, schedule.amount, schedule.vector)


def _time(topology: Topology, load: Array) -> Fraction:
    """Return the time of loads of links, shape (steps, links)."""
    most = [load[:, topology.link_class == k].max(axis=1, initial=0).tolist() for k in range(len(topology.classes))]
    speeds = [kind.bandwidth for kind in topology.classes]
    return sum(
        (max(Fraction(amount) / speed for amount, speed in zip(step, speeds, strict=True))
         for step in zip(*most, strict=True)),
        Fraction(0),
    )  # fmt: skip


def best_rounding(schedule: Schedule, most: int, longest: int | None = None) -> tuple[Schedule, int]:
    """Return the rounding to 1 to ``most`` chunks with the least bandwidth time (of equals, the fewest chunks), and how
    many numbers were tried.

    With ``longest``, a message of more chunks is several, and each further one costs a latency.
    """
    numbers = numbers_to_try(schedule, most)
    ends, crossed = _Ends.of(schedule), _Crossed.of(schedule)
    best: tuple[Fraction, int] | None = None
    for number, chunks in enumerate(numbers):
        progress("trying numbers of chunks", number, len(numbers))
        if longest is None:
            lo, hi = ends.images(schedule, chunks)
            c, amount = schedule.collective, hi - lo
            amount = amount if c.weights is None else times(amount, c.weight[schedule.shard])
            time = crossed.time(schedule, amount, chunks * c.whole)
        else:
            time = time_with_messages(ends.rounded(schedule, chunks), longest)
        if best is None or time < best[0]:
            best = time, chunks
    assert best is not None
    return ends.rounded(schedule, best[1]), len(numbers)


def time_with_messages(schedule: Schedule, longest: int | None) -> Fraction:
    """Return the bandwidth time per byte of M.

    With ``longest``, add the latencies of every transfer's messages after the first, each of at most that number of
    chunks.
    """
    time = time_per_byte(schedule)
    more = 0 if longest is None else _split(schedule, longest)
    return time + more * _latency_per_byte(schedule) if more else time


def _latency_per_byte(schedule: Schedule) -> Fraction:
    """Return a message's latency in the units of :func:`time_per_byte`, at the collective's size."""
    topology = schedule.topology
    alpha = max(kind.latency for kind in topology.classes) or DEFAULT_ALPHA
    size = schedule.collective.size or USUAL_SIZE
    return alpha / (unit_seconds(topology) * size)


def _split(schedule: Schedule, longest: int) -> int:
    """Return the additional messages of the busiest route of each step, summed over the steps."""
    more = (schedule.hi.astype(np.int64) - schedule.lo - 1) // longest
    found = np.zeros((schedule.num_steps, len(schedule.routes)), dtype=np.int64)
    np.add.at(found, (schedule.step, schedule.route), more)
    return int(found.max(axis=1, initial=0).sum())


def numbers_to_try(schedule: Schedule, most: int) -> list[int]:
    """Return numbers of chunks in ascending order: all up to ``most`` if there are few.

    Otherwise return the largest numbers, the largest divisors of the exact number, and the numbers for which the ends
    of parts are nearest to whole chunks.
    """
    if most <= _EVERY and len(schedule) * most <= _WORK:
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
