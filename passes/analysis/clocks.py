"""Vector clocks: the steps of its rank that are certainly finished when an instruction begins.

When an instruction of block b begins, it knows how many steps of each block of its rank are finished: the earlier steps
of b, its dependencies, and the steps that those know. Messages through other ranks imply more. They are ignored,
because not every transport keeps their order.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from collc.ir.arrays import Array, distinct_pairs, fit
from collc.ir.editing import with_dependencies
from collc.ir.frozen import frozen
from collc.ir.program import Program
from collc.ir.ragged import greatest, owners, ranges, starts
from collc.ir.waves import Waves, all_waves, some_waves

__all__ = ["Clocks", "clocks", "without_implied"]

#: entries of a table of clocks: of a large program the clocks of as many ranks are found at once
_ENTRIES = 1 << 23


@frozen(eq=False)
class Clocks:
    """``known[i, b]`` is how many steps of block b of instruction i's rank are finished when i begins.

    Instructions are numbered from the first of the ranks whose clocks these are.
    """

    known: Array
    block_id: Array
    step: Array

    def before(self, first: int, second: int) -> bool:
        """Return whether one instruction of a rank is always finished when another begins."""
        return bool(self.known[second, self.block_id[first]] > self.step[first])


def clocks(program: Program) -> Clocks:
    """Return the clocks of all instructions."""
    return _clocks_of(program, all_waves(program), 0, program.num_instructions)


def _clocks_of(program: Program, order: Waves, begin: int, end: int) -> Clocks:
    """Return the clocks of instructions ``begin`` to ``end`` (exclusive), all those of some ranks."""
    here = slice(begin, end)
    name, step = program.block_id.take(program.block[here]), program.step[here]
    kind = fit(-1, int(step.max(initial=0)) + 1)  # the fewer bytes, the faster
    step = step.astype(kind)
    known = np.zeros((end - begin, int(name.max(initial=0)) + 1), dtype=kind)
    start = program.dep_start[begin : end + 1].astype(np.int64)
    deps = program.deps[start[0] : start[-1]].astype(np.int64) - begin
    start -= start[0]
    size_of = np.diff(start)
    inside = (order.instruction >= begin) & (order.instruction < end)
    instruction, wave = order.instruction.compress(inside) - begin, starts(inside)[order.start]
    for a, b in zip(wave[:-1].tolist(), wave[1:].tolist(), strict=True):
        rows = instruction[a:b]
        latest = known.take(rows - 1, axis=0, mode="wrap")
        latest[step.take(rows) == 0] = 0
        latest[np.arange(len(rows)), name.take(rows)] = step.take(rows)
        dependent = np.flatnonzero(size_of.take(rows))
        if len(dependent):
            size = size_of.take(rows.take(dependent))
            entry, first = deps.take(ranges(start.take(rows.take(dependent)), size)), starts(size)[:-1]
            inherited = known.take(entry, axis=0)
            inherited[np.arange(len(entry)), name.take(entry)] = step.take(entry) + 1
            latest[dependent] = np.maximum(latest.take(dependent, axis=0), greatest(inherited, first, size))
        known[rows] = latest
    return Clocks(known, name, step)


def without_implied(program: Program) -> Program:
    """Return the program without the dependencies that others imply: the transitive reduction, which is unique."""
    order = some_waves(program) or all_waves(program)
    dependent, dep = distinct_pairs(program.dependent, program.deps)
    kept = [
        _are_needed(_clocks_of(program, order, begin, end), dependent[low:high] - begin, dep[low:high] - begin)
        for begin, end in _batches(program)
        for low, high in [np.searchsorted(dependent, [begin, end])]
        if low < high
    ]
    needed = np.concatenate([np.zeros(0, dtype=bool), *kept])
    return with_dependencies(program, dependent.compress(needed), dep.compress(needed))


def _batches(program: Program) -> Iterator[tuple[int, int]]:
    """Yield runs of instructions (begin, end): all those of as many ranks as have clocks of ``_ENTRIES`` entries."""
    first = program.block_start[program.rank_blocks].astype(np.int64).tolist()
    begin, width = 0, 0
    for rank, blocks in enumerate(np.diff(program.rank_blocks).tolist()):
        width = max(width, blocks)
        if first[rank] > begin and (first[rank + 1] - begin) * width > _ENTRIES:
            yield begin, first[rank]
            begin, width = first[rank], blocks
    yield begin, first[-1]


def _are_needed(clock: Clocks, dependent: Array, dep: Array) -> Array:
    """Return which of the dependencies no other implies. Pairs are sorted; all of an instruction are there."""
    before = np.where(clock.step[dependent] > 0, clock.known[dependent - 1, clock.block_id.take(dep)], 0)
    fresh = before <= clock.step[dep]  # no earlier instruction of the block depends on it
    dependent, dep = dependent[fresh], dep[fresh]
    # Each dependency implies itself; one that two imply is redundant.
    size = np.bincount(dependent, minlength=len(clock.step)).take(dependent)
    other, start, entry = ranges(np.searchsorted(dependent, dependent), size), starts(size)[:-1], owners(size)
    implies = (clock.known[dep[other], clock.block_id.take(dep[entry])] > clock.step[dep[entry]]) | (
        (clock.block_id.take(dep[other]) == clock.block_id.take(dep[entry])) & (dep[other] >= dep[entry])
    )
    fresh[fresh] = (np.add.reduceat(implies.astype(np.int64), start) if len(start) else size) < 2
    return fresh
