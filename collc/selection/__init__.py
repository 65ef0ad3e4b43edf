"""The scheduler ``auto``: which algorithm is fastest at which sizes, by what the simulator predicts, and why.

Candidates are measured once: what their schedules take on the links is piecewise affine in the size, so which is the
fastest at every size, and where another becomes so, is known exactly and without trying sizes.
"""

from __future__ import annotations

from .algorithm import Algorithm
from .choice import Choice, Interval, Measured, Skipped
from .options import Auto
from .selector import Selector

__all__ = ["Algorithm", "Auto", "Choice", "Interval", "Measured", "Selector", "Skipped"]
