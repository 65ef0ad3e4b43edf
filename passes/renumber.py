"""Numbering chunks so that those that go together lie together.

Where every rank gives and gets the whole vector alike, how chunks are numbered means nothing, and messages of chunks
with neighbouring numbers take one instruction. A message of a set of chunks takes as many instructions as the set has
runs, so with s(a, b) the number of messages that carry both a and b, all messages together take

    (sum of their chunks)  -  (sum of s(a, b) over neighbours a, b)

instructions: the best numbering is the heaviest path through all chunks (:mod:`.paths`).
"""

from __future__ import annotations

from typing import Any, ClassVar

import attrs
import numpy as np

from collc.ir.arrays import distinct
from collc.ir.machine import SENDS
from collc.ir.schedule import Schedule

from .base import Pass, remark
from .coalesce import Coalesce
from .lower import Lower
from .paths import MOST_NODES, heavy_path

__all__ = ["FREE", "Renumber"]

Array = np.ndarray[Any, np.dtype[Any]]

#: the collectives whose vector is cut where it likes: whoever has anything at either end has all of it
FREE = frozenset({"allreduce", "broadcast", "reduce"})
#: chunks of transfers that are looked at; more take too long
_MOST_CELLS = 1 << 23
#: transfers of which programs are made to see which numbering has fewer messages
_MOST_LOWERED = 1 << 15


@attrs.frozen
class Renumber(Pass):
    """Number the chunks of the vector so that those sent together lie together, where that needs fewer messages.

    Applies where the order of chunks means nothing: to allreduce, broadcast and reduce. All ranks use one numbering, so
    nothing is added or sent that was not; transfers are cut and joined where chunks of new numbers meet. Messages
    differ where lowering reads or writes another buffer. For halving exchanges over powers of two (Swing, Rabenseifner)
    every message becomes contiguous. Where no numbering is found that takes fewer messages nothing changes, nor where
    chunks differ in more ways than 2,048.
    """

    name: ClassVar[str] = "renumber"
    summary: ClassVar[str] = "let chunks that go together lie together, where numbers mean nothing"
    takes: ClassVar[type] = Schedule
    gives: ClassVar[type] = Schedule
    requires: ClassVar[tuple[str, ...]] = ("discrete",)
    for_programs: ClassVar[bool] = True
    tries: ClassVar[tuple[Pass, ...]] = (Lower(), Coalesce(pack="never"))

    def run(self, ir: Schedule) -> Schedule:
        if ir.collective.kind not in FREE or not len(ir) or ir.collective.num_ranks < 2:
            return ir
        cells = _Cells.of(ir)
        if cells is None:
            return ir
        order = _order(cells, cells.messages(ir))
        if order is None:
            return ir
        before, after = cells.runs(np.arange(cells.number)), cells.runs(order)
        if after >= before:
            return ir
        found = _renumbered(ir, cells, order)
        if not _fewer(ir, found, before, after):
            return ir
        remark(f"renumber: {after} messages of neighbouring chunks where {before} would be sent")
        return found


@attrs.frozen(eq=False)
class _Cells:
    """What always goes together: chunks between two ends of transfers. A cell is ``shard * atoms + atom``.

    ``row`` and ``cell`` are pairs, one a cell of a transfer; ``width`` are a cell's chunks, by atom. ``sent`` names
    the transfer's step, route and action, ``message`` what lowering can send at once, both by pair.
    """

    number: int
    width: Array
    row: Array
    cell: Array
    sent: Array
    message: Array

    @classmethod
    def of(cls, s: Schedule) -> _Cells | None:
        """Return the cells of a schedule, or nothing where they are too many or some are sent twice at once."""
        ends = distinct(np.concatenate([[0, s.parts], s.lo, s.hi]).astype(np.int64))
        first, last = np.searchsorted(ends, s.lo), np.searchsorted(ends, s.hi)
        atoms, widths = len(ends) - 1, last - first
        if int(widths.sum()) > _MOST_CELLS:
            return None
        row = np.repeat(np.arange(len(s)), widths)
        atom = np.arange(len(row)) - np.repeat(np.cumsum(widths) - widths - first, widths)
        cell = s.shard[row].astype(np.int64) * atoms + atom
        route = _same_links(s)[s.route]
        _, sent = np.unique((s.step.astype(np.int64) * len(s.routes) + route) * 2 + s.action, return_inverse=True)
        found = cls(s.collective.num_shards * atoms, np.diff(ends), row, cell, sent[row], sent[row])
        pairs = found.sent * np.int64(found.number) + cell
        if len(distinct(pairs)) < len(pairs):
            return None
        return attrs.evolve(found, message=found.messages(s))

    def messages(self, s: Schedule) -> Array:
        """Return by pair which message it belongs to: of one step, route and action, from and to the same buffers.

        What has arrived before is read, and added to, elsewhere than what a rank had from the start.
        """
        ranks, step = s.collective.num_ranks, s.step[self.row].astype(np.int64)
        arrived = np.full((ranks, self.number), s.num_steps, dtype=np.int64)
        np.minimum.at(arrived, (s.dst[self.row], self.cell), step)
        early = [arrived[end[self.row], self.cell] < step for end in (s.src, s.dst)]
        _, message = np.unique(self.sent * 4 + early[0] * 2 + early[1], return_inverse=True)
        return message

    def runs(self, order: Array) -> int:
        """Return how many runs of neighbours all messages have together, cells standing in ``order``."""
        place = np.empty(self.number, dtype=np.int64)
        place[order] = np.arange(self.number)
        at = np.sort(self.message * np.int64(self.number + 1) + place[self.cell])
        return int(1 + (np.diff(at) != 1).sum())


def _same_links(s: Schedule) -> Array:
    """Return for each route the first one over the same links."""
    if s.routes.is_direct:
        return np.arange(len(s.routes))
    seen: dict[tuple[int, ...], int] = {}
    return np.array([seen.setdefault(tuple(s.routes.path(r)), r) for r in range(len(s.routes))], dtype=np.int64)


def _order(cells: _Cells, message: Array) -> Array | None:
    """Return a good order of cells, or nothing where they differ in too many ways. Equal ones stay side by side."""
    kind, kinds = _alike(cells.cell, message, cells.number)
    if kinds > MOST_NODES or kinds < 2:
        return None
    first = np.full(kinds, cells.number, dtype=np.int64)
    np.minimum.at(first, kind, np.arange(cells.number))
    represents = first[kind[cells.cell]] == cells.cell
    shared = _shared(kind[cells.cell[represents]], message[represents], kinds)
    path = heavy_path(shared, np.argsort(first))
    place = np.empty(kinds, dtype=np.int64)
    place[path] = np.arange(kinds)
    return np.lexsort((np.arange(cells.number), place[kind]))


def _alike(cell: Array, message: Array, number: int) -> tuple[Array, int]:
    """Return a number for each cell, the same for those that the same messages carry, and how many there are."""
    order = np.lexsort((message, cell))
    cell, message = cell[order], message[order]
    # a name for the messages so far, then with the next one, and so on: exact, one round a message
    name, degree = np.zeros(number, dtype=np.int64), np.bincount(cell, minlength=number)
    start = np.concatenate([[0], np.cumsum(degree)])
    for nth in range(int(degree.max(initial=0))):
        more = degree > nth
        next_one = np.full(number, -1, dtype=np.int64)
        next_one[more] = message[start[:-1][more] + nth]
        _, name = np.unique(name * np.int64(len(message) + 2) + next_one + 1, return_inverse=True)
    return name, int(name.max(initial=-1)) + 1


def _shared(kind: Array, message: Array, kinds: int) -> Array:
    """Return how many messages carry both of two kinds, shape (kinds, kinds)."""
    _, message = np.unique(message, return_inverse=True)
    result = np.zeros((kinds, kinds), dtype=np.float32)  # counts, exact below 2**24
    order = np.argsort(message, kind="stable")
    kind, message = kind[order], message[order]
    block = max((1 << 22) // kinds, 1)
    for begin in range(0, int(message.max(initial=-1)) + 1, block):
        low, high = np.searchsorted(message, [begin, begin + block])
        carries = np.zeros((block, kinds), dtype=np.float32)
        carries[message[low:high] - begin, kind[low:high]] = 1
        result += carries.T @ carries
    return result.astype(np.int64)


def _fewer(given: Schedule, found: Schedule, before: int, after: int) -> bool:
    """Whether programs have fewer messages in the new numbering: messages of several steps may be joined too.

    Of large schedules programs are not made for that; there it must be an eighth fewer before they are joined.
    """
    if max(len(given), len(found)) > _MOST_LOWERED:
        return after * 8 <= before * 7
    lower, join = Renumber.tries
    counts = [int(SENDS[join.run(lower.run(s)).opcode].sum()) for s in (given, found)]
    return counts[1] < counts[0]


def _renumbered(s: Schedule, cells: _Cells, order: Array) -> Schedule:
    """Return the schedule with cells in the given order, the neighbours of one step, route and action in one row."""
    atoms = len(cells.width)
    width = cells.width[order % atoms]
    start = np.empty(cells.number, dtype=np.int64)
    start[order] = np.cumsum(width) - width
    lo = start[cells.cell]
    hi = lo + cells.width[cells.cell % atoms]
    by_place = np.lexsort((lo, cells.sent))
    lo, hi, sent, row = lo[by_place], hi[by_place], cells.sent[by_place], cells.row[by_place]
    fresh = np.concatenate([[True], (sent[1:] != sent[:-1]) | (lo[1:] != hi[:-1])])
    begin = np.flatnonzero(fresh)
    lo, hi, row = lo[begin], hi[np.append(begin[1:], len(hi)) - 1], row[begin]
    return _at_shards(s, row, lo, hi)


def _at_shards(s: Schedule, row: Array, lo: Array, hi: Array) -> Schedule:
    """Return rows like ``row`` that move chunks ``lo .. hi`` of the vector, cut where shards end."""
    parts = np.int64(s.parts)
    first, last = lo // parts, (hi - 1) // parts
    count = last - first + 1
    of = np.repeat(np.arange(len(row)), count)
    shard = np.arange(len(of)) - np.repeat(np.cumsum(count) - count - first, count)
    columns = {c: getattr(s, c)[row[of]] for c in ("step", "action", "route")}
    low, high = np.maximum(lo[of], shard * parts), np.minimum(hi[of], (shard + 1) * parts)
    return attrs.evolve(s, **columns, shard=shard, lo=low - shard * parts, hi=high - shard * parts)
