"""How runtimes count steps."""

from __future__ import annotations

import numpy as np

from collc.ir.arrays import Array
from collc.ir.program import Opcode, Program

from .unfuse import UNFUSED_STEPS

__all__ = ["steps"]


#: how many instructions each opcode becomes
_PARTS = np.array([UNFUSED_STEPS.get(opcode, 1) for opcode in Opcode])


def steps(program: Program, fused: bool = True) -> Array:
    """Return the steps of each block as a runtime counts them: each dependency after an instruction's first is a step.

    Without ``fused`` instructions each counts as the instructions that replace it.
    """
    each = np.maximum(program.num_dependencies, 1)
    if not fused:
        each = each + _PARTS[program.opcode] - 1
    total = np.zeros(program.num_blocks, dtype=np.int64)
    np.add.at(total, program.block, each)
    return total
