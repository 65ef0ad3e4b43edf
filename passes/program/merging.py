"""Find an order of instructions for joined threadblocks, and the receives and sends that can be fused.

The module simulates one execution, instruction by instruction, in the program's order as far as possible. It respects
what every execution respects: program order, messages, conflicting accesses, finite FIFOs. It also respects what the
merged program adds: a block executes one instruction at a time, and a fused receive and send are one instruction. If no
instruction can start, it gives up one fused pair or one joined block, and continues. At worst all blocks are separate.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

import numpy as np

from collc.ir.arrays import Array, distinct_pairs
from collc.ir.frozen import frozen
from collc.ir.machine import connections, message_links, partners, receivers
from collc.ir.program import Program
from collc.ir.progress import progress
from collc.ir.ragged import group_starts

__all__ = ["Merged", "merge"]

#: turns between two reports of progress
_TURNS = 4096


@frozen(eq=False)
class Merged:
    """The result of merging: ``order`` lists all instructions in a correct order.

    ``follow`` is for each receive the send it is fused with (-1: none), ``host`` for each block the block it joined.
    """

    order: Array
    follow: Array
    host: Array


def merge(
    program: Program, order: Array, clashes: tuple[Array, Array], follow: Array, host: Array, depth: int
) -> Merged | None:
    """Simulate the program with blocks joined by ``host`` and receives fused with sends by ``follow``.

    ``clashes`` are the program's conflicts (:func:`..analysis.hazards.conflicts`). A connection holds ``depth`` chunks.
    The sender of a larger message waits until it is received. Returns None if even separate blocks deadlock: no order
    is correct with such small FIFOs.
    """
    simulation = _Simulation(program, order, clashes, follow, host, depth)
    if not simulation.run():
        return None
    return Merged(
        np.array(simulation.done, dtype=np.int64), np.array(simulation.follow, dtype=np.int64),
        np.array(simulation.host),
    )  # fmt: skip


class _Simulation:
    """The state of the execution. A fused pair has the number of its receive; any other instruction is its own pair."""

    def __init__(
        self, program: Program, order: Array, clashes: tuple[Array, Array], follow: Array, host: Array, depth: int
    ):
        n, links = program.num_instructions, connections(program)
        self.depth, self.place = depth, order.tolist()
        self.block, self.host, self.follow = program.block.tolist(), host.tolist(), follow.tolist()
        self.lead = [-1] * n  # send -> the receive it is fused with
        for i in np.flatnonzero(follow >= 0).tolist():
            self.lead[self.follow[i]] = i
        self.members: dict[int, list[int]] = {}  # block that others joined -> these blocks and itself
        for b, h in enumerate(self.host):
            self.members.setdefault(h, []).append(b)
        self.pairs: dict[int, list[int]] = {}  # block -> its receives that are fused with sends of other blocks
        for i in np.flatnonzero(follow >= 0).tolist():
            self.pairs.setdefault(self.block[i], []).append(i)
        self.count: list[int] = program.count.tolist()
        self.source, self.into = (column.tolist() for column in message_links(program, links))
        self.held = [0] * len(links)  # chunks sent and not received
        partner = partners(program)
        self.sender = partner.tolist()
        self.receiver = receivers(partner).tolist()
        self._edges(program, clashes, partner)
        self.busy = [-1] * program.num_blocks  # block -> the pair that it cannot finish yet
        self.parked: dict[int, list[int]] = {}  # busy block -> its other pairs that are ready
        self.starved: dict[int, list[int]] = {}  # full connection -> pairs that are ready to send
        self.heap: list[tuple[int, int]] = []
        self.halves: list[tuple[int, int]] = []  # receives that are ready, but whose fused send is not
        self.finished: list[int] = []
        self.begun, self.urgent = bytearray(n), bytearray(n)
        self.done: list[int] = []

    def _edges(self, program: Program, clashes: tuple[Array, Array], partner: Array) -> None:
        """Note for each instruction which come after it, and how many come before."""
        n = program.num_instructions
        later, earlier = clashes
        inner = np.flatnonzero(np.diff(program.block) == 0)
        received = np.flatnonzero(partner >= 0)
        a = np.concatenate([earlier, inner, partner[received]])
        b = np.concatenate([later, inner + 1, received])
        a, b = distinct_pairs(a[a != b], b[a != b])
        self.start = group_starts(a, n).tolist()
        self.after = b.tolist()
        self.missing = np.bincount(b, minlength=n).tolist()

    def run(self) -> bool:
        """Execute all instructions; return whether all have finished."""
        n = len(self.place)
        for i in np.flatnonzero(np.array(self.missing) == 0).tolist():
            self._offer(i)
        turns = 0
        while len(self.done) < n:
            while self.finished or self.heap:
                if turns % _TURNS == 0:
                    progress("merging instructions", len(self.done), n)
                turns += 1
                if self.finished:
                    self._finish(self.finished.pop())
                else:
                    self._try(heappop(self.heap)[1])
            if len(self.done) < n and not self._relax():
                return False
        return True

    # ---- what is ready

    def _offer(self, x: int) -> None:
        """Add an instruction's pair to the ready ones, if all its predecessors have finished."""
        i = x if self.lead[x] < 0 else self.lead[x]
        if self.missing[i]:
            return
        j = self.follow[i]
        if j >= 0 and self.missing[j] > 1:  # the receive itself is one
            heappush(self.halves, (self.place[i], i))
        else:
            self._push(i)

    def _push(self, i: int) -> None:
        heappush(self.heap, (-1 if self.urgent[i] else self.place[i], i))

    def _try(self, i: int) -> None:
        """Execute a pair, unless its block is busy or its connection is full."""
        if self.begun[i] or self.lead[i] >= 0:
            return
        j, host = self.follow[i], self.host[self.block[i]]
        s = i if j < 0 else j
        link, large = self.into[s], self.count[s] > self.depth
        if self.busy[host] >= 0:
            self.parked.setdefault(host, []).append(i)
        elif link >= 0 and self.held[link] > (0 if large else self.depth - self.count[s]):
            self.starved.setdefault(link, []).append(i)
        else:
            self._begin(i, s, link, host)

    def _begin(self, i: int, s: int, link: int, host: int) -> None:
        for x in (i,) if s == i else (i, s):
            self.begun[x] = 1
            self.done.append(x)
        receiver = self.receiver[s]
        if link >= 0:
            self.held[link] += self.count[s]
        if link < 0 or self.count[s] <= self.depth or receiver < 0:
            self.finished.append(i)
            return
        self.busy[host] = i
        self.urgent[receiver] = 1
        if self.lead[receiver] >= 0:
            self.urgent[self.lead[receiver]] = 1
        self.missing[receiver] -= 1
        self._offer(receiver)

    def _finish(self, i: int) -> None:
        """Release the successors of a pair, and the sender of its message."""
        j, host = self.follow[i], self.host[self.block[i]]
        released = -1
        if self.busy[host] == i:
            self.busy[host] = -1
            released = self.receiver[i if j < 0 else j]
            self._wake(self.parked.pop(host, ()))
        link = self.source[i]
        if link >= 0:
            self.held[link] -= self.count[i]
            self._wake(self.starved.pop(link, ()))
        for x in (i,) if j < 0 else (i, j):
            for b in self.after[self.start[x] : self.start[x + 1]]:
                if b != released:
                    self.missing[b] -= 1
                    if not self.missing[b if self.lead[b] < 0 else self.lead[b]]:
                        self._offer(b)
        sender = self.sender[i]
        if link >= 0 and sender >= 0:
            pair = self.lead[sender] if self.lead[sender] >= 0 else sender
            if self.busy[self.host[self.block[pair]]] == pair:
                self.finished.append(pair)

    def _wake(self, rows: Iterable[int]) -> None:
        for i in rows:
            if not self.begun[i]:
                self._push(i)

    # ---- giving up

    def _relax(self) -> bool:
        """Give up one fused pair or one joined block that blocks progress; return whether there was any."""
        while self.halves:
            i = heappop(self.halves)[1]
            if not self.begun[i] and self.follow[i] >= 0:
                self._separate(i)
                return True
        waiting = [i for rows in self.starved.values() for i in rows if not self.begun[i] and self.follow[i] >= 0]
        if waiting:
            self._separate(min(waiting, key=self.place.__getitem__))
            return True
        held = [i for i in self.busy if i >= 0 and self.follow[i] >= 0]
        if held:
            self._release(min(held, key=self.place.__getitem__))
            return True
        blocked = [(self.place[i], host) for host, rows in self.parked.items() for i in rows if not self.begun[i]]
        for _, host in sorted(blocked):
            if any(self.block[i] != self.block[self.busy[host]] for i in self.parked[host]):
                self._divide(host)
                return True
        return False

    def _separate(self, i: int) -> None:
        """Separate a receive from its fused send."""
        self.lead[self.follow[i]] = -1
        self.follow[i] = -1
        self._push(i)

    def _release(self, i: int) -> None:
        """Separate a pair that has begun: its data have arrived, whenever the send happens."""
        send = self.follow[i]
        self.lead[send] = self.follow[i] = -1
        self.busy[self.host[self.block[i]]] = send
        self.finished.append(i)

    def _divide(self, host: int) -> None:
        """Separate the blocks of a joined block."""
        send = self.busy[host]  # its pair was separated before
        self.busy[host] = -1
        for b in self.members.pop(host):
            self.host[b] = b
            for i in self.pairs.pop(b, ()):
                if self.follow[i] >= 0:
                    self.lead[self.follow[i]] = self.follow[i] = -1
                    if not self.begun[i]:
                        self._offer(i)
        self.busy[self.block[send]] = send
        self._wake(self.parked.pop(host, ()))
