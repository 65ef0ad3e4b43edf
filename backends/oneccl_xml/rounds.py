"""Assigns each piece of a program to a round.

In round L a thread posts all its messages of the round, waits for them, and then does its local operations. Both ends
of a message are in the same round. The dependencies of a piece finish in earlier rounds, or earlier in this round on
the same thread. So every round ends, by induction, although no message is buffered: the ranks that have ended the
earlier rounds post everything that a thread waits for in round L.

A connection may have several messages in a round, each on a channel of its own, its *lane*. They are consecutive
messages of a block. They do not use the data of other messages of the thread, or of the local operations between them,
which come later in the round. Input and output count as one buffer if they are one in place.

A program that relies on buffers (two ranks both send before they receive, in one block) has messages that fit no round.
Their senders copy the data aside and go on; the data leave when the receiver is ready.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator

import attrs

from collc.ir.diagnostic import error
from collc.ir.layout import layout
from collc.ir.machine import connections
from collc.ir.program import Buffer
from collc.ir.progress import progress

from .intervals import Intervals
from .pieces import LOCAL, OUT, Piece, Pieces

__all__ = ["Planned", "plan"]


@attrs.frozen
class Planned:
    """A piece of block ``block`` in round ``round``; a message is number ``lane`` of its connection there."""

    round: int
    block: int
    piece: Piece
    lane: int = 0


def plan(pieces: Pieces, thread: list[int], lanes: int = 1) -> tuple[list[Planned], list[int]]:
    """Return all pieces by round, in execution order, and the round in which each instruction ends.

    ``thread`` is the thread of each block in its rank. ``lanes`` is the maximum number of messages of a connection in a
    round. Data put aside get segments of ``pieces``. Raises C0751 if the program deadlocks.
    """
    run = _Run(pieces, thread, lanes)
    return list(run.rounds()), run.ended


class _Touched:
    """The places that pieces of a thread access in a round. Input and output overlap as in place: ``base`` says where
    each buffer begins."""

    def __init__(self, base: list[int]):
        self.base = base
        # Places of copies onto themselves, which do nothing, count in the buffer that they name only.
        self.written: defaultdict[Buffer | None, Intervals] = defaultdict(Intervals)
        self.accessed: defaultdict[Buffer | None, Intervals] = defaultdict(Intervals)

    def add(self, piece: Piece, count: int) -> None:
        """Add the places of a piece of ``count`` chunks."""
        reads = [place for place in (piece.src, piece.second) if place is not None]
        writes = [] if piece.dst is None else [piece.dst]
        first = [self.base[buffer] + at for buffer, at in (*reads, *writes)]
        onto_itself = piece.kind == LOCAL and piece.second is None and len(set(first)) == 1
        for k, (buffer, _) in enumerate((*reads, *writes)):
            key = buffer if onto_itself else None
            self.accessed[key].add(first[k], first[k] + count)
            if k >= len(reads):
                self.written[key].add(first[k], first[k] + count)

    def conflicts(self, message: Piece, count: int) -> bool:
        """Return whether a message of ``count`` chunks sends what is written, or stores where data are accessed."""
        touched = self.written if message.kind == OUT else self.accessed
        place = message.src if message.kind == OUT else message.dst
        assert place is not None
        first = self.base[place[0]] + place[1]
        return any(touched[key].meets(first, first + count) for key in (None, place[0]) if key in touched)


class _Run:
    def __init__(self, pieces: Pieces, thread: list[int], lanes: int):
        program = pieces.program
        self.pieces, self.thread, self.listed, self.lanes = pieces, thread, pieces.blocks, lanes
        self.rank: list[int] = program.block_rank.tolist()
        self.block_of: list[int] = program.block.tolist()
        links = connections(program)
        self.inward: list[int] = links.inward.tolist()
        self.outward: list[int] = links.outward.tolist()
        self.start, self.deps = program.dep_start.tolist(), program.deps.tolist()
        self.base: list[list[int]] = layout(program, inplace=True).base.tolist()
        self.at = [0] * program.num_blocks
        self.ended = [-1] * program.num_instructions
        self.waiting: dict[int, list[int]] = {}  # instruction -> blocks that wait for it
        self.sends: list[deque[tuple[int, Piece, bool]]] = [deque() for _ in range(len(links))]  # True: put aside
        self.recvs: list[int] = [-1] * len(links)  # the block that is ready to receive
        self.touched: set[int] = set()  # connections with a new arrival
        self.posted: set[int] = set()  # blocks whose next message is at its connection
        self.busy: set[int] = set()  # blocks with messages in this round
        # thread of a rank -> what its messages of this round touch, and the local pieces after them
        self.touching: dict[tuple[int, int], _Touched] = {}
        self.later: list[tuple[int, Piece]] = []  # (block, local piece after the messages of this round)
        self.ending: set[int] = set()  # instructions that these pieces end
        self.round, self.num_pieces = 0, sum(map(len, self.listed))
        self.next = list(range(program.num_blocks))  # blocks to look at when a round begins
        self.queue: deque[int] = deque()  # blocks to look at in this round's local part

    def rounds(self) -> Iterator[Planned]:
        """Yield the pieces, round by round, until all blocks have ended."""
        while True:
            blocks, self.next = sorted(set(self.next)), []
            for block in blocks:
                self._begin(block)
            done = [*self._messages(), *self._local()]
            yield from done
            if not done and not self.next and not self.touched:
                if all(self.at[b] == len(pieces) for b, pieces in enumerate(self.listed)):
                    return
                yield from self._put_aside()
            self.round += 1
            progress("planning rounds", sum(self.at), self.num_pieces)

    def _head(self, block: int) -> Piece | None:
        return self.listed[block][self.at[block]] if self.at[block] < len(self.listed[block]) else None

    def _begin(self, block: int) -> None:
        """Post a block's next message at its connection, if it may begin."""
        piece = self._head(block)
        if block in self.posted:
            return
        if piece is None or piece.kind == LOCAL:
            self.queue.append(block)
        elif self._can_begin(block, piece):
            self._post(block, piece)

    def _post(self, block: int, piece: Piece) -> None:
        self.posted.add(block)
        if piece.kind == OUT:
            self.sends[self.outward[block]].append((block, piece, False))
            self.touched.add(self.outward[block])
        else:
            self.recvs[self.inward[block]] = block
            self.touched.add(self.inward[block])

    def _messages(self) -> Iterator[Planned]:
        """Yield the messages with both ends ready; these may make the next ones ready."""
        used: dict[int, int] = {}
        full: set[int] = set()
        self.busy, self.touching, self.later, self.ending = set(), {}, [], set()
        while self.touched or self._more():
            links, self.touched = sorted(self.touched), set()
            for link in links:
                if not self.sends[link] or self.recvs[link] < 0:
                    continue
                if used.get(link, 0) == self.lanes:
                    full.add(link)
                    continue
                yield from self._match(link, used.get(link, 0))
                used[link] = used.get(link, 0) + 1
        self.touched = full

    def _more(self) -> bool:
        """Look again at all blocks with messages in this round; return whether one has another message."""
        known = -1
        while known < len(self.later) and not self.touched:
            known = len(self.later)
            for block in sorted(self.busy):
                self._look_ahead(block)
        return bool(self.touched)

    def _match(self, link: int, lane: int) -> Iterator[Planned]:
        sender, piece, aside = self.sends[link].popleft()
        receiver, self.recvs[link] = self.recvs[link], -1
        arriving = self._head(receiver)
        assert arriving is not None
        yield Planned(self.round, sender, piece, lane)
        yield Planned(self.round, receiver, arriving, lane)
        self._pass(receiver, arriving)
        if aside:
            self.touched.add(link)  # other messages of the same sender may be behind it
        else:
            self._pass(sender, piece)

    def _pass(self, block: int, piece: Piece) -> None:
        """End a message, and post the next one if both may be in flight at the same time."""
        self.posted.discard(block)
        self.at[block] += 1
        self._end(block, piece)
        self.busy.add(block)
        self._touched(block).add(piece, self.pieces.count[piece.instruction])
        self._look_ahead(block)

    def _look_ahead(self, block: int) -> None:
        """Post the next message of a block that has one in this round, if it has no conflict.

        A message that overtakes a local piece of its block does not take over the dependencies of that piece.
        """
        if self.lanes == 1 or block in self.posted:
            return
        touched = self._touched(block)
        while (following := self._head(block)) is not None and self._can_follow(block, following):
            if following.kind != LOCAL:
                if not touched.conflicts(following, self.pieces.count[following.instruction]):
                    self._post(block, following)
                return
            touched.add(following, self.pieces.count[following.instruction])
            self.later.append((block, following))
            if following.last:
                self.ending.add(following.instruction)
            self.at[block] += 1

    def _can_follow(self, block: int, piece: Piece) -> bool:
        """Return whether the dependencies of a piece finished before this round.

        A local piece may also depend on what its thread does before it in this round.
        """
        for d in self.deps[self.start[piece.instruction] : self.start[piece.instruction + 1]] if piece.waits else ():
            if 0 <= self.ended[d] < self.round:
                continue
            own = self.thread[self.block_of[d]] == self.thread[block]
            if not (piece.kind == LOCAL and own and (self.ended[d] >= 0 or d in self.ending)):
                return False
        return True

    def _local(self) -> Iterator[Planned]:
        for block, after in self.later:
            yield Planned(self.round, block, after)
            self._end(block, after)
        while self.queue:
            block = self.queue.popleft()
            while block not in self.posted and (piece := self._head(block)) is not None:
                if piece.kind != LOCAL:
                    self.next.append(block)
                    break
                if not self._can_begin(block, piece):
                    break
                yield Planned(self.round, block, piece)
                self.at[block] += 1
                self._end(block, piece)

    def _can_begin(self, block: int, piece: Piece) -> bool:
        """Return whether the dependencies of a piece have finished; if not, schedule its block for another look."""
        if not piece.waits:
            return True
        for d in self.deps[self.start[piece.instruction] : self.start[piece.instruction + 1]]:
            if self.ended[d] < 0:
                self.waiting.setdefault(d, []).append(block)
                return False
            if self.ended[d] == self.round and self.thread[self.block_of[d]] != self.thread[block]:
                self.next.append(block)
                return False
        return True

    def _end(self, block: int, piece: Piece) -> None:
        self.queue.append(block)
        if piece.last:
            self.ended[piece.instruction] = self.round
            self.queue.extend(self.waiting.pop(piece.instruction, ()))

    def _touched(self, block: int) -> _Touched:
        thread = self.rank[block], self.thread[block]
        if thread not in self.touching:
            self.touching[thread] = _Touched(self.base[self.rank[block]])
        return self.touching[thread]

    # ---- messages that fit no round

    def _put_aside(self) -> Iterator[Planned]:
        """Copy the data of posted sends aside, and let their senders go on."""
        stuck = False
        for sends in self.sends:
            for k, (block, piece, aside) in enumerate(sends):
                if aside:
                    continue
                stuck = True
                i = piece.instruction
                place = self.pieces.reserve(self.rank[block], self.pieces.count[i])
                yield Planned(self.round, block, Piece(LOCAL, i, piece.src, place, None, piece.waits, False))
                sends[k] = (block, attrs.evolve(piece, src=place, waits=False), True)
                self.posted.discard(block)
                self.at[block] += 1
                self._end(block, piece)
        if not stuck:
            program = self.pieces.program
            block = next(b for b, pieces in enumerate(self.listed) if self.at[b] < len(pieces))
            where = program.place(self.listed[block][self.at[block]].instruction)
            raise error("C0751", f"this program deadlocks: {where} waits forever")
        self.next, self.queue = [*self.next, *self.queue], deque()
