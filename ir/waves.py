"""The machine's execution of wide programs, all threadblocks at once: wave after wave, in whole columns.

In a wave every block does what it can with what there was before the wave, at most one instruction. So a wave is a set
of instructions none of which waits for another, and one after the other they are an execution that all waits allow;
by the argument of :mod:`.machine` it completes where any does. With hundreds of threadblocks this is many times as fast
as one instruction after the other; where few can go on at a time it is not, and :func:`waves` gives up.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import attrs
import numpy as np

from .program import Opcode, Program
from .progress import progress

__all__ = ["Waves", "all_waves", "fingerprint", "least_depth", "passes_through", "waves", "waves_within"]

Array = np.ndarray[Any, np.dtype[Any]]

#: fewer threadblocks, or fewer at work in a wave on average after so many waves, are done faster one by one
MIN_BLOCKS, MIN_WIDTH, PATIENCE = 64, 16, 32
_KEPT, _LARGEST = 4, 1 << 22

_RECEIVES = np.array([op.receives for op in Opcode])
_SENDS = np.array([op.sends for op in Opcode])
_CONTROL = ("block_rank", "send_peer", "recv_peer", "channel", "block_start", "opcode", "dep_start", "deps")


@attrs.frozen(eq=False)
class Waves:
    """All instructions, wave by wave: those of wave w are ``instruction[start[w] : start[w + 1]]``."""

    instruction: Array
    start: Array

    @property
    def place(self) -> Array:
        """Each instruction's place in the order."""
        result = np.empty(len(self.instruction), dtype=np.int64)
        result[self.instruction] = np.arange(len(self.instruction))
        return result

    def __len__(self) -> int:
        return len(self.start) - 1


_found: OrderedDict[bytes, Waves] = OrderedDict()


def waves(program: Program) -> Waves | None:
    """Return the waves of a program whose connections hold any number of messages.

    Nothing where it does not complete, or is too narrow for this to be worth while. What was found of the last few
    programs is kept: passes ask again and again.
    """
    if program.num_blocks < MIN_BLOCKS:
        return None
    key = _digest(program, _CONTROL)
    known = _found.get(key)
    if known is None:
        run = _Run(program, None, None)
        if run.go() is not True:
            return None
        known = run.waves()
        if len(known.instruction) <= _LARGEST:
            _found[key] = known
            while len(_found) > _KEPT:
                _found.popitem(last=False)
    return known


def all_waves(program: Program) -> Waves:
    """Return the waves of any program, however narrow; of one that does not complete as far as it goes."""
    found = waves(program)
    if found is None:
        run = _Run(program, None, None)
        run.patience = None
        run.go()
        found = run.waves()
    return found


def waves_within(program: Program, depth: int | None) -> Waves | None:
    """Return the waves of a program whose connections hold ``depth`` messages, as :func:`waves` does."""
    if depth is None or program.num_blocks < MIN_BLOCKS:
        return waves(program)
    run = _Run(program, depth, None)
    return run.waves() if run.go() else None


def passes_through(program: Program, depth: int, split: int | None) -> bool | None:
    """Return whether a program completes with FIFOs of ``depth`` primitives; nothing where it is too narrow to say."""
    return _Run(program, depth, split).go() if program.num_blocks >= MIN_BLOCKS else None


def least_depth(program: Program, split: int | None) -> int | None:
    """Return the least depth of FIFOs with which a program completes; nothing where it is too narrow, or never does.

    As in :func:`.machine.execute`: what is stuck at a depth can go on at the next as if it had had that always.
    """
    if program.num_blocks < MIN_BLOCKS:
        return None
    run = _Run(program, 0, split)
    while (found := run.go()) is False and run.wants_room():
        run.depth = (run.depth or 0) + 1
    return run.depth if found else None


def fingerprint(program: Program) -> bytes:
    """Return what tells programs apart: all columns and the collective, but no names."""
    return _digest(program, Program.COLUMNS, f"{program.collective!r} {program.chunks}")


def _digest(program: Program, columns: Sequence[str], more: str = "") -> bytes:
    digest = blake2b(more.encode(), digest_size=16)
    for name in columns:
        column = getattr(program, name)
        digest.update(f"{column.dtype}{len(column)}".encode())
        digest.update(np.ascontiguousarray(column).data)
    return digest.digest()


class _Run:
    """Where everything stands: columns over blocks, instructions and connections."""

    def __init__(self, program: Program, depth: int | None, split: int | None):
        from .machine import connections, primitives

        links = connections(program)
        self.depth, self.links = depth, links
        self.at, self.end = program.block_start[:-1].astype(np.int64), program.block_start[1:].astype(np.int64)
        self.made = np.zeros(program.num_blocks, dtype=np.int64)
        self.size = primitives(program, split)
        self.receives, self.sends = _RECEIVES[program.opcode], _SENDS[program.opcode]
        self.wait_at, self.wait_end = program.dep_start[:-1].astype(np.int64), program.dep_start[1:].astype(np.int64)
        self.deps = program.deps.astype(np.int64)
        self.finished = np.zeros(program.num_instructions, dtype=bool)
        self.sent, self.taken = np.zeros((2, max(len(links), 1)), dtype=np.int64)
        self.done_in: list[Array] = []
        self.moved = self.rounds = 0
        self.patience: int | None = PATIENCE

    def go(self) -> bool | None:
        """Do waves until nothing can go on; return whether all is done, nothing where waves are too narrow."""
        active = np.flatnonzero(self.at < self.end)
        waiting = active[:0]
        while len(active):
            progress("executing waves of instructions", self.rounds)
            worked, late = self._wave(active)
            self.rounds += 1
            self.moved += len(worked)
            if self.patience is not None and self.rounds >= self.patience and self.moved < MIN_WIDTH * self.rounds:
                return None
            waiting = np.concatenate([waiting, late])
            active, waiting = self._next(worked, waiting)
        return bool((self.at >= self.end).all())

    def waves(self) -> Waves:
        sizes = [len(rows) for rows in self.done_in]
        return Waves(
            np.concatenate([*self.done_in, self.at[:0]]), np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        )

    def wants_room(self) -> bool:
        """Return whether a block that is stuck waits for a free slot."""
        block = np.flatnonzero(self.at < self.end)
        i = self.at[block]
        free = (self.wait_at[i] >= self.wait_end[i]) & self.sends[i]
        source = self.links.inward[block]
        starved = self.receives[i] & (self.sent[source] == self.taken[source])
        return bool((free & ~starved).any())

    def _wave(self, block: Array) -> tuple[Array, Array]:
        """Let blocks go on, each once; return those that did, and those that wait for another block's instruction."""
        i = self.at[block]
        ready = self._ready(i)
        late = block[~ready]
        block, i = block[ready], i[ready]
        left = self.size[i] - self.made[block]
        count = left.copy()
        gets, puts = np.flatnonzero(self.receives[i]), np.flatnonzero(self.sends[i])
        source, sink = self.links.inward[block[gets]], self.links.outward[block[puts]]
        count[gets] = np.minimum(count[gets], self.sent[source] - self.taken[source])
        if self.depth is not None:
            count[puts] = np.minimum(count[puts], self.taken[sink] + self.depth - self.sent[sink])
        self.taken[source] += count[gets]  # every connection has one block at each end
        self.sent[sink] += count[puts]
        whole = count == left
        self.finished[i[whole]] = True
        self.at[block[whole]] += 1
        self.made[block] = np.where(whole, 0, self.made[block] + count)
        self.done_in.append(i[whole])
        return block[count > 0], late

    def _ready(self, i: Array) -> Array:
        """Return which instructions wait for nothing that is not done."""
        k, end = self.wait_at[i], self.wait_end[i]
        some = np.flatnonzero(k < end)
        if not len(some):
            return np.ones(len(i), dtype=bool)
        rest = some
        while len(rest):
            rest = rest[self.finished[self.deps[k[rest]]]]
            k[rest] += 1
            rest = rest[k[rest] < end[rest]]
        self.wait_at[i[some]] = k[some]
        return k >= end

    def _next(self, worked: Array, waiting: Array) -> tuple[Array, Array]:
        """Return the blocks that may go on now, and those that still wait for an instruction."""
        flag = np.zeros(len(self.at) + 1, dtype=bool)
        flag[worked] = True
        inward, outward = self.links.inward[worked], self.links.outward[worked]
        flag[self.links.receiver[outward[outward >= 0]]] = True
        if self.depth is not None:
            flag[self.links.sender[inward[inward >= 0]]] = True
        i = self.at[waiting]
        freed = self.finished[self.deps[self.wait_at[i]]]
        flag[waiting[freed]] = True
        waiting = waiting[~freed]
        flag[waiting] = False  # woken by a message, they still wait
        active = np.flatnonzero(flag[:-1])
        return active[self.at[active] < self.end[active]], waiting
