"""How runtimes count steps."""

from __future__ import annotations

import numpy as np

from collc.ir.arrays import Array
from collc.ir.program import Opcode, Program

from .unfuse import UNFUSED_STEPS

__all__ = ["PARTS", "steps", "steps_of"]


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
