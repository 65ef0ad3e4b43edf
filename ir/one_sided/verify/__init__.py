"""The model of the executor of one-sided programs: executes them symbolically, and reports the result of each check."""

from __future__ import annotations

from ._turns import Alike, sizes_alike
from .program import verify_one_sided

__all__ = ["Alike", "sizes_alike", "verify_one_sided"]
