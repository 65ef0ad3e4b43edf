"""A Program -> the document model: dependencies become flags and `nop` steps, places become letters and offsets.

This module checks nothing. :mod:`.structure` and :mod:`.limits` check whether a runtime can take the result.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collc.ir.machine import partners, receivers
from collc.ir.program import Opcode, Program

from .model import TYPES, Algorithm, Gpu, Step, Threadblock

__all__ = ["document"]

_LETTERS = "ios"
_MAX_RUN = 16


def document(program: Program, *, coll: str, proto: str, name: str, nthreads: int | None = None) -> Algorithm:
    """Return the algorithm that makes a runtime execute ``program``: for calls in place and out of place, of any size.

    Flags only advance. So the algorithm has no waits within a threadblock, for a step that an earlier instruction has
    waited for, or for all but the last of several steps of one threadblock. An instruction with more than one wait gets
    `nop` steps before it. A rank without threadblocks gets an empty one, because it must launch something.
    """
    waits = _waits(program)
    flagged = {row for rows in waits for row in rows} | _fences(program, waits)
    steps = _Steps(program, waits, flagged)
    total = max(program.collective.input_shards, program.collective.output_shards) * program.chunks
    return Algorithm(
        proto=proto,
        nchannels=program.num_channels,
        nchunksperloop=total,
        ngpus=program.num_ranks,
        coll=coll,
        inplace=1,
        gpus=tuple(_gpu(program, rank, steps, total) for rank in range(program.num_ranks)),
        name=name,
        outofplace=1,
        min_bytes=0,
        max_bytes=0,
        nthreads=nthreads,
    )


def _gpu(program: Program, rank: int, steps: _Steps, total: int) -> Gpu:
    first, last = (int(b) for b in program.rank_blocks[rank : rank + 2])
    blocks = [
        Threadblock(
            number, int(program.send_peer[block]), int(program.recv_peer[block]), int(program.channel[block]),
            steps.of(block),
        )
        for number, block in enumerate(range(first, last))
    ]  # fmt: skip
    used = [chunks(rank) for chunks in (program.input_chunks, program.output_chunks)]
    custom = program.collective.pre is not None or program.collective.members is not None
    if custom:  # a call has one count, so both buffers of all ranks have the largest size
        used = [total if chunks else 0 for chunks in used]
    return Gpu(rank, used[0], used[1], int(program.scratch[rank]), tuple(blocks) or (Threadblock(0, -1, -1, 0, ()),))


# ---- waits


def _waits(program: Program) -> list[list[int]]:
    """Return for each instruction those of other threadblocks that it must wait for: one for each block, by block.

    No step can wait for a NOP, and a NOP needs an instruction after it. So the next instruction of its threadblock
    takes over its dependencies, and a dependency on a NOP becomes dependencies on all instructions before it.
    """
    block, opcode = program.block.tolist(), program.opcode.tolist()
    start, deps = program.dep_start.tolist(), program.deps.tolist()
    result: list[list[int]] = [[] for _ in opcode]
    pending: set[int] = set()
    reached: dict[int, int] = {}
    for row, kind in enumerate(opcode):
        if row and block[row] != block[row - 1]:
            pending, reached = set(), {}
        for dep in deps[start[row] : start[row + 1]] if start[row] < start[row + 1] else ():
            pending.update([dep] if opcode[dep] != Opcode.NOP else _before_nop(dep, block, opcode, start, deps))
        if kind == Opcode.NOP or not pending:
            continue
        latest: dict[int, int] = {}
        for dep in pending:
            latest[block[dep]] = max(dep, latest.get(block[dep], -1))
        result[row] = [latest[b] for b in sorted(latest) if b != block[row] and latest[b] > reached.get(b, -1)]
        reached.update((block[dep], dep) for dep in result[row])
        pending = set()
    return result


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


def _fences(program: Program, waits: Sequence[Sequence[int]]) -> set[int]:
    """Return the reductions that need a flag only to keep the parsers from merging them with the next one.

    The parsers merge consecutive reductions into one destination and do not compare counts. Merged reductions read all
    sources before they write, and overrun a buffer beyond 16 sources. A flag ends such a run.
    """
    columns = ("opcode", "src_buffer", "src_offset", "dst_buffer", "dst_offset", "count")
    opcode, srcbuf, srcoff, dstbuf, dstoff, count = (getattr(program, c).tolist() for c in columns)
    block = program.block.tolist()
    waited = {row for rows in waits for row in rows}
    fences: set[int] = set()
    length, before = 0, -1
    for row, kind in enumerate(opcode):
        if kind == Opcode.NOP:
            continue
        merges = (
            kind == Opcode.REDUCE and before >= 0 and opcode[before] == Opcode.REDUCE and block[row] == block[before]
            and (dstbuf[row], dstoff[row], srcbuf[row]) == (dstbuf[before], dstoff[before], srcbuf[before])
            and not waits[row] and before not in waited
        )  # fmt: skip
        overlaps = srcbuf[row] == dstbuf[row] and abs(srcoff[row] - dstoff[row]) < count[row]
        if merges and (count[row] != count[before] or overlaps or length >= _MAX_RUN):
            fences.add(before)
            merges = False
        length = length + 1 if merges else 1
        before = row
    return fences


# ---- steps


class _Steps:
    """Makes the steps of threadblocks; converts the columns of a program to lists once."""

    def __init__(self, program: Program, waits: list[list[int]], flagged: set[int]):
        self.waits, self.flagged = waits, flagged
        self.start = program.block_start.tolist()
        self.block = program.block.tolist()
        self.number = program.block_id.tolist()
        self.type = [_NAMES[op] for op in program.opcode.tolist()]
        self.columns = [*_places(program), program.count.tolist()]
        self.step = self._numbers()

    def _numbers(self) -> list[int]:
        """Return the step number of each instruction, with the `nop` steps before it."""
        result = [0] * len(self.type)
        for first, end in zip(self.start, self.start[1:], strict=False):
            number = -1
            for row in range(first, end):
                if self.type[row] != "nop":
                    number += len(self.waits[row]) or 1
                result[row] = number
        return result

    def of(self, block: int) -> tuple[Step, ...]:
        """Return the steps of one threadblock."""
        steps: list[Step] = []
        source, source_offset, target, target_offset, count = self.columns
        for row in range(self.start[block], self.start[block + 1]):
            if self.type[row] == "nop":
                continue
            depid = deps = -1
            for dep in self.waits[row]:
                if depid >= 0:
                    steps.append(Step(len(steps), "nop", "i", -1, "o", -1, 0, depid, deps, 0))
                depid, deps = self.number[self.block[dep]], self.step[dep]
            steps.append(
                Step(
                    len(steps), self.type[row], source[row], source_offset[row], target[row], target_offset[row],
                    count[row], depid, deps, int(row in self.flagged),
                )
            )  # fmt: skip
        return tuple(steps)


_NAMES = [TYPES[op] for op in Opcode]


def _places(program: Program) -> tuple[list[str], list[int], list[str], list[int]]:
    """Return letters and offsets of the source and of the destination of each instruction.

    If an instruction receives data and does not read any, its source is their place on the sender. If it sends data and
    does not write any, its destination is their place on the receiver.
    """
    rows, sender = np.arange(program.num_instructions), partners(program)
    receiver = receivers(sender)
    reads, writes = program.reads_src, program.writes_dst
    ends = (  # the instruction that has the place, and whether as its destination
        (np.where(reads, rows, sender), np.where(reads, False, writes[sender]), True),
        (np.where(writes, rows, receiver), np.where(writes, True, writes[receiver]), False),
    )
    letters: list[list[str]] = []
    offsets: list[list[int]] = []
    for row, is_target, default in ends:
        alone = row < 0
        row, is_target = np.where(alone, rows, row), np.where(alone, default, is_target)
        letter = np.where(is_target, program.dst_buffer[row], program.src_buffer[row])
        letters.append([_LETTERS[b] for b in letter.tolist()])
        offsets.append(np.where(is_target, program.dst_offset[row], program.src_offset[row]).tolist())
    return letters[0], offsets[0], letters[1], offsets[1]
