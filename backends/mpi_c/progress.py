"""The allowances with which the C engine completes every program, whenever the MPI completes its sends.

A program is correct if connections buffer messages, but an MPI may complete a send only after the matching receive is
posted. The engine continues after a send and only protects the data in flight against writes. This module executes the
program once under those rules, with every send completed as late as possible. It finds the slots and the sends in
flight that each block needs. It also finds the sends that need a copy, because a write of their data must come before
the receive. One execution suffices: no choice of a block depends on timing (see :mod:`collc.ir.machine`).

Ranks that only relay do not know whether a call is in place, so they must copy the same sends in all calls. They do: if
an execution in place stalls where one out of place does not, then a write of a member waits, and the blocks of members
come first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import attrs
import numpy as np

from collc.ir.arrays import Array, as_column
from collc.ir.diagnostic import error
from collc.ir.machine import connections
from collc.ir.program import Buffer, Opcode, Program
from collc.ir.progress import progress
from collc.ir.symmetric_program import SymmetricProgram

__all__ = ["Allowance", "allowance", "messages_allowance"]

#: sends in flight of a block before it waits; more only if the program does not end otherwise
_SENDS = 8

#: turns between two reports of progress
_TURNS = 4096

#: collectives whose input is part of the output in calls in place
_OVERLAID = frozenset({"allreduce", "allgather", "alltoall", "reduce", "broadcast"})


_READY, _RECEIVING, _ARRIVED = 0, 1, 2


@attrs.frozen
class Allowance:
    """The needs of each block, and the instructions that send a copy: always, or in calls in place."""

    slots: tuple[int, ...]
    slot_chunks: tuple[int, ...]
    sends: tuple[int, ...]
    copied: frozenset[int]
    copied_in_place: frozenset[int]


def allowance(program: Program) -> Allowance:
    """Return the resources that the engine must give ``program``; raise C0704 if the program deadlocks in any case."""
    plain = _Execution(program, False, frozenset()).run().needs()
    if program.collective.kind not in _OVERLAID:
        return _combine([plain], plain.copied)
    return _combine([plain, _Execution(program, True, frozenset(plain.copied)).run().needs()], plain.copied)


def messages_allowance(program: SymmetricProgram, copied: frozenset[int] = frozenset()) -> Allowance:
    """Return the same for the messages of the first ranks of a symmetric program; their images need the same.

    A message of several runs is sent from a slot and arrives in one. The messages ``copied`` send copies in any case.
    """
    plain = _OfRuns(program, False, copied).run().needs()
    if program.collective.kind not in _OVERLAID:
        return _combine([plain], plain.copied)
    return _combine([plain, _OfRuns(program, True, frozenset(plain.copied)).run().needs()], plain.copied)


@attrs.frozen
class _Needs:
    """What the blocks needed in one execution; its own tables are as long as the program."""

    slots: list[int]
    slot_chunks: list[int]
    sends: list[int]
    copied: set[int]


def _combine(runs: list[_Needs], copied: set[int]) -> Allowance:
    def largest(columns: Iterable[list[int]]) -> tuple[int, ...]:
        return tuple(max(values) for values in zip(*columns, strict=True))

    return Allowance(
        largest(run.slots for run in runs), largest(run.slot_chunks for run in runs),
        largest(run.sends for run in runs), frozenset(copied), frozenset(runs[-1].copied - copied),
    )  # fmt: skip


class _Execution:
    """One execution with sends that complete as late as possible. ``in_place`` puts the input into the output."""

    def __init__(self, program: Program, in_place: bool, copied: frozenset[int]):
        self.program, self.copied = program, set(copied)
        self.is_sent, self.receives, self.reads, self.writes = _traits(program)
        self.forwards = (program.opcode == Opcode.RECV_REDUCE_SEND).tolist()
        self.count = program.count.tolist()
        self.rank, self.end = program.block_rank.tolist(), program.block_start[1:].tolist()
        self.at, self.phase = program.block_start[:-1].tolist(), [_READY] * program.num_blocks
        links = connections(program)
        self.inward, self.outward = links.inward.tolist(), links.outward.tolist()
        self.sent: list[deque[int]] = [deque() for _ in range(len(links))]
        self.posted: list[deque[int]] = [deque() for _ in range(len(links))]
        self.block = program.block.tolist()
        self._locate(in_place)
        self._choose()
        self.done = bytearray(program.num_instructions)
        self.dep_start, self.deps = program.dep_start.tolist(), program.deps.tolist()
        self.waiting: dict[int, list[int]] = {}
        self.flying: list[dict[int, tuple[int, int, int]]] = [{} for _ in range(program.num_ranks)]
        self.stalled: list[set[int]] = [set() for _ in range(program.num_ranks)]
        self.watching: dict[int, list[int]] = {}  # by a send in flight, the blocks that cannot go on before it ends
        self.in_slot, self.sending = [0] * program.num_blocks, [0] * program.num_blocks
        self._first_allowance()

    def _locate(self, in_place: bool) -> None:
        program = self.program
        self.src = _places(program, in_place, program.src_buffer.tolist(), program.src_offset.tolist())
        self.dst = _places(program, in_place, program.dst_buffer.tolist(), program.dst_offset.tolist())

    def _first_allowance(self) -> None:
        blocks = self.program.num_blocks
        self.slots, self.slot_chunks, self.sends = [0] * blocks, [0] * blocks, [0] * blocks
        for i, b in enumerate(self.block):
            if self.is_sent[i]:
                self.sends[b] = min(self.sends[b] + 1, _SENDS)
            if self.takes_slot[i]:
                self._enlarge(i)
                self.slots[b] = max(self.slots[b], 2 if self.is_sent[i] else 1)

    def _enlarge(self, i: int) -> None:
        self.slot_chunks[self.block[i]] = max(self.slot_chunks[self.block[i]], self.count[i])

    # ---- the engine's choices for the buffers of a call

    def _choose(self) -> None:
        """List which instructions send from a slot, receive into one, and take one; copies are noted later."""
        every = range(self.program.num_instructions)
        self.leaves_slot = [self._leaves_slot(i) for i in every]
        self.lands_in_slot = [self.receives[i] and self._lands_in_slot(i) for i in every]
        sends = zip(self.is_sent, self.leaves_slot, strict=True)
        from_slot = [sent and leaves for sent, leaves in sends]
        self.takes_slot = [lands or sent for lands, sent in zip(self.lands_in_slot, from_slot, strict=True)]

    def _leaves_slot(self, i: int) -> bool:
        return self.forwards[i] or i in self.copied

    def _lands_in_slot(self, i: int) -> bool:
        """Return where an instruction that receives gets its data."""
        adds_in_place = self.reads[i] and self.writes[i] and self._overlaps(i)
        return adds_in_place or (self.is_sent[i] and self._leaves_slot(i))

    def _overlaps(self, i: int) -> bool:
        return _overlap(self.src[i], self.dst[i])

    def _in_the_way(self, i: int, b: int) -> list[int]:
        """Return the sends in flight that read what an instruction writes."""
        flying, (buffer, first, end) = self.flying[self.rank[b]], self.dst[i]
        return [s for s, (where, low, high) in flying.items() if low < end and first < high and where == buffer]

    # ---- execution

    def run(self) -> _Execution:
        """Execute to the end; allow more only if all blocks are stalled."""
        ready = list(range(self.program.num_blocks))
        turns = 0
        while ready:
            while ready:
                if turns % _TURNS == 0:
                    progress("executing instructions", self.done.count(1), len(self.done))
                turns += 1
                self._advance(ready.pop(), ready)
            ready = self._allow_more()
        stuck = [b for b in range(self.program.num_blocks) if self.at[b] < self.end[b]]
        if stuck:
            raise error("C0704", f"this program deadlocks: {self.program.place(self.at[stuck[0]])} waits forever")
        return self

    def needs(self) -> _Needs:
        """Return what the blocks needed until now."""
        return _Needs(self.slots, self.slot_chunks, self.sends, self.copied)

    def _advance(self, b: int, woken: list[int]) -> None:
        while self.at[b] < self.end[b] and self.phase[b] != _RECEIVING:
            i = self.at[b]
            if not (self._begin(i, b, woken) if self.phase[b] == _READY else self._complete(i, b, woken)):
                return

    def _obstacle(self, i: int, b: int) -> str:
        """Return why an instruction cannot begin although its dependencies are done, or ""."""
        if self.is_sent[i] and self.sending[b] == self.sends[b]:
            return "sends"
        if self.writes[i] and not self.lands_in_slot[i] and self._in_the_way(i, b):
            return "read"
        return "slots" if self.takes_slot[i] and self.in_slot[b] == self.slots[b] else ""

    def _begin(self, i: int, b: int, woken: list[int]) -> bool:
        for d in self.deps[self.dep_start[i] : self.dep_start[i + 1]]:
            if not self.done[d]:
                self.waiting.setdefault(d, []).append(b)
                return False
        if obstacle := self._obstacle(i, b):
            self._stall(i, b, obstacle == "read")
            return False
        self.in_slot[b] += self.takes_slot[i]
        if not self.receives[i]:
            self._hand_over(i, b, woken)
            return True
        self.phase[b] = _RECEIVING
        self.posted[self.inward[b]].append(i)
        self._match(self.inward[b], woken)
        return True

    def _complete(self, i: int, b: int, woken: list[int]) -> bool:
        if self._is_write_blocked(i, b):
            self._stall(i, b, True)
            return False
        self._hand_over(i, b, woken)
        return True

    def _stall(self, i: int, b: int, is_read: bool) -> None:
        """Note that a block waits for its own sends or, if its dst is read, for the first of the sends that read it."""
        self.stalled[self.rank[b]].add(b)
        if is_read:
            self.watching.setdefault(self._in_the_way(i, b)[0], []).append(b)

    def _is_write_blocked(self, i: int, b: int) -> bool:
        writes = self.writes[i] and self.lands_in_slot[i]
        return writes and bool(self._in_the_way(i, b))

    def _hand_over(self, i: int, b: int, woken: list[int]) -> None:
        if self.takes_slot[i] and not (self.is_sent[i] and self.leaves_slot[i]):
            self.in_slot[b] -= 1
        self.phase[b], self.at[b], self.done[i] = _READY, i + 1, 1
        woken += self.waiting.pop(i, [])
        if self.is_sent[i]:
            self.sending[b] += 1
            if not self.leaves_slot[i]:
                self.flying[self.rank[b]][i] = self.dst[i] if self.writes[i] else self.src[i]
            self.sent[self.outward[b]].append(i)
            self._match(self.outward[b], woken)

    def _match(self, link: int, woken: list[int]) -> None:
        """Complete the matched sends and receives of a connection."""
        while self.sent[link] and self.posted[link]:
            send, receive = self.sent[link].popleft(), self.posted[link].popleft()
            sender, receiver = self.block[send], self.block[receive]
            self.sending[sender] -= 1
            self.in_slot[sender] -= self.leaves_slot[send]
            self.flying[self.rank[sender]].pop(send, None)
            self.phase[receiver] = _ARRIVED
            woken.append(receiver)
            stalled = self.stalled[self.rank[sender]]
            freed = sorted(stalled.intersection((sender, *self.watching.pop(send, ()))))
            stalled.difference_update(freed)
            woken += freed

    def _allow_more(self) -> list[int]:
        """Give stalled blocks what they lack, or free one write by copies of sends; return the blocks that continue."""
        stalled = sorted(set().union(*self.stalled))
        short = [(b, self._obstacle(self.at[b], b)) for b in stalled if self.phase[b] == _READY]
        limited = [(b, what) for b, what in short if what in ("slots", "sends")]
        for b, what in limited:
            column = self.slots if what == "slots" else self.sends
            column[b] += 1
        if limited or not stalled:
            return self._wake([b for b, _ in limited])
        b = stalled[0]
        for send in self._in_the_way(self.at[b], b):
            self._copy_instead(send)
        return self._wake([x for x in stalled if self.rank[x] == self.rank[b]])

    def _wake(self, blocks: list[int]) -> list[int]:
        for b in blocks:
            self.stalled[self.rank[b]].discard(b)
        return blocks

    def _copy_instead(self, send: int) -> None:
        b = self.block[send]
        self.copied.add(send)
        self.leaves_slot[send] = self.takes_slot[send] = True
        self.lands_in_slot[send] |= self.receives[send]
        self._enlarge(send)
        del self.flying[self.rank[b]][send]
        self.in_slot[b] += 1
        self.slots[b] = max(self.slots[b], self.in_slot[b])


class _OfRuns(_Execution):
    """An execution of messages of runs: those of several are sent from slots and arrive in slots.

    ``src`` and ``dst`` have the first run of each message, ``written`` all runs: buffer, first chunk and end.
    """

    def __init__(self, program: SymmetricProgram, in_place: bool, copied: frozenset[int]):
        self.whole = program
        self.span, self.several = program.message_start.tolist(), (np.diff(program.message_start) > 1).tolist()
        super().__init__(program.batched, in_place, copied)

    def _locate(self, in_place: bool) -> None:
        opening = self.whole.message_start[:-1]
        self.written = self._runs("dst", in_place, np.arange(self.whole.seed.num_instructions))
        self.src, self.dst = (
            list(zip(*(column.tolist() for column in self._runs(end, in_place, opening)), strict=True))
            for end in ("src", "dst")
        )

    def _runs(self, end: str, in_place: bool, rows: Array) -> tuple[Array, Array, Array]:
        """Return buffer, first chunk and end of some instructions' locations; in place, the input is in the output."""
        seed, kind = self.whole.seed, self.whole.collective.kind
        buffer = getattr(seed, f"{end}_buffer")[rows]
        first = getattr(seed, f"{end}_offset").astype(np.int64)[rows]
        if in_place:
            own = seed.rank[rows] * (seed.chunks if kind == "allgather" else 0)
            first += np.where(buffer == Buffer.INPUT, own, 0)
            buffer = np.where(buffer == Buffer.INPUT, np.uint8(Buffer.OUTPUT), buffer)
        return buffer, as_column(first), as_column(first + seed.count[rows])

    def _leaves_slot(self, i: int) -> bool:
        return self.several[i] or i in self.copied

    def _lands_in_slot(self, i: int) -> bool:
        return self.several[i] or super()._lands_in_slot(i)

    def _in_the_way(self, i: int, b: int) -> list[int]:
        flying = self.flying[self.rank[b]]
        if not self.several[i] or not flying:
            return super()._in_the_way(i, b)
        buffer, first, end = (column[self.span[i] : self.span[i + 1]] for column in self.written)
        return [
            s for s, (where, low, high) in flying.items()
            if ((buffer == where) & (first < high) & (low < end)).any()
        ]  # fmt: skip


def _traits(program: Program) -> list[list[bool]]:
    """Return for each instruction whether it sends, receives, reads its src and writes its dst."""
    return [mask.tolist() for mask in (program.sends, program.receives, program.reads_src, program.writes_dst)]


def _places(program: Program, in_place: bool, buffer: list[int], offset: list[int]) -> list[tuple[int, int, int]]:
    """Return (buffer, first, end) for a location of every instruction; in place, the input is in the output."""
    shifted = program.collective.kind == "allgather"
    shift = (program.rank * (program.chunks if shifted else 0)).tolist()
    places = []
    for b, first, s, count in zip(buffer, offset, shift, program.count.tolist(), strict=True):
        if b == Buffer.INPUT and in_place:
            b, first = int(Buffer.OUTPUT), first + s
        places.append((b, first, first + count))
    return places


def _overlap(a: tuple[int, int, int], b: tuple[int, int, int]) -> bool:
    return a[0] == b[0] and a[1] < b[2] and b[1] < a[2]
