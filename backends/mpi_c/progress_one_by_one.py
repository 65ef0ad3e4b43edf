"""The execution of :mod:`.progress`, one instruction after another: for programs of few blocks at a time."""

from __future__ import annotations

from collections import deque

from collc.ir.diagnostic import error
from collc.ir.machine import connections
from collc.ir.program import Program
from collc.ir.progress import progress

from .progress_buffers import ARRIVED, READY, RECEIVING, Buffers, first_allowance

__all__ = ["OneByOne"]

#: turns between two reports of progress
_TURNS = 4096


class OneByOne:
    """One execution, instruction after instruction, with sends that complete as late as possible."""

    def __init__(self, program: Program, buffers: Buffers, copied: frozenset[int]):
        self.program, self.copied, self.buffers = program, set(copied), buffers
        masks = (program.sends, program.receives, program.writes_dst)
        self.is_sent, self.receives, self.writes = (mask.tolist() for mask in masks)
        self.count = program.count.tolist()
        self.rank, self.end = program.block_rank.tolist(), program.block_start[1:].tolist()
        self.at, self.phase = program.block_start[:-1].tolist(), [READY] * program.num_blocks
        links = connections(program)
        self.inward, self.outward = links.inward.tolist(), links.outward.tolist()
        self.sent: list[deque[int]] = [deque() for _ in range(len(links))]
        self.posted: list[deque[int]] = [deque() for _ in range(len(links))]
        self.block = program.block.tolist()
        self.several, self.span = buffers.several.tolist(), buffers.span.tolist()
        self.src, self.dst = (places.listed() for places in (buffers.src, buffers.dst))
        chosen = buffers.choices(program, copied)
        self.leaves_slot, self.lands_in_slot, self.takes_slot = (mask.tolist() for mask in chosen)
        self.done = bytearray(program.num_instructions)
        self.dep_start, self.deps = program.dep_start.tolist(), program.deps.tolist()
        self.waiting: dict[int, list[int]] = {}
        self.flying: list[dict[int, tuple[int, int, int]]] = [{} for _ in range(program.num_ranks)]
        self.stalled: list[set[int]] = [set() for _ in range(program.num_ranks)]
        self.watching: dict[int, list[int]] = {}  # by a send in flight, the blocks that cannot go on before it ends
        self.in_slot, self.sending = [0] * program.num_blocks, [0] * program.num_blocks
        allowed = first_allowance(program, program.sends, chosen[2])
        self.slots, self.slot_chunks, self.sends = (column.tolist() for column in allowed)

    def _in_the_way(self, i: int, b: int) -> list[int]:
        """Return the sends in flight that read what an instruction writes."""
        flying = self.flying[self.rank[b]]
        if not self.several[i] or not flying:
            buffer, first, end = self.dst[i]
            return [s for s, (where, low, high) in flying.items() if low < end and first < high and where == buffer]
        written = self.buffers.written.rows(slice(self.span[i], self.span[i + 1]))
        return [s for s, place in flying.items() if written.overlap(*place).any()]

    # ---- execution

    def run(self) -> OneByOne:
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

    def _advance(self, b: int, woken: list[int]) -> None:
        while self.at[b] < self.end[b] and self.phase[b] != RECEIVING:
            i = self.at[b]
            if not (self._begin(i, b, woken) if self.phase[b] == READY else self._complete(i, b, woken)):
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
        self.phase[b] = RECEIVING
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
        self.phase[b], self.at[b], self.done[i] = READY, i + 1, 1
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
            self.phase[receiver] = ARRIVED
            woken.append(receiver)
            stalled = self.stalled[self.rank[sender]]
            freed = sorted(stalled.intersection((sender, *self.watching.pop(send, ()))))
            stalled.difference_update(freed)
            woken += freed

    def _allow_more(self) -> list[int]:
        """Give stalled blocks what they lack, or free one write by copies of sends; return the blocks that continue."""
        stalled = sorted(set().union(*self.stalled))
        short = [(b, self._obstacle(self.at[b], b)) for b in stalled if self.phase[b] == READY]
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
        self.slot_chunks[b] = max(self.slot_chunks[b], self.count[send])
        del self.flying[self.rank[b]][send]
        self.in_slot[b] += 1
        self.slots[b] = max(self.slots[b], self.in_slot[b])
