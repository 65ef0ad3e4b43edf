"""The scheduler ``auto``: the fastest algorithm for each size, as the simulator predicts, with the reasons.

Candidates are measured once. The time of a schedule is piecewise affine in the size. So the fastest algorithm for every
size, and the sizes at which it changes, follow exactly.
"""

from __future__ import annotations

from .algorithm import Algorithm
from .choice import Choice, Interval, Measured, Skipped
from .options import Auto
from .selector import Selector

__all__ = ["Algorithm", "Auto", "Choice", "Interval", "Measured", "Selector", "Skipped"]
