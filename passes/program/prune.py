"""Remove dependencies that other dependencies imply."""

from __future__ import annotations

from typing import ClassVar

from collc.ir.frozen import frozen
from collc.ir.program import Program
from collc.ir.symmetric_program import AnyProgram, SymmetricProgram

from ..analysis.clocks import without_implied
from ..base import Pass
from .orbit_messages import without_implied_waits

__all__ = ["PruneDependencies"]


@frozen
class PruneDependencies(Pass):
    """Remove every dependency that follows from others: the transitive reduction over all threadblocks of a rank.

    An instruction need not depend on an instruction on which an earlier one of its block depends, or on which another
    of its dependencies depends. Runtimes allow one dependency per step; each further one costs a step. The pass keeps
    dependencies that only messages through other ranks imply.
    """

    name: ClassVar[str] = "prune-dependencies"
    summary: ClassVar[str] = "remove dependencies that other dependencies imply"
    takes: ClassVar[type] = Program
    gives: ClassVar[type] = Program

    def works_by_orbits(self, ir: SymmetricProgram) -> bool:
        return True

    def run(self, ir: AnyProgram) -> AnyProgram:
        if isinstance(ir, SymmetricProgram):
            return without_implied_waits(ir)
        return without_implied(ir) if len(ir.deps) else ir
