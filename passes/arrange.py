"""Rearranging the instructions of a Program: into groups that become one, into other blocks."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from collc.ir.machine import execute
from collc.ir.program import BLOCK_COLUMNS, INSTRUCTION_COLUMNS, Opcode, Program

from .hazards import synchronize

__all__ = ["merge_rows", "places", "reblock", "split_counts"]

Array = np.ndarray[Any, np.dtype[Any]]

_READS_SRC = np.array([op.reads_src for op in Opcode])
_WRITES_DST = np.array([op.writes_dst for op in Opcode])


def merge_rows(program: Program, joined: Array) -> Program | None:
    """Merge every row that ``joined`` marks into the row before it (same block, same opcode, adjacent places).

    Returns the program with fresh dependencies, or nothing where rows wait for each other so that no merged
    execution exists.
    """
    group = np.cumsum(~joined) - 1
    heads = np.flatnonzero(~joined)
    count = np.add.reduceat(program.count.astype(np.int64), heads) if len(heads) else program.count
    columns: dict[str, Any] = {c: getattr(program, c)[heads] for c in INSTRUCTION_COLUMNS if c != "count"}
    block_start = np.searchsorted(heads, program.block_start)
    waits = np.diff(program.dep_start.astype(np.int64)).astype(np.int64)
    waiting = np.repeat(group, waits)
    pairs = np.unique(np.stack([waiting, group[program.deps]]), axis=1) if len(program.deps) else np.zeros((2, 0), int)
    dep_start = np.searchsorted(pairs[0], np.arange(len(heads) + 1))
    merged = attrs.evolve(program, count=count, block_start=block_start, dep_start=dep_start, deps=pairs[1], **columns)
    run = execute(merged)
    return None if run.deadlock else synchronize(merged, places(run.finished))


def places(finished: Array) -> Array:
    """Return each instruction's place in the order in which they finished."""
    order = np.empty(len(finished), dtype=np.int64)
    order[finished] = np.arange(len(finished))
    return order


def split_counts(program: Program, order: Array, most: int) -> tuple[Program, Array]:
    """Cut instructions of more than ``most`` chunks into several; return the program (without waits) and its order."""
    count = program.count.astype(np.int64)
    pieces = np.maximum(-(-count // most), 1)
    row = np.repeat(np.arange(len(count)), pieces)
    nth = np.arange(len(row)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    columns: dict[str, Any] = {c: getattr(program, c)[row] for c in ("opcode", "src_buffer", "dst_buffer")}
    for c, used in (("src_offset", _READS_SRC), ("dst_offset", _WRITES_DST)):
        columns[c] = getattr(program, c)[row] + np.where(used[program.opcode[row]], nth * most, 0)
    start = np.concatenate([[0], np.cumsum(pieces)])[program.block_start]
    cut = attrs.evolve(
        program, count=np.minimum(count[row] - nth * most, most), block_start=start,
        dep_start=np.zeros(len(row) + 1, dtype=np.int64), deps=[], **columns,
    )  # fmt: skip
    return cut, np.argsort(np.argsort(order[row], kind="stable"), kind="stable")


def reblock(program: Program, order: Array, blocks: dict[str, Array], owner: Array) -> Program:
    """Put every instruction into block ``owner`` of ``blocks`` (columns of the new blocks, sorted by rank).

    Within a block instructions stand in ``order``. Returns the program with fresh dependencies.
    """
    rows = np.lexsort((order, owner))
    columns: dict[str, Any] = {c: getattr(program, c)[rows] for c in INSTRUCTION_COLUMNS}
    columns |= {c: blocks[c] for c in BLOCK_COLUMNS}
    start = np.searchsorted(owner[rows], np.arange(len(blocks["block_rank"]) + 1))
    moved = attrs.evolve(
        program, block_start=start, dep_start=np.zeros(len(rows) + 1, dtype=np.int64), deps=[],
        **columns,
    )  # fmt: skip
    return synchronize(moved, order[rows])
