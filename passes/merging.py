"""Letting threadblocks become one: in which order their instructions can stand, and which can be fused.

One execution is played through, instruction by instruction, in the program's order as far as that goes. It keeps what
every execution keeps (program order, messages, conflicting accesses, finite FIFOs), and besides what the merged program
adds: a block does one thing at a time, and a fused receive and send happen together. Where nothing can go on, the last
two are given up, one pair or one block at a time, until what is left is the program of separate blocks.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Any

import attrs
import numpy as np

from collc.ir.machine import RECEIVES, SENDS, connections, partners
from collc.ir.program import Program

from .hazards import conflicts

__all__ = ["Merged", "merge"]

Array = np.ndarray[Any, np.dtype[Any]]


@attrs.frozen(eq=False)
class Merged:
    """What came of merging: ``order`` lists all instructions in an order that is right.

    ``follow`` holds for each receive the send it is fused with (-1: none), ``host`` for each block the one it joined.
    """

    order: Array
    follow: Array
    host: Array


def merge(program: Program, order: Array, follow: Array, host: Array, depth: int) -> Merged | None:
    """Play the program with blocks joined as ``host`` says and receives fused with sends as ``follow`` says.

    ``depth`` is how many chunks a connection holds. A message of more is there only when it is received: its sender
    waits so long. Nothing where separate blocks get stuck too: with so small FIFOs no order is right.
    """
    play = _Play(program, order, follow, host, depth)
    if not play.run():
        return None
    return Merged(np.array(play.done, dtype=np.int64), np.array(play.follow, dtype=np.int64), np.array(play.host))


class _Play:
    """Where everything stands. A pair is named by its receive; what is not fused is a pair of itself."""

    def __init__(self, program: Program, order: Array, follow: Array, host: Array, depth: int):
        n, links = program.num_instructions, connections(program)
        self.depth, self.place = depth, order.tolist()
        self.block, self.host, self.follow = program.block.tolist(), host.tolist(), follow.tolist()
        self.lead = [-1] * n  # send -> the receive it is fused with
        for i in np.flatnonzero(follow >= 0).tolist():
            self.lead[self.follow[i]] = i
        self.members: dict[int, list[int]] = {}  # block that others joined -> they and itself
        for b, h in enumerate(self.host):
            self.members.setdefault(h, []).append(b)
        self.pairs: dict[int, list[int]] = {}  # block -> its receives that are fused with sends of other blocks
        for i in np.flatnonzero(follow >= 0).tolist():
            self.pairs.setdefault(self.block[i], []).append(i)
        self.count: list[int] = program.count.tolist()
        self.into = np.where(SENDS[program.opcode], links.outward[program.block], -1).tolist()
        self.source = np.where(RECEIVES[program.opcode], links.inward[program.block], -1).tolist()
        self.held = [0] * len(links)  # chunks sent and not received
        partner = partners(program, links)
        self.sender = partner.tolist()
        self.receiver = [-1] * n
        for i in np.flatnonzero(partner >= 0).tolist():
            self.receiver[self.sender[i]] = i
        self._edges(program, order, partner)
        self.busy = [-1] * program.num_blocks  # block -> the pair that it cannot finish yet
        self.parked: dict[int, list[int]] = {}  # block that is busy -> what else it could do
        self.starved: dict[int, list[int]] = {}  # full connection -> who would send
        self.heap: list[tuple[int, int]] = []
        self.halves: list[tuple[int, int]] = []  # receives that could go on without the send they are fused with
        self.finished: list[int] = []
        self.begun, self.urgent = bytearray(n), bytearray(n)
        self.done: list[int] = []

    def _edges(self, program: Program, order: Array, partner: Array) -> None:
        """Note for each instruction which come after it, and how many come before."""
        n = program.num_instructions
        later, earlier = conflicts(program, order)
        inner = np.flatnonzero(np.diff(program.block) == 0)
        received = np.flatnonzero(partner >= 0)
        a = np.concatenate([earlier, inner, partner[received]])
        b = np.concatenate([later, inner + 1, received])
        pairs = np.unique(a[a != b] * np.int64(max(n, 1)) + b[a != b])
        a, b = pairs // max(n, 1), pairs % max(n, 1)
        self.start = np.searchsorted(a, np.arange(n + 1)).tolist()
        self.after = b.tolist()
        self.missing = np.bincount(b, minlength=n).tolist()

    def run(self) -> bool:
        """Do all instructions; return whether that went to the end."""
        n = len(self.place)
        for i in range(n):
            self._offer(i)
        while len(self.done) < n:
            while self.finished or self.heap:
                if self.finished:
                    self._finish(self.finished.pop())
                else:
                    self._try(heappop(self.heap)[1])
            if len(self.done) < n and not self._relax():
                return False
        return True

    # ---- what can go on

    def _offer(self, x: int) -> None:
        """Put an instruction, or the pair it belongs to, among what can be done, if it can."""
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
        """Do a pair, unless its block is busy or its connection is full."""
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
        """Tell those that come after a pair, and the sender of what it has received."""
        j, host = self.follow[i], self.host[self.block[i]]
        told = -1
        if self.busy[host] == i:
            self.busy[host] = -1
            told = self.receiver[i if j < 0 else j]
            self._wake(self.parked.pop(host, ()))
        link = self.source[i]
        if link >= 0:
            self.held[link] -= self.count[i]
            self._wake(self.starved.pop(link, ()))
        for x in (i,) if j < 0 else (i, j):
            for b in self.after[self.start[x] : self.start[x + 1]]:
                if b != told:
                    self.missing[b] -= 1
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
        """Give up one pair, or one block's union, that something waits for; return whether there was any."""
        while self.halves:
            i = heappop(self.halves)[1]
            if not self.begun[i] and self.follow[i] >= 0:
                self._part(i)
                return True
        waiting = [i for rows in self.starved.values() for i in rows if not self.begun[i] and self.follow[i] >= 0]
        if waiting:
            self._part(min(waiting, key=self.place.__getitem__))
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

    def _part(self, i: int) -> None:
        """Let a receive go on without the send it was to be fused with."""
        self.lead[self.follow[i]] = -1
        self.follow[i] = -1
        self._push(i)

    def _release(self, i: int) -> None:
        """Part a pair that has begun: what it received is there, whatever becomes of the send."""
        send = self.follow[i]
        self.lead[send] = self.follow[i] = -1
        self.busy[self.host[self.block[i]]] = send
        self.finished.append(i)

    def _divide(self, host: int) -> None:
        """Let blocks that became one be separate again."""
        send = self.busy[host]  # by now no pair
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
