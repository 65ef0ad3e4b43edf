"""Is what a file makes a runtime execute the program that was to be emitted?

A file names no operation, type or size, and no `nop` of the program: what those wait for is waited for by others. So
instructions are compared one by one, and waits by what they come to: which instructions of its rank each one knows to
be finished.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from collc.ir.program import BLOCK_COLUMNS, INSTRUCTION_COLUMNS, Opcode, Program

from .model import Algorithm
from .program import collective_of, to_program

__all__ = ["differences"]

Array = np.ndarray[Any, np.dtype[Any]]


def differences(algorithm: Algorithm, wanted: Program) -> Iterator[str]:
    """Yield what a file that is right in itself does otherwise than ``wanted``."""
    collective = wanted.collective
    found = to_program(algorithm, collective).program
    named = collective_of(algorithm, None, collective.root or 0)
    for name in ("kind", "num_ranks"):
        if getattr(named, name) != getattr(collective, name):
            yield f"{name} is {getattr(named, name)}, not {getattr(collective, name)}"
            return
    if found.chunks != wanted.chunks or not np.array_equal(found.scratch, wanted.scratch):
        yield "shards or scratch have another number of chunks"
    blocks, steps = _blocks(wanted)
    if any(not np.array_equal(getattr(found, name), blocks[name]) for name in BLOCK_COLUMNS):
        yield "the threadblocks are others"
        return
    rows = [np.flatnonzero(one.opcode != Opcode.NOP) for one in (found, wanted)]
    if not np.array_equal(np.bincount(found.block[rows[0]], minlength=found.num_blocks), steps):
        yield "the threadblocks have more or fewer instructions"
        return
    for name in INSTRUCTION_COLUMNS:
        wrong = np.flatnonzero(getattr(found, name)[rows[0]] != getattr(wanted, name)[rows[1]])
        if len(wrong):
            yield f"{found.place(int(rows[0][wrong[0]]))} has another {name.replace('_', ' ')}"
    for row, before, due in zip(rows[0].tolist(), _finished(found), _finished(wanted), strict=True):
        if before != due:
            yield f"{found.place(row)} does not wait for the same instructions"
            return


def _blocks(program: Program) -> tuple[dict[str, Array], Array]:
    """Return the columns of blocks, and how many instructions that are no NOP each has.

    A rank without blocks has one that does nothing.
    """
    steps = np.bincount(program.block[program.opcode != Opcode.NOP], minlength=program.num_blocks)
    idle = np.flatnonzero(np.diff(program.rank_blocks) == 0)
    at = program.rank_blocks[idle]
    fill: dict[str, Any] = {"block_rank": idle, "send_peer": -1, "recv_peer": -1, "channel": 0}
    columns = {name: np.insert(getattr(program, name).astype(np.int64), at, fill[name]) for name in BLOCK_COLUMNS}
    return columns, np.insert(steps, at, 0)


def _finished(program: Program) -> list[tuple[tuple[int, int], ...]]:
    """Return for each instruction that is no NOP how many such of each other block of its rank are finished before it.

    Blocks of which none is are left out.
    """
    block, real = program.block.tolist(), (program.opcode != Opcode.NOP).tolist()
    start, ends = program.block_start.tolist(), program.block_start[1:].tolist()
    first, deps = program.dep_start.tolist(), program.deps.tolist()
    at, done = start[:-1], [0] * program.num_blocks
    known: list[dict[int, int]] = [{} for _ in range(program.num_blocks)]
    after: dict[int, dict[int, int]] = {}
    awaited = set(deps)
    found: list[tuple[tuple[int, int], ...]] = [()] * program.num_instructions
    waiting: dict[int, list[int]] = {}
    ready = list(range(program.num_blocks))
    while ready:
        b = ready.pop()
        while at[b] < ends[b]:
            i = at[b]
            late = next((d for d in deps[first[i] : first[i + 1]] if d not in after), None)
            if late is not None:
                waiting.setdefault(late, []).append(b)
                break
            for d in deps[first[i] : first[i + 1]]:
                for other, number in after[d].items():
                    known[b][other] = max(number, known[b].get(other, 0))
            found[i] = tuple(sorted((other, number) for other, number in known[b].items() if other != b and number))
            done[b] += real[i]
            at[b] += 1
            if i in awaited:
                after[i] = {**known[b], b: done[b]}
                ready += waiting.pop(i, ())
    return [found[i] for i in range(len(block)) if real[i]]
