"""The order of a program's instructions that holds for every timing: program order, dependencies and messages.

Two instructions are ordered *strongly* if a chain between them has a step of program order or a dependency: the first
has then finished before the second starts. A chain of messages only goes through fused instructions, which forward
chunk by chunk. It orders the k-th chunk of the first before the k-th chunk of the second, *weakly*.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property

import numpy as np

from ..arrays import Array, distinct, last_at_most, lexsort, numbered
from ..frozen import frozen
from ..program import Program
from ..ragged import greatest, group_starts, inverse, owners

__all__ = ["BITS", "STRONG", "UNORDERED", "WEAK", "Order"]

UNORDERED, WEAK, STRONG = 0, 1, 2

#: entries of a table of clocks that are computed at once
CLOCKS = 1 << 24
#: instructions that :meth:`Order.through_ranks` follows at once, one bit each
BITS = 1 << 12


@frozen(eq=False)
class _Dependents:
    """The instructions that wait for other blocks, sorted by level: those they build on have lower levels.

    ``latest[i]`` is the last row of instruction i's block up to i. Row j knows what row ``previous[j]`` of its block
    knows. By its dependencies ``dep_start[j]`` .. ``dep_start[j + 1]`` it also knows what row ``known[k]`` knows, and
    step ``step[k]`` of block ``block[k]`` (numbered within the rank). A missing row is the number of rows.
    ``level_start`` are the first rows of levels.
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

    ``finished`` is a linearization of all instructions, ``partner`` the send that each receive receives. If ``start``
    is given, instructions ``finished[start[w] : start[w + 1]]`` need none of each other, for every w.
    """

    def __init__(self, program: Program, finished: Array, partner: Array, start: Array | None = None):
        self.program, self.partner, self.finished, self.start = program, partner, finished, start
        self.time = inverse(finished)

    def within_rank(self, before: Array, after: Array) -> Array:
        """Return which pairs the dependencies of their own rank order, strongly: ``before[j]`` before ``after[j]``.

        Both are instructions of one rank and of different blocks.
        """
        result = self._directly(before, after)
        rest = np.flatnonzero(~result)
        if len(rest):
            result[rest] = self._by_clocks(before.take(rest), after.take(rest))
        return result

    def _directly(self, before: Array, after: Array) -> Array:
        """Return which pairs one dependency orders: of ``after`` or a step before it, on ``before`` or a later step."""
        n, block, name = self.program.num_instructions, self.program.block, self.program.block_id
        dependent, deps, most = self.program.dependent, self.program.deps.astype(np.int64), int(name.max(initial=0)) + 1
        pair = block.take(dependent) * most + name[block.take(deps)]  # of dependent block and dependency's block
        order = lexsort([pair * n + dependent])
        latest = np.maximum.accumulate((pair * n + deps)[order]) if len(deps) else deps
        between = block.take(after) * most + name.take(block.take(before))
        at = last_at_most((pair * n + dependent)[order], between * n + after)
        # an entry of an earlier pair of blocks is less than anything of this pair
        return (at >= 0) & (np.concatenate([latest, [-1]]).take(at) >= between * n + before)

    def _by_clocks(self, before: Array, after: Array) -> Array:
        """Return which pairs any chain of dependencies within the rank orders.

        Vector clocks: for each dependent instruction, the finished steps of every block of its rank that it knows.
        """
        program, rows = self.program, self._dependents
        block, step = program.block_id[program.block.take(before)], program.step[before]
        row = rows.latest.take(after)
        result = np.zeros(len(before), dtype=bool)
        width = max(1, CLOCKS // (len(rows.previous) + len(rows.known) + 1))
        for low in range(0, int(block.max(initial=-1)) + 1, width):
            here = np.flatnonzero((block >= low) & (block < low + width))
            if len(here):
                clocks = _clocks(rows, low, min(width, int(block.max()) + 1 - low))
                result[here] = clocks[row[here], block[here] - low] > step[here]
        return result

    def through_ranks(self, before: Array, after: Array) -> Array:
        """Return how messages through other ranks order pairs: STRONG, WEAK or UNORDERED.

        ``before`` has at most ``BITS`` different instructions. Each is a bit that all later instructions receive.
        """
        first = distinct(before)
        bit = {int(x): 1 << k for k, x in enumerate(first)}
        pairs_of: dict[int, list[int]] = defaultdict(list)
        for j, y in enumerate(after.tolist()):
            pairs_of[y].append(j)
        result = np.full(len(before), UNORDERED)
        start, stop = self.time[before].min(initial=0), self.time[after].max(initial=-1) + 1
        for y, strong, weak in self._follow(self.finished[start:stop].tolist(), bit):
            for j in pairs_of.get(y, ()):
                bits = bit[int(before[j])]
                result[j] = STRONG if strong & bits else WEAK if weak & bits else UNORDERED
        return result

    def _follow(self, window: list[int], bit: dict[int, int]) -> Iterator[tuple[int, int, int]]:
        """Yield each instruction with the bits that are strongly, and that are only weakly, before it."""
        block, partner, sends, dependencies, is_dependency = self._lists
        done: dict[int, int] = {}  # block -> bits of all that its last instruction comes after, itself included
        kept: dict[int, int] = {}  # the same for instructions that others depend on
        sent: dict[int, tuple[int, int]] = {}
        for i in window:
            bits, b = bit.get(i, 0), block[i]
            strong = done.get(b, 0)
            for d in dependencies.get(i, ()):
                strong |= kept.get(d, 0)
            received, weak = sent.pop(partner[i], (0, 0))
            strong |= received
            yield i, strong, weak
            done[b] = strong | weak | bits
            if i in is_dependency:
                kept[i] = done[b]
            if sends[i]:
                sent[i] = (strong, weak | bits)

    @cached_property
    def _lists(self) -> tuple[list[int], list[int], list[bool], dict[int, list[int]], set[int]]:
        program = self.program
        sends = program.sends
        dependencies = {i: program.dependencies(i) for i in distinct(program.dependent).tolist()}
        return (
            program.block.tolist(),
            self.partner.tolist(),
            sends.tolist(),
            dependencies,
            set(program.deps.tolist()),
        )

    @cached_property
    def _dependents(self) -> _Dependents:
        program = self.program
        dependent = program.dependent
        across = program.block.take(dependent) != program.block.take(program.deps)
        dependent, deps = dependent[across], program.deps[across].astype(np.int64)
        row_of, index = np.unique(dependent, return_inverse=True)
        has_row = np.zeros(program.num_instructions, dtype=bool)
        has_row[row_of] = True
        latest = np.cumsum(has_row) - 1
        latest = _same_block(program, row_of, latest, np.arange(program.num_instructions))
        previous = _same_block(program, row_of, np.arange(len(row_of)) - 1, row_of)
        level = self._levels(row_of, previous, index, latest[deps])
        order = lexsort([level])  # level by level; of one level in program order
        place = np.append(inverse(order), len(order))
        by_row = lexsort([place[index]])
        deps = deps.take(by_row)
        return _Dependents(
            latest=place.take(latest), previous=place[previous][order],
            dep_start=group_starts(place[index][by_row], len(order)),
            known=place[latest.take(deps)], block=program.block_id[program.block.take(deps)], step=program.step[deps],
            level_start=group_starts(level.take(order), int(level.max(initial=-1)) + 1),
        )  # fmt: skip

    def _levels(self, row_of: Array, previous: Array, index: Array, known: Array) -> Array:
        """Return for each dependent instruction a level above those of all others that it needs."""
        if self.start is not None:
            wave_of_time = owners(np.diff(self.start))
            return numbered(wave_of_time[self.time[row_of]])[1]
        level = [-1] * (len(row_of) + 1)  # the last entry stands for a missing row
        start = group_starts(index, len(row_of)).tolist()
        before, known_rows = previous.tolist(), known.tolist()
        for row in np.argsort(self.time[row_of]).tolist():
            behind = max(level[k] for k in known_rows[start[row] : start[row + 1]])
            level[row] = max(behind, level[before[row]]) + 1
        return np.array(level[:-1], dtype=np.int64)


def _same_block(program: Program, row_of: Array, row: Array, instruction: Array) -> Array:
    """Return ``row`` if it is in the block of ``instruction``, else the number of rows."""
    if not len(row_of):
        return np.zeros(len(row), dtype=np.int64)
    good = (row >= 0) & (program.block.take(row_of.take(row)) == program.block.take(instruction))
    return np.where(good, row, len(row_of))


def _clocks(rows: _Dependents, low: int, width: int) -> Array:
    """Return the finished steps of blocks ``low`` .. ``low + width`` of its rank that each dependent instruction knows.

    The last row, for a missing instruction, is 0.
    """
    table, size = np.zeros((len(rows.previous) + 1, width), dtype=np.int32), np.diff(rows.dep_start)
    for a, b in zip(rows.level_start[:-1].tolist(), rows.level_start[1:].tolist(), strict=True):
        start, stop = int(rows.dep_start[a]), int(rows.dep_start[b])
        learned = table.take(rows.known[start:stop], axis=0)
        block = rows.block[start:stop] - low
        inside = np.flatnonzero((block >= 0) & (block < width))
        learned[inside, block[inside]] = rows.step[start:stop].take(inside) + 1
        merged = greatest(learned, rows.dep_start[a:b] - start, size[a:b])
        table[a:b] = np.maximum(merged, table.take(rows.previous[a:b], axis=0))
    return table
