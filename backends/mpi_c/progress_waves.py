"""The execution of :mod:`.progress` in waves: all blocks at once, in whole columns.

No choice of a block depends on timing, so this finds what :mod:`.progress_one_by_one` finds. A write waits for sends in
flight that read its location. On each location these are sends between two writes that follow each other in any order
that respects all waits, because the program has no races. So each send delays one write a location.
"""

from __future__ import annotations

import attrs
import numpy as np

from collc.ir.arrays import Array, distinct, lexsort
from collc.ir.connections import partners, receivers
from collc.ir.diagnostic import error
from collc.ir.program import Buffer, Program
from collc.ir.progress import progress
from collc.ir.ragged import first_of_group, next_true, owners, ranges, starts
from collc.ir.waves import Waves

from .progress_buffers import ARRIVED, READY, RECEIVING, Buffers, Places, first_allowance
from .progress_in_turn import free_in_turn

__all__ = ["InWaves"]

#: locations that are compared at a time
_LOCATIONS = 1 << 22


@attrs.frozen(eq=False)
class _Lists:
    """Lists of instructions, one for each instruction."""

    start: Array
    entry: Array

    @classmethod
    def of(cls, owner: Array, entry: Array, size: int) -> _Lists:
        order = lexsort([owner])
        return cls(starts(np.bincount(owner, minlength=size)), entry.take(order))

    def at(self, i: int) -> list[int]:
        """Return the entries of one list."""
        found: list[int] = self.entry[self.start[i] : self.start[i + 1]].tolist()
        return found

    def of_each(self, i: Array) -> tuple[Array, Array]:
        """Return the entries of some lists, and the number of each list."""
        first = self.start.take(i)
        size = self.start.take(i + 1) - first
        return self.entry.take(ranges(first, size)), size


class InWaves:
    """One execution with sends that complete as late as possible; ``order`` has the waves of the program."""

    def __init__(self, program: Program, buffers: Buffers, copied: frozenset[int], order: Waves):
        size, blocks = program.num_instructions, program.num_blocks
        self.program, self.copied = program, set(copied)
        self.is_sent, self.receives, self.writes = program.sends, program.receives, program.writes_dst
        self.block, self.count = program.block.astype(np.int64), program.count.astype(np.int64)
        self.at, self.end = program.block_start[:-1].astype(np.int64), program.block_start[1:].astype(np.int64)
        self.phase = np.full(blocks, READY)
        self.partner = partners(program)
        self.receiver = receivers(self.partner)
        self.leaves_slot, self.lands_in_slot, self.takes_slot = buffers.choices(program, copied)
        self.slots, self.slot_chunks, self.sends = first_allowance(program, self.is_sent, self.takes_slot)
        self.in_slot, self.sending = np.zeros((2, blocks), dtype=np.int64)
        self.needs = program.num_dependencies.astype(np.int64)
        self.dependents = _Lists.of(program.deps.astype(np.int64), program.dependent, size)
        send, write = _delays(program, buffers, self.leaves_slot, order)
        self.delays, self.delayed_by = _Lists.of(send, write, size), _Lists.of(write, send, size)
        self.flying = np.zeros(size, dtype=bool)
        self.done = np.zeros(size, dtype=bool)
        self.reads = np.zeros(size, dtype=np.int64)  # sends in flight that read what an instruction writes
        self.finished = 0

    def run(self) -> InWaves:
        """Execute to the end; allow more only if all blocks are stalled."""
        active = np.flatnonzero(self.at < self.end)
        while len(active):
            while len(active):
                progress("executing instructions", self.finished, len(self.done))
                active = self._wave(active)
            active = self._allow_more()
        stuck = np.flatnonzero(self.at < self.end)
        if len(stuck):
            place = self.program.place(int(self.at[stuck[0]]))
            raise error("C0704", f"this program deadlocks: {place} waits forever")
        return self

    def _wave(self, block: Array) -> Array:
        """Let blocks begin or complete their instructions; return the blocks that may continue."""
        i = self.at.take(block)
        begins, completes = self._able(block, i)
        begun, b = i.compress(begins), block.compress(begins)
        self.in_slot[b] += self.takes_slot.take(begun)
        receives = self.receives.take(begun)
        posted = begun.compress(receives)
        self.phase[b.compress(receives)] = RECEIVING
        over = np.concatenate([begun.compress(~receives), i.compress(completes)])
        woken = self._hand_over(over)
        matched = np.concatenate([self._sent_already(posted), self._posted_already(over)])
        woken += self._match(distinct(matched))
        flag = np.zeros(len(self.at), dtype=bool)
        for some in woken:
            flag[some] = True
        flag &= (self.at < self.end) & (self.phase != RECEIVING)
        return flag.nonzero()[0]

    def _able(self, block: Array, i: Array) -> tuple[Array, Array]:
        """Return which blocks can begin their instruction, and which can complete it."""
        ready, lands = self.phase.take(block) == READY, self.lands_in_slot.take(i)
        sends, read, slots = self._obstacles(block, i)
        begins = ready & (self.needs.take(i) == 0) & ~(sends | read | slots)
        return begins, ~ready & ~(self._is_read(i) & lands)

    def _is_read(self, i: Array) -> Array:
        """Return which instructions write what a send in flight reads."""
        found: Array = self.writes.take(i) & (self.reads.take(i) > 0)
        return found

    def _obstacles(self, block: Array, i: Array) -> tuple[Array, Array, Array]:
        """Return which instructions cannot begin, for want of sends, because of a read, or for want of slots."""
        return (
            self.is_sent.take(i) & (self.sending.take(block) == self.sends.take(block)),
            self._is_read(i) & ~self.lands_in_slot.take(i),
            self.takes_slot.take(i) & (self.in_slot.take(block) == self.slots.take(block)),
        )

    def _hand_over(self, i: Array) -> list[Array]:
        """Finish instructions; return the blocks that may continue."""
        b, sent, leaves = self.block.take(i), self.is_sent.take(i), self.leaves_slot.take(i)
        self.in_slot[b] -= self.takes_slot.take(i) & ~(sent & leaves)
        self.phase[b] = READY
        self.at[b] += 1
        self.done[i] = True
        self.finished += len(i)
        self.sending[b] += sent
        self._fly(i.compress(sent & ~leaves), 1)
        dependents, _ = self.dependents.of_each(i)
        np.subtract.at(self.needs, dependents, 1)
        return [b, self.block.take(dependents)]

    def _fly(self, send: Array, change: int) -> Array:
        """Begin or end the reads of sends in flight; return the writes that these delay."""
        self.flying[send] = change > 0
        writes, _ = self.delays.of_each(send)
        np.add.at(self.reads, writes, change)
        return writes

    def _sent_already(self, posted: Array) -> Array:
        """Return those of some receives whose message was sent."""
        send = self.partner.take(posted)
        return posted.compress((send >= 0) & self.done.take(send))

    def _posted_already(self, over: Array) -> Array:
        """Return the receives that wait for what was sent."""
        receive = self.receiver.take(over.compress(self.is_sent.take(over)))
        receive = receive.compress(receive >= 0)
        block = self.block.take(receive)
        return receive.compress((self.at.take(block) == receive) & (self.phase.take(block) == RECEIVING))

    def _match(self, receive: Array) -> list[Array]:
        """Complete receives and their sends; return the blocks that may continue."""
        send, block = self.partner.take(receive), self.block.take(receive)
        sender = self.block.take(send)
        np.subtract.at(self.sending, sender, 1)
        np.subtract.at(self.in_slot, sender, self.leaves_slot.take(send).astype(np.int64))
        writes = self._fly(send.compress(self.flying.take(send)), -1)
        self.phase[block] = ARRIVED
        return [block, sender, self.block.take(writes)]

    def _allow_more(self) -> Array:
        """Give stalled blocks what they lack, or free one write by copies of sends; return the blocks that continue."""
        block = np.flatnonzero(self.at < self.end)
        i = self.at.take(block)
        begins = (self.phase.take(block) == READY) & (self.needs.take(i) == 0)
        obstacles = self._obstacles(block, i)
        sends, read, slots = obstacles
        arrived = (self.phase.take(block) == ARRIVED) & self._is_read(i)
        stalled = (begins & (sends | read | slots)) | arrived
        lacks_sends, lacks_slots = begins & sends, begins & ~sends & ~read & slots
        if (lacks_sends | lacks_slots).any():
            self.sends[block.compress(lacks_sends)] += 1
            self.slots[block.compress(lacks_slots)] += 1
            return block.compress(lacks_sends | lacks_slots)
        if not stalled.any():
            return block[:0]
        free_in_turn(self, block.compress(stalled))
        return self._allow_more()

    def fly(self, send: int, change: int) -> list[int]:
        """Begin or end the reads of a send in flight; return the blocks of writes that no longer wait."""
        self.flying[send] = change > 0
        woken = []
        for write in self.delays.at(send):
            self.reads[write] += change
            if not self.reads[write]:
                woken.append(int(self.block[write]))
        return woken

    def free(self, i: int) -> list[int]:
        """Send copies in place of all sends in flight that read what an instruction writes; return as :meth:`fly`."""
        woken = []
        for send in self.delayed_by.at(i):
            if self.flying[send]:
                woken += self.fly(send, -1)
                self._copy(send)
        return woken

    def _copy(self, send: int) -> None:
        block = self.block[send]
        self.copied.add(send)
        self.leaves_slot[send] = self.takes_slot[send] = True
        self.lands_in_slot[send] |= self.receives[send]
        self.slot_chunks[block] = max(self.slot_chunks[block], self.count[send])
        self.in_slot[block] += 1
        self.slots[block] = max(self.slots[block], self.in_slot[block])


def _delays(program: Program, buffers: Buffers, leaves_slot: Array, order: Waves) -> tuple[Array, Array]:
    """Return pairs (send, write): a send that reads in flight what an instruction is the next to write."""
    wave = np.empty(program.num_instructions, dtype=np.int64)
    wave[order.instruction] = owners(np.diff(order.start))
    sends = np.flatnonzero(program.sends & ~leaves_slot)
    written = owners(np.diff(buffers.span))
    runs = np.flatnonzero(program.writes_dst.take(written))
    instruction = np.concatenate([sends, written.take(runs)])
    reads = np.arange(len(instruction)) < len(sends)
    read = buffers.dst.rows(sends).where(program.writes_dst.take(sends), buffers.src.rows(sends))
    places, rank = read.followed(buffers.written.rows(runs)), program.rank.take(instruction)
    found = [
        _next_writes(instruction.take(some), reads.take(some), wave, rank.take(some), places.rows(some))
        for some in _by_ranks(rank, places.end - places.first)
    ]
    send, write = zip(*found, strict=True) if found else ([instruction], [instruction])
    return np.concatenate(send), np.concatenate(write)


def _by_ranks(rank: Array, chunks: Array) -> list[Array]:
    """Return rows in parts of whole ranks, with few chunks each."""
    order = lexsort([rank])
    rank, total = rank.take(order), np.cumsum(chunks.take(order))
    first = np.flatnonzero(first_of_group(rank))
    part = total.take(first) // _LOCATIONS
    return np.split(order, first[1:][np.diff(part) > 0]) if len(order) else []


def _next_writes(instruction: Array, reads: Array, wave: Array, rank: Array, places: Places) -> tuple[Array, Array]:
    """Return for each send the next write on each location that it reads, each pair once."""
    base = (rank * len(Buffer) + places.buffer) * (int(places.end.max(initial=0)) + 1)
    cuts = distinct(np.concatenate([base + places.first, base + places.end]))
    lo, hi = np.searchsorted(cuts, base + places.first), np.searchsorted(cuts, base + places.end)
    row, location = owners(hi - lo), ranges(lo, hi - lo)
    instruction, reads = instruction.take(row), reads.take(row)
    order = lexsort([location * (2 * (int(wave.max(initial=0)) + 1)) + 2 * wave.take(instruction) + reads])
    instruction, reads, location = instruction.take(order), reads.take(order), location.take(order)
    later = next_true(~reads)
    read = np.flatnonzero(reads & (later < len(instruction)))
    read = read.compress(location.take(later.take(read)) == location.take(read))
    pairs = distinct(instruction.take(read) * len(wave) + instruction.take(later.take(read)))
    return pairs // len(wave), pairs % len(wave)
