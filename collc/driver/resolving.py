"""Solving a schedule again for a number of chunks: the plan's scheduler, as configured, and the passes after it."""

from __future__ import annotations

from collections.abc import Sequence

from collc.ir.levels import Level
from collc.ir.schedule import Schedule
from collc.ir.spec import Problem
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.symmetric_forest import SymmetricForest
from collc.passes.base import Pass, Solver, solving
from collc.passes.synthesis.groups.applied import scheduled

__all__ = ["solver_of", "unfolded_for"]


def solver_of(passes: Sequence[Pass], problem: Problem) -> Solver | None:
    """Return the solver that runs ``passes`` again on ``problem`` for another number of chunks.

    None if the first pass takes no number of chunks, or makes no schedule: the scheduler of a schedule that was read is
    unknown.
    """
    scheduler = passes[0] if passes else None
    if scheduler is None or scheduler.takes is not Problem or scheduler.with_chunks(1) is None:
        return None

    def solve(chunks: int) -> Schedule | SymmetricSchedule:
        ir: Level = problem
        with solving(None):
            for this in (scheduler.with_chunks(chunks), *passes[1:]):
                assert this is not None
                ir = scheduled(this, ir) if isinstance(ir, Problem) else this.run(unfolded_for(this, ir))
        assert isinstance(ir, Schedule | SymmetricSchedule), "passes before one that asks for a solver leave schedules"
        return ir

    return Solver(solve, scheduler.takes_fewer)


def unfolded_for(this: Pass, ir: Level) -> Level:
    """Return an IR as a pass takes it: a template unfolded unless the pass takes templates.

    A template of trees goes only to a pass with an option for templates that is set.
    """
    if isinstance(ir, SymmetricForest):
        return ir if this.takes_templates and this.of_all_ranks() != this else ir.unfold()
    return ir.unfold() if isinstance(ir, SymmetricSchedule) and not this.takes_templates else ir
