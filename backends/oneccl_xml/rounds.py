"""Which round each piece of a program belongs to.

In round L a thread posts all its messages of the round, waits for them, and then does what is local. Both ends of a
message have it in one round, and what a piece waits for was done in earlier rounds (or earlier in this one, by the same
thread). So by induction every round ends although no message is buffered: all that a thread waits for in round L is
posted by ranks that have ended the rounds before.

A connection may have several messages in a round, each on a channel of its own, its *lane*: those that follow each
other in a block and have nothing to do with the data of other messages of the thread, nor with what it does between
them, which comes later in the round. Input and output count as one where they are one in place.

A program that counts on buffers (each of two ranks sends before it receives, in one block) has messages that no round
can take. Their senders then put the data aside and go on; the data leave when the receiver is ready.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import attrs

from collc.ir.diagnostic import error
from collc.ir.layout import layout
from collc.ir.machine import connections

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
    """Return all pieces by round, in the order in which they are done, and the round in which each instruction ended.

    ``thread`` is each block's number among the threads of its rank, ``lanes`` the most messages of a connection in a
    round. Data put aside get segments of ``pieces``. Raises C0751 where the program deadlocks.
    """
    run = _Run(pieces, thread, lanes)
    return list(run.rounds()), run.ended


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
        self.recvs: list[int] = [-1] * len(links)  # the block that stands ready to receive
        self.touched: set[int] = set()  # connections with a new arrival
        self.standing: set[int] = set()  # blocks whose next message stands at its connection
        self.busy: dict[int, list[Piece]] = {}  # block -> messages of this round, and what it does after them
        self.later: list[tuple[int, Piece]] = []  # (block, what it does locally after the messages of this round)
        self.soon: set[int] = set()  # instructions that these end
        self.round = 0
        self.next = list(range(program.num_blocks))  # blocks to look at when a round begins
        self.queue: deque[int] = deque()  # blocks to look at in this round's local part

    def rounds(self) -> Iterator[Planned]:
        """Yield the pieces, round by round, until all blocks are at their end."""
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

    def _head(self, block: int) -> Piece | None:
        return self.listed[block][self.at[block]] if self.at[block] < len(self.listed[block]) else None

    def _begin(self, block: int) -> None:
        """Let a block's message stand at its connection, if its turn has come."""
        piece = self._head(block)
        if block in self.standing:
            return
        if piece is None or piece.kind == LOCAL:
            self.queue.append(block)
        elif self._may(block, piece):
            self._stand(block, piece)

    def _stand(self, block: int, piece: Piece) -> None:
        self.standing.add(block)
        if piece.kind == OUT:
            self.sends[self.outward[block]].append((block, piece, False))
            self.touched.add(self.outward[block])
        else:
            self.recvs[self.inward[block]] = block
            self.touched.add(self.inward[block])

    def _messages(self) -> Iterator[Planned]:
        """Yield the messages of which both ends stand ready; those that follow may stand ready then."""
        used: dict[int, int] = {}
        full: set[int] = set()
        self.busy, self.later, self.soon = {}, [], set()
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
        """Look at all blocks with messages in this round again: return whether any has another now."""
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
            self.touched.add(link)  # others of the same sender may stand behind it
        else:
            self._pass(sender, piece)

    def _pass(self, block: int, piece: Piece) -> None:
        """End a message, and let the next stand at its connection if it may be under way at the same time."""
        self.standing.discard(block)
        self.at[block] += 1
        self._end(block, piece)
        self.busy.setdefault(block, []).append(piece)
        self._look_ahead(block)

    def _look_ahead(self, block: int) -> None:
        """Let the next message of a block that has had one in this round stand ready, if nothing keeps it."""
        if self.lanes == 1 or block in self.standing:
            return
        busy = self.busy[block]
        while (following := self._head(block)) is not None and self._can_follow(block, following):
            if following.kind != LOCAL:
                if not any(self._conflict(block, one, following) for mate in self._mates(block) for one in mate):
                    self._stand(block, following)
                return
            busy.append(following)
            self.later.append((block, following))
            if following.last:
                self.soon.add(following.instruction)
            self.at[block] += 1

    def _can_follow(self, block: int, piece: Piece) -> bool:
        """Return whether what a piece waits for was done before this round began; what is local may also wait for what
        its thread does before it in this round.
        """
        for d in self.deps[self.start[piece.instruction] : self.start[piece.instruction + 1]] if piece.waits else ():
            if 0 <= self.ended[d] < self.round:
                continue
            mine = self.thread[self.block_of[d]] == self.thread[block]
            if not (piece.kind == LOCAL and mine and (self.ended[d] >= 0 or d in self.soon)):
                return False
        return True

    def _local(self) -> Iterator[Planned]:
        for block, after in self.later:
            yield Planned(self.round, block, after)
            self._end(block, after)
        while self.queue:
            block = self.queue.popleft()
            while block not in self.standing and (piece := self._head(block)) is not None:
                if piece.kind != LOCAL:
                    self.next.append(block)
                    break
                if not self._may(block, piece):
                    break
                yield Planned(self.round, block, piece)
                self.at[block] += 1
                self._end(block, piece)

    def _may(self, block: int, piece: Piece) -> bool:
        """Return whether what a piece waits for is done; else see to it that its block is looked at again."""
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

    def _mates(self, block: int) -> Iterator[list[Piece]]:
        """Yield what each block of a block's thread does in this round so far.

        A message that overtakes what its block does locally does not wait for what that waits for.
        """
        for other, busy in self.busy.items():
            if self.rank[other] == self.rank[block] and self.thread[other] == self.thread[block]:
                yield busy

    def _conflict(self, block: int, before: Piece, after: Piece) -> bool:
        """Return whether a message touches data of what its thread does in the same round: messages, or after them.

        Input and output lie as they do in place. Only what a copy of a place onto itself names counts out of place.
        """
        base, count = self.base[self.rank[block]], self.pieces.count
        reads = [p for p in (before.src, before.second) if p is not None]
        writes = [] if before.dst is None else [before.dst]
        touched = writes if after.kind == OUT else reads + writes
        place = after.src if after.kind == OUT else after.dst
        assert place is not None
        if before.kind == LOCAL and before.second is None and len({base[b] + at for b, at in reads + writes}) == 1:
            touched = [p for p in touched if p[0] is place[0]]
        first, size, other = base[place[0]] + place[1], count[after.instruction], count[before.instruction]
        return any(first < base[b] + at + other and base[b] + at < first + size for b, at in touched)

    # ---- messages that no round can take

    def _put_aside(self) -> Iterator[Planned]:
        """Copy what stands ready to be sent, and let its senders go on."""
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
                self.standing.discard(block)
                self.at[block] += 1
                self._end(block, piece)
        if not stuck:
            program = self.pieces.program
            block = next(b for b, pieces in enumerate(self.listed) if self.at[b] < len(pieces))
            where = program.place(self.listed[block][self.at[block]].instruction)
            raise error("C0751", f"this program deadlocks: {where} waits for ever")
        self.next, self.queue = [*self.next, *self.queue], deque()
