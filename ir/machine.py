"""The machine that executes programs: concurrent threadblocks, finite FIFOs and dependencies; no data.

A connection (sending rank, receiving rank, channel) is a FIFO. One block sends into it, and one receives from it. An
instruction of count c runs as primitives of at most ``split`` chunks, in order; a FIFO holds ``fifo_depth`` primitives.

One execution decides for all. Blocks are deterministic sequential processes that never choose by what is ready (a Kahn
network), and every FIFO has one producer and one consumer. A condition that a block waits for stays true until the
block uses it: data stay until their only receiver takes them, a free slot stays until its only sender fills it, and a
finished dependency stays finished. So two possible steps may be executed in either order with the same result, and
every maximal execution performs the same set of primitives. If one execution completes, all do; if one deadlocks, all
deadlock, at the same instructions. More slots only permit more. So a program that completes at depth K completes at
every greater depth, and an execution that is stuck at depth K can continue at K + 1 as if it had started with K + 1.
Therefore a single execution finds the least sufficient depth.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from .arrays import Array
from .connections import Connections, connections, partners, primitives, receivers
from .frozen import frozen
from .program import Program
from .ragged import ranges
from .waves import completes_in_waves, least_depth, waves

__all__ = [
    "Connections",
    "Deadlock",
    "Execution",
    "Wait",
    "completes_with",
    "connections",
    "execute",
    "linearization",
    "message_links",
    "partners",
    "primitives",
    "receivers",
    "smallest_depth",
    "smallest_split",
]


def message_links(program: Program, links: Connections) -> tuple[Array, Array]:
    """Return the connection that each instruction receives from, and the one it sends into (-1: none)."""
    inward = np.where(program.receives, links.inward[program.block], -1)
    return inward, np.where(program.sends, links.outward[program.block], -1)


@frozen
class Wait:
    """An instruction that cannot continue, and the kind of its wait: ``dependency``, ``data`` or ``slot``.

    ``on`` is the instruction that would end the wait: the dependency, the send of the data, or the next receive from
    the full FIFO; -1 if the program has none. ``peer`` is the rank at the other end (-1 for a dependency).
    """

    instruction: int
    kind: str
    on: int
    peer: int = -1

    def describe(self, program: Program) -> str:
        """Return the wait as text that names both places."""
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


@frozen
class Deadlock:
    """A deadlock: the first wait of every unfinished block, in block order.

    ``cycle`` are waits that each only the block of the next wait could end, and the last only the block of the first.
    It is empty if the chain of waits ends at an instruction that does not exist.
    """

    waits: tuple[Wait, ...]
    cycle: tuple[Wait, ...]

    def describe(self, program: Program, most: int = 6) -> str:
        """Return the cycle (or the first waits) as text with at most ``most`` of them."""
        shown = self.cycle or self.waits
        text = "; ".join(wait.describe(program) for wait in shown[:most])
        if len(shown) > most:
            text += f"; and {len(shown) - most} more waits"
        if self.cycle:
            return f"cycle of {len(self.cycle)} waits: {text}"
        return text


@frozen(eq=False)
class Execution:
    """One execution: primitives ``first[j]`` .. ``stop[j]`` (exclusive) of ``instruction[j]``, row after row.

    The order respects all waits. ``depth`` is the FIFO depth: the one given, or the least that completes. ``deadlock``
    is the deadlock, or None; the rows are the primitives executed until then.
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
        return np.stack([np.repeat(self.instruction, sizes), ranges(self.first, sizes)], axis=1)

    @cached_property
    def finished(self) -> Array:
        """The instructions in the order in which they finished, without those that a deadlock stopped.

        Each comes after its predecessor in its block, its dependencies and its matching send.
        """
        last = np.full(int(self.instruction.max(initial=-1)) + 1, -1, dtype=np.int64)
        last[self.instruction] = np.arange(len(self.instruction))
        rows = self.instruction[np.sort(last[last >= 0])]
        return rows[~np.isin(rows, [w.instruction for w in self.deadlock.waits])] if self.deadlock else rows


#: kinds of instructions, added up for those that do both
_RECEIVES, _SENDS = 1, 2


class _State:
    """The state of an execution: lists indexed by block, instruction or connection."""

    def __init__(self, program: Program, split: int | None, depth: int):
        self.program, self.links, self.depth = program, connections(program), depth
        self.at: list[int] = program.block_start[:-1].tolist()  # block -> the instruction it is at
        self.end: list[int] = program.block_start[1:].tolist()
        self.executed = [0] * program.num_blocks  # block -> primitives of that instruction already done
        self.inward: list[int] = self.links.inward.tolist()
        self.outward: list[int] = self.links.outward.tolist()
        self.size: list[int] = primitives(program, split).tolist()
        self.kind = (_RECEIVES * program.receives + _SENDS * program.sends).tolist()
        # instruction -> its first dependency not known to be done
        self.wait_at: list[int] = program.dep_start[:-1].tolist()
        self.wait_end: list[int] = program.dep_start[1:].tolist()
        self.deps: list[int] = program.deps.tolist()
        self.done = bytearray(program.num_instructions)
        self.waiting: dict[int, list[int]] = {}  # instruction -> the blocks that wait for it
        self.sent, self.taken = [0] * len(self.links), [0] * len(self.links)
        self.reader, self.writer = (
            [-1] * len(self.links),
            [-1] * len(self.links),
        )  # the block waiting at each end
        self.stalled: list[int] = []  # blocks that found their FIFO full; some have been woken since
        self.runs: tuple[list[int], list[int], list[int]] = [], [], []  # instruction, first primitive, stop

    def run(self, blocks: list[int]) -> None:
        """Execute until neither ``blocks``, nor any block that they wake, can continue."""
        at, end, executed, size, kind = self.at, self.end, self.executed, self.size, self.kind
        add_run, add_first, add_last = (column.append for column in self.runs)
        wait_at, wait_end, waiting, done, deps = self.wait_at, self.wait_end, self.waiting, self.done, self.deps
        sent, taken, reader, writer = self.sent, self.taken, self.reader, self.writer
        while blocks:
            block = blocks.pop()
            i, stop = at[block], end[block]
            source, sink = self.inward[block], self.outward[block]
            while i < stop:
                if wait_at[i] < wait_end[i]:
                    k, last = wait_at[i], wait_end[i]
                    while k < last and done[deps[k]]:
                        k += 1
                    wait_at[i] = k
                    if k < last:
                        waiting.setdefault(deps[k], []).append(block)
                        break
                first = executed[block]
                # The usual cases in place: one primitive, from one connection or into one. `_transfer` does all cases.
                if kind[i] == _RECEIVES and size[i] == 1 and sent[source] > taken[source]:
                    last = 1
                    taken[source] += 1
                    if writer[source] >= 0:
                        blocks.append(writer[source])
                        writer[source] = -1
                elif kind[i] == _SENDS and size[i] == 1 and sent[sink] - taken[sink] < self.depth:
                    last = 1
                    sent[sink] += 1
                    if reader[sink] >= 0:
                        blocks.append(reader[sink])
                        reader[sink] = -1
                else:
                    last = self._transfer(i, block, first, blocks) if kind[i] else size[i]
                if last > first:
                    add_run(i)
                    add_first(first)
                    add_last(last)
                if last < size[i]:
                    executed[block] = last
                    break
                executed[block] = 0
                done[i] = 1
                if i in waiting:
                    blocks += waiting.pop(i)
                i += 1
            at[block] = i

    def _transfer(self, instruction: int, block: int, first: int, woken: list[int]) -> int:
        """Move primitives from ``first`` on through the FIFOs; return the first one that must wait.

        A block that cannot finish its instruction waits at the FIFO that stops it.
        """
        kind, last = self.kind[instruction], self.size[instruction]
        source, sink, sent, taken = self.inward[block], self.outward[block], self.sent, self.taken
        starved = full = False
        if kind & _RECEIVES and last - first > sent[source] - taken[source]:
            last, starved = first + sent[source] - taken[source], True
        if kind & _SENDS and last - first > taken[sink] + self.depth - sent[sink]:
            last, starved, full = first + taken[sink] + self.depth - sent[sink], False, True
        if starved:
            self.reader[source] = block
        elif full:
            self.writer[sink] = block
            self.stalled.append(block)
        if kind & _RECEIVES and last > first:
            taken[source] += last - first
            if self.writer[source] >= 0:
                woken.append(self.writer[source])
                self.writer[source] = -1
        if kind & _SENDS and last > first:
            sent[sink] += last - first
            if self.reader[sink] >= 0:
                woken.append(self.reader[sink])
                self.reader[sink] = -1
        return last

    def deepen(self) -> list[int]:
        """Add a slot to every FIFO if a block waits for one; return the blocks that can then continue."""
        freed = [b for b in dict.fromkeys(self.stalled) if self._is_writer(b)]
        self.stalled.clear()
        self.depth += bool(freed)
        for block in freed:
            self.writer[self.outward[block]] = -1
        return freed

    def _is_writer(self, block: int) -> bool:
        return self.writer[self.outward[block]] == block

    def deadlock(self) -> Deadlock | None:
        """Return the waits of the unfinished blocks; None if all have finished."""
        stuck = [b for b in range(self.program.num_blocks) if self.at[b] < self.end[b]]
        if not stuck:
            return None
        waits, behind = {}, {}
        for block in stuck:
            waits[block], behind[block] = self._wait(block)
        cycle = [waits[b] for b in _cycle(behind)]
        return Deadlock(tuple(waits.values()), tuple(cycle))

    def _wait(self, block: int) -> tuple[Wait, int]:
        """Return the wait of an unfinished block, and the block that could end it (-1: none)."""
        i, source, sink = self.at[block], self.inward[block], self.outward[block]
        if self.wait_at[i] < self.wait_end[i]:
            on = self.deps[self.wait_at[i]]
            return Wait(i, "dependency", on), int(self.program.block[on])
        if self.kind[i] & _RECEIVES and self.sent[source] == self.taken[source]:
            other, peer, kind, bit = self.links.sender[source], self.links.src[source], "data", _SENDS
        else:
            other, peer, kind, bit = self.links.receiver[sink], self.links.dst[sink], "slot", _RECEIVES
        later = range(self.at[other], self.end[other]) if other >= 0 else ()
        on = next((j for j in later if self.kind[j] & bit), -1)
        return Wait(i, kind, on, int(peer)), int(other)


def _cycle(behind: dict[int, int]) -> list[int]:
    """Return a cycle of a partial function, starting from its least element; empty if there is none."""
    seen: set[int] = set()
    for start in behind:
        chain: list[int] = []
        here = start
        while here in behind and here not in seen:
            seen.add(here)
            chain.append(here)
            here = behind[here]
        if here in chain:
            cycle = chain[chain.index(here) :]
            least = cycle.index(min(cycle))
            return cycle[least:] + cycle[:least]
    return []


def execute(program: Program, fifo_depth: int | None = None, split: int | None = None) -> Execution:
    """Execute a program's control, without data, with FIFOs of ``fifo_depth`` primitives (None: unbounded).

    An instruction runs as primitives of at most ``split`` chunks (None: as one primitive). Unbounded executions report
    the least depth that completes. The program must be well formed (the verifier's ``structure`` check). The time is
    linear in instructions and primitives. Raises ValueError for a negative depth or a split below 1.
    """
    if fifo_depth is not None and fifo_depth < 0:
        raise ValueError(f"fifo_depth must not be negative, found {fifo_depth}")
    state = _State(program, split, 0 if fifo_depth is None else fifo_depth)
    blocks = list(range(program.num_blocks - 1, -1, -1))
    state.run(blocks)
    while fifo_depth is None and (blocks := state.deepen()):
        state.run(blocks)
    instruction, first, stop = (np.array(column, dtype=np.int64) for column in state.runs)
    return Execution(instruction, first, stop, split, state.depth, state.deadlock())


def completes_with(program: Program, fifo_depth: int, split: int | None = None) -> bool:
    """Return whether a program completes with FIFOs of a depth: the same as :func:`execute` finds, but faster."""
    completes = completes_in_waves(program, fifo_depth, split)
    return execute(program, fifo_depth, split).deadlock is None if completes is None else completes


def linearization(program: Program) -> Array:
    """Return all instructions in the order of one execution, without those that a deadlock stops."""
    found = waves(program)
    return execute(program).finished if found is None else found.instruction


def smallest_depth(program: Program, split: int | None = None) -> int | None:
    """Return the least FIFO depth at which the program completes; None if it never does."""
    found = least_depth(program, split)
    if found is not None:
        return found
    execution = execute(program, None, split)
    return None if execution.deadlock else execution.depth


def smallest_split(program: Program, fifo_depth: int, splits: Sequence[int]) -> int | None:
    """Return the first of ascending ``splits`` at which the program completes; None if it completes at none.

    Both ends of every message must have the same count (the verifier's ``matched`` check). Then a program that
    completes with a split of A chunks completes with every greater one, B, so a few executions decide.

    Proof: map the k-th primitive of an instruction at A to its primitive min(k, last) at B. An instruction has no more
    primitives at B than at A, and both ends of a message have the same map. Assume that A completes and B is stuck.
    Take the first primitive x in A's execution whose image y is not executed at B. The images of all primitives before
    x are executed. So y is the next primitive of its block, its dependencies are finished, and its data have arrived.
    Different messages in y's FIFO are images of different messages that were in x's FIFO at A: fewer than
    ``fifo_depth``. So y can be executed, a contradiction.
    """

    def completes(split: int) -> bool:
        return completes_with(program, fifo_depth, split)

    if splits and completes(splits[0]):  # the usual case
        return splits[0]
    at = bisect_left(splits, True, lo=1, key=completes) if splits else 0
    return splits[at] if at < len(splits) else None
