"""Replace fused instructions, for runtimes without them."""

from __future__ import annotations

from typing import ClassVar, TypeAlias

import attrs
import numpy as np

from collc.ir.arrays import Array, Columns, distinct, lexsort
from collc.ir.editing import take, with_dependencies
from collc.ir.frozen import frozen
from collc.ir.laid_out import keep_runs
from collc.ir.machine import connections
from collc.ir.program import INSTRUCTION_COLUMNS, Buffer, Opcode, Program
from collc.ir.ragged import group_starts, inverse, starts
from collc.ir.symmetric_program import AnyProgram, SymmetricProgram

from ..analysis.hazards import sequential_order, synchronize
from ..base import Pass

__all__ = ["UNFUSED_STEPS", "Unfuse", "unfused", "unfused_messages"]

#: The most instructions that one of each opcode becomes.
UNFUSED_STEPS = {
    Opcode.RECV_REDUCE_COPY: 3, Opcode.RECV_COPY_SEND: 2, Opcode.RECV_REDUCE_SEND: 3, Opcode.RECV_REDUCE_COPY_SEND: 4,
}  # fmt: skip


@frozen
class Unfuse(Pass):
    """Replace fused instructions: receive into scratch, copy the other operand, add, send.

    recv-reduce-copy becomes recv to scratch, then (if src and dst differ) copy src to dst, then reduce scratch into
    dst. Every block has its own scratch for received data, as large as its largest message; program order protects it.

    A template is only marked as ``unfused``. `lay-out` replaces the instructions when it lists the ranks, because each
    run of a message is received and added before the next run.
    """

    name: ClassVar[str] = "unfuse"
    summary: ClassVar[str] = "replace fused instructions by receives, copies and reductions"
    takes: ClassVar[type] = Program
    gives: ClassVar[type] = Program

    def works_by_orbits(self, ir: SymmetricProgram) -> bool:
        return True

    def run(self, ir: AnyProgram) -> AnyProgram:
        if isinstance(ir, SymmetricProgram):
            return _marked(ir) if ir.seed.fused.any() else ir
        return unfused(ir, sequential_order(ir)) if ir.fused.any() else ir


def _marked(ir: SymmetricProgram) -> SymmetricProgram:
    found = attrs.evolve(ir, unfused=True)
    keep_runs(ir, found, None, None)
    return found


def unfused(program: Program, order: Array) -> Program:
    """Return a program without fused instructions, and with the dependencies that it needs.

    ``order`` is the position of each instruction in a correct execution.
    """
    plain, source = _replacements(program)
    return synchronize(plain, inverse(lexsort([order[source]])))


def unfused_messages(batched: Program) -> Program:
    """Return the messages of a template (:attr:`SymmetricProgram.batched`) without fused instructions, for its time.

    What replaces a message has its dependencies, and those on it are on the last instruction. They do not delay what is
    received into scratch.
    """
    plain, source = _replacements(batched)
    first = group_starts(source, batched.num_instructions)
    begins = first[:-1] + (plain.receives & (plain.dst_buffer == Buffer.SCRATCH) & batched.fused[source])[first[:-1]]
    found = with_dependencies(plain, begins[batched.dependent], first[batched.deps.astype(np.int64) + 1] - 1)
    found.found["connections"] = connections(batched)
    return found


def _replacements(program: Program) -> tuple[Program, Array]:
    """Return a program without fused instructions and without dependencies, and the old row of each new one."""
    stage, scratch = _stages(program, program.fused)
    columns_by_opcode: dict[str, list[Array]] = {c: [] for c in INSTRUCTION_COLUMNS}
    owner: list[Array] = []
    for opcode in distinct(program.opcode).tolist():
        rows = np.flatnonzero(program.opcode == opcode)
        given = {c: getattr(program, c)[rows].astype(np.int64) for c in INSTRUCTION_COLUMNS}
        replacements = _replaced(Opcode(opcode), given, stage[program.block[rows]])
        for one in replacements:
            # The other operand is copied only if it is elsewhere.
            needed = np.ones(len(rows), dtype=bool)
            if len(replacements) > 1 and one["opcode"] == Opcode.COPY:
                needed = (given["src_buffer"] != given["dst_buffer"]) | (given["src_offset"] != given["dst_offset"])
            owner.append(rows[needed])
            for c, columns_of in columns_by_opcode.items():
                columns_of.append(np.broadcast_to(one[c], len(rows))[needed])
    source = np.concatenate(owner)
    by_owner = lexsort([source])  # the replacements of one instruction keep their order
    source = source[by_owner]
    columns: Columns = {c: np.concatenate(listed)[by_owner] for c, listed in columns_by_opcode.items()}
    return take(program, source, scratch=scratch, **columns), source


def _stages(program: Program, fused: Array) -> tuple[Array, Array]:
    """Return where each block's scratch for received data begins, and the scratch of each rank with it."""
    need = np.zeros(program.num_blocks, dtype=np.int64)
    np.maximum.at(need, program.block[fused], program.count[fused].astype(np.int64))
    before = starts(need)
    first = before[program.rank_blocks[:-1]]
    total = np.zeros(program.num_ranks, dtype=np.int64)
    np.add.at(total, program.block_rank, need)
    stage = before[:-1] - first[program.block_rank] + program.scratch[program.block_rank]
    return stage, program.scratch + total


#: buffers and offsets, each one number for all instructions or a column
Place: TypeAlias = tuple[Array | int, Array | int]


def _replaced(opcode: Opcode, row: dict[str, Array], stage: Array) -> list[Columns]:
    """Return the replacements of instructions of one opcode, each a dictionary of columns, in order."""
    if opcode not in UNFUSED_STEPS:
        return [row]
    count, src, dst = row["count"], (row["src_buffer"], row["src_offset"]), (row["dst_buffer"], row["dst_offset"])
    nowhere, aside = (0, 0), (int(Buffer.SCRATCH), stage)

    def instruction(opcode: Opcode, source: Place, target: Place) -> Columns:
        return dict(zip(INSTRUCTION_COLUMNS, (opcode, *source, *target, count), strict=True))

    if opcode == Opcode.RECV_COPY_SEND:
        return [instruction(Opcode.RECV, nowhere, dst), instruction(Opcode.SEND, dst, nowhere)]
    receive = instruction(Opcode.RECV, nowhere, aside)
    if opcode == Opcode.RECV_REDUCE_SEND:
        # The sum is only forwarded, so it is computed where the data were received.
        return [receive, instruction(Opcode.REDUCE, src, aside), instruction(Opcode.SEND, aside, nowhere)]
    replaced = [receive, instruction(Opcode.COPY, src, dst), instruction(Opcode.REDUCE, aside, dst)]
    return [*replaced, instruction(Opcode.SEND, dst, nowhere)] if opcode == Opcode.RECV_REDUCE_COPY_SEND else replaced
