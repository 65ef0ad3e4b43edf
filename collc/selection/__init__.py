"""The scheduler ``auto``: the fastest algorithm for each size, as the simulator predicts, with the reasons.

Candidates are measured once. The time of a schedule is piecewise affine in the size. So the fastest algorithm for every
size, and the sizes at which it changes, follow exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collc.ir.later import imported_later

if TYPE_CHECKING:
    from .algorithm import Algorithm
    from .choice import Choice, Interval, Measured, Skipped
    from .memory import Memory
    from .options import Auto
    from .selector import Selector

__all__ = ["Algorithm", "Auto", "Choice", "Interval", "Measured", "Memory", "Selector", "Skipped"]

# Checking the options of `auto` needs no simulator.
__getattr__ = imported_later(__name__, {
    "Algorithm": "algorithm", "Auto": "options", "Choice": "choice", "Interval": "choice", "Measured": "choice",
    "Memory": "memory",     "Selector": "selector", "Skipped": "choice",
})  # fmt: skip
