"""What happens before what in a program, whatever the timing: program order, dependencies and messages.

Two instructions are ordered *strongly* where a path from one to the other holds a step of program order or a
dependency: the first has then finished before the second starts. A path of messages alone runs through fused
instructions, which pass chunks on one by one; it orders only the k-th chunk of the one before the k-th of
the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import attrs
import numpy as np

from ..program import Opcode, Program
from ._structure import waiters

__all__ = ["BITS", "STRONG", "UNORDERED", "WEAK", "Order"]

Array = np.ndarray[Any, np.dtype[Any]]

UNORDERED, WEAK, STRONG = 0, 1, 2

#: entries of a table of clocks that are worked out at once
CLOCKS = 1 << 24
#: instructions that :meth:`Order.through_ranks` follows at once, one bit each
BITS = 1 << 12


@attrs.frozen(eq=False)
class _Waits:
    """The instructions that wait for other blocks, sorted by level: those they build on have lower levels.

    ``latest[i]`` is the last row of instruction i's block up to i. Row j knows what row ``previous[j]`` of its
    block knew, and of its dependencies ``dep_start[j]`` .. ``dep_start[j + 1]`` each what row ``known[k]`` knew and
    step ``step[k]`` of block ``block[k]`` (numbered within the rank) itself. A row that does not exist is the number
    of rows. ``level_start`` are the rows where levels start.
    """

    latest: Array
    previous: Array
    dep_start: Array
    known: Array
    block: Array
    step: Array
    level_start: Array


class Order:
    """The order of one program's instructions.

    ``finished`` is a linearization of all instructions, ``partner`` the send that each receive receives.
    """

    def __init__(self, program: Program, finished: Array, partner: Array):
        self.program, self.partner, self.finished = program, partner, finished
        self.time = np.empty(program.num_instructions, dtype=np.int64)
        self.time[finished] = np.arange(len(finished))

    def within_rank(self, before: Array, after: Array) -> Array:
        """Return which pairs the waits of their own rank order, strongly: ``before[j]`` before ``after[j]``.

        Both are instructions of one rank and of different blocks.
        """
        result = self._directly(before, after)
        rest = np.flatnonzero(~result)
        if len(rest):
            result[rest] = self._by_clocks(before[rest], after[rest])
        return result

    def _directly(self, before: Array, after: Array) -> Array:
        """Return which pairs one dependency orders: of ``after`` or a step before it, on ``before`` or a later step."""
        n, block, name = self.program.num_instructions, self.program.block, self.program.block_id
        waiter, deps, most = waiters(self.program), self.program.deps.astype(np.int64), int(name.max(initial=0)) + 1
        pair = block[waiter] * most + name[block[deps]]  # of waiting block and block waited for
        order = np.argsort(pair * n + waiter)
        latest = np.maximum.accumulate((pair * n + deps)[order]) if len(deps) else deps
        wanted = block[after] * most + name[block[before]]
        at = np.searchsorted((pair * n + waiter)[order], wanted * n + after, side="right") - 1
        # an entry of an earlier pair of blocks is less than anything of this pair
        return (at >= 0) & (np.concatenate([latest, [-1]])[at] >= wanted * n + before)

    def _by_clocks(self, before: Array, after: Array) -> Array:
        """Return which pairs any chain of waits within the rank orders.

        Vector clocks: for each waiting instruction, how many steps of every block of its rank it knows to be done.
        """
        program, waits = self.program, self._waits
        block, step = program.block_id[program.block[before]], program.step[before]
        row = waits.latest[after]
        result = np.zeros(len(before), dtype=bool)
        width = max(1, CLOCKS // (len(waits.previous) + len(waits.known) + 1))
        for low in range(0, int(block.max(initial=-1)) + 1, width):
            here = np.flatnonzero((block >= low) & (block < low + width))
            if len(here):
                clocks = _clocks(waits, low, min(width, int(block.max()) + 1 - low))
                result[here] = clocks[row[here], block[here] - low] > step[here]
        return result

    def through_ranks(self, before: Array, after: Array) -> Array:
        """Return how messages through other ranks order pairs: STRONG, WEAK or UNORDERED.

        At most ``BITS`` different instructions stand before. Each becomes a bit, handed to all that follow.
        """
        first = np.unique(before)
        bit = {int(x): 1 << k for k, x in enumerate(first)}
        wanted: dict[int, list[int]] = defaultdict(list)
        for j, y in enumerate(after.tolist()):
            wanted[y].append(j)
        result = np.full(len(before), UNORDERED)
        start, stop = self.time[before].min(initial=0), self.time[after].max(initial=-1) + 1
        for y, strong, weak in self._follow(self.finished[start:stop].tolist(), bit):
            for j in wanted.get(y, ()):
                mine = bit[int(before[j])]
                result[j] = STRONG if strong & mine else WEAK if weak & mine else UNORDERED
        return result

    def _follow(self, window: list[int], bit: dict[int, int]) -> Iterator[tuple[int, int, int]]:
        """Yield each instruction with the bits that are strongly, and that are only weakly, before it."""
        block, partner, sends, waits, awaited = self._lists
        done: dict[int, int] = {}  # block -> bits of all that its last instruction comes after, itself included
        kept: dict[int, int] = {}  # the same for instructions that others depend on
        sent: dict[int, tuple[int, int]] = {}
        for i in window:
            mine, b = bit.get(i, 0), block[i]
            strong = done.get(b, 0)
            for d in waits.get(i, ()):
                strong |= kept.get(d, 0)
            passed, weak = sent.pop(partner[i], (0, 0))
            strong |= passed
            yield i, strong, weak
            done[b] = strong | weak | mine
            if i in awaited:
                kept[i] = done[b]
            if sends[i]:
                sent[i] = (strong, weak | mine)

    @cached_property
    def _lists(self) -> tuple[list[int], list[int], list[bool], dict[int, list[int]], set[int]]:
        program = self.program
        waiting = np.unique(waiters(program)).tolist()
        sends = np.array([op.sends for op in Opcode])[program.opcode]
        waits = {i: program.waits(i) for i in waiting}
        return (
            program.block.tolist(),
            self.partner.tolist(),
            sends.tolist(),
            waits,
            set(program.deps.tolist()),
        )

    @cached_property
    def _waits(self) -> _Waits:
        program = self.program
        waiter = waiters(program)
        across = program.block[waiter] != program.block[program.deps]
        waiter, deps = waiter[across], program.deps[across].astype(np.int64)
        row_of, index = np.unique(waiter, return_inverse=True)
        latest = np.searchsorted(row_of, np.arange(program.num_instructions), side="right") - 1
        latest = _same_block(program, row_of, latest, np.arange(program.num_instructions))
        previous = _same_block(program, row_of, np.arange(len(row_of)) - 1, row_of)
        level = self._levels(row_of, previous, index, latest[deps])
        order = np.argsort(level, kind="stable")  # level by level; of one level in program order
        place = np.empty(len(order) + 1, dtype=np.int64)
        place[order], place[-1] = np.arange(len(order)), len(order)
        by_row = np.argsort(place[index], kind="stable")
        deps = deps[by_row]
        return _Waits(
            latest=place[latest], previous=place[previous][order],
            dep_start=np.searchsorted(place[index][by_row], np.arange(len(order) + 1)),
            known=place[latest[deps]], block=program.block_id[program.block[deps]], step=program.step[deps],
            level_start=np.searchsorted(level[order], np.arange(level.max(initial=-1) + 2)),
        )  # fmt: skip

    def _levels(self, row_of: Array, previous: Array, index: Array, known: Array) -> Array:
        """Return for each waiting instruction how many others must be worked out one after the other before
        it."""
        level = [-1] * (len(row_of) + 1)  # the last stands for a row that does not exist
        start = np.searchsorted(index, np.arange(len(row_of) + 1)).tolist()
        before, known_rows = previous.tolist(), known.tolist()
        for row in np.argsort(self.time[row_of]).tolist():
            behind = max(level[k] for k in known_rows[start[row] : start[row + 1]])
            level[row] = max(behind, level[before[row]]) + 1
        return np.array(level[:-1], dtype=np.int64)


def _same_block(program: Program, row_of: Array, row: Array, instruction: Array) -> Array:
    """Return ``row`` where it is of the block of ``instruction``, else the number of rows."""
    if not len(row_of):
        return np.zeros(len(row), dtype=np.int64)
    good = (row >= 0) & (program.block[row_of[row]] == program.block[instruction])
    return np.where(good, row, len(row_of))


def _clocks(waits: _Waits, low: int, width: int) -> Array:
    """Return how many steps of blocks ``low`` .. ``low + width`` of its rank each waiting instruction knows
    done.

    The last row, for an instruction that does not exist, is 0.
    """
    rows = len(waits.previous)
    table = np.zeros((rows + 1, width), dtype=np.int32)
    for a, b in zip(waits.level_start[:-1].tolist(), waits.level_start[1:].tolist(), strict=True):
        start, stop = int(waits.dep_start[a]), int(waits.dep_start[b])
        learned = table[waits.known[start:stop]]
        block = waits.block[start:stop] - low
        inside = np.flatnonzero((block >= 0) & (block < width))
        learned[inside, block[inside]] = waits.step[start:stop][inside] + 1
        merged = np.maximum.reduceat(learned, waits.dep_start[a:b] - start, axis=0)
        table[a:b] = np.maximum(merged, table[waits.previous[a:b]])
    return table
