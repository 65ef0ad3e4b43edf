"""The model of the executor of one-sided programs: executes them symbolically, and reports the result of each check."""

from __future__ import annotations

from .program import verify_one_sided

__all__ = ["verify_one_sided"]
