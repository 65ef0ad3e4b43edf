"""Races: two accesses of one location by different blocks, one of them a write, in an order that depends on timing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..arrays import Array, lexsort, numbered
from ..frozen import frozen
from ..layout import Layout
from ..program import Program
from ..ragged import first_of_group, last_true, next_true, owners, ranges
from ._accesses import Accesses
from ._order import BITS, STRONG, WEAK, Order
from ._structure import MOST, doing

__all__ = ["races"]

#: accesses that are sorted together
_ROWS = 1 << 19


@frozen(eq=False)
class _Pairs:
    """Pairs of conflicting accesses (rows of :class:`Accesses`), the first earlier in the linearization."""

    before: Array
    after: Array


def races(program: Program, where: Layout, touched: Accesses, order: Order) -> list[str]:
    """Return the conflicting accesses without an order.

    Only neighbouring accesses of a location are checked: each access with the write before it, and each read with the
    write after it. All other conflicts follow, because the order is transitive.
    """
    pairs = _conflicts(program, touched, order.time)
    before, after = touched.instruction.take(pairs.before), touched.instruction.take(pairs.after)
    rest = np.flatnonzero(~order.within_rank(before, after))
    rest = rest[lexsort([order.time[before[rest]]])]
    _, number = np.unique(order.time[before[rest]], return_inverse=True)
    for batch in range(0, int(number.max(initial=-1)) + 1, BITS):
        rows = rest[(number >= batch) & (number < batch + BITS)]
        relation = order.through_ranks(before[rows], after[rows])
        # chunk by chunk is enough if the first instruction accesses the location with an equal or earlier chunk
        later = touched.lo[pairs.after[rows]] > touched.lo[pairs.before[rows]]
        bad = np.flatnonzero(~((relation == STRONG) | ((relation == WEAK) & ~later)))
        if len(bad):
            first = zip(rows[bad[:MOST]].tolist(), (relation[bad[:MOST]] == WEAK).tolist(), strict=True)
            return [_explain(program, where, touched, int(pairs.before[j]), int(pairs.after[j]), w) for j, w in first]
    return []


def _conflicts(program: Program, touched: Accesses, time: Array) -> _Pairs:
    """Return neighbouring conflicts of different blocks, each pair of instructions once.

    Ranks have no location in common, so some ranks are sorted at a time.
    """
    found = [_Pairs(*np.zeros((2, 0), dtype=np.int64))]
    for rows in _by_ranks(program.rank.take(touched.instruction)):
        some = Accesses(
            touched.instruction[rows], touched.lo[rows], touched.hi[rows], touched.write[rows]
        )  # fmt: skip
        pairs = _of_some(program, some, time)
        found.append(_Pairs(pairs.before + rows.start, pairs.after + rows.start))
    return _Pairs(*(np.concatenate([getattr(one, name) for one in found]) for name in ("before", "after")))


def _by_ranks(rank: Array) -> Iterator[slice]:
    """Yield the rows of some ranks together, about ``_ROWS`` of them; all rows if ranks do not ascend."""
    if len(rank) <= _ROWS or (rank[1:] < rank[:-1]).any():
        yield slice(0, len(rank))
        return
    ends = np.append(np.flatnonzero(first_of_group(rank))[1:], len(rank))
    begin = 0
    while begin < len(rank):
        end = int(ends[np.searchsorted(ends, min(begin + _ROWS, len(rank)))])
        yield slice(begin, end)
        begin = end


def _of_some(program: Program, touched: Accesses, time: Array) -> _Pairs:
    """Return the conflicts of the accesses of some ranks.

    Addresses that are always accessed together count as one. Of several pairs of the same two instructions, the one is
    kept in which the earlier instruction is furthest behind the later one, in chunks.
    """
    low, high = np.split(numbered(np.concatenate([touched.lo, touched.hi]))[1], 2)
    row, location = owners(high - low), ranges(low, high - low)
    when = 2 * time.take(touched.instruction) + touched.write
    order = lexsort([location * (2 * len(time) + 2) + when.take(row)])
    row, location = row.take(order), location.take(order)
    write, first = touched.write.take(row), first_of_group(location)
    last, next_ = np.append(-1, last_true(write))[: len(row)], next_true(write)
    end = np.append(np.flatnonzero(first), len(row)).take(np.cumsum(first))
    has_last, has_next = last >= last_true(first), ~write & (next_ < end)
    before = np.concatenate([row.take(last.compress(has_last)), row.compress(has_next)])
    after = np.concatenate([row.compress(has_last), row.take(next_.compress(has_next))])
    block = program.block.take(touched.instruction)
    apart = block.take(before) != block.take(after)
    return _distinct(touched, before.compress(apart), after.compress(apart), len(time))


def _distinct(touched: Accesses, before: Array, after: Array, instructions: int) -> _Pairs:
    key = touched.instruction.take(before) * instructions + touched.instruction.take(after)
    order = lexsort((touched.lo.take(before) - touched.lo.take(after), key))
    keep = order.compress(first_of_group(key.take(order)))
    return _Pairs(before.take(keep), after.take(keep))


def _explain(program: Program, where: Layout, touched: Accesses, before: int, after: int, chunkwise: bool) -> str:
    first, second = int(touched.instruction[before]), int(touched.instruction[after])
    address = max(int(touched.lo[before]), int(touched.lo[after]))
    verbs = ["writes" if touched.write[j] else "reads" for j in (before, after)]
    why = "only messages forwarded chunk by chunk order them" if chunkwise else "their order is undefined"
    return (
        f"{doing(program, first)} {verbs[0]} {where.name(program, address)} and {doing(program, second)} "
        f"{verbs[1]} it, but {why}: a dependency of the second on the first is missing"
    )
