"""Programs that are right in place only, or out of place only, made right both ways.

Many published files are for one use: they add up in their input, which an out-of-place call must leave alone, or write
outputs over inputs still to be sent. Other targets ask for both uses. Here a rank first copies its input to where the
program may do with it as it likes; everything else stays as it was.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from collc.ir.layout import sizes
from collc.ir.program import BLOCK_COLUMNS, INSTRUCTION_COLUMNS, Buffer, Opcode, Program

__all__ = ["made_both_ways"]

Array = np.ndarray[Any, np.dtype[Any]]

#: an instruction without its waits, as columns of a Program: opcode, source, destination, count
_Row = tuple[int, int, int, int, int, int]


def made_both_ways(program: Program, inplace: bool) -> Program:
    """Return a program right in place and out of place, of one that is right in place (or, else, out of place).

    Right in place: what was input becomes the place of the output that aliases it, or scratch where the output is the
    smaller of the two (with a copy to the output at the end). Right out of place: what was input becomes scratch. On
    every rank an additional threadblock makes the copies; the others wait for the first and the last waits for them.
    """
    size = sizes(program)
    own = np.arange(program.num_ranks) * program.chunks
    into, out = size[:, Buffer.INPUT], size[:, Buffer.OUTPUT]
    within = inplace & (into > 0) & (out >= into)  # the output holds what the input does
    aside = (into > 0) & ~within
    # A rank's input begins here in the buffer it is moved to, and its output here in the input it aliased.
    begin = np.where(within, np.where(out > into, own, 0), program.scratch)
    inner = np.where(out < into, own, 0)
    moved = _moved(program, inplace, within, aside, begin, inner)
    first: dict[int, _Row] = {}
    last: dict[int, _Row] = {}
    for rank in np.flatnonzero(into > 0).tolist():
        place = int(Buffer.OUTPUT if within[rank] else Buffer.SCRATCH)
        first[rank] = (int(Opcode.COPY), int(Buffer.INPUT), 0, place, int(begin[rank]), int(into[rank]))
        if inplace and aside[rank] and out[rank]:
            where = int(begin[rank] + inner[rank])
            last[rank] = (int(Opcode.COPY), int(Buffer.SCRATCH), where, int(Buffer.OUTPUT), 0, int(out[rank]))
    scratch = program.scratch + np.where(aside, into, 0)
    return _with_copies(attrs.evolve(program, scratch=scratch, **moved), first, last)


def _moved(program: Program, inplace: bool, within: Array, aside: Array, begin: Array, inner: Array) -> dict[str, Any]:
    """Return the columns of locations with inputs, and outputs that aliased them, where they are from now on."""
    rank = program.block_rank[program.block]
    found = {}
    for side in ("src", "dst"):
        buffer = getattr(program, f"{side}_buffer").astype(np.int64)
        offset = getattr(program, f"{side}_offset").astype(np.int64)
        used = np.isin(program.opcode, [int(op) for op in Opcode if (op.reads_src if side == "src" else op.writes_dst)])
        taken = used & (buffer == Buffer.INPUT)
        result = np.where(
            taken & within[rank], int(Buffer.OUTPUT), np.where(taken & aside[rank], int(Buffer.SCRATCH), buffer)
        )
        shifted = offset + np.where(taken & (within | aside)[rank], begin[rank], 0)
        aliased = used & (buffer == Buffer.OUTPUT) & aside[rank] & inplace
        found[f"{side}_buffer"] = np.where(aliased, int(Buffer.SCRATCH), result)
        found[f"{side}_offset"] = np.where(aliased, offset + (begin + inner)[rank], shifted)
    return found


def _with_copies(program: Program, first: dict[int, _Row], last: dict[int, _Row]) -> Program:
    """Return the program with a further threadblock on each of these ranks, after the others, that makes the copies."""
    ends = program.block_start.tolist()
    waits = [program.waits(i) for i in range(program.num_instructions)]
    before = program.rank_blocks.tolist()
    blocks: list[tuple[int, int, int, int]] = []
    rows: list[list[tuple[_Row, list[int]]]] = []
    shift = 0  # instructions added so far
    table = list(zip(*(getattr(program, c).tolist() for c in INSTRUCTION_COLUMNS), strict=True))
    for rank in range(program.num_ranks):
        mine = [b for b in range(before[rank], before[rank + 1]) if ends[b] < ends[b + 1]]
        copy = ends[before[rank + 1]] + shift
        for block in range(before[rank], before[rank + 1]):
            blocks.append(tuple(int(getattr(program, c)[block]) for c in BLOCK_COLUMNS))  # type: ignore[arg-type]
            listed = [(table[i], [d + shift for d in waits[i]]) for i in range(ends[block], ends[block + 1])]
            if rank in first and listed:
                listed[0] = (listed[0][0], [*listed[0][1], copy])
            rows.append(listed)
        if rank in first:
            blocks.append((rank, -1, -1, 0))
            made: list[tuple[_Row, list[int]]] = [(first[rank], [])]
            if rank in last:
                made.append((last[rank], [ends[b + 1] - 1 + shift for b in mine]))
            rows.append(made)
            shift += len(made)
    flat = [row for listed in rows for row in listed]
    columns: dict[str, Any] = {c: [row[i] for row in blocks] for i, c in enumerate(BLOCK_COLUMNS)}
    columns |= {c: [row[i] for row, _ in flat] for i, c in enumerate(INSTRUCTION_COLUMNS)}
    return attrs.evolve(
        program, block_start=np.cumsum([0, *(len(listed) for listed in rows)]),
        dep_start=np.cumsum([0, *(len(w) for _, w in flat)]), deps=[d for _, w in flat for d in w], **columns,
    )  # fmt: skip
