"""A Program -> the document model: dependencies become flags and `nop` steps, places become letters and offsets.

This module checks nothing. :mod:`.structure` and :mod:`.limits` check whether a runtime can take the result.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collc.ir.arrays import Array, fit, lexsort
from collc.ir.machine import partners, receivers
from collc.ir.program import Opcode, Program
from collc.ir.ragged import first_of_group, nth, nth_in_group, owners, starts

from .model import TYPES, Algorithm, Gpu, Steps, Threadblock
from .steps import (
    COUNT,
    DEPID,
    DEPS,
    DST,
    DST_OFFSET,
    FIELDS,
    HASDEP,
    KINDS_OF,
    NUMBER,
    SRC,
    SRC_OFFSET,
    TYPE,
    divided,
)  # fmt: skip

__all__ = ["document"]

_MAX_RUN = 16


def document(program: Program, *, coll: str, proto: str, name: str, nthreads: int | None = None) -> Algorithm:
    """Return the algorithm that makes a runtime execute ``program``: for calls in place and out of place, of any size.

    Flags only advance. So the algorithm has no waits within a threadblock, for a step that an earlier instruction has
    waited for, or for all but the last of several steps of one threadblock. An instruction with more than one wait gets
    `nop` steps before it. A rank without threadblocks gets an empty one, because it must launch something.
    """
    columns = (program.block_id, program.send_peer, program.recv_peer, program.channel)
    blocks = list(map(Threadblock, *(column.tolist() for column in columns), _steps(program)))
    total = max(program.collective.input_shards, program.collective.output_shards) * program.chunks
    return Algorithm(
        proto=proto,
        nchannels=program.num_channels,
        nchunksperloop=total,
        ngpus=program.num_ranks,
        coll=coll,
        inplace=1,
        gpus=tuple(_gpu(program, rank, blocks, total) for rank in range(program.num_ranks)),
        name=name,
        outofplace=1,
        min_bytes=0,
        max_bytes=0,
        nthreads=nthreads,
    )


def _gpu(program: Program, rank: int, blocks: Sequence[Threadblock], total: int) -> Gpu:
    first, last = (int(b) for b in program.rank_blocks[rank : rank + 2])
    used = [chunks(rank) for chunks in (program.input_chunks, program.output_chunks)]
    custom = program.collective.pre is not None or program.collective.members is not None
    if custom:  # a call has one count, so both buffers of all ranks have the largest size
        used = [total if chunks else 0 for chunks in used]
    return Gpu(
        rank,
        used[0],
        used[1],
        int(program.scratch[rank]),
        tuple(blocks[first:last]) or (Threadblock(0, -1, -1, 0, ()),),
    )


# ---- waits


def _waits(program: Program) -> tuple[Array, Array]:
    """Return which instruction waits for which of other threadblocks, as pairs by instruction and then by block.

    No step can wait for a NOP, and a NOP needs an instruction after it. So the next instruction of its threadblock
    takes over its dependencies, and a dependency on a NOP becomes dependencies on all instructions before it.
    """
    block = program.block
    row, dep = _dependencies(program)
    apart = block.take(row) != block.take(dep)
    row, dep = row.compress(apart), dep.compress(apart)
    # of one block, only the latest counts, and only if it is later than what the block has waited for before
    order = lexsort((dep, row, block[dep], block[row]))
    row, dep = row[order], dep[order]
    pair = block[row].astype(np.int64) * program.num_blocks + block[dep]
    last = np.append((row[1:] != row[:-1]) | (pair[1:] != pair[:-1]), True)[: len(row)]
    row, dep, pair = row[last], dep[last], pair[last]
    group = np.cumsum(first_of_group(pair)) - 1
    height = group * np.int64(len(block) + 1) + dep
    reached = np.maximum.accumulate(height) if len(height) else height
    later = np.append(True, height[1:] > reached[:-1])[: len(row)]
    row, dep = row[later], dep[later]
    order = lexsort((block[dep], row))
    return row[order], dep[order]


def _dependencies(program: Program) -> tuple[Array, Array]:
    """Return the dependencies as pairs of instructions that are no NOPs."""
    if not (program.opcode == Opcode.NOP).any():
        return program.dependent, program.deps.astype(np.int64)
    block, opcode = program.block.tolist(), program.opcode.tolist()
    start, deps = program.dep_start.tolist(), program.deps.tolist()
    found: list[tuple[int, int]] = []
    pending: set[int] = set()
    for row, kind in enumerate(opcode):
        if row and block[row] != block[row - 1]:
            pending = set()
        for dep in deps[start[row] : start[row + 1]]:
            pending.update([dep] if opcode[dep] != Opcode.NOP else _before_nop(dep, block, opcode, start, deps))
        if kind != Opcode.NOP:
            found += [(row, dep) for dep in pending]
            pending = set()
    pairs = np.array(found, dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _before_nop(nop: int, block: list[int], opcode: list[int], start: list[int], deps: list[int]) -> set[int]:
    """Return the instructions, no NOPs, that have finished when a NOP has."""
    found: set[int] = set()
    seen, stack = {nop}, [nop]
    while stack:
        row = stack.pop()
        if opcode[row] != Opcode.NOP:
            found.add(row)
            continue
        before = [row - 1] if row and block[row - 1] == block[row] else []
        fresh = [r for r in (*before, *deps[start[row] : start[row + 1]]) if r not in seen]
        seen.update(fresh)
        stack += fresh
    return found


def _fences(program: Program, waiting: Array, waited_for: Array) -> list[int]:
    """Return the reductions that need a flag only to keep the parsers from merging them with the next one.

    The parsers merge consecutive reductions into one destination and do not compare counts. Merged reductions read all
    sources before they write, and overrun a buffer beyond 16 sources. A flag ends such a run.
    """
    if not (program.opcode == Opcode.REDUCE).any():
        return []
    columns = ("opcode", "src_buffer", "src_offset", "dst_buffer", "dst_offset", "count")
    opcode, srcbuf, srcoff, dstbuf, dstoff, count = (getattr(program, c).tolist() for c in columns)
    block = program.block.tolist()
    waits, waited = set(waiting.tolist()), set(waited_for.tolist())
    fences: list[int] = []
    length, before = 0, -1
    for row, kind in enumerate(opcode):
        if kind == Opcode.NOP:
            continue
        merges = (
            kind == Opcode.REDUCE and before >= 0 and opcode[before] == Opcode.REDUCE and block[row] == block[before]
            and (dstbuf[row], dstoff[row], srcbuf[row]) == (dstbuf[before], dstoff[before], srcbuf[before])
            and row not in waits and before not in waited
        )  # fmt: skip
        overlaps = srcbuf[row] == dstbuf[row] and abs(srcoff[row] - dstoff[row]) < count[row]
        if merges and (count[row] != count[before] or overlaps or length >= _MAX_RUN):
            fences.append(before)
            merges = False
        length = length + 1 if merges else 1
        before = row
    return fences


# ---- steps


def _steps(program: Program) -> list[Steps]:
    """Return the steps of each threadblock."""
    waiting, waited_for = _waits(program)
    real, start = program.opcode != Opcode.NOP, program.block_start.astype(np.int64)
    waits = np.bincount(waiting, minlength=program.num_instructions)
    width = np.where(real, np.maximum(waits, 1), 0)  # `nop` steps for all waits but the last
    end = np.cumsum(width)
    begin = np.append(0, end)[start]
    number = end - 1 - begin.take(program.block)  # the step of each instruction, after its `nop` steps
    flagged = np.zeros(program.num_instructions, dtype=bool)
    flagged[waited_for] = True
    flagged[_fences(program, waiting, waited_for)] = True
    row = owners(width)
    folded = nth(width) < width.take(row) - 1
    columns = (program.src_offset, program.dst_offset, program.count)
    kind = fit(-1, max(len(row), *(int(column.max(initial=0)) for column in columns)))
    table = np.zeros((len(row), len(FIELDS)), dtype=np.promote_types(kind, np.int32), order="F")
    table[:, NUMBER] = np.arange(len(row)) - np.repeat(begin[:-1], np.diff(begin))
    table[:, TYPE] = _TYPE_OF.take(program.opcode.take(row))
    table[folded, TYPE] = _NOP
    places = (SRC, SRC_OFFSET, DST, DST_OFFSET)
    for column, values, otherwise in zip(places, _places(program), (0, -1, 1, -1), strict=True):
        table[:, column] = values.take(row)
        table[folded, column] = otherwise
    table[:, COUNT] = program.count.take(row)
    table[folded, COUNT] = 0
    table[:, HASDEP] = ~folded & flagged.take(row)
    table[:, DEPID] = table[:, DEPS] = -1
    at = starts(width)[waiting] + nth_in_group(waiting)
    table[at, DEPID], table[at, DEPS] = program.block_id[program.block.take(waited_for)], number.take(waited_for)
    return divided(table, begin)


_NOP = KINDS_OF.index("nop")
#: opcode -> the number of its step type
_TYPE_OF = np.array([KINDS_OF.index(TYPES[op]) for op in Opcode])


def _places(program: Program) -> tuple[Array, Array, Array, Array]:
    """Return buffers and offsets of the source and of the destination of each instruction.

    If an instruction receives data and does not read any, its source is their place on the sender. If it sends data and
    does not write any, its destination is their place on the receiver.
    """
    rows, sender = np.arange(program.num_instructions), partners(program)
    receiver = receivers(sender)
    reads, writes = program.reads_src, program.writes_dst
    ends = (  # the instruction that has the place, and whether as its destination
        (np.where(reads, rows, sender), np.where(reads, False, writes.take(sender)), True),
        (np.where(writes, rows, receiver), np.where(writes, True, writes[receiver]), False),
    )
    found: list[Array] = []
    for row, is_target, default in ends:
        alone = row < 0
        row, is_target = np.where(alone, rows, row), np.where(alone, default, is_target)
        found.append(np.where(is_target, program.dst_buffer.take(row), program.src_buffer.take(row)))
        found.append(np.where(is_target, program.dst_offset.take(row), program.src_offset.take(row)))
    return found[0], found[1], found[2], found[3]
