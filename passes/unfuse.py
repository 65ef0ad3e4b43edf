"""Doing without fused instructions, for runtimes that lack them."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs
import numpy as np

from collc.ir.program import INSTRUCTION_COLUMNS, Buffer, Opcode, Program

from .base import Pass
from .hazards import sequential_order, synchronize

__all__ = ["UNFUSED_STEPS", "Unfuse"]

Array = np.ndarray[Any, np.dtype[Any]]

#: The most instructions that one of each opcode becomes.
UNFUSED_STEPS = {
    Opcode.RECV_REDUCE_COPY: 3, Opcode.RECV_COPY_SEND: 2, Opcode.RECV_REDUCE_SEND: 3, Opcode.RECV_REDUCE_COPY_SEND: 4,
}  # fmt: skip


@attrs.frozen
class Unfuse(Pass):
    """Replace fused instructions: receive aside, copy what is to be added to, add, send.

    recv-reduce-copy becomes recv to scratch, then (where src and dst differ) copy src to dst, then reduce scratch into
    dst. Every block has scratch of its own for what it receives, as large as its largest message; program order
    protects it.
    """

    name: ClassVar[str] = "unfuse"
    summary: ClassVar[str] = "replace fused instructions by receives, copies and reductions"
    takes: ClassVar[type] = Program
    gives: ClassVar[type] = Program

    def run(self, ir: Program) -> Program:
        fused = np.isin(ir.opcode, [int(op) for op in UNFUSED_STEPS])
        if not fused.any():
            return ir
        stage, scratch = _stages(ir, fused)
        order = sequential_order(ir)
        rows: list[tuple[int, ...]] = []
        owner: list[int] = []
        for i in range(ir.num_instructions):
            row = tuple(int(getattr(ir, c)[i]) for c in INSTRUCTION_COLUMNS)
            parts = _expand(row, int(stage[ir.block[i]])) if fused[i] else [row]
            rows += parts
            owner += [i] * len(parts)
        table = np.array(rows, dtype=np.int64)
        source = np.array(owner, dtype=np.int64)
        columns: dict[str, Any] = {c: table[:, k] for k, c in enumerate(INSTRUCTION_COLUMNS)}
        program = attrs.evolve(
            ir, scratch=scratch, block_start=np.searchsorted(source, ir.block_start),
            dep_start=np.zeros(len(rows) + 1, dtype=np.int64), deps=[], **columns,
        )  # fmt: skip
        return synchronize(program, np.argsort(np.argsort(order[source], kind="stable"), kind="stable"))


def _stages(program: Program, fused: Array) -> tuple[Array, Array]:
    """Return where each block's receiving scratch begins, and the scratch of each rank with it."""
    need = np.zeros(program.num_blocks, dtype=np.int64)
    np.maximum.at(need, program.block[fused], program.count[fused].astype(np.int64))
    before = np.cumsum(need) - need
    first = before[np.minimum(program.rank_blocks[:-1], program.num_blocks - 1)]
    total = np.zeros(program.num_ranks, dtype=np.int64)
    np.add.at(total, program.block_rank, need)
    stage = before - first[program.block_rank] + program.scratch[program.block_rank]
    return stage, program.scratch + total


def _expand(row: tuple[int, ...], stage: int) -> list[tuple[int, ...]]:
    opcode, src_buffer, src, dst_buffer, dst, count = row
    aside: tuple[int, ...] = (Opcode.RECV, 0, 0, Buffer.SCRATCH, stage, count)
    if opcode == Opcode.RECV_COPY_SEND:
        return [(Opcode.RECV, 0, 0, dst_buffer, dst, count), (Opcode.SEND, dst_buffer, dst, 0, 0, count)]
    if opcode == Opcode.RECV_REDUCE_SEND:
        # The sum is only passed on: it is made where it was received.
        add = (Opcode.REDUCE, src_buffer, src, Buffer.SCRATCH, stage, count)
        return [aside, add, (Opcode.SEND, Buffer.SCRATCH, stage, 0, 0, count)]
    parts: list[tuple[int, ...]] = [aside]
    if (src_buffer, src) != (dst_buffer, dst):
        parts.append((Opcode.COPY, src_buffer, src, dst_buffer, dst, count))
    parts.append((Opcode.REDUCE, Buffer.SCRATCH, stage, dst_buffer, dst, count))
    if opcode == Opcode.RECV_REDUCE_COPY_SEND:
        parts.append((Opcode.SEND, dst_buffer, dst, 0, 0, count))
    return parts
