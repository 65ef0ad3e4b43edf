"""How runtimes count steps."""

from __future__ import annotations

import numpy as np

from collc.ir.arrays import Array
from collc.ir.laid_out import run_counts
from collc.ir.program import Opcode, Program
from collc.ir.symmetric_program import SymmetricProgram

from .unfuse import UNFUSED_STEPS

__all__ = ["PARTS", "image_steps", "instructions_and_free", "steps", "steps_of"]


#: how many instructions each opcode becomes
PARTS = np.array([UNFUSED_STEPS.get(opcode, 1) for opcode in Opcode])


def steps(program: Program, fused: bool = True) -> Array:
    """Return the steps of each block as a runtime counts them: each dependency after an instruction's first is a step.

    Without ``fused`` instructions each counts as the instructions that replace it.
    """
    number = program.num_dependencies
    return steps_of(program.opcode, number, program.block, program.num_blocks, fused)


def steps_of(opcode: Array, num_dependencies: Array, block: Array, num_blocks: int, fused: bool = True) -> Array:
    """Return the steps of blocks that are no program yet: the columns are those of instructions, in any order."""
    each = np.maximum(num_dependencies, 1)
    if not fused:
        each = each + PARTS[opcode] - 1
    total = np.zeros(num_blocks, dtype=np.int64)
    np.add.at(total, block, each)
    return total


def instructions_and_free(program: SymmetricProgram, most: int | None, fused: bool) -> tuple[Array, Array]:
    """Return how many instructions each message of a template is on each image, and how many dependencies are free.

    Both have the shape (images, messages). Runs have at most ``most`` chunks. Dependencies that are free take no step
    of their own: one of a message, or one of each of its runs in an all-to-all, whose shards come from many ranks.
    """
    runs = run_counts(program, most)
    runs = runs if fused else runs * PARTS[program.batched.opcode]
    return runs, runs if program.collective.kind == "alltoall" else np.ones_like(runs)


def image_steps(instructions: Array, free: Array, waits: Array, block: Array, num_blocks: int) -> Array:
    """Return the most steps of each block on any image, by :func:`instructions_and_free`; ``waits`` by message."""
    each = instructions + np.maximum(waits - free, 0)
    total = np.zeros((num_blocks, len(each)), dtype=np.int64)
    np.add.at(total, block, each.T)
    found: Array = total.max(axis=1, initial=0)
    return found
