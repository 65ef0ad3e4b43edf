"""A Program -> the document model: waits become flags and `nop` steps, places become letters and offsets.

Nothing is judged here; what a runtime cannot take is found in the result by :mod:`.structure` and
:mod:`.limits`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from collc.ir.machine import partners
from collc.ir.program import Opcode, Program

from .model import TYPES, Algorithm, Gpu, Step, Threadblock

__all__ = ["document"]

_LETTERS = "ios"
_MAX_RUN = 16


def document(program: Program, *, coll: str, proto: str, name: str, nthreads: int | None = None) -> Algorithm:
    """Return the algorithm that makes a runtime execute ``program``; for calls in place and out of place, of any size.

    Waits within a threadblock, for a step that an earlier instruction of it has waited for, or for several
    steps of one threadblock (all but the latest) are left out: flags only ever advance. An instruction with
    more than one wait gets `nop` steps before it. A rank without threadblocks gets one that does nothing,
    so that there is something to launch.
    """
    waits = _waits(program)
    flagged = {row for rows in waits for row in rows} | _fences(program, waits)
    steps = _Steps(program, waits, flagged)
    return Algorithm(
        proto=proto,
        nchannels=program.num_channels,
        nchunksperloop=max(program.collective.input_shards, program.collective.output_shards) * program.chunks,
        ngpus=program.num_ranks,
        coll=coll,
        inplace=1,
        gpus=tuple(_gpu(program, rank, steps) for rank in range(program.num_ranks)),
        name=name,
        outofplace=1,
        min_bytes=0,
        max_bytes=0,
        nthreads=nthreads,
    )


def _gpu(program: Program, rank: int, steps: _Steps) -> Gpu:
    first, last = (int(b) for b in program.rank_blocks[rank : rank + 2])
    blocks = [
        Threadblock(
            number, int(program.send_peer[block]), int(program.recv_peer[block]), int(program.channel[block]),
            steps.of(block),
        )
        for number, block in enumerate(range(first, last))
    ]  # fmt: skip
    return Gpu(
        rank, program.input_chunks(rank), program.output_chunks(rank), int(program.scratch[rank]),
        tuple(blocks) or (Threadblock(0, -1, -1, 0, ()),),
    )  # fmt: skip


# ---- waits


def _waits(program: Program) -> list[list[int]]:
    """Return for each instruction the instructions of other threadblocks it must wait for, one a threadblock, by block.

    A NOP is not one that can be waited for, nor does it stand alone: its waits pass to the next instruction
    of its threadblock, and who waits for it waits for all it stands behind.
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
            pending.update([dep] if opcode[dep] != Opcode.NOP else _behind(dep, block, opcode, start, deps))
        if kind == Opcode.NOP or not pending:
            continue
        latest: dict[int, int] = {}
        for dep in pending:
            latest[block[dep]] = max(dep, latest.get(block[dep], -1))
        result[row] = [latest[b] for b in sorted(latest) if b != block[row] and latest[b] > reached.get(b, -1)]
        reached.update((block[dep], dep) for dep in result[row])
        pending = set()
    return result


def _behind(nop: int, block: list[int], opcode: list[int], start: list[int], deps: list[int]) -> set[int]:
    """Return the real instructions that have finished when a NOP has."""
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
    """Return the reductions that must set a flag nobody waits for, lest the parsers merge them with the next one.

    They merge consecutive reductions into one destination without comparing counts, read all sources before
    they write, and overrun a buffer beyond 16 sources; a flag is what ends such a run.
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
    """Makes the steps of threadblocks; all numbers of a program are turned into lists once."""

    def __init__(self, program: Program, waits: list[list[int]], flagged: set[int]):
        self.waits, self.flagged = waits, flagged
        self.start = program.block_start.tolist()
        self.block = program.block.tolist()
        self.number = program.block_id.tolist()
        self.type = [_NAMES[op] for op in program.opcode.tolist()]
        self.columns = [*_shown(program), program.count.tolist()]
        self.step = self._numbers()

    def _numbers(self) -> list[int]:
        """Return each instruction's step number, counting the `nop` steps before it."""
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
        made: list[Step] = []
        source, source_offset, target, target_offset, count = self.columns
        for row in range(self.start[block], self.start[block + 1]):
            if self.type[row] == "nop":
                continue
            depid = deps = -1
            for dep in self.waits[row]:
                if depid >= 0:
                    made.append(Step(len(made), "nop", "i", -1, "o", -1, 0, depid, deps, 0))
                depid, deps = self.number[self.block[dep]], self.step[dep]
            made.append(
                Step(
                    len(made), self.type[row], source[row], source_offset[row], target[row], target_offset[row],
                    count[row], depid, deps, int(row in self.flagged),
                )
            )  # fmt: skip
        return tuple(made)


_NAMES = [TYPES[op] for op in Opcode]
_READS = np.array([op.reads_src for op in Opcode])
_WRITES = np.array([op.writes_dst for op in Opcode])


def _shown(program: Program) -> tuple[list[str], list[int], list[str], list[int]]:
    """Return what stands as source and as destination of each instruction: letters and offsets.

    Where data come in instead of being read, the source is where they lay on the sender; where they go out instead of
    being written, the destination is their place on the receiver.
    """
    rows, sender = np.arange(program.num_instructions), partners(program)
    receiver = _inverse(sender)
    reads, writes = _READS[program.opcode], _WRITES[program.opcode]
    ends = (  # which instruction says it, and whether by its destination
        (np.where(reads, rows, sender), np.where(reads, False, writes[sender]), True),
        (np.where(writes, rows, receiver), np.where(writes, True, writes[receiver]), False),
    )
    result: list[Any] = []
    for who, by_target, otherwise in ends:
        alone = who < 0
        who, by_target = np.where(alone, rows, who), np.where(alone, otherwise, by_target)
        letter = np.where(by_target, program.dst_buffer[who], program.src_buffer[who])
        result.append([_LETTERS[b] for b in letter.tolist()])
        result.append(np.where(by_target, program.dst_offset[who], program.src_offset[who]).tolist())
    return tuple(result)


def _inverse(partner: np.ndarray) -> np.ndarray:
    """Return for each send the receive it pairs with, -1 for others."""
    result = np.full(len(partner), -1, dtype=np.int64)
    rows = np.flatnonzero(partner >= 0)
    result[partner[rows]] = rows
    return result
