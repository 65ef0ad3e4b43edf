"""What one rank does, one thing after the other: messages posted and awaited, copies and reductions between them.

An :class:`Outline` knows no sizes: locations are chunks. It says which messages there are, which may go to and from
the buffers themselves, which need memory of their own, and when each is posted:

* Instructions that send to one peer in one level are one message where messages are *packed*.
* A receive is posted as early as the level before its own, if nothing that comes before it still reads or writes where
  it goes.
* A send is never waited for at once. What overwrites its data waits for it, if the order has the receive before; else
  the message goes from a copy, since its receiver may come later than the write.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from enum import IntEnum
from functools import cached_property
from typing import Any

import attrs
import numpy as np

from collc.backends.mpi_c.scratch import Segments, is_whole, lay_out, span
from collc.ir.program import Buffer, Opcode, Program

from .order import Order, order

__all__ = ["Kind", "Laid", "Message", "Move", "Outline", "Place", "outline"]

Array = np.ndarray[Any, np.dtype[Any]]

#: (buffer, first chunk, end); of a message's own memory the message's number in place of the chunks
Place = tuple[int, int, int]

#: collectives that torch performs on one tensor, where input and output are the same memory
_ONE_TENSOR = frozenset({"allreduce", "broadcast", "reduce"})


class Kind(IntEnum):
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
    """One thing to do. A place may be a part of a message's memory: (-1 - message, part, part + 1)."""

    kind: Kind
    message: int = -1
    to: Place = (0, 0, 0)
    one: Place = (0, 0, 0)
    other: Place = (0, 0, 0)


@attrs.frozen(eq=False)
class Outline:
    """All that a rank does in a program, for calls of any size."""

    messages: tuple[Message, ...]
    moves: tuple[Move, ...]


@attrs.frozen(eq=False)
class Laid:
    """A program whose accesses are runs of elements for any count, its order, and who sends what with what."""

    program: Program
    segments: Segments
    order: Order

    @classmethod
    def of(cls, program: Program) -> Laid:
        """Lay a verified program out; raises C0704 where chunks of several sizes meet."""
        laid, segments = lay_out(program)
        return cls(laid, segments, order(laid))

    @cached_property
    def one_tensor(self) -> bool:
        return self.program.collective.kind in _ONE_TENSOR

    @cached_property
    def span(self) -> int:
        """Into how many chunks the elements of a call (of the vector, or of one rank's block) are cut."""
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

    def messages(self, packed: bool) -> tuple[Array, Array]:
        """Return for every instruction the message it sends and the one it receives (-1: none), as ``(sends,
        receives)``; messages of a pair of ranks are numbered from 0 in the order they are sent, multiplied by N*N,
        plus sender * N + receiver.
        """
        p, n = self.program, self.program.num_ranks
        rank = p.block_rank[p.block].astype(np.int64)
        receives = np.flatnonzero(self.order.sender >= 0)
        sends = self.order.sender[receives]
        pair = rank[sends] * n + rank[receives]
        when = self.order.level[sends] if packed else self.order.place[sends]
        groups, group = np.unique(np.stack([pair, when]), axis=1, return_inverse=True)
        nth = np.arange(groups.shape[1]) - np.searchsorted(groups[0], groups[0])
        name = (nth * n * n + groups[0])[group.reshape(-1)]
        out, into = np.full((2, p.num_instructions), -1, dtype=np.int64)
        out[sends], into[receives] = name, name
        return out, into


def outline(laid: Laid, rank: int, packed: bool) -> Outline:
    """Return what a rank does; ``packed`` joins the instructions that send to one peer in one level to one message."""
    return _Outliner(laid, rank, packed).done()


@attrs.define
class _Draft:
    """A message in the making: ``at`` are the rank's rows (numbers in its order) that send or receive its parts."""

    peer: int
    number: int
    at: list[int] = attrs.field(factory=list)
    parts: list[Place] = attrs.field(factory=list)
    direct: bool = True
    post: int = 0  #             the row before which it is posted
    taken: int = 0  #            the place in the order at which its receiver waits for it


class _Outliner:
    def __init__(self, laid: Laid, rank: int, packed: bool):
        self.laid, self.program, self.rank = laid, laid.program, rank
        self.rows = laid.rows(rank)
        self.op = [Opcode(code) for code in self.program.opcode[self.rows].tolist()]
        self.level = laid.order.level[self.rows].tolist()
        self.place = laid.order.place[self.rows].tolist()
        self.src, self.dst = self._places("src"), self._places("dst")
        self.drafts: list[_Draft] = []
        out, into = laid.messages(packed)
        self.sends = self._group(out[self.rows].tolist(), self._sent_from, outward=True)
        self.receives = self._group(into[self.rows].tolist(), self._received_at, outward=False)
        self._find_taken(out, into)
        self.waits: list[list[int]] = [[] for _ in self.rows]  # messages to be sent before a row may write

    def _places(self, name: str) -> list[Place]:
        """Return the place that each row reads from or writes to; in one tensor the input is where the output is."""
        p = self.program
        buffer = getattr(p, f"{name}_buffer")[self.rows].astype(np.int64)
        if self.laid.one_tensor:
            buffer = np.where(buffer == Buffer.INPUT, int(Buffer.OUTPUT), buffer)
        first = getattr(p, f"{name}_offset")[self.rows].astype(np.int64)
        end = first + p.count[self.rows]
        return list(zip(buffer.tolist(), first.tolist(), end.tolist(), strict=True))

    def _sent_from(self, row: int) -> Place:
        return self.dst[row] if self.op[row].writes_dst else self.src[row]

    def _received_at(self, row: int) -> Place:
        return self.dst[row] if self.op[row].writes_dst else self.src[row]

    def _group(self, names: list[int], where: Any, outward: bool) -> list[int]:
        """Make drafts of the messages named; return each row's (-1: none). Parts travel in the sender's order."""
        n = self.program.num_ranks
        rows = [row for row, name in enumerate(names) if name >= 0]
        if not outward:
            sender = self.laid.order.sender[self.rows].tolist()
            rows.sort(key=lambda row: int(self.laid.order.place[sender[row]]))
        found: dict[int, int] = {}
        result = [-1] * len(names)
        for row in rows:
            number, pair = divmod(names[row], n * n)
            if names[row] not in found:
                found[names[row]] = len(self.drafts)
                self.drafts.append(_Draft(pair % n if outward else pair // n, number))
            result[row] = found[names[row]]
            self.drafts[result[row]].at.append(row)
            self.drafts[result[row]].parts.append(where(row))
        return result

    def _find_taken(self, out: Array, into: Array) -> None:
        """Note when the receiver of each message sent here waits for it: at the first of its parts that it takes."""
        receives = np.flatnonzero(into >= 0)
        taken = dict[int, int]()
        for name, place in zip(into[receives].tolist(), self.laid.order.place[receives].tolist(), strict=True):
            taken[name] = min(place, taken.get(name, place))
        for row, m in enumerate(self.sends):
            if m >= 0:
                self.drafts[m].taken = taken[int(out[self.rows[row]])]

    # ---- what may use the buffers themselves

    def done(self) -> Outline:
        for m in sorted({*self.sends} - {-1}):
            one = self.drafts[m]
            forwards = any(self.op[row] is Opcode.RECV_REDUCE_SEND for row in one.at)
            one.direct = _adjacent(one.parts) and not forwards
        for m in sorted({*self.receives} - {-1}):
            one = self.drafts[m]
            one.direct = _adjacent(one.parts) and all(_is_plain(self.op[row]) for row in one.at)
        self._find_conflicts()
        messages = tuple(Message(d.peer, d.number, tuple(d.parts), d.direct) for d in self.drafts)
        return Outline(messages, tuple(self._moves()))

    def _find_conflicts(self) -> None:
        """Play the rows, remembering who touched which chunk last and which sends may still read it."""
        touched: dict[tuple[int, int], int] = {}
        flying: dict[tuple[int, int], set[int]] = {}
        early = self._earliest()
        for m in set(self.receives) - {-1}:
            self.drafts[m].post = early[m]
        for row in range(len(self.rows)):
            self._read(row, touched, flying)
            if self.op[row].writes_dst:
                self._write(row, touched, flying)
            m = self.sends[row]
            if m >= 0 and self.drafts[m].direct:
                for chunk in _chunks(self._sent_from(row)):
                    flying.setdefault(chunk, set()).add(m)

    def _earliest(self) -> dict[int, int]:
        """Return the row before which each message may be posted as far as memory of its own goes: the level before."""
        begins: dict[int, int] = {}
        for row, level in enumerate(self.level):
            begins.setdefault(level, row)
        levels = sorted(begins)
        found = {}
        for m in set(self.receives) - {-1}:
            row = min(self.drafts[m].at)
            before = [level for level in levels if level < self.level[row]]
            found[m] = begins[before[-1]] if before else 0
        return found

    def _read(self, row: int, touched: dict[tuple[int, int], int], flying: dict[tuple[int, int], set[int]]) -> None:
        places = [self.src[row]] * self.op[row].reads_src + [self.dst[row]] * self.op[row].reads_dst
        for place in places:
            for chunk in _chunks(place):
                touched[chunk] = row

    def _write(self, row: int, touched: dict[tuple[int, int], int], flying: dict[tuple[int, int], set[int]]) -> None:
        m = self.receives[row]
        chunks = _chunks(self.dst[row])
        last = max((touched.get(chunk, -1) for chunk in chunks), default=-1)
        pending = sorted(set().union(*(flying.pop(chunk, ()) for chunk in chunks)))
        at = row
        if m >= 0 and self.drafts[m].direct:
            first = min(self.drafts[m].at)
            if last >= first or any(max(self.drafts[s].at) >= first for s in pending):
                self.drafts[m].direct = False  # what is there is needed after the message is waited for
            else:
                at = first
                self.drafts[m].post = max(self.drafts[m].post, first if pending else last + 1)
        for s in pending:
            one = self.drafts[s]
            if max(one.at) < at and one.taken < self.place[at]:
                self.waits[at].append(s)
            else:
                one.direct = False
        for chunk in chunks:
            touched[chunk] = row

    # ---- what is done

    def _moves(self) -> list[Move]:
        posts: dict[int, list[int]] = {}
        for m in sorted(set(self.receives) - {-1}, key=lambda m: min(self.drafts[m].at)):
            posts.setdefault(self.drafts[m].post, []).append(m)
        moves: list[Move] = []
        waited: set[int] = set()
        for row in range(len(self.rows)):
            for s in self.waits[row]:
                if self.drafts[s].direct and s not in waited:
                    waited.add(s)
                    moves.append(Move(Kind.SENT, s))
            moves += [Move(Kind.POST, m) for m in posts.get(row, ())]
            moves += self._row(row)
        sent = sorted(set(self.sends) - {-1} - waited)
        return moves + [Move(Kind.SENT, m) for m in sent]

    def _row(self, row: int) -> list[Move]:
        op, into, out = self.op[row], self.receives[row], self.sends[row]
        moves: list[Move] = []
        arrived = self.src[row]
        if into >= 0:
            if row == min(self.drafts[into].at):
                moves.append(Move(Kind.AWAIT, into))
            arrived = self._part(into, row)
        moves += self._computed(row, op, arrived)
        if out >= 0:
            if not self.drafts[out].direct and op is not Opcode.RECV_REDUCE_SEND:
                moves.append(Move(Kind.COPY, to=self._part(out, row), one=self._sent_from(row)))
            if row == max(self.drafts[out].at):
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
        """Return where a message holds the part of a row: in the buffer, or in its own memory."""
        if self.drafts[m].direct:
            return self._sent_from(row) if self.sends[row] == m else self.dst[row]
        k = self.drafts[m].at.index(row)
        return -1 - m, k, k + 1


def _is_plain(op: Opcode) -> bool:
    """Whether what arrives is stored as it is."""
    return op in (Opcode.RECV, Opcode.RECV_COPY_SEND)


def _adjacent(parts: Sequence[Place]) -> bool:
    return all(a[0] == b[0] and a[2] == b[1] for a, b in itertools.pairwise(parts))


def _chunks(place: Place) -> list[tuple[int, int]]:
    return [(place[0], chunk) for chunk in range(place[1], place[2])]
