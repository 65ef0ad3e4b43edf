"""Compares the program that a runtime executes of a file with the emitted program.

A file has no operation, type or size, and no `nop` of the program: other steps take over its dependencies. So this
module compares instructions one by one, and dependencies by their effect: which instructions of its rank have finished
before each instruction.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from collc.ir.arrays import Array, Columns
from collc.ir.collective import CUSTOM
from collc.ir.program import BLOCK_COLUMNS, INSTRUCTION_COLUMNS, Opcode, Program
from collc.ir.progress import progress

from .model import Algorithm
from .program import collective_of, to_program

__all__ = ["differences"]


def differences(algorithm: Algorithm, emitted: Program) -> Iterator[str]:
    """Yield the differences between a correct file and the ``emitted`` program."""
    collective = emitted.collective
    found = to_program(algorithm, collective).program
    unnamed = collective.kind == CUSTOM or collective.members is not None
    custom = collective if unnamed and algorithm.coll == CUSTOM else None
    named = collective_of(algorithm, custom, collective.root or 0)
    for name in ("kind", "num_ranks"):
        if getattr(named, name) != getattr(collective, name):
            yield f"{name} is {getattr(named, name)}, not {getattr(collective, name)}"
            return
    if found.chunks != emitted.chunks or not np.array_equal(found.scratch, emitted.scratch):
        yield "shards or scratch have another number of chunks"
    blocks, steps = _blocks(emitted)
    if any(not np.array_equal(getattr(found, name), blocks[name]) for name in BLOCK_COLUMNS):
        yield "the threadblocks differ"
        return
    rows = [np.flatnonzero(one.opcode != Opcode.NOP) for one in (found, emitted)]
    if not np.array_equal(np.bincount(found.block.take(rows[0]), minlength=found.num_blocks), steps):
        yield "the threadblocks have more or fewer instructions"
        return
    for name in INSTRUCTION_COLUMNS:
        wrong = np.flatnonzero(getattr(found, name).take(rows[0]) != getattr(emitted, name).take(rows[1]))
        if len(wrong):
            yield f"{found.place(int(rows[0][wrong[0]]))} has another {name.replace('_', ' ')}"
    if _has_same_dependencies(found, emitted, *rows):
        return
    for row, before, due in zip(rows[0].tolist(), _finished(found), _finished(emitted), strict=True):
        if before != due:
            yield f"{found.place(row)} has dependencies with another effect"
            return


def _blocks(program: Program) -> tuple[dict[str, Array], Array]:
    """Return the columns of blocks, and the number of instructions of each, without NOPs.

    A rank without blocks gets an empty one.
    """
    steps = np.bincount(program.block.compress(program.opcode != Opcode.NOP), minlength=program.num_blocks)
    idle = np.flatnonzero(np.diff(program.rank_blocks) == 0)
    at = program.rank_blocks[idle]
    fill: Columns = {"block_rank": idle, "send_peer": -1, "recv_peer": -1, "channel": 0}
    columns = {name: np.insert(getattr(program, name).astype(np.int64), at, fill[name]) for name in BLOCK_COLUMNS}
    return columns, np.insert(steps, at, 0)


def _has_same_dependencies(found: Program, emitted: Program, kept: Array, due: Array) -> bool:
    """Return whether both have identical dependencies, so that their effects need no computation.

    ``kept`` and ``due`` are the instructions of both, without NOPs.
    """
    is_kept = np.zeros(found.num_instructions, dtype=bool)
    is_kept[kept] = True
    if len(due) < emitted.num_instructions or not is_kept.take(found.deps).all():
        return False
    count = np.diff(found.dep_start.astype(np.int64))
    deps = (np.cumsum(is_kept) - 1).take(found.deps)
    return (
        int(count.sum()) == int(count.take(kept).sum())
        and np.array_equal(count.take(kept), np.diff(emitted.dep_start.astype(np.int64)))
        and np.array_equal(deps, emitted.deps)
    )


def _finished(program: Program) -> list[tuple[tuple[int, int], ...]]:
    """Return for each instruction how many of each other block of its rank have finished before it, without NOPs.

    Blocks with 0 are absent.
    """
    block, real = program.block.tolist(), (program.opcode != Opcode.NOP).tolist()
    start, ends = program.block_start.tolist(), program.block_start[1:].tolist()
    first, deps = program.dep_start.tolist(), program.deps.tolist()
    at, done = start[:-1], [0] * program.num_blocks
    known: list[dict[int, int]] = [{} for _ in range(program.num_blocks)]
    after: dict[int, dict[int, int]] = {}
    named = set(deps)
    found: list[tuple[tuple[int, int], ...]] = [()] * program.num_instructions
    waiting: dict[int, list[int]] = {}
    ready, left, total = list(range(program.num_blocks)), len(block), len(block)
    while ready:
        progress("comparing dependencies", total - left, total)
        b = ready.pop()
        while at[b] < ends[b]:
            i = at[b]
            missing = next((d for d in deps[first[i] : first[i + 1]] if d not in after), None)
            if missing is not None:
                waiting.setdefault(missing, []).append(b)
                break
            for d in deps[first[i] : first[i + 1]]:
                for other, number in after[d].items():
                    known[b][other] = max(number, known[b].get(other, 0))
            found[i] = tuple(sorted((other, number) for other, number in known[b].items() if other != b and number))
            done[b] += real[i]
            at[b] += 1
            left -= 1
            if i in named:
                after[i] = {**known[b], b: done[b]}
                ready += waiting.pop(i, ())
    return [found[i] for i in range(len(block)) if real[i]]
