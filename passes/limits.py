"""Limits of runtimes, as options of passes on Programs, and how runtimes count steps."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from collc.ir.diagnostic import error
from collc.ir.program import Program

from .unfuse import UNFUSED_STEPS

__all__ = ["check_limits", "steps"]

Array = np.ndarray[Any, np.dtype[Any]]


def check_limits(this: Any) -> None:
    """Raise C0508 where an option of a pass that is a number is less than 1."""
    for field in attrs.fields(type(this)):
        value = getattr(this, field.name)
        if isinstance(value, int) and not isinstance(value, bool) and value < 1:
            name = field.name.replace("_", "-")
            raise error("C0508", f"{this.name} needs {name} of at least 1, found {value}")


def steps(program: Program, fused: bool = True) -> Array:
    """Return the steps of each block as a runtime counts them: every wait of an instruction but the first is one more.

    Without ``fused`` instructions each counts as what it becomes.
    """
    each = np.maximum(np.diff(program.dep_start.astype(np.int64)), 1)
    if not fused:
        parts = np.ones(int(program.opcode.max(initial=0)) + 1, dtype=np.int64)
        for opcode, count in UNFUSED_STEPS.items():
            if opcode < len(parts):
                parts[opcode] = count
        each = each + parts[program.opcode] - 1
    total = np.zeros(program.num_blocks, dtype=np.int64)
    np.add.at(total, program.block, each)
    return total
