"""Packing what is not contiguous into one message: copies into scratch, one message, copies out of scratch.

A message takes ``start`` bytes' time of its link to begin, whatever it carries. A local copy begins in a quarter of
that, since it waits for no peer, and then goes ``MEMORY`` times as fast as the link. So k messages that become one save
k - 1 starts, and cost the starts of the copies at both ends and every byte once more at each end that copies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from collc.ir.machine import execute
from collc.ir.program import INSTRUCTION_COLUMNS, Buffer, Opcode, Program

from .arrange import places
from .hazards import synchronize, with_all_waits
from .timing import MEMORY

__all__ = ["Group", "pack", "pays"]

Array = np.ndarray[Any, np.dtype[Any]]

#: how many copies begin in the time in which one message does
_COPIES = 4


@attrs.frozen
class Group:
    """Messages that may become one: rows ``first`` to ``first + number`` of sends, as many of receives from ``other``.

    ``count`` is their chunks together; ``copies`` the instructions that copy at the sender, and at the receiver, where
    0 says that it needs none. In the one message the parts stand in ``order``, as they come unless given.
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


def pays(group: Group, chunk: float, start: int) -> bool:
    """Whether one message instead of several takes less time; chunks have ``chunk`` bytes, ``start`` is in bytes."""
    ends = sum(count > 0 for count in group.copies)
    saved = (group.number - 1) * start
    return saved > sum(group.copies) * start / _COPIES + ends * group.count * chunk / MEMORY


def pack(
    program: Program, joined: Array, other: Array, worth: Callable[[Group], bool], most_local: int | None
) -> Program | None:
    """Return the program with groups of messages packed where that is ``worth`` it; nothing where none is, or where
    ranks would wait for each other then.

    ``joined`` marks rows that may go with the row before them, ``other`` names the other end of each. No rank gets more
    than ``most_local`` copies.
    """
    groups = [g for g in _groups(program, joined, other) if worth(g)]
    groups = _within(program, groups, most_local)
    if not groups:
        return None
    table = _Table(with_all_waits(program))  # parts of a message may change places
    for group in groups:
        table.replace(group)
    packed = table.program()
    run = execute(packed)
    if run.deadlock:
        return None
    return synchronize(packed, places(run.finished))


def _groups(program: Program, joined: Array, other: Array) -> list[Group]:
    """Return the runs of joined sends, with what they would cost."""
    found = []
    sends = joined & (program.opcode == Opcode.SEND)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], sends, [False]])))
    for begin, stop in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        rows = np.arange(begin - 1, stop)
        received = other[rows]
        ways = [(_copies(program, rows[o], received[o]), o) for o in _orders(program, rows, received)]
        copies, order = min(ways, key=lambda way: sum(way[0]))
        count = int(program.count[rows].sum())
        found.append(Group(begin - 1, int(received[0]), len(rows), count, copies, tuple(order.tolist())))
    return found


def _orders(program: Program, rows: Array, received: Array) -> list[Array]:
    """Return orders in which a message may have its parts: as they come, or as they lie at either end.

    Where the receiver adds, or one part comes to lie on another, they stay as they come.
    """
    orders = [np.arange(len(rows))]
    ends = [(getattr(program, f"{e}_buffer")[r], getattr(program, f"{e}_offset")[r].astype(np.int64))
            for e, r in (("src", rows), ("dst", received))]  # fmt: skip
    by_sender, by_receiver = (np.lexsort((offset, buffer)) for buffer, offset in ends)
    buffer, offset = (column[by_receiver] for column in ends[1])
    apart = (buffer[1:] != buffer[:-1]) | (offset[:-1] + program.count[received[by_receiver]][:-1] <= offset[1:])
    if program.opcode[received[0]] == Opcode.RECV and apart.all():
        orders += [by_sender, by_receiver]
    return orders


def _copies(program: Program, rows: Array, received: Array) -> tuple[int, int]:
    """Return the instructions that pack at the sender and unpack at the receiver."""
    away = _runs(program, rows, "src")
    if program.opcode[received[0]] == Opcode.RECV:
        back = _runs(program, received, "dst")
        return (away if away > 1 else 0, back if back > 1 else 0)
    return (away if away > 1 else 0, len(received) + int(_elsewhere(program, received).sum()))


def _runs(program: Program, rows: Array, end: str) -> int:
    """Return how many runs of neighbours the places of rows are."""
    return 1 + int((~_next_to(program, rows, end)).sum())


def _next_to(program: Program, rows: Array, end: str) -> Array:
    """Return for each row but the first whether its place follows that of the row before."""
    buffer, offset = (getattr(program, f"{end}_{c}")[rows].astype(np.int64) for c in ("buffer", "offset"))
    return (buffer[1:] == buffer[:-1]) & (offset[:-1] + program.count[rows[:-1]] == offset[1:])


def _elsewhere(program: Program, rows: Array) -> Array:
    """Return which rows add what comes to another place than that they store to."""
    here = (program.src_buffer == program.dst_buffer) & (program.src_offset == program.dst_offset)
    return ~here[rows]


def _within(program: Program, groups: list[Group], most: int | None) -> list[Group]:
    """Return the groups that save the most messages of each rank first, while copies of its ranks stay few enough."""
    if most is None:
        return groups
    rank = program.block_rank[program.block]
    local = np.bincount(rank[_LOCAL[program.opcode]], minlength=program.num_ranks)
    kept = []
    for group in sorted(groups, key=lambda g: (-g.number, g.first)):
        ends = (int(rank[group.first]), int(rank[group.other]))
        if all(not more or local[at] + 2 * more <= most for at, more in zip(ends, group.copies, strict=True)):
            for at, more in zip(ends, group.copies, strict=True):
                local[at] += 2 * more  # each may have to wait for something of its own
            kept.append(group)
    return sorted(kept, key=lambda g: g.first)


_LOCAL = np.array([not op.sends and not op.receives for op in Opcode])


class _Table:
    """The rows of a program, some replaced: for each old row the new ones, and which of them ends it for others."""

    def __init__(self, program: Program) -> None:
        self.program_ = program
        self.scratch = program.scratch.astype(np.int64).copy()
        self.columns = {c: getattr(program, c).tolist() for c in INSTRUCTION_COLUMNS}
        #: old row -> new rows (columns, old rows whose waits they have)
        self.made: dict[int, list[tuple[dict[str, int], list[int]]]] = {}
        #: old row -> (old row that holds the new ones, which of them)
        self.ends: dict[int, tuple[int, int]] = {}

    def row(self, i: int) -> dict[str, int]:
        return {c: int(self.columns[c][i]) for c in INSTRUCTION_COLUMNS}

    def room(self, row: int, count: int) -> int:
        """Return where so many fresh chunks of scratch begin on a row's rank."""
        rank = int(self.program_.block_rank[self.program_.block[row]])
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
        """One message of places that follow each other."""
        self.made |= {row: [] for row in rows}
        self.made[rows[0]] = [({**self.row(rows[0]), "count": count}, rows)]
        self.ends |= dict.fromkeys(rows, (rows[0], 0))

    def gather(self, rows: list[int], count: int) -> None:
        """Copies into scratch, then one send."""
        self.made |= {row: [] for row in rows}
        base = at = self.room(rows[0], count)
        new: list[tuple[dict[str, int], list[int]]] = []
        follows = [False, *_next_to(self.program_, np.array(rows), "src").tolist()]
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
        self.made[rows[0]] = [*new, (send, [])]

    def scatter(self, rows: list[int], count: int) -> None:
        """One receive into scratch, then what was to be done with each part."""
        self.made |= {row: [] for row in rows}
        base = at = self.room(rows[0], count)
        whole = {**self.row(rows[0]), "opcode": Opcode.RECV, "src_buffer": 0, "src_offset": 0}
        new: list[tuple[dict[str, int], list[int]]] = [
            ({**whole, "dst_buffer": Buffer.SCRATCH, "dst_offset": base, "count": count}, [])
        ]
        plain = self.row(rows[0])["opcode"] == Opcode.RECV
        follows = [False, *(_next_to(self.program_, np.array(rows), "dst") & plain).tolist()]
        elsewhere = _elsewhere(self.program_, np.array(rows)).tolist()
        for row, more, apart in zip(rows, follows, elsewhere, strict=True):
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
        self.made[rows[0]] = new

    def program(self) -> Program:
        """Return the program of the new rows; they wait for what the old ones waited for."""
        old = self.program_
        size = np.ones(old.num_instructions, dtype=np.int64)
        for row, new in self.made.items():
            size[row] = len(new)
        start = np.concatenate([[0], np.cumsum(size)])
        ends = start[:-1].copy()
        for row, (holder, nth) in self.ends.items():
            ends[row] = start[holder] + nth
        columns: dict[str, Any] = {c: [] for c in INSTRUCTION_COLUMNS}
        waits: list[list[int]] = []
        block = np.repeat(old.block, size)
        for row in range(old.num_instructions):
            for one, of in self.made.get(row, [(self.row(row), [row])]):
                for c in INSTRUCTION_COLUMNS:
                    columns[c].append(int(one[c]))
                waits.append(sorted({int(ends[d]) for r in of for d in old.waits(r)}))
        mine = [[d for d in listed if block[d] != block[i]] for i, listed in enumerate(waits)]
        return attrs.evolve(
            old, scratch=self.scratch, block_start=start[old.block_start.astype(np.int64)],
            dep_start=np.cumsum([0, *(len(w) for w in mine)]), deps=[d for w in mine for d in w], **columns,
        )  # fmt: skip
