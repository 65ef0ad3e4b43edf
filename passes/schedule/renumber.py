"""Renumber chunks so that chunks of one message are neighbours.

If every rank contributes and needs the whole vector, the numbers of chunks are free. A message needs one instruction
for each run of consecutive chunk numbers. Let s(a, b) be the number of messages that carry both chunks a and b. Then
all messages together need

    (sum of their chunks)  -  (sum of s(a, b) over neighbours a, b)

instructions. So the best numbering is the heaviest path through all chunks (:mod:`..analysis.paths`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import ClassVar

import attrs
import numpy as np

from collc.ir.arrays import Array, distinct, lexsort, numbered
from collc.ir.frozen import frozen
from collc.ir.group import Group
from collc.ir.progress import counting
from collc.ir.ragged import first_of_group, owners, ranges, starts
from collc.ir.schedule import Schedule
from collc.ir.symmetric import SymmetricSchedule

from ..analysis.paths import MOST_NODES, heavy_path
from ..analysis.shared import shared_by_images, shared_with_first
from ..base import Pass, remark
from ..lowering.lower import INSTRUCTIONS, instructions
from ..lowering.regular import lower_by_ranks
from ..program.coalesce import count_messages, least_messages

__all__ = ["FREE", "Renumber"]

#: the collectives whose chunks have free numbers: a rank that has data before or after has the whole vector
FREE = frozenset({"allreduce", "broadcast", "reduce"})
#: the most (transfer, interval) pairs; more take too long
_MOST_INTERVALS = 1 << 23
#: pairs of chunks are counted by products of matrices if these have fewer entries than this number for each pair
_DENSE = 256
_PAIRS_AT_ONCE = 1 << 18
#: transfers up to which the messages of the lowered programs are counting
_MOST_COUNTED = 1 << 15


@frozen
class Renumber(Pass):
    """Renumber the chunks of the vector so that chunks sent together are contiguous, if that needs fewer messages.

    The pass applies to allreduce, broadcast and reduce, where the order of chunks is free. All ranks use one numbering,
    so the same data are sent and added; transfers are cut and joined at the new neighbours. Two transfers belong to
    different messages if lowering reads or writes different buffers. For halving exchanges over powers of two (Swing,
    Rabenseifner) every message becomes contiguous. The schedule does not change if no better numbering is found, or if
    more than 2,048 kinds of chunks differ in their messages.
    """

    name: ClassVar[str] = "renumber"
    summary: ClassVar[str] = "renumber chunks so that chunks of one message are neighbours"
    takes: ClassVar[type] = Schedule
    gives: ClassVar[type] = Schedule
    requires: ClassVar[tuple[str, ...]] = ("discrete",)
    for_programs: ClassVar[bool] = True
    takes_templates: ClassVar[bool] = True
    for_orbits: ClassVar[bool] = True

    templates: bool = attrs.field(
        default=False, metadata={"help": "leave the schedule of one shard and a group: its messages are sets"}
    )

    def of_all_ranks(self) -> Renumber:
        return attrs.evolve(self, templates=False)

    def run(self, ir: Schedule | SymmetricSchedule) -> Schedule | SymmetricSchedule:
        group: Group | None = None
        if isinstance(ir, SymmetricSchedule):
            if self.templates and ir.movable:
                return ir
            group = ir.symmetry if ir.orbits is None else None
            ir = ir.unfold()
        elif self.templates and ir.collective.kind == "allreduce" and lower_by_ranks(ir, orbits=True) is not None:
            return ir
        if ir.placement is not None or ir.collective.kind not in FREE or not len(ir) or ir.collective.num_ranks < 2:
            return ir
        intervals = _Intervals.of(ir, alike=group is not None)
        if intervals is None:
            return ir
        order = _order(intervals, None if group is None else _Images(group, ir.src.take(intervals.row)))
        if order is None:
            return ir
        before, after = intervals.runs(np.arange(intervals.number)), intervals.runs(order)
        if after >= before:
            return ir
        found = _renumbered(ir, intervals, order)
        if not _fewer(ir, intervals, found, before, after):
            return ir
        remark(f"renumber: {after} messages of neighbouring chunks instead of {before}")
        return found


@frozen(eq=False)
class _Intervals:
    """The intervals of chunks that transfers move as a whole; the n-th of a shard is ``shard * per_shard + n``.

    ``row`` and ``interval`` are pairs, one for each interval of a transfer. ``width`` is the number of chunks of each
    interval of a shard. By pair, ``sent`` numbers the transfer's step, route and action, and ``message`` what lowering
    can send at once.
    """

    number: int
    width: Array
    row: Array
    interval: Array
    sent: Array
    message: Array

    @classmethod
    def of(cls, s: Schedule, alike: bool = False) -> _Intervals | None:
        """Return the intervals of a schedule; None if they are too many, or if a message has one of them twice.

        ``alike`` says that the messages of all ranks are images of those of rank 0.
        """
        ends = distinct(np.concatenate([[0, s.parts], s.lo, s.hi]).astype(np.int64))
        first, last = np.searchsorted(ends, s.lo), np.searchsorted(ends, s.hi)
        per_shard, widths = len(ends) - 1, last - first
        if int(widths.sum()) > _MOST_INTERVALS:
            return None
        row = owners(widths)
        interval = s.shard.take(row).astype(np.int64) * per_shard + ranges(first, widths)
        route = s.routes.first_alike.take(s.route)
        sent = numbered((s.step.astype(np.int64) * len(s.routes) + route) * 2 + s.action)[1]
        sent = sent.take(row)
        found = cls(s.collective.num_shards * per_shard, np.diff(ends), row, interval, sent, sent)
        pairs = found.sent * np.int64(found.number) + interval
        if alike:
            pairs = pairs.compress(s.src.take(row) == 0)
        if len(distinct(pairs)) < len(pairs):
            return None
        return attrs.evolve(found, message=found.messages(s))

    def messages(self, s: Schedule) -> Array:
        """Return for each pair its message: of one step, route and action, from and to the same buffers.

        Data that arrived before are in another buffer than data that a rank had from the start.
        """
        ranks, step = s.collective.num_ranks, s.step.take(self.row).astype(np.int64)
        arrived = np.full(ranks * self.number, s.num_steps, dtype=np.int64)
        source, target = (end.take(self.row).astype(np.int64) * self.number + self.interval for end in (s.src, s.dst))
        arrived[target[::-1]] = step[::-1]  # rows ascend by step: the earliest is written last
        return numbered(self.sent * 4 + (arrived.take(source) < step) * 2 + (arrived.take(target) < step))[1]

    def runs(self, order: Array) -> int:
        """Return the number of runs of neighbours in all messages together, with intervals in ``order``."""
        place = np.empty(self.number, dtype=np.int64)
        place[order] = np.arange(self.number)
        at = np.sort(self.message * np.int64(self.number + 1) + place.take(self.interval))
        return int(1 + np.count_nonzero(at[1:] != at[:-1] + 1))


@frozen(eq=False)
class _Images:
    """A group whose element g turns the messages of rank 0, and the shards in them, into those of rank g.

    ``sender`` is the rank that sends the message of each pair of :class:`_Intervals`.
    """

    group: Group
    sender: Array


def _order(intervals: _Intervals, images: _Images | None = None) -> Array | None:
    """Return a good order of intervals; None if they are of too many kinds. Those of one kind stay neighbours."""
    message = intervals.message
    kind, kinds = _alike(intervals.interval, message, intervals.number)
    if kinds > MOST_NODES or kinds < 2:
        return None
    first = np.full(kinds, intervals.number, dtype=np.int64)
    np.minimum.at(first, kind, np.arange(intervals.number))
    if images is not None and kinds == intervals.number:
        shared = _shared_by_images(intervals, images, np.argsort(kind))
    else:
        represents = first[kind[intervals.interval]] == intervals.interval
        shared = _shared(kind[intervals.interval[represents]], message[represents], kinds)
    path = heavy_path(shared, np.argsort(first))
    place = np.empty(kinds, dtype=np.int64)
    place[path] = np.arange(kinds)
    return lexsort((np.arange(intervals.number), place[kind]))


def _alike(interval: Array, message: Array, number: int) -> tuple[Array, int]:
    """Return the kind of each interval, equal for those that the same messages carry, and the number of kinds.

    Kinds are numbered in the order of their lists of messages.
    """
    order = lexsort((message, interval))
    listed = message.take(order).astype(">u8")  # the order of its bytes is that of its numbers
    start = (starts(np.bincount(interval, minlength=number)) * listed.itemsize).tolist()
    text = listed.tobytes()
    carried_by = [text[begin:end] for begin, end in pairwise(start)]
    names = {one: name for name, one in enumerate(sorted(set(carried_by)))}
    return np.array([names[one] for one in carried_by], dtype=np.int64), len(names)


def _shared(kind: Array, message: Array, kinds: int) -> Array:
    """Return the number of messages that carry both of two kinds, shape (kinds, kinds)."""
    order = lexsort([message])
    sizes = np.diff(np.append(np.flatnonzero(first_of_group(message[order])), len(order)))
    kind = kind[order]
    # One by one, a pair takes as long as about _DENSE entries of a product of matrices.
    if int((sizes * sizes).sum()) * _DENSE <= len(sizes) * kinds * kinds:
        return _in_pairs(kind, sizes, kinds)
    message = owners(sizes)
    result = np.zeros((kinds, kinds), dtype=np.float32)  # counts, exact below 2**24
    block = max((1 << 22) // kinds, 1)
    for begin in counting(range(0, len(sizes), block), "blocks of messages"):
        low, high = np.searchsorted(message, [begin, begin + block])
        carries = np.zeros((block, kinds), dtype=np.float32)
        carries[message[low:high] - begin, kind[low:high]] = 1
        result += carries.T @ carries
    return result.astype(np.int64)


def _shared_by_images(intervals: _Intervals, images: _Images, order: Array) -> Array:
    """Return what :func:`_shared` does for intervals in this order, all of different kinds, from messages of rank 0."""
    own = np.flatnonzero(images.sender == 0)
    message, interval = intervals.message[own], intervals.interval[own]
    count = shared_with_first(images.group, len(intervals.width), message, interval)
    return shared_by_images(images.group, count).take(order, axis=0).take(order, axis=1)


def _in_pairs(kind: Array, sizes: Array, kinds: int) -> Array:
    """Count like :func:`_shared`, pair by pair; ``kind`` lists the kinds of each message, ``sizes`` of them."""
    result = np.zeros(kinds * kinds, dtype=np.int64)
    waiting: list[Array] = []
    for pairs in _pairs(kind.astype(np.int64), sizes, kinds):
        waiting.append(pairs)
        if sum(map(len, waiting)) >= _PAIRS_AT_ONCE:
            result += np.bincount(np.concatenate(waiting), minlength=len(result))
            waiting = []
    if waiting:
        result += np.bincount(np.concatenate(waiting), minlength=len(result))
    table = result.reshape(kinds, kinds)
    table = table + table.T
    table[np.arange(kinds), np.arange(kinds)] = np.bincount(kind, minlength=kinds)
    return table


def _pairs(kind: Array, sizes: Array, kinds: int) -> Iterator[Array]:
    """Yield each pair of kinds in each message once, as ``one * kinds + other``, messages of one size at a time."""
    begin = starts(sizes)[:-1]
    for size in distinct(sizes[sizes > 1]).tolist():
        of_size = begin[sizes == size]
        one, other = np.triu_indices(size, 1)
        at_once = max(_PAIRS_AT_ONCE // len(one), 1)
        for low in range(0, len(of_size), at_once):
            carried = kind[of_size[low : low + at_once, None] + np.arange(size)]
            yield (carried[:, one] * kinds + carried[:, other]).reshape(-1)


def _fewer(given: Schedule, intervals: _Intervals, found: Schedule, before: int, after: int) -> bool:
    """Return whether the program has fewer messages with the new numbers; messages of different steps may be joined.

    The messages of large schedules are not counting: ``after``, counting without joining, must be an eighth less.
    """
    if max(len(given), len(found)) > _MOST_COUNTED:
        return after * 8 <= before * 7
    program, order = found.found[INSTRUCTIONS] = instructions(found)
    most = int(program.sends.sum())
    if most < _least(given, intervals):
        return True
    counted = instructions(given)
    least = least_messages(counted[0])
    if most < least:
        return True
    number = count_messages(program, order)
    return number < least or number < count_messages(*counted)


def _least(s: Schedule, intervals: _Intervals) -> int:
    """Return a number of messages that joining never goes below: transfers that continue none between the same ranks.

    In an allreduce every interval has the same place in all buffers. Of other collectives nothing is known.
    """
    if s.collective.kind != "allreduce":
        return 0
    ends = (s.src.astype(np.int64) * s.collective.num_ranks + s.dst) * 2 + s.action
    width, row = np.int64(intervals.number + 1), intervals.row
    moved = distinct(ends[row] * width + intervals.interval + 1)
    first = np.concatenate([[True], row[1:] != row[:-1]])
    before = ends[row[first]] * width + intervals.interval[first]  # the first interval of all continues nothing: 0
    at = np.minimum(np.searchsorted(moved, before), len(moved) - 1)
    return int((moved[at] != before).sum())


def _renumbered(s: Schedule, intervals: _Intervals, order: Array) -> Schedule:
    """Return the schedule with intervals in this order, and neighbours of one step, route and action in one row."""
    per_shard = len(intervals.width)
    width = intervals.width[order % per_shard]
    start = np.empty(intervals.number, dtype=np.int64)
    start[order] = starts(width)[:-1]
    end = start + np.tile(intervals.width, intervals.number // per_shard)
    by_place = lexsort((start.take(intervals.interval), intervals.sent))
    interval, sent, row = (column.take(by_place) for column in (intervals.interval, intervals.sent, intervals.row))
    lo, hi = start.take(interval), end.take(interval)
    fresh = np.concatenate([[True], (sent[1:] != sent[:-1]) | (lo[1:] != hi[:-1])])
    begin = np.flatnonzero(fresh)
    lo, hi, row = lo.take(begin), hi.take(np.append(begin[1:], len(hi)) - 1), row.take(begin)
    return _at_shards(s, row, lo, hi)


def _at_shards(s: Schedule, row: Array, lo: Array, hi: Array) -> Schedule:
    """Return rows like ``row`` that move chunks ``lo .. hi`` of the vector, cut at the ends of shards."""
    parts = np.int64(s.parts)
    first, last = lo // parts, (hi - 1) // parts
    count = last - first + 1
    of, shard = owners(count), ranges(first, count)
    columns = {c: getattr(s, c).take(row.take(of)) for c in ("step", "action", "route")}
    low, high = np.maximum(lo[of], shard * parts), np.minimum(hi[of], (shard + 1) * parts)
    return attrs.evolve(s, **columns, shard=shard, lo=low - shard * parts, hi=high - shard * parts)
