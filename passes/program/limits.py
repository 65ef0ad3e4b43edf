"""Limits of runtimes, as options of passes on Programs, and how runtimes count steps."""

from __future__ import annotations

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.diagnostic import error
from collc.ir.program import Opcode, Program

from ..base import Pass
from .unfuse import UNFUSED_STEPS

__all__ = ["check_limits", "steps"]


#: how many instructions each opcode becomes
_PARTS = np.array([UNFUSED_STEPS.get(opcode, 1) for opcode in Opcode])


def check_limits(this: Pass) -> None:
    """Raise C0508 if a numeric option of a pass is less than 1."""
    for field in attrs.fields(type(this)):
        value = getattr(this, field.name)
        if isinstance(value, int) and not isinstance(value, bool) and value < 1:
            name = field.name.replace("_", "-")
            raise error("C0508", f"{this.name} needs {name} of at least 1, found {value}")


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
