"""Program -> document: rounds become steps of threads, and dependencies between threads become syncs."""

from __future__ import annotations

import re
from collections import defaultdict

import attrs

from collc.ir.collective import Collective
from collc.ir.layout import sizes
from collc.ir.program import Buffer, Program
from collc.ir.progress import counting
from collc.ir.verify import adds_once

from .model import OPS, Document, End, Local, Message, Rank, Segment, Step, Thread
from .pieces import IN, LOCAL, Pieces
from .rounds import Planned, plan

__all__ = ["document"]


def document(program: Program, threads: int, *, name: str, inplace: bool, outofplace: bool, lanes: int = 1) -> Document:
    """Return the file of a verified program with at most ``threads`` threads a rank; raise C0750, C0751.

    A connection has at most ``lanes`` messages in a step, each on a channel of its own.
    """
    pieces = Pieces(program, lanes)
    thread = [int(k) % threads for k in pieces.program.block_id]
    planned, ended = plan(pieces, thread, lanes)
    steps = _Steps(pieces, thread, planned, ended)
    held = sizes(program)
    ranks = [
        Rank(int(held[r, Buffer.INPUT]), int(held[r, Buffer.OUTPUT]), _segments(pieces, r), steps.threads(r))
        for r in counting(range(program.num_ranks), "steps of ranks")
    ]
    kind = program.collective
    collective = Collective(kind.kind, kind.num_ranks, kind.root, op=kind.op, pre=kind.pre, post=kind.post)
    return Document(
        name=label(name), collective=attrs.evolve(collective, members=kind.members),
        channels=_channels(ranks), chunks=pieces.span, inplace=inplace, outofplace=outofplace, ranks=tuple(ranks),
        ops=_operations(program),
    )  # fmt: skip


def label(name: str) -> str:
    """Return a name that the schema allows.

    >>> label("grads é")
    'grads__'
    """
    return re.sub(r"[^A-Za-z0-9_.+-]", "_", name)[:63] or "collective"


def _operations(program: Program) -> tuple[str, ...]:
    if not program.collective.reduces:
        return ()
    return OPS if adds_once(program) else ("min", "max")


def _channels(ranks: list[Rank]) -> int:
    ends = [end.channel for rank in ranks for thread in rank.threads for end in (*thread.outs, *thread.ins)]
    return max(ends, default=0) + 1


def _segments(pieces: Pieces, rank: int) -> tuple[Segment, ...]:
    return tuple(Segment(chunk, count) for chunk, count in pieces.segments[rank])


class _Steps:
    """The steps of every thread, from the planned pieces."""

    def __init__(self, pieces: Pieces, thread: list[int], planned: list[Planned], ended: list[int]):
        self.pieces, self.thread, self.ended = pieces, thread, ended
        self.program = pieces.program
        self.rank: list[int] = self.program.block_rank.tolist()
        self.block_of: list[int] = self.program.block.tolist()
        #: (rank, thread) -> round -> its pieces, in order
        self.rounds: dict[tuple[int, int], dict[int, list[Planned]]] = defaultdict(dict)
        for one in planned:
            key = self.rank[one.block], thread[one.block]
            self.rounds[key].setdefault(one.round, []).append(one)
        self.kept = {key: self._kept(rounds) for key, rounds in self.rounds.items()}

    def threads(self, rank: int) -> tuple[Thread, ...]:
        """Return the threads of a rank that have steps, with new numbers."""
        used = sorted(t for r, t in self.rounds if r == rank and self.kept[r, t])
        number = {t: k for k, t in enumerate(used)}
        return tuple(self._thread((rank, t), number) for t in used)

    def _kept(self, rounds: dict[int, list[Planned]]) -> list[int]:
        """Return the rounds of a thread that have work or dependencies."""
        return [r for r in sorted(rounds) if any(not _is_nop(one) or self._dependencies(one) for one in rounds[r])]

    def _dependencies(self, one: Planned) -> list[int]:
        """Return the instructions of other threads that a piece depends on."""
        if not one.piece.waits:
            return []
        own = self.thread[one.block]
        return [d for d in self.program.dependencies(one.piece.instruction) if self.thread[self.block_of[d]] != own]

    def _thread(self, key: tuple[int, int], number: dict[int, int]) -> Thread:
        seen: dict[int, int] = {}
        steps = [self._step(self.rounds[key][r], key[0], number, seen) for r in self.kept[key]]
        ends = {(m.sends, m.peer, m.channel) for step in steps for m in step.messages}
        outs, ins = ([End(p, c) for s, p, c in sorted(ends) if s is sends] for sends in (True, False))
        return Thread(tuple(outs), tuple(ins), tuple(steps))

    def _step(self, planned: list[Planned], rank: int, number: dict[int, int], seen: dict[int, int]) -> Step:
        """Return one step; ``seen`` is the last step of each other thread that this thread has synced on."""
        needed: dict[int, int] = {}
        for d in (d for one in planned for d in self._dependencies(one)):
            other = self.thread[self.block_of[d]]
            step = sum(r <= self.ended[d] for r in self.kept[rank, other]) - 1
            if step > seen.get(other, -1):
                needed[other] = max(step, needed.get(other, -1))
        seen.update(needed)
        syncs = tuple(sorted((number[other], step) for other, step in needed.items()))
        messages = sorted((self._message(one) for one in planned if one.piece.kind != LOCAL), key=_order)
        local = [self._local(one) for one in planned if one.piece.kind == LOCAL and not _is_nop(one)]
        return Step(syncs, tuple(messages), tuple(local))

    def _message(self, one: Planned) -> Message:
        program, piece, i = self.program, one.piece, one.piece.instruction
        receives = piece.kind == IN
        place = piece.dst if receives else piece.src
        assert place is not None
        peer = int((program.recv_peer if receives else program.send_peer)[one.block])
        channel = int(program.channel[one.block]) + one.lane * program.num_channels
        return Message(not receives, peer, channel, place, self.pieces.chunk[i], self.pieces.count[i])

    def _local(self, one: Planned) -> Local:
        piece, i = one.piece, one.piece.instruction
        assert piece.src is not None and piece.dst is not None
        return Local(piece.src, piece.dst, self.pieces.chunk[i], self.pieces.count[i], piece.second)


def _is_nop(one: Planned) -> bool:
    return one.piece.kind == LOCAL and one.piece.src is None


def _order(message: Message) -> tuple[bool, int, int]:
    return message.sends, message.channel, message.peer
