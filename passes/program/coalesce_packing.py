"""Pack messages that are not contiguous into one: copies into scratch, one message, copies out of scratch.

The latency of a message equals the time that its link needs for ``start`` bytes. A local copy has a quarter of that
latency, because it has no peer, and is then ``MEMORY`` times as fast as the link. So packing k messages into one saves
k - 1 latencies. It costs the latencies of the copies at both ends, and one more copy of all bytes at each such end.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from collc.ir.arrays import Array, distinct_pairs
from collc.ir.editing import take, with_dependencies
from collc.ir.frozen import frozen
from collc.ir.machine import linearization
from collc.ir.program import INSTRUCTION_COLUMNS, Buffer, Opcode, Program
from collc.ir.progress import counting
from collc.ir.ragged import inverse, owners, ranges, starts, stretches

from ..analysis.hazards import synchronize, with_all_dependencies
from ..analysis.timing import MEMORY

__all__ = ["Group", "pack", "saves_time", "without_gaps"]

#: latency of a message in latencies of a copy
_COPIES = 4


@frozen
class Group:
    """Messages that may become one: ``number`` rows of sends from ``first`` on, and of receives from ``other`` on.

    ``count`` is their sum of chunks; ``copies`` the number of copies at the sender and at the receiver. ``order`` is
    the order of the messages in the packed one; empty means their own order.
    """

    first: int
    other: int
    number: int
    count: int
    copies: tuple[int, int]
    order: tuple[int, ...] = ()

    def rows(self, first: int) -> list[int]:
        """Return the rows at the end that begins with ``first``, in the order of the message."""
        return [first + nth for nth in self.order or range(self.number)]


def saves_time(group: Group, chunk: float, start: int) -> bool:
    """Return whether one packed message takes less time; chunks have ``chunk`` bytes, ``start`` is in bytes."""
    ends = sum(count > 0 for count in group.copies)
    saved = (group.number - 1) * start
    return saved > sum(group.copies) * start / _COPIES + ends * group.count * chunk / MEMORY


def pack(
    program: Program, joined: Array, other: Array, is_packed: Callable[[Group], bool], most_local: int | None
) -> Program | None:
    """Return the program with the groups packed that ``is_packed`` selects; None if there are none, or if the packed
    program would deadlock.

    ``joined`` marks rows that may be packed with the row before them. ``other`` is the other end of each row. No rank
    gets more than ``most_local`` copies.
    """
    groups = [g for g in _groups(program, joined, other) if is_packed(g)]
    groups = _within_limit(program, groups, most_local)
    if not groups:
        return None
    table = _Table(with_all_dependencies(program))  # the packed message may have another order
    for group in counting(groups, "packing messages"):
        table.replace(group)
    packed = table.program()
    finished = linearization(packed)
    if len(finished) < packed.num_instructions:
        return None
    return synchronize(packed, inverse(finished))


def without_gaps(program: Program, joined: Array, other: Array) -> Array:
    """Return ``joined`` without the sends that need copies to be packed, whatever their order: their places have gaps.

    Arguments are those of :func:`pack`.
    """
    found = np.array(stretches(joined & (program.opcode == Opcode.SEND)), dtype=np.int64).reshape(-1, 2)
    if not len(found):
        return joined
    first, number = found[:, 0] - 1, found[:, 1] - found[:, 0] + 1
    rows = ranges(first, number)
    gapless = program.opcode[other.take(first)] == Opcode.RECV
    for end, places in (("src", rows), ("dst", other.take(rows))):
        gapless &= _fill_a_run(program, places, end, starts(number)[:-1])
    result = joined.copy()
    result[ranges(found[~gapless, 0], number[~gapless] - 1)] = False
    return result


def _fill_a_run(program: Program, rows: Array, end: str, start: Array) -> Array:
    """Return for each group of rows, of which ``start`` are the first, whether its places can be one run of chunks."""
    buffer, low = (getattr(program, f"{end}_{c}").take(rows).astype(np.int64) for c in ("buffer", "offset"))
    count = program.count.take(rows).astype(np.int64)
    span = np.maximum.reduceat(low + count, start) - np.minimum.reduceat(low, start)
    one_buffer = np.maximum.reduceat(buffer, start) == np.minimum.reduceat(buffer, start)
    fills: Array = one_buffer & (span == np.add.reduceat(count, start))
    return fills


def _groups(program: Program, joined: Array, other: Array) -> list[Group]:
    """Return the runs of joined sends, with the fewest copies that packing them needs."""
    sends = joined & (program.opcode == Opcode.SEND)
    if not sends.any():
        return []
    found, at, ends = [], _Lists(program), other.tolist()
    for begin, stop in counting(list(stretches(sends)), "runs of messages"):
        rows, received = list(range(begin - 1, stop)), ends[begin - 1 : stop]
        costs = [
            (_copies(at, [rows[k] for k in order], [received[k] for k in order]), order)
            for order in _orders(at, rows, received)
        ]
        copies, order = min(costs, key=lambda cost: sum(cost[0]))
        count = sum(at.count[row] for row in rows)
        found.append(Group(begin - 1, received[0], len(rows), count, copies, tuple(order)))
    return found


class _Lists:
    """The places that rows read and write, as lists, because groups are short and many."""

    def __init__(self, program: Program) -> None:
        self.src, self.dst = (
            list(
                zip(getattr(program, f"{end}_buffer").tolist(), getattr(program, f"{end}_offset").tolist(), strict=True)
            )
            for end in ("src", "dst")
        )
        self.count: list[int] = program.count.tolist()
        self.stores: list[bool] = (program.opcode == Opcode.RECV).tolist()


def _orders(at: _Lists, rows: list[int], received: list[int]) -> list[list[int]]:
    """Return the orders that a packed message may have: the messages' own, the sender's places, the receiver's places.

    Only their own order is possible if the receiver adds, or if received places overlap.
    """
    orders = [list(range(len(rows)))]
    if not at.stores[received[0]]:
        return orders
    by_sender = sorted(orders[0], key=lambda k: at.src[rows[k]])
    by_receiver = sorted(orders[0], key=lambda k: at.dst[received[k]])
    places = [(*at.dst[received[k]], at.count[received[k]]) for k in by_receiver]
    if all(b[0] != a[0] or a[1] + a[2] <= b[1] for a, b in pairwise(places)):
        orders += [by_sender, by_receiver]
    return orders


def _copies(at: _Lists, rows: list[int], received: list[int]) -> tuple[int, int]:
    """Return the number of copies at the sender and at the receiver."""
    sent = _runs(at, at.src, rows)
    if at.stores[received[0]]:
        stored = _runs(at, at.dst, received)
        return (sent if sent > 1 else 0, stored if stored > 1 else 0)
    return (sent if sent > 1 else 0, len(received) + sum(at.src[row] != at.dst[row] for row in received))


def _runs(at: _Lists, place: list[tuple[int, int]], rows: list[int]) -> int:
    """Return the number of contiguous runs that the places of rows form."""
    return 1 + sum((place[a][0], place[a][1] + at.count[a]) != place[b] for a, b in pairwise(rows))


def _continues(program: Program, rows: Array, end: str) -> Array:
    """Return for each row but the first whether its place follows that of the row before."""
    buffer, offset = (getattr(program, f"{end}_{c}")[rows].astype(np.int64) for c in ("buffer", "offset"))
    follows: Array = (buffer[1:] == buffer[:-1]) & (offset[:-1] + program.count[rows[:-1]] == offset[1:])
    return follows


def _has_other_target(program: Program, rows: Array) -> Array:
    """Return which rows add to one place and store to another."""
    other_target: Array = (program.src_buffer[rows] != program.dst_buffer[rows]) | (
        program.src_offset[rows] != program.dst_offset[rows]
    )
    return other_target


def _within_limit(program: Program, groups: list[Group], most: int | None) -> list[Group]:
    """Return the groups that fit the ranks' limit of copies, chosen by the number of messages that each saves."""
    if most is None:
        return groups
    rank = program.rank
    local = np.bincount(rank[program.local], minlength=program.num_ranks)
    kept = []
    for group in sorted(groups, key=lambda g: (-g.number, g.first)):
        ends = (int(rank[group.first]), int(rank[group.other]))
        if all(not more or local[at] + 2 * more <= most for at, more in zip(ends, group.copies, strict=True)):
            for at, more in zip(ends, group.copies, strict=True):
                local[at] += 2 * more  # each may have a dependency of its own
            kept.append(group)
    return sorted(kept, key=lambda g: g.first)


class _Table:
    """The rows of a program, some replaced: for each old row its new rows, and the new row that finishes it."""

    def __init__(self, program: Program) -> None:
        self.program_ = program
        self.scratch = program.scratch.astype(np.int64).copy()
        self.columns = {c: getattr(program, c).tolist() for c in INSTRUCTION_COLUMNS}
        #: old row -> new rows (columns, old rows whose dependencies they have)
        self.new_rows: dict[int, list[tuple[dict[str, int], list[int]]]] = {}
        #: old row -> (old row that has the new rows, which of them)
        self.ends: dict[int, tuple[int, int]] = {}

    def row(self, i: int) -> dict[str, int]:
        return {c: int(self.columns[c][i]) for c in INSTRUCTION_COLUMNS}

    def room(self, row: int, count: int) -> int:
        """Return the offset of ``count`` new chunks of scratch on a row's rank."""
        rank = int(self.program_.rank[row])
        self.scratch[rank] += count
        return int(self.scratch[rank]) - count

    def replace(self, group: Group) -> None:
        rows = group.rows(group.first)
        if group.copies[0]:
            self.gather(rows, group.count)
        else:
            self.join(rows, group.count)
        rows = group.rows(group.other)
        if group.copies[1]:
            self.scatter(rows, group.count)
        else:
            self.join(rows, group.count)

    def join(self, rows: list[int], count: int) -> None:
        """Replace rows with contiguous places by one message."""
        self.new_rows |= {row: [] for row in rows}
        self.new_rows[rows[0]] = [({**self.row(rows[0]), "count": count}, rows)]
        self.ends |= dict.fromkeys(rows, (rows[0], 0))

    def gather(self, rows: list[int], count: int) -> None:
        """Replace sends by copies into scratch and one send."""
        self.new_rows |= {row: [] for row in rows}
        base = at = self.room(rows[0], count)
        new: list[tuple[dict[str, int], list[int]]] = []
        follows = [False, *_continues(self.program_, np.array(rows), "src").tolist()]
        for row, more in zip(rows, follows, strict=True):
            one = self.row(row)
            if more:
                new[-1][0]["count"] += one["count"]
                new[-1][1].append(row)
            else:
                copy = {**one, "opcode": Opcode.COPY, "dst_buffer": Buffer.SCRATCH, "dst_offset": at}
                new.append((copy, [row]))
            at += one["count"]
            self.ends[row] = (rows[0], len(new) - 1)
        send = {
            **self.row(rows[0]), "src_buffer": Buffer.SCRATCH, "src_offset": base, "count": count,
        }  # fmt: skip
        self.new_rows[rows[0]] = [*new, (send, [])]

    def scatter(self, rows: list[int], count: int) -> None:
        """Replace receives by one receive into scratch, and a copy or addition for each."""
        self.new_rows |= {row: [] for row in rows}
        base = at = self.room(rows[0], count)
        whole = {**self.row(rows[0]), "opcode": Opcode.RECV, "src_buffer": 0, "src_offset": 0}
        new: list[tuple[dict[str, int], list[int]]] = [
            ({**whole, "dst_buffer": Buffer.SCRATCH, "dst_offset": base, "count": count}, [])
        ]
        plain = self.row(rows[0])["opcode"] == Opcode.RECV
        follows = [False, *(_continues(self.program_, np.array(rows), "dst") & plain).tolist()]
        other_target = _has_other_target(self.program_, np.array(rows)).tolist()
        for row, more, apart in zip(rows, follows, other_target, strict=True):
            one = self.row(row)
            staged = {"src_buffer": Buffer.SCRATCH, "src_offset": at}
            if more:
                new[-1][0]["count"] += one["count"]
                new[-1][1].append(row)
            elif plain:
                new.append(({**one, **staged, "opcode": Opcode.COPY}, [row]))
            else:
                if apart:
                    new.append(({**one, "opcode": Opcode.COPY}, [row]))
                new.append(({**one, **staged, "opcode": Opcode.REDUCE}, [] if apart else [row]))
            at += one["count"]
            self.ends[row] = (rows[0], len(new) - 1)
        self.new_rows[rows[0]] = new

    def program(self) -> Program:
        """Return the program of the new rows, with the dependencies of the old ones."""
        old = self.program_
        size = np.ones(old.num_instructions, dtype=np.int64)
        for row, new in self.new_rows.items():
            size[row] = len(new)
        begins, ends = starts(size)[:-1], starts(size)[:-1]
        for row, (holder, nth) in self.ends.items():
            ends[row] = begins[holder] + nth
        rows = owners(size)
        columns = {c: getattr(old, c)[rows].astype(np.int64) for c in INSTRUCTION_COLUMNS}
        depends = begins.copy()  # old row -> the new row that has its dependencies
        for row, new in self.new_rows.items():
            for at, (one, of) in enumerate(new, int(begins[row])):
                depends[of] = at
                for c in INSTRUCTION_COLUMNS:
                    columns[c][at] = one[c]
        result = take(old, rows, scratch=self.scratch, **columns)
        dependent, dependency = distinct_pairs(depends[old.dependent], ends[old.deps])
        between = result.block[dependent] != result.block[dependency]
        return with_dependencies(result, dependent[between], dependency[between])
