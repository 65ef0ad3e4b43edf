"""Programs that are correct in place only, or out of place only, made correct in both uses.

Many published files support one use. They reduce into their input, which an out-of-place call must not write, or they
write outputs over inputs that are not sent yet. Other targets need both uses. Here every rank first copies its input to
memory that the program may write. Everything else stays unchanged.
"""

from __future__ import annotations

import attrs
import numpy as np

from collc.ir.arrays import Array, Columns
from collc.ir.editing import add_blocks, insert, with_dependencies
from collc.ir.layout import sizes
from collc.ir.program import INSTRUCTION_COLUMNS, Buffer, Opcode, Program

__all__ = ["with_both_uses"]

#: an instruction without its dependencies, as columns of a Program: opcode, source, destination, count
_Row = tuple[int, int, int, int, int, int]


def with_both_uses(program: Program, inplace: bool) -> Program:
    """Return a program that is correct in both uses. ``program`` is correct in place if ``inplace``, else out of place.

    If it is correct in place, its input moves to the output that aliases it. If the output is smaller, the input moves
    to scratch, and a copy to the output follows at the end. If it is correct out of place, its input moves to scratch.
    An additional threadblock on every rank makes the copies. The other threadblocks depend on the first copy, and the
    last copy depends on them.
    """
    size = sizes(program)
    own = np.arange(program.num_ranks) * program.chunks
    into, out = size[:, Buffer.INPUT], size[:, Buffer.OUTPUT]
    to_output = inplace & (into > 0) & (out >= into)  # the output can hold the input
    to_scratch = (into > 0) & ~to_output
    # `begin` is the place of a rank's input in its new buffer, `inner` that of its output in the input it aliased.
    begin = np.where(to_output, np.where(out > into, own, 0), program.scratch)
    inner = np.where(out < into, own, 0)
    moved = _moved(program, inplace, to_output, to_scratch, begin, inner)
    first: dict[int, _Row] = {}
    last: dict[int, _Row] = {}
    for rank in np.flatnonzero(into > 0).tolist():
        place = int(Buffer.OUTPUT if to_output[rank] else Buffer.SCRATCH)
        first[rank] = (int(Opcode.COPY), int(Buffer.INPUT), 0, place, int(begin[rank]), int(into[rank]))
        if inplace and to_scratch[rank] and out[rank]:
            where = int(begin[rank] + inner[rank])
            last[rank] = (int(Opcode.COPY), int(Buffer.SCRATCH), where, int(Buffer.OUTPUT), 0, int(out[rank]))
    scratch = program.scratch + np.where(to_scratch, into, 0)
    return _with_copies(attrs.evolve(program, scratch=scratch, **moved), first, last)


def _moved(program: Program, inplace: bool, to_output: Array, to_scratch: Array, begin: Array, inner: Array) -> Columns:
    """Return the columns of locations, with inputs and the outputs that aliased them at their new places."""
    rank = program.rank
    found = {}
    for side in ("src", "dst"):
        buffer = getattr(program, f"{side}_buffer").astype(np.int64)
        offset = getattr(program, f"{side}_offset").astype(np.int64)
        used = program.uses(side)
        input_used = used & (buffer == Buffer.INPUT)
        result = np.where(
            input_used & to_output[rank],
            int(Buffer.OUTPUT),
            np.where(input_used & to_scratch[rank], int(Buffer.SCRATCH), buffer),
        )
        shifted = offset + np.where(input_used & (to_output | to_scratch)[rank], begin[rank], 0)
        aliased = used & (buffer == Buffer.OUTPUT) & to_scratch[rank] & inplace
        found[f"{side}_buffer"] = np.where(aliased, int(Buffer.SCRATCH), result)
        found[f"{side}_offset"] = np.where(aliased, offset + (begin + inner)[rank], shifted)
    return found


def _with_copies(program: Program, first: dict[int, _Row], last: dict[int, _Row]) -> Program:
    """Return the program with one more threadblock on each of these ranks, the last one, for the copies."""
    ranks = np.array(sorted(first), dtype=np.int64)
    copies = [[first[rank], last[rank]] if rank in last else [first[rank]] for rank in ranks.tolist()]
    rows = np.array([row for listed in copies for row in listed], dtype=np.int64).reshape(-1, len(INSTRUCTION_COLUMNS))
    result, added = add_blocks(program, ranks)
    columns = dict(zip(INSTRUCTION_COLUMNS, rows.T, strict=True))
    result, row_of, _ = insert(result, np.repeat(added, [len(listed) for listed in copies]), 0, columns)
    start = program.block_start.astype(np.int64)
    busy = np.flatnonzero(start[:-1] < start[1:])
    busy = busy[np.isin(program.block_rank[busy], ranks)]
    copier = added[np.searchsorted(ranks, program.block_rank[busy])]  # the new block of each block's rank
    twice = np.diff(result.block_start.astype(np.int64))[copier] > 1
    begin, end = result.block_start[copier].astype(np.int64), result.block_start[copier + 1].astype(np.int64) - 1
    dependent = [result.dependent, row_of[start[busy]], end[twice]]
    dependency = [result.deps, begin, row_of[start[busy + 1] - 1][twice]]
    return with_dependencies(result, np.concatenate(dependent), np.concatenate(dependency))
