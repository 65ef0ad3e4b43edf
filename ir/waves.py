"""Execute wide programs in waves: all threadblocks at once, in whole columns.

In a wave every block executes at most one instruction, with the data from before the wave. So no instruction of a wave
waits for another one, and the waves in order are an execution that respects all waits. By the argument of
:mod:`.machine` it completes if any execution does. With hundreds of threadblocks this is many times as fast as one
instruction after another. If few blocks can continue at a time it is not, and :func:`waves` gives up.

If a block that sends and the one that receives from it can both continue, they work alternately within the wave. So a
message of many primitives does not take as many waves.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import attrs
import numpy as np

from .arrays import Array
from .connections import connections, primitives
from .frozen import frozen
from .program import Program
from .progress import progress
from .ragged import inverse, owners, ranges, starts
from .rendezvous import executes, meets

try:
    from _blake2 import blake2b  # where `hashlib` takes it from, which also loads OpenSSL
except ImportError:
    from hashlib import blake2b

__all__ = [
    "Needed", "Waves", "all_waves", "completes_in_waves", "fingerprint", "least_depth", "some_waves", "waves",
    "waves_within",
]  # fmt: skip

#: waves are faster from this many threadblocks on, and this many active ones in an average wave, after PATIENCE waves
MIN_BLOCKS, MIN_WIDTH, PATIENCE = 64, 16, 32
_KEPT, _LARGEST = 4, 1 << 22

_BLOCKS = ("block_rank", "send_peer", "recv_peer", "channel", "block_start", "opcode")
_CONTROL = (*_BLOCKS, "dep_start", "deps")


@frozen(eq=False)
class Waves:
    """All instructions, wave by wave: those of wave w are ``instruction[start[w] : start[w + 1]]``."""

    instruction: Array
    start: Array

    @property
    def place(self) -> Array:
        """Each instruction's position in the order."""
        return inverse(self.instruction)

    def __len__(self) -> int:
        return len(self.start) - 1


class Needed:
    """The dependencies of the instructions of each wave, for columns that are computed wave by wave."""

    def __init__(self, program: Program, order: Waves):
        number = program.num_dependencies.take(order.instruction)
        self.dependent = np.flatnonzero(number)  # positions in the order
        size = number.take(self.dependent)
        first = program.dep_start.take(order.instruction.take(self.dependent))
        self.deps, self.entry = program.deps.take(ranges(first, size)).astype(np.int64), starts(size)
        self.at = starts(number > 0)[order.start].tolist()
        self.wave = 0

    def raise_to(self, values: Array, column: Array, begin: int) -> None:
        """Raise the values of the next wave, which begins at ``begin``, to those of its dependencies in a column."""
        first, stop = self.at[self.wave], self.at[self.wave + 1]
        self.wave += 1
        if first < stop:
            entry = self.entry[first : stop + 1]
            most = np.maximum.reduceat(column.take(self.deps[entry[0] : entry[-1]]), entry[:-1] - entry[0])
            delayed = self.dependent[first:stop] - begin
            values[delayed] = np.maximum(values.take(delayed), most)


_found: OrderedDict[bytes, Waves] = OrderedDict()


def waves(program: Program) -> Waves | None:
    """Return the waves of a program with unbounded FIFOs; None if it does not complete, or is too narrow.

    The results for the last few programs are cached, because many passes need them.
    """
    if program.num_blocks < MIN_BLOCKS:
        return None
    if "waves of all" in program.found:
        again: Waves = program.found["waves of all"]
        return again
    key = _digest(program, _CONTROL)
    known = _found.get(key)
    if known is None:
        run = _Run(program, None, None)
        if run.run_waves() is not True:
            return None
        known = run.waves()
        if len(known.instruction) <= _LARGEST:
            _found[key] = known
            while len(_found) > _KEPT:
                _found.popitem(last=False)
    program.found["waves of all"] = known
    _keep(program, known)
    return known


def all_waves(program: Program) -> Waves:
    """Return the waves of any program, however narrow; those before the deadlock if it does not complete."""
    found = waves(program)
    if found is None:
        run = _Run(program, None, None)
        run.patience = None
        run.run_waves()
        found = run.waves()
    return found


def waves_within(program: Program, depth: int | None) -> Waves | None:
    """Return the waves of a program with FIFOs of ``depth`` messages (None: unbounded), as :func:`waves` does."""
    if depth is None or program.num_blocks < MIN_BLOCKS:
        return waves(program)
    if ("waves", depth) not in program.found:
        run = _Run(program, depth, None)
        program.found["waves", depth] = run.waves() if run.run_waves() else None
    found: Waves | None = program.found["waves", depth]
    return found


def some_waves(program: Program) -> Waves | None:
    """Return the waves of a program with FIFOs of any depth: those that were executed before, if there are any."""
    found: Waves | None = program.found.get("waves")
    return waves(program) if found is None else found


def completes_in_waves(program: Program, depth: int, split: int | None) -> bool | None:
    """Return whether a program completes with FIFOs of ``depth`` primitives; None if it is too narrow."""
    if program.num_blocks < MIN_BLOCKS:
        return None
    enough = _enough(program, split)
    if (enough is not None and enough <= depth) or (depth > 0 and _meets(program, split)):
        return True
    run = _Run(program, depth, split)
    found = run.run_waves()
    if found:
        _remember(program, split, depth)
        if split is None:
            program.found["waves", depth] = program.found["waves"] = run.waves()
            _keep(program, program.found["waves"])
    return found


def least_depth(program: Program, split: int | None) -> int | None:
    """Return the least depth of FIFOs with which a program completes; None if it is too narrow, or never does.

    As in :func:`.machine.execute`, an execution that is stuck at a depth can continue at the next depth.
    """
    if program.num_blocks < MIN_BLOCKS:
        return None
    if _meets(program, split) and program.sends.any():
        return 1  # without a slot nothing is sent
    run = _Run(program, 0, split)
    while (found := run.run_waves()) is False and run.waits_for_slot():
        run.depth = (run.depth or 0) + 1
    if not found:
        return None
    _remember(program, split, run.depth or 0)
    if split is None:
        program.found["waves"] = run.waves()
        _keep(program, program.found["waves"])
    return run.depth


#: the last orders that were found, by the digest of what a program's instructions are, without their dependencies
_orders: OrderedDict[bytes, Waves] = OrderedDict()


def _keep(program: Program, order: Waves) -> None:
    """Keep an order that executes a program, for programs of the same instructions."""
    if len(order.instruction) <= _LARGEST:
        _orders[_instructions(program)] = order
        while len(_orders) > _KEPT:
            _orders.popitem(last=False)


def _meets(program: Program, split: int | None) -> bool:
    """Return whether a kept order executes a program, and shows that it completes with FIFOs of any depth from 1 on.

    If so, its waves are kept with the program.
    """
    order = _orders.get(_instructions(program))
    if order is None or program.found.get("refused order") is order:
        return False
    if program.found.get("meets") is not order:
        wave = np.empty(program.num_instructions, dtype=np.int64)
        wave[order.instruction] = owners(np.diff(order.start))
        if not (executes(program, wave) and meets(program, wave)):
            program.found["refused order"] = order
            return False
        program.found["meets"] = order
        program.found.setdefault("waves", order)
    _remember(program, split, 1)
    return True


def _instructions(program: Program) -> bytes:
    """Return a digest of the instructions of all blocks, without their dependencies, counts and places."""
    if "instructions" not in program.found:
        program.found["instructions"] = _digest(program, _BLOCKS)
    found: bytes = program.found["instructions"]
    return found


#: depths with which programs complete, by the digest of their control and by split
_depths: OrderedDict[tuple[bytes, int | None], int] = OrderedDict()
_DEPTHS = 64


def _enough(program: Program, split: int | None) -> int | None:
    """Return a depth with which a program is known to complete, also if it was found of an equal program; or None."""
    return program.found.get(("depth", split)) or _depths.get((_control(program), split))


def _remember(program: Program, split: int | None, depth: int) -> None:
    """Remember that a program completes with FIFOs of a depth."""
    program.found["depth", split] = _depths[_control(program), split] = depth
    while len(_depths) > _DEPTHS:
        _depths.popitem(last=False)


def _control(program: Program) -> bytes:
    """Return a digest of all that decides whether a program completes."""
    if "control" not in program.found:
        program.found["control"] = _digest(program, (*_CONTROL, "count"))
    found: bytes = program.found["control"]
    return found


def fingerprint(program: Program) -> bytes:
    """Return a digest of all columns and of the collective, without names and without the size of a call."""
    if "fingerprint" not in program.found:
        more = f"{attrs.evolve(program.collective, size=None)!r} {program.chunks}"
        program.found["fingerprint"] = _digest(program, Program.COLUMNS, more)
    found: bytes = program.found["fingerprint"]
    return found


def _digest(program: Program, columns: Sequence[str], more: str = "") -> bytes:
    digest = blake2b(more.encode(), digest_size=16)
    for name in columns:
        column = getattr(program, name)
        digest.update(f"{column.dtype}{len(column)}".encode())
        digest.update(np.ascontiguousarray(column).data)
    return digest.digest()


class _Run:
    """The state of an execution: columns over blocks, instructions and connections."""

    def __init__(self, program: Program, depth: int | None, split: int | None):
        links = connections(program)
        self.depth, self.links = depth, links
        self.at, self.end = program.block_start[:-1].astype(np.int64), program.block_start[1:].astype(np.int64)
        self.executed = np.zeros(program.num_blocks, dtype=np.int64)
        self.size = primitives(program, split)
        self.streams = int(self.size.max(initial=1)) > 1
        self.number = np.zeros(program.num_blocks, dtype=np.int64)  # block -> its number in the last wave it was in
        self.receives, self.sends = program.receives, program.sends
        self.wait_at, self.wait_end = program.dep_start[:-1].astype(np.int64), program.dep_start[1:].astype(np.int64)
        self.waits = self.wait_at < self.wait_end  # which instructions have dependencies
        self.deps = program.deps.astype(np.int64)
        self.finished = np.zeros(program.num_instructions, dtype=bool)
        # The last two stand for no connection: one that always has data, and one that always has room.
        self.sent, self.taken = np.zeros((2, len(links) + 2), dtype=np.int64)
        self.sent[-2] = self.taken[-1] = 1
        self.source = np.where(
            self.receives & (links.inward >= 0).take(program.block), links.inward.take(program.block), -2
        )
        self.sink = np.where(
            self.sends & (links.outward >= 0).take(program.block), links.outward.take(program.block), -1
        )
        self.after = _other_end(links.outward, links.receiver)
        self.before = _other_end(links.inward, links.sender)
        self.done_in: list[Array] = []
        self.moved = self.rounds = self.completed = 0
        self.patience: int | None = PATIENCE

    def run_waves(self) -> bool | None:
        """Execute waves until no block can continue; return whether all have finished, None if waves are too narrow."""
        active = np.flatnonzero(self.at < self.end)
        waiting = active[:0]
        while len(active):
            progress("executing instructions", self.completed, len(self.finished))
            worked, waiting_blocks = self._wave(active) if self.streams else self._plain_wave(active)
            self.rounds += 1
            self.moved += len(worked)
            if self.patience is not None and self.rounds >= self.patience and self.moved < MIN_WIDTH * self.rounds:
                return None
            waiting = np.concatenate([waiting, waiting_blocks])
            active, waiting = self._next(worked, waiting)
        return bool((self.at >= self.end).all())

    def waves(self) -> Waves:
        sizes = [len(rows) for rows in self.done_in]
        return Waves(np.concatenate([*self.done_in, self.at[:0]]), starts(sizes))

    def waits_for_slot(self) -> bool:
        """Return whether a stuck block waits for a free slot."""
        block = np.flatnonzero(self.at < self.end)
        i = self.at[block]
        free = (self.wait_at[i] >= self.wait_end[i]) & self.sends[i]
        source = self.links.inward[block]
        starved = self.receives[i] & (self.sent[source] == self.taken[source])
        return bool((free & ~starved).any())

    def _plain_wave(self, block: Array) -> tuple[Array, Array]:
        """Execute one wave as :meth:`_wave` does, if every instruction is one primitive."""
        # `take` and `compress` are faster than indices where columns are short
        i = self.at.take(block)
        ready = self._ready(i)
        source, sink = self.source.take(i), self.sink.take(i)
        moves = ready & (self.sent.take(source) > self.taken.take(source))
        if self.depth is not None:
            moves &= self.taken.take(sink) + self.depth > self.sent.take(sink)
        worked, i = block.compress(moves), i.compress(moves)
        self.taken[source.compress(moves)] += 1  # every connection has one block at each end
        self.sent[sink.compress(moves)] += 1
        self.taken[-2] = self.sent[-1] = 0
        self.finished[i] = True
        self.at[worked] += 1
        self.done_in.append(i)
        self.completed += len(i)
        return worked, block.compress(~ready)

    def _wave(self, block: Array) -> tuple[Array, Array]:
        """Execute one wave; return the blocks that moved data or finished, and those that wait for a dependency."""
        i = self.at.take(block)
        ready = self._ready(i)
        waiting_blocks = block.compress(~ready)
        block, i = block.compress(ready), i.compress(ready)
        left = self.size.take(i) - self.executed.take(block)
        count = left.copy()
        # methods, not functions of numpy: waves are many and short
        gets, puts = self.receives.take(i).nonzero()[0], self.sends.take(i).nonzero()[0]
        source, sink = self.links.inward.take(block.take(gets)), self.links.outward.take(block.take(puts))
        count[gets] = np.minimum(count.take(gets), self.sent.take(source) - self.taken.take(source))
        if self.depth is not None:
            count[puts] = np.minimum(count.take(puts), self.taken.take(sink) + self.depth - self.sent.take(sink))
            if self.streams and self.depth:
                self._meet(block, i, left, count, puts)
        self.taken[source] += count.take(gets)  # every connection has one block at each end
        self.sent[sink] += count.take(puts)
        whole = count == left
        done = i.compress(whole)
        self.finished[done] = True
        self.at[block.compress(whole)] += 1
        self.executed[block] = np.where(whole, 0, self.executed.take(block) + count)
        self.done_in.append(done)
        self.completed += len(done)
        return block.compress(count > 0), waiting_blocks

    def _meet(self, block: Array, i: Array, left: Array, count: Array, puts: Array) -> None:
        """Let sends that lack slots go on while the receives at the other end, in this wave too, take what they send.

        Only instructions that do nothing else go on.
        """
        full = puts.compress(count.take(puts) < left.take(puts))
        full = full.compress(~self.receives.take(i.take(full)))
        if not len(full):
            return
        link = self.links.outward.take(block.take(full))
        receiver = self.links.receiver.take(link)
        self.number[block] = np.arange(len(block))
        other = np.minimum(self.number.take(receiver), len(block) - 1)
        meets = (block.take(other) == receiver) & self.receives.take(i.take(other)) & ~self.sends.take(i.take(other))
        full, other, held = (
            full.compress(meets),
            other.compress(meets),
            (self.sent.take(link) - self.taken.take(link)).compress(meets),
        )
        count[other] = np.minimum(left[other], held + left[full])
        count[full] = np.minimum(left[full], (self.depth or 0) - held + count[other])

    def _ready(self, i: Array) -> Array:
        """Return which instructions have no unfinished dependency."""
        ready = np.ones(len(i), dtype=bool)
        some = self.waits.take(i).nonzero()[0]
        if not len(some):
            return ready
        i = i.take(some)
        k, end = self.wait_at.take(i), self.wait_end.take(i)
        rest = (k < end).nonzero()[0]
        while len(rest):
            rest = rest.compress(self.finished.take(self.deps.take(k.take(rest))))
            k[rest] += 1
            rest = rest.compress(k.take(rest) < end.take(rest))
        self.wait_at[i] = k
        ready[some] = k >= end
        return ready

    def _next(self, worked: Array, waiting: Array) -> tuple[Array, Array]:
        """Return the blocks that may continue now, and those that still wait for a dependency."""
        flag = np.zeros(len(self.at) + 1, dtype=bool)
        flag[worked] = flag[self.after.take(worked)] = True
        if self.depth is not None:
            flag[self.before.take(worked)] = True
        freed = self.finished.take(self.deps.take(self.wait_at.take(self.at.take(waiting))))
        flag[waiting.compress(freed)] = True
        waiting = waiting.compress(~freed)
        flag[waiting] = False  # woken by a message, they still wait
        active = flag[:-1].nonzero()[0]
        return active.compress(self.at.take(active) < self.end.take(active)), waiting


def _other_end(link: Array, block: Array) -> Array:
    """Return the block at the other end of each block's connection, the number of blocks if there is none."""
    found = np.append(block, -1)[link]
    return np.where((link >= 0) & (found >= 0), found, len(link))
