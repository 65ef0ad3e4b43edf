"""The moves of one rank in order: messages posted and awaited, copies and reductions between them.

An :class:`Outline` has no sizes: locations are chunks. It lists the messages, which of them go directly to and from the
buffers, which need memory of their own, and when each is posted:

* Instructions that send to one peer in one level are one message if messages are *packed*.
* A receive is posted two levels before its own at the earliest, and only after the last access to its place.
* A rank does not wait for a send at once. A later write to the data waits for it if the receive comes first in the
  order. Otherwise the rank sends a copy, because the receiver may come after the write.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import cached_property

import attrs
import numpy as np

from collc.backends.mpi_c.scratch import Segments, is_whole, lay_out, span
from collc.ir.arrays import Array
from collc.ir.program import Buffer, Opcode, Program
from collc.ir.ragged import nth_in_group

from .order import Order, order

__all__ = ["Kind", "Message", "Move", "Outline", "Place", "ProgramLayout", "outline"]

#: (buffer, first chunk, end); of a message's own memory the message's number in place of the chunks
Place = tuple[int, int, int]

#: (buffer, chunk) -> the row of its last access; the sends that may still read it
_LastAccess = dict[tuple[int, int], int]
_PendingSends = dict[tuple[int, int], set[int]]

#: collectives that torch performs on one tensor, where input and output are the same memory
_ONE_TENSOR = frozenset({"allreduce", "broadcast", "reduce"})


class Kind(IntEnum):
    """The kind of an action of a plan."""

    POST = 0  #     message:               begin to receive
    AWAIT = 1  #    message:               be done receiving
    SEND = 2  #     message:               begin to send
    SENT = 3  #     message:               be done sending
    COPY = 4  #     to <- one
    COMBINE = 5  #  to <- one + other


@attrs.frozen
class Message:
    """One message of a rank: ``parts`` are its places in the buffers, in the order they travel. One that is not
    ``direct`` has memory of its own, for parts of the same sizes.

    ``number`` is that among the messages from its sender to its receiver.
    """

    peer: int
    number: int
    parts: tuple[Place, ...]
    direct: bool


@attrs.frozen
class Move:
    """One move. A place may be a part of a message's memory: (-1 - message, part, part + 1)."""

    kind: Kind
    message: int = -1
    to: Place = (0, 0, 0)
    one: Place = (0, 0, 0)
    other: Place = (0, 0, 0)


@attrs.frozen(eq=False)
class Outline:
    """All moves of a rank in a program, for calls of any size."""

    messages: tuple[Message, ...]
    moves: tuple[Move, ...]


@attrs.frozen(eq=False)
class ProgramLayout:
    """A program whose accesses are runs of elements for any count, with its order and its messages."""

    program: Program
    segments: Segments
    order: Order

    @classmethod
    def of(cls, program: Program) -> ProgramLayout:
        """Lay a verified program out; raises C0704 if chunks of different sizes meet."""
        layout, segments = lay_out(program)
        return cls(layout, segments, order(layout))

    @cached_property
    def one_tensor(self) -> bool:
        """Whether input and output are the same tensor, as torch calls the collective."""
        return self.program.collective.kind in _ONE_TENSOR

    @cached_property
    def span(self) -> int:
        """The number of chunks of the elements of a call (of the vector, or of one rank's block)."""
        return span(self.program)

    @cached_property
    def whole(self) -> bool:
        """Whether the elements of a call are those of the whole vector."""
        return is_whole(self.program.collective)

    def rows(self, rank: int) -> list[int]:
        """Return a rank's instructions in the order."""
        p = self.program
        first, end = p.block_start[p.rank_blocks[rank : rank + 2]].tolist()
        return [first + i for i in np.argsort(self.order.place[first:end], kind="stable").tolist()]

    def peers(self, rank: int) -> set[int]:
        """Return the ranks with which a rank exchanges messages."""
        receives = np.flatnonzero(self.order.sender >= 0)
        ends = np.stack([self.program.rank[self.order.sender[receives]], self.program.rank[receives]])
        return {*ends[1, ends[0] == rank].tolist(), *ends[0, ends[1] == rank].tolist()} - {rank}

    def messages(self, packed: bool) -> tuple[Array, Array]:
        """Return for every instruction the message it sends and the one it receives (-1: none), as ``(sends,
        receives)``; messages of a pair of ranks are numbered from 0 in the order they are sent, multiplied by N*N,
        plus sender * N + receiver.
        """
        p, n = self.program, self.program.num_ranks
        rank = p.rank
        receives = np.flatnonzero(self.order.sender >= 0)
        sends = self.order.sender[receives]
        pair = rank[sends] * n + rank[receives]
        when = self.order.level[sends] if packed else self.order.place[sends]
        groups, group = np.unique(np.stack([pair, when]), axis=1, return_inverse=True)
        nth = nth_in_group(groups[0])
        name = (nth * n * n + groups[0])[group.reshape(-1)]
        out, into = np.full((2, p.num_instructions), -1, dtype=np.int64)
        out[sends], into[receives] = name, name
        return out, into


def outline(layout: ProgramLayout, rank: int, packed: bool) -> Outline:
    """Return the moves of a rank; ``packed`` joins all instructions of a level with one peer into one message."""
    return _Outliner(layout, rank, packed).outline()


@attrs.define
class _Draft:
    """A message under construction: ``rows`` (numbers in the rank's order) send or receive its parts."""

    peer: int
    number: int
    rows: list[int] = attrs.field(factory=list)
    parts: list[Place] = attrs.field(factory=list)
    direct: bool = True
    post: int = 0  #             the row before which it is posted
    awaited: int = 0  #          the place in the order at which its receiver awaits it


class _Outliner:
    def __init__(self, layout: ProgramLayout, rank: int, packed: bool):
        self.layout, self.program, self.rank = layout, layout.program, rank
        self.rows = layout.rows(rank)
        self.op = [Opcode(code) for code in self.program.opcode[self.rows].tolist()]
        self.level = layout.order.level[self.rows].tolist()
        self.place = layout.order.place[self.rows].tolist()
        self.src, self.dst = self._places("src"), self._places("dst")
        self.drafts: list[_Draft] = []
        out, into = layout.messages(packed)
        self.sends = self._group(out[self.rows].tolist(), self._data_at, outward=True)
        self.receives = self._group(into[self.rows].tolist(), self._data_at, outward=False)
        self._find_awaited(out, into)
        self.sends_before: list[list[int]] = [[] for _ in self.rows]  # row -> sends that must finish before it writes

    def _places(self, name: str) -> list[Place]:
        """Return the place that each row reads from or writes to; in one tensor the input is where the output is."""
        p = self.program
        buffer = getattr(p, f"{name}_buffer")[self.rows].astype(np.int64)
        if self.layout.one_tensor:
            buffer = np.where(buffer == Buffer.INPUT, int(Buffer.OUTPUT), buffer)
        first = getattr(p, f"{name}_offset")[self.rows].astype(np.int64)
        end = first + p.count[self.rows]
        return list(zip(buffer.tolist(), first.tolist(), end.tolist(), strict=True))

    def _data_at(self, row: int) -> Place:
        """Return the place of the data that an instruction sends or receives."""
        return self.dst[row] if self.op[row].writes_dst else self.src[row]

    def _group(self, names: list[int], where: Callable[[int], Place], outward: bool) -> list[int]:
        """Make drafts of the messages named; return each row's (-1: none). Parts travel in the sender's order."""
        n = self.program.num_ranks
        rows = [row for row, name in enumerate(names) if name >= 0]
        if not outward:
            sender = self.layout.order.sender[self.rows].tolist()
            rows.sort(key=lambda row: int(self.layout.order.place[sender[row]]))
        found: dict[int, int] = {}
        result = [-1] * len(names)
        for row in rows:
            number, pair = divmod(names[row], n * n)
            if names[row] not in found:
                found[names[row]] = len(self.drafts)
                self.drafts.append(_Draft(pair % n if outward else pair // n, number))
            result[row] = found[names[row]]
            self.drafts[result[row]].rows.append(row)
            self.drafts[result[row]].parts.append(where(row))
        return result

    def _find_awaited(self, out: Array, into: Array) -> None:
        """Record when the receiver of each message awaits it: at its first use of a part."""
        receives = np.flatnonzero(into >= 0)
        awaited = dict[int, int]()
        for name, place in zip(into[receives].tolist(), self.layout.order.place[receives].tolist(), strict=True):
            awaited[name] = min(place, awaited.get(name, place))
        for row, m in enumerate(self.sends):
            if m >= 0:
                self.drafts[m].awaited = awaited[int(out[self.rows[row]])]

    # ---- direct messages

    def outline(self) -> Outline:
        for m in sorted({*self.sends} - {-1}):
            one = self.drafts[m]
            forwards = any(self.op[row] is Opcode.RECV_REDUCE_SEND for row in one.rows)
            one.direct = _adjacent(one.parts) and not forwards
        for m in sorted({*self.receives} - {-1}):
            one = self.drafts[m]
            one.direct = _adjacent(one.parts) and all(_is_plain(self.op[row]) for row in one.rows)
        self._find_conflicts()
        messages = tuple(Message(d.peer, d.number, tuple(d.parts), d.direct) for d in self.drafts)
        return Outline(messages, tuple(self._moves()))

    def _find_conflicts(self) -> None:
        """Walk the rows with the last access to every chunk, and the sends that may still read it."""
        touched: _LastAccess = {}
        pending_sends: _PendingSends = {}
        earliest = self._earliest()
        for m in set(self.receives) - {-1}:
            self.drafts[m].post = earliest[m]
        for row in range(len(self.rows)):
            self._read(row, touched, pending_sends)
            if self.op[row].writes_dst:
                self._write(row, touched, pending_sends)
            m = self.sends[row]
            if m >= 0 and self.drafts[m].direct:
                for chunk in _chunks(self._data_at(row)):
                    pending_sends.setdefault(chunk, set()).add(m)

    def _earliest(self) -> dict[int, int]:
        """Return the first row before which each message may be posted: the begin of the level two before.

        gloo tells a sender of a receive on the connection of the data. One level before, the note would wait behind the
        data of that level.
        """
        begins: dict[int, int] = {}
        for row, level in enumerate(self.level):
            begins.setdefault(level, row)
        levels = sorted(begins)
        found = {}
        for m in set(self.receives) - {-1}:
            row = min(self.drafts[m].rows)
            before = [level for level in levels if level < self.level[row]]
            found[m] = begins[before[-2]] if len(before) > 1 else 0
        return found

    def _read(self, row: int, touched: _LastAccess, pending_sends: _PendingSends) -> None:
        places = [self.src[row]] * self.op[row].reads_src + [self.dst[row]] * self.op[row].reads_dst
        for place in places:
            for chunk in _chunks(place):
                touched[chunk] = row

    def _write(self, row: int, touched: _LastAccess, pending_sends: _PendingSends) -> None:
        m = self.receives[row]
        chunks = _chunks(self.dst[row])
        last = max((touched.get(chunk, -1) for chunk in chunks), default=-1)
        pending = sorted(set().union(*(pending_sends.pop(chunk, ()) for chunk in chunks)))
        at = row
        if m >= 0 and self.drafts[m].direct:
            first = min(self.drafts[m].rows)
            if last >= first or any(max(self.drafts[s].rows) >= first for s in pending):
                self.drafts[m].direct = False  # the old data are needed after the message is awaited
            else:
                at = self._turn(first, last, pending)
                self.drafts[m].post = max(self.drafts[m].post, at if pending else last + 1)
        for s in pending:
            one = self.drafts[s]
            if max(one.rows) < at and one.awaited < self.place[at]:
                self.sends_before[at].append(s)
            else:
                one.direct = False
        for chunk in chunks:
            touched[chunk] = row

    def _turn(self, first: int, last: int, pending: Sequence[int]) -> int:
        """Return the row before which a message of row ``first`` may be posted, once its ``pending`` sends have ended.

        The row is the first, of the same level or the one before, that follows the last access and the sends, and by
        whose place the receivers of the sends await them. So receives of a level are posted before one of them is
        awaited; otherwise links would carry their messages one after the other.
        """
        before = [self.drafts[s] for s in pending if self.drafts[s].awaited < self.place[first]]
        at = max(last + 1, *(max(one.rows) + 1 for one in before), 0)
        while at < first and (
            self.level[at] < self.level[first] - 1 or any(one.awaited >= self.place[at] for one in before)
        ):
            at += 1
        return at

    # ---- moves

    def _moves(self) -> list[Move]:
        posts: dict[int, list[int]] = {}
        for m in sorted(set(self.receives) - {-1}, key=lambda m: min(self.drafts[m].rows)):
            posts.setdefault(self.drafts[m].post, []).append(m)
        moves: list[Move] = []
        finished: set[int] = set()
        for row in range(len(self.rows)):
            for s in self.sends_before[row]:
                if self.drafts[s].direct and s not in finished:
                    finished.add(s)
                    moves.append(Move(Kind.SENT, s))
            moves += [Move(Kind.POST, m) for m in posts.get(row, ())]
            moves += self._row(row)
        sent = sorted(set(self.sends) - {-1} - finished)
        return moves + [Move(Kind.SENT, m) for m in sent]

    def _row(self, row: int) -> list[Move]:
        op, into, out = self.op[row], self.receives[row], self.sends[row]
        moves: list[Move] = []
        arrived = self.src[row]
        if into >= 0:
            if row == min(self.drafts[into].rows):
                moves.append(Move(Kind.AWAIT, into))
            arrived = self._part(into, row)
        moves += self._computed(row, op, arrived)
        if out >= 0:
            if not self.drafts[out].direct and op is not Opcode.RECV_REDUCE_SEND:
                moves.append(Move(Kind.COPY, to=self._part(out, row), one=self._data_at(row)))
            if row == max(self.drafts[out].rows):
                moves.append(Move(Kind.SEND, out))
        return moves

    def _computed(self, row: int, op: Opcode, arrived: Place) -> list[Move]:
        src, dst = self.src[row], self.dst[row]
        if op is Opcode.REDUCE:
            return [Move(Kind.COMBINE, to=dst, one=dst, other=src)]
        if op is Opcode.RECV_REDUCE_SEND:
            return [Move(Kind.COMBINE, to=self._part(self.sends[row], row), one=src, other=arrived)]
        if op.reduces:
            return [Move(Kind.COMBINE, to=dst, one=src, other=arrived)]
        if op.writes_dst and arrived != dst:
            return [Move(Kind.COPY, to=dst, one=arrived)]
        return []

    def _part(self, m: int, row: int) -> Place:
        """Return the place of a row's part: in the buffer, or in the message's own memory."""
        if self.drafts[m].direct:
            return self._data_at(row) if self.sends[row] == m else self.dst[row]
        k = self.drafts[m].rows.index(row)
        return -1 - m, k, k + 1


def _is_plain(op: Opcode) -> bool:
    """Whether the instruction stores arriving data unchanged."""
    return op in (Opcode.RECV, Opcode.RECV_COPY_SEND)


def _adjacent(parts: Sequence[Place]) -> bool:
    return all(a[0] == b[0] and a[2] == b[1] for a, b in itertools.pairwise(parts))


def _chunks(place: Place) -> list[tuple[int, int]]:
    return [(place[0], chunk) for chunk in range(place[1], place[2])]
