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
        made: dict[str, list[Array]] = {c: [] for c in INSTRUCTION_COLUMNS}
        owner: list[Array] = []
        for opcode in np.unique(ir.opcode).tolist():
            rows = np.flatnonzero(ir.opcode == opcode)
            given = {c: getattr(ir, c)[rows].astype(np.int64) for c in INSTRUCTION_COLUMNS}
            parts = _expand(Opcode(opcode), given, stage[ir.block[rows]])
            for part in parts:
                # What is to be added to is copied only from somewhere else.
                needed = np.ones(len(rows), dtype=bool)
                if len(parts) > 1 and part["opcode"] == Opcode.COPY:
                    needed = (given["src_buffer"] != given["dst_buffer"]) | (given["src_offset"] != given["dst_offset"])
                owner.append(rows[needed])
                for c, pieces in made.items():
                    pieces.append(np.broadcast_to(part[c], len(rows))[needed])
        source = np.concatenate(owner)
        by_owner = np.argsort(source, kind="stable")  # the parts of one stand in their order
        source = source[by_owner]
        columns: dict[str, Any] = {c: np.concatenate(parts)[by_owner] for c, parts in made.items()}
        program = attrs.evolve(
            ir, scratch=scratch, block_start=np.searchsorted(source, ir.block_start),
            dep_start=np.zeros(len(source) + 1, dtype=np.int64), deps=[], **columns,
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


def _expand(opcode: Opcode, row: dict[str, Array], stage: Array) -> list[dict[str, Any]]:
    """Return what instructions of one opcode become, each a dictionary of columns, in order."""
    if opcode not in UNFUSED_STEPS:
        return [row]
    count, src, dst = row["count"], (row["src_buffer"], row["src_offset"]), (row["dst_buffer"], row["dst_offset"])
    nowhere, aside = (0, 0), (int(Buffer.SCRATCH), stage)

    def part(opcode: Opcode, source: tuple[Any, Any], target: tuple[Any, Any]) -> dict[str, Any]:
        return dict(zip(INSTRUCTION_COLUMNS, (opcode, *source, *target, count), strict=True))

    if opcode == Opcode.RECV_COPY_SEND:
        return [part(Opcode.RECV, nowhere, dst), part(Opcode.SEND, dst, nowhere)]
    receive = part(Opcode.RECV, nowhere, aside)
    if opcode == Opcode.RECV_REDUCE_SEND:
        # The sum is only passed on: it is made where it was received.
        return [receive, part(Opcode.REDUCE, src, aside), part(Opcode.SEND, aside, nowhere)]
    parts = [receive, part(Opcode.COPY, src, dst), part(Opcode.REDUCE, aside, dst)]
    return [*parts, part(Opcode.SEND, dst, nowhere)] if opcode == Opcode.RECV_REDUCE_COPY_SEND else parts
