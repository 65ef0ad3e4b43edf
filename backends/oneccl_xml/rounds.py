"""Which round each piece of a program belongs to.

In round L a thread posts all its messages of the round, waits for them, and then does what is local. Both ends of a
message have it in one round, and what a piece waits for was done in earlier rounds (or earlier in this one, by the same
thread). So by induction every round ends although no message is buffered: all that a thread waits for in round L is
posted by ranks that have ended the rounds before.

A program that counts on buffers (each of two ranks sends before it receives, in one block) has messages that no round
can take. Their senders then put the data aside and go on; the data leave when the receiver is ready.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import attrs

from collc.ir.diagnostic import error
from collc.ir.machine import connections

from .pieces import LOCAL, OUT, Piece, Pieces

__all__ = ["Planned", "plan"]


@attrs.frozen
class Planned:
    """A piece of block ``block`` in round ``round``."""

    round: int
    block: int
    piece: Piece


def plan(pieces: Pieces, thread: list[int]) -> tuple[list[Planned], list[int]]:
    """Return all pieces by round, in the order in which they are done, and the round in which each instruction ended.

    ``thread`` is each block's number among the threads of its rank. Data put aside get segments of ``pieces``. Raises
    C0751 where the program deadlocks.
    """
    run = _Run(pieces, thread)
    return list(run.rounds()), run.ended


class _Run:
    def __init__(self, pieces: Pieces, thread: list[int]):
        program = pieces.program
        self.pieces, self.thread, self.listed = pieces, thread, pieces.blocks
        self.rank: list[int] = program.block_rank.tolist()
        self.block_of: list[int] = program.block.tolist()
        links = connections(program)
        self.inward: list[int] = links.inward.tolist()
        self.outward: list[int] = links.outward.tolist()
        self.start, self.deps = program.dep_start.tolist(), program.deps.tolist()
        self.at = [0] * program.num_blocks
        self.ended = [-1] * program.num_instructions
        self.waiting: dict[int, list[int]] = {}  # instruction -> blocks that wait for it
        self.sends: list[deque[tuple[int, Piece, bool]]] = [deque() for _ in range(len(links))]  # True: put aside
        self.recvs: list[int] = [-1] * len(links)  # the block that stands ready to receive
        self.touched: set[int] = set()  # connections with a new arrival
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
        if piece is None or piece.kind == LOCAL:
            self.queue.append(block)
        elif self._may(block, piece):
            if piece.kind == OUT:
                self.sends[self.outward[block]].append((block, piece, False))
                self.touched.add(self.outward[block])
            else:
                self.recvs[self.inward[block]] = block
                self.touched.add(self.inward[block])

    def _messages(self) -> Iterator[Planned]:
        """Yield the messages of which both ends stand ready, one a connection."""
        links, self.touched = sorted(self.touched), set()
        for link in links:
            if not self.sends[link] or self.recvs[link] < 0:
                continue
            sender, piece, aside = self.sends[link].popleft()
            receiver, self.recvs[link] = self.recvs[link], -1
            arriving = self._head(receiver)
            assert arriving is not None
            yield Planned(self.round, sender, piece)
            yield Planned(self.round, receiver, arriving)
            self._end(receiver, arriving)
            if not aside:
                self._end(sender, piece)

    def _local(self) -> Iterator[Planned]:
        while self.queue:
            block = self.queue.popleft()
            while (piece := self._head(block)) is not None:
                if piece.kind != LOCAL:
                    self.next.append(block)
                    break
                if not self._may(block, piece):
                    break
                yield Planned(self.round, block, piece)
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
        self.at[block] += 1
        self.queue.append(block)
        if piece.last:
            self.ended[piece.instruction] = self.round
            self.queue.extend(self.waiting.pop(piece.instruction, ()))

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
                self._end(block, piece)
        if not stuck:
            program = self.pieces.program
            block = next(b for b, pieces in enumerate(self.listed) if self.at[b] < len(pieces))
            where = program.place(self.listed[block][self.at[block]].instruction)
            raise error("C0751", f"this program deadlocks: {where} waits for ever")
        self.next, self.queue = [*self.next, *self.queue], deque()
