"""The machine that programs are written for: concurrent threadblocks, finite FIFOs and waits; no data.

A connection (sending rank, receiving rank, channel) is a FIFO with one block that sends into it and one
that receives from it. An instruction of count c runs as primitives of at most ``split`` chunks, in order; a
FIFO holds ``fifo_depth`` primitives.

Why one execution decides: blocks are deterministic sequential processes, they choose nothing by what is
ready (a Kahn network), every FIFO has one producer and one consumer, and what a block waits for, once true,
stays true until that same block uses it: data stay until their only receiver takes them, a free slot until
its only sender fills it, a finished dependency is finished for ever. So two steps that are both possible
can be done in either order with the same result, and every maximal execution performs the same set of
primitives. If one execution completes all do; if one gets stuck all get stuck, at the same instructions.
More slots only permit more, so what completes at depth K completes at every greater depth, and an execution
stuck at depth K can go on at K + 1 as if it had had K + 1 from the start; that finds the least sufficient
depth in a single execution.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import attrs
import numpy as np

from .program import Opcode, Program

__all__ = [
    "Connections",
    "Deadlock",
    "Execution",
    "Wait",
    "completes_with",
    "connections",
    "execute",
    "linearization",
    "partners",
    "primitives",
    "smallest_depth",
    "smallest_split",
]

Array = np.ndarray[Any, np.dtype[Any]]

RECEIVES = np.array([op.receives for op in Opcode])
SENDS = np.array([op.sends for op in Opcode])


@attrs.frozen(eq=False)
class Connections:
    """The FIFOs of a program: columns ``src``, ``dst`` (ranks) and ``channel``, sorted by them.

    ``outward`` and ``inward`` are the connection that each block sends into and receives from (-1: none);
    ``sender`` and ``receiver`` are the block at each end of each connection (-1: none).
    """

    src: Array
    dst: Array
    channel: Array
    outward: Array
    inward: Array
    sender: Array
    receiver: Array

    def __len__(self) -> int:
        return len(self.src)


def connections(program: Program) -> Connections:
    """Return the connections that the program's blocks name, used or not. Peers must be ranks or -1."""
    ranks, here = program.num_ranks, program.block_rank.astype(np.int64)
    names, channel = np.unique(program.channel.astype(np.int64), return_inverse=True)
    channels = max(len(names), 1)
    to, source = program.send_peer.astype(np.int64), program.recv_peer.astype(np.int64)
    out_key = np.where(to >= 0, (here * ranks + to) * channels + channel, -1)
    in_key = np.where(source >= 0, (source * ranks + here) * channels + channel, -1)
    keys = np.unique(np.concatenate([out_key[to >= 0], in_key[source >= 0]]))
    outward = np.where(to >= 0, np.searchsorted(keys, out_key), -1)
    inward = np.where(source >= 0, np.searchsorted(keys, in_key), -1)
    sender, receiver = np.full((2, len(keys)), -1, dtype=np.int64)
    sender[outward[to >= 0]] = np.flatnonzero(to >= 0)
    receiver[inward[source >= 0]] = np.flatnonzero(source >= 0)
    pair = keys // channels
    return Connections(pair // ranks, pair % ranks, names[keys % channels], outward, inward, sender, receiver)


def partners(program: Program, links: Connections | None = None) -> Array:
    """Return for each receiving instruction the one that sends what it receives; -1 where there is none.

    The k-th send of a connection pairs with its k-th receive; each end of it is one block.
    """
    links = links or connections(program)
    result = np.full(program.num_instructions, -1, dtype=np.int64)
    sends, sent = _nth(np.flatnonzero(SENDS[program.opcode]), links.outward[program.block])
    receives, received = _nth(np.flatnonzero(RECEIVES[program.opcode]), links.inward[program.block])
    width = program.num_instructions + 1
    sent_key, received_key = sent[0] * width + sent[1], received[0] * width + received[1]
    if len(sends):
        at = np.minimum(np.searchsorted(sent_key, received_key), len(sends) - 1)
        found = sent_key[at] == received_key
        result[receives[found]] = sends[at[found]]
    return result


def _nth(rows: Array, connection: Array) -> tuple[Array, tuple[Array, Array]]:
    """Return rows ordered by connection, and for each its connection and its number within it."""
    rows = rows[np.argsort(connection[rows], kind="stable")]
    group = connection[rows]
    return rows, (group, np.arange(len(rows)) - np.searchsorted(group, group))


@attrs.frozen
class Wait:
    """An instruction that cannot go on, and what it waits for: ``dependency``, ``data`` or ``slot``.

    ``on`` is the instruction that would end the wait: the dependency, the send of the data, or the next
    receive from the full FIFO; -1 where the program has none. ``peer`` is the rank at the other end (-1 for
    a dependency).
    """

    instruction: int
    kind: str
    on: int
    peer: int = -1

    def describe(self, program: Program) -> str:
        """Return the wait in words, both places named."""
        target = program.place(self.on) if self.on >= 0 else ""
        match self.kind:
            case "dependency":
                what = f"waits for {target} to finish"
            case "data":
                what = f"waits for data from rank {self.peer}, " + (f"sent at {target}" if target else "never sent")
            case _:
                what = f"waits for a free slot to rank {self.peer}, " + (
                    f"freed by the receive at {target}" if target else "which never receives"
                )
        return f"{program.place(self.instruction)} {what}"


@attrs.frozen
class Deadlock:
    """Where an execution got stuck: the first wait of every unfinished block, in block order.

    ``cycle`` are waits of which each is ended only by the block of the next, and the last by that of the
    first; it is empty where the chain of waits ends at something that never comes.
    """

    waits: tuple[Wait, ...]
    cycle: tuple[Wait, ...]

    def describe(self, program: Program, most: int = 6) -> str:
        """Return the cycle (or the first waits) in words, naming at most ``most`` of them."""
        shown = self.cycle or self.waits
        text = "; ".join(wait.describe(program) for wait in shown[:most])
        if len(shown) > most:
            text += f"; and {len(shown) - most} more waits"
        if self.cycle:
            return f"cycle of {len(self.cycle)} waits: {text}"
        return text


@attrs.frozen(eq=False)
class Execution:
    """One execution: primitives ``first[j]`` .. ``stop[j]`` (exclusive) of ``instruction[j]``, row after row.

    The order is one that all waits allow. ``depth`` is the FIFO depth it ran with: the one given, or the
    least that completes. ``deadlock`` says where it got stuck, if it did; the rows are what was done until
    then.
    """

    instruction: Array
    first: Array
    stop: Array
    split: int | None
    depth: int
    deadlock: Deadlock | None = None

    @cached_property
    def order(self) -> Array:
        """All primitives in order: rows (instruction, primitive)."""
        sizes = self.stop - self.first
        start = np.cumsum(sizes) - sizes
        primitive = np.arange(sizes.sum()) - np.repeat(start - self.first, sizes)
        return np.stack([np.repeat(self.instruction, sizes), primitive], axis=1)

    @cached_property
    def finished(self) -> Array:
        """The instructions in the order in which they finished; those of a deadlock that did not are missing.

        Each comes after its predecessor in its block, its dependencies and the sends of what it receives.
        """
        last = np.full(int(self.instruction.max(initial=-1)) + 1, -1, dtype=np.int64)
        last[self.instruction] = np.arange(len(self.instruction))
        rows = self.instruction[np.sort(last[last >= 0])]
        return rows[~np.isin(rows, [w.instruction for w in self.deadlock.waits])] if self.deadlock else rows


def primitives(program: Program, split: int | None) -> Array:
    """Return how many primitives each instruction runs as; a nop counts as one.

    Raises ValueError for a split below 1.
    """
    if split is None:
        return np.ones(program.num_instructions, dtype=np.int64)
    if split < 1:
        raise ValueError(f"split must be at least 1 chunk, found {split}")
    return np.maximum(-(-program.count.astype(np.int64) // split), 1)


class _State:
    """Where everything stands: lists indexed by block, instruction or connection."""

    def __init__(self, program: Program, split: int | None, depth: int):
        self.program, self.links, self.depth = program, connections(program), depth
        self.at = program.block_start[:-1].tolist()  # block -> the instruction it is at
        self.end = program.block_start[1:].tolist()
        self.made = [0] * program.num_blocks  # block -> primitives of that instruction already done
        self.inward, self.outward = self.links.inward.tolist(), self.links.outward.tolist()
        self.size = primitives(program, split).tolist()
        self.kind = (RECEIVES[program.opcode] + 2 * SENDS[program.opcode]).tolist()
        self.wait_at = program.dep_start[:-1].tolist()  # instruction -> its first dependency not known to be done
        self.wait_end, self.deps = program.dep_start[1:].tolist(), program.deps.tolist()
        self.done = bytearray(program.num_instructions)
        self.waiting: dict[int, list[int]] = {}  # instruction -> the blocks that wait for it
        self.sent, self.taken = [0] * len(self.links), [0] * len(self.links)
        self.reader, self.writer = (
            [-1] * len(self.links),
            [-1] * len(self.links),
        )  # the block waiting at each end
        self.stalled: list[int] = []  # blocks that found their FIFO full, some of them woken since
        self.runs: list[tuple[int, int, int]] = []

    def run(self, blocks: list[int]) -> None:
        """Execute until neither ``blocks``, nor any block that they wake, can go on."""
        at, end, made, size, kind, runs = self.at, self.end, self.made, self.size, self.kind, self.runs
        wait_at, wait_end, waiting, done = self.wait_at, self.wait_end, self.waiting, self.done
        while blocks:
            block = blocks.pop()
            i, stop = at[block], end[block]
            while i < stop:
                if wait_at[i] < wait_end[i] and self._must_wait(i, block):
                    break
                first = made[block]
                last = self._transfer(i, block, first, blocks) if kind[i] else size[i]
                if last > first:
                    runs.append((i, first, last))
                if last < size[i]:
                    made[block] = last
                    break
                made[block] = 0
                done[i] = 1
                if i in waiting:
                    blocks += waiting.pop(i)
                i += 1
            at[block] = i

    def _must_wait(self, instruction: int, block: int) -> bool:
        """Leave ``block`` with the first unfinished dependency of its instruction, if there is one."""
        k, end = self.wait_at[instruction], self.wait_end[instruction]
        while k < end and self.done[self.deps[k]]:
            k += 1
        self.wait_at[instruction] = k
        if k < end:
            self.waiting.setdefault(self.deps[k], []).append(block)
        return k < end

    def _transfer(self, instruction: int, block: int, first: int, woken: list[int]) -> int:
        """Move primitives from ``first`` on through the FIFOs; return how far that went before the block
        must wait.

        A block that cannot finish its instruction is left at the FIFO that stops it.
        """
        kind, last = self.kind[instruction], self.size[instruction]
        source, sink, sent, taken = self.inward[block], self.outward[block], self.sent, self.taken
        starved = full = False
        if kind & 1 and last - first > sent[source] - taken[source]:
            last, starved = first + sent[source] - taken[source], True
        if kind & 2 and last - first > taken[sink] + self.depth - sent[sink]:
            last, starved, full = first + taken[sink] + self.depth - sent[sink], False, True
        if starved:
            self.reader[source] = block
        elif full:
            self.writer[sink] = block
            self.stalled.append(block)
        if kind & 1 and last > first:
            taken[source] += last - first
            if self.writer[source] >= 0:
                woken.append(self.writer[source])
                self.writer[source] = -1
        if kind & 2 and last > first:
            sent[sink] += last - first
            if self.reader[sink] >= 0:
                woken.append(self.reader[sink])
                self.reader[sink] = -1
        return last

    def deepen(self) -> list[int]:
        """Add a slot to every FIFO if a block waits for one; return the blocks that this lets go on."""
        freed = [b for b in dict.fromkeys(self.stalled) if self._is_writer(b)]
        self.stalled.clear()
        self.depth += bool(freed)
        for block in freed:
            self.writer[self.outward[block]] = -1
        return freed

    def _is_writer(self, block: int) -> bool:
        return self.writer[self.outward[block]] == block

    def deadlock(self) -> Deadlock | None:
        """Return what the unfinished blocks wait for, or nothing where all have finished."""
        stuck = [b for b in range(self.program.num_blocks) if self.at[b] < self.end[b]]
        if not stuck:
            return None
        waits, behind = {}, {}
        for block in stuck:
            waits[block], behind[block] = self._wait(block)
        cycle = [waits[b] for b in _cycle(behind)]
        return Deadlock(tuple(waits.values()), tuple(cycle))

    def _wait(self, block: int) -> tuple[Wait, int]:
        """Return what an unfinished block waits for and the block that could end it (-1: none)."""
        i, source, sink = self.at[block], self.inward[block], self.outward[block]
        if self.wait_at[i] < self.wait_end[i]:
            on = self.deps[self.wait_at[i]]
            return Wait(i, "dependency", on), int(self.program.block[on])
        if self.kind[i] & 1 and self.sent[source] == self.taken[source]:
            other, peer, kind, bit = self.links.sender[source], self.links.src[source], "data", 2
        else:
            other, peer, kind, bit = self.links.receiver[sink], self.links.dst[sink], "slot", 1
        later = range(self.at[other], self.end[other]) if other >= 0 else ()
        on = next((j for j in later if self.kind[j] & bit), -1)
        return Wait(i, kind, on, int(peer)), int(other)


def _cycle(behind: dict[int, int]) -> list[int]:
    """Return a cycle of a partial function, starting from its least element; empty where there is none."""
    seen: set[int] = set()
    for start in behind:
        path: list[int] = []
        here = start
        while here in behind and here not in seen:
            seen.add(here)
            path.append(here)
            here = behind[here]
        if here in path:
            cycle = path[path.index(here) :]
            least = cycle.index(min(cycle))
            return cycle[least:] + cycle[:least]
    return []


def execute(program: Program, fifo_depth: int | None = None, split: int | None = None) -> Execution:
    """Execute a program's control with FIFOs of ``fifo_depth`` primitives (None: unbounded): who waits for whom.

    An instruction runs as primitives of at most ``split`` chunks (None: as one primitive). Unbounded
    executions report the least depth that completes. The program must be well formed (the verifier's
    ``structure`` check). Runs in time linear in instructions and primitives. Raises ValueError for a
    negative depth or a split below 1.
    """
    if fifo_depth is not None and fifo_depth < 0:
        raise ValueError(f"fifo_depth must not be negative, found {fifo_depth}")
    state = _State(program, split, 0 if fifo_depth is None else fifo_depth)
    blocks = list(range(program.num_blocks - 1, -1, -1))
    state.run(blocks)
    while fifo_depth is None and (blocks := state.deepen()):
        state.run(blocks)
    runs = np.array(state.runs, dtype=np.int64).reshape(-1, 3)
    return Execution(runs[:, 0], runs[:, 1], runs[:, 2], split, state.depth, state.deadlock())


def completes_with(program: Program, fifo_depth: int, split: int | None = None) -> bool:
    """Return whether a program completes with FIFOs of a depth, as :func:`execute` finds, in less time."""
    from .waves import passes_through

    swift = passes_through(program, fifo_depth, split)
    return execute(program, fifo_depth, split).deadlock is None if swift is None else swift


def linearization(program: Program) -> Array:
    """Return all instructions in some order that all waits allow; those of a deadlock that never finish are missing."""
    from .waves import waves

    swift = waves(program)
    return execute(program).finished if swift is None else swift.instruction


def smallest_depth(program: Program, split: int | None = None) -> int | None:
    """Return the least FIFO depth at which the program completes, or nothing where it never does."""
    from .waves import least_depth

    swift = least_depth(program, split)
    if swift is not None:
        return swift
    execution = execute(program, None, split)
    return None if execution.deadlock else execution.depth


def smallest_split(program: Program, fifo_depth: int, splits: Sequence[int]) -> int | None:
    """Return the first of ascending ``splits`` at which the program completes, or nothing where it does at none.

    Both ends of every message must have the same count (the verifier's ``matched`` check). Then a program that
    completes with a split of A chunks completes with every greater one, B, so a few executions decide.

    For each instruction map its k-th primitive at A to primitive min(k, last) at B, of which it has no more; both
    ends of a message map alike. Were B stuck where A completes, take the first primitive x in A's execution whose
    image y is not done at B. All before x are done in image, so y is the next primitive of its block, the
    instructions it depends on are finished and its data are there. Of the messages sent before y each that is not
    taken yet is the image of one that A had sent and not taken when it did x, another for each: fewer than
    ``fifo_depth``. So y can be done.
    """

    def completes(split: int) -> bool:
        return completes_with(program, fifo_depth, split)

    if splits and completes(splits[0]):  # as most programs do
        return splits[0]
    at = bisect_left(splits, True, lo=1, key=completes) if splits else 0
    return splits[at] if at < len(splits) else None
