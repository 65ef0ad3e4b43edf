"""Round a schedule to fewer chunks than its parts need, and find the number of chunks with the least loss."""

from __future__ import annotations

from fractions import Fraction

import attrs
import numpy as np

from collc.ir.costs.cost import DEFAULT_ALPHA, unit_seconds
from collc.ir.costs.pieces import USUAL_SIZE
from collc.ir.progress import progress
from collc.ir.ragged import owners
from collc.ir.schedule import Schedule

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
    parts, count = int(schedule.parts), schedule.collective.num_shards
    kind = object if parts * max(chunks, 1) * count >= 2**61 else np.int64  # Python's integers do not overflow
    shard = schedule.shard.astype(kind)
    offset = (shard * 7) % count if count > 1 else shard * 0  # in units of 1/count

    def image(ends: np.ndarray) -> np.ndarray:
        inner = (ends.astype(kind) * (chunks * count) + offset * parts) // (parts * count)
        rounded = np.minimum(inner, chunks).astype(np.int64)
        return np.where(ends == 0, 0, np.where(ends == parts, chunks, rounded))

    lo, hi = image(schedule.lo), image(schedule.hi)
    kept = attrs.evolve(schedule, parts=chunks, lo=lo, hi=hi, discrete=True)
    return kept.rows(np.flatnonzero(lo < hi))


def time_per_byte(schedule: Schedule) -> Fraction:
    """Return the bandwidth time per byte of M, the same as :func:`~collc.ir.costs.cost.cost` computes."""
    topology, routes = schedule.topology, schedule.routes
    amount = schedule.amount
    row = owners(routes.lengths[schedule.route])
    link = routes.links[routes.places(schedule.route)]
    load = np.zeros((schedule.num_steps, topology.num_links), dtype=amount.dtype)
    np.add.at(load, (schedule.step[row], link), amount[row])
    most = [load[:, topology.link_class == k].max(axis=1, initial=0).tolist() for k in range(len(topology.classes))]
    speeds = [kind.bandwidth for kind in topology.classes]
    total = sum(
        (max(Fraction(amount) / speed for amount, speed in zip(step, speeds, strict=True))
         for step in zip(*most, strict=True)),
        Fraction(0),
    )  # fmt: skip
    return total / schedule.vector


def best_rounding(schedule: Schedule, most: int, longest: int | None = None) -> tuple[Schedule, int]:
    """Return the rounding to 1 to ``most`` chunks with the least bandwidth time (of equals, the fewest chunks), and how
    many numbers were tried.

    With ``longest``, a message of more chunks is several, and each further one costs a latency.
    """
    numbers = numbers_to_try(schedule, most)
    best: tuple[Fraction, Schedule] | None = None
    for number, chunks in enumerate(numbers):
        progress("trying numbers of chunks", number, len(numbers))
        rounded = round_parts(schedule, chunks)
        time = time_with_messages(rounded, longest)
        if best is None or time < best[0]:
            best = time, rounded
    assert best is not None
    return best[1], len(numbers)


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
