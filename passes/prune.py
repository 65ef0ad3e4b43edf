"""Leaving out waits that other waits imply."""

from __future__ import annotations

from typing import ClassVar

import attrs

from collc.ir.program import Program

from .base import Pass
from .clocks import without_implied

__all__ = ["PruneDependencies"]


@attrs.frozen
class PruneDependencies(Pass):
    """Leave out every wait that follows from others: the transitive reduction over all threadblocks of a rank.

    An instruction need not wait for what an earlier one of its block has waited for, nor for what something else that
    it waits for has. Runtimes take one wait a step; every further one costs a step of its own. What only messages by
    way of other ranks imply is kept.
    """

    name: ClassVar[str] = "prune-dependencies"
    summary: ClassVar[str] = "leave out waits that other waits imply"
    takes: ClassVar[type] = Program
    gives: ClassVar[type] = Program

    def run(self, ir: Program) -> Program:
        return without_implied(ir) if len(ir.deps) else ir
