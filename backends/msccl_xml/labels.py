"""The instructions of a program as an MSCCL-XML file names them, for traces."""

from __future__ import annotations

from collc.ir.program import Program

from ..simulator.program_trace import Label, labels_of
from .reader import read

__all__ = ["file_labels"]

_ATTRIBUTES = ("s", "type", "srcbuf", "srcoff", "dstbuf", "dstoff", "cnt", "depid", "deps", "hasdep")


def file_labels(program: Program, text: str) -> list[Label]:
    """Return a label for every instruction: ``s: type`` of its step in the file, with the step's attributes.

    The file may have more steps, `nop`, that only wait. An instruction without a step keeps the IR's name.
    """
    steps = {
        (gpu.id, block.id): [step for step in block.steps if step.type != "nop"]
        for gpu in read(text).gpus for block in gpu.threadblocks
    }  # fmt: skip
    labels, start = labels_of(program), program.block_start.tolist()
    ids, ranks = program.block_id.tolist(), program.block_rank.tolist()
    for block in range(program.num_blocks):
        rows = [row for row in range(start[block], start[block + 1]) if program.opcode[row]]
        for row, step in zip(rows, steps.get((ranks[block], ids[block]), []), strict=False):
            arguments = {name: getattr(step, name) for name in _ATTRIBUTES}
            labels[row] = Label(f"{step.s}: {step.type}", arguments)
    return labels
