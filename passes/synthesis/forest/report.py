"""What can be said of a forest beside its cost: what fewer trees give up, and what other trees might reach."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import attrs

from collc.ir.spec import Problem

from .allreduce_program import AllreduceBound
from .scheduler import ForestScheduler

__all__ = ["ForestReport", "report"]


@attrs.frozen
class ForestReport:
    """``one_over_x`` is the least that trees from these roots take (as :attr:`collc.ir.cost.ForestCost.one_over_x`, but
    in the topology's unit), reached by ``k`` trees a root. Of an allreduce it is both phases after each other; nothing
    where it goes through one rank, since the phases then use different directions of links.

    ``tried`` are the numbers of trees that were looked at, each with its part of the best bandwidth. ``allreduce``
    bounds what an allreduce may reach whose ranks are roots of different amounts; nothing for other collectives, and
    where the program would be too large.
    """

    one_over_x: Fraction | None
    k: int
    tried: tuple[tuple[int, Fraction], ...]
    allreduce: AllreduceBound | None


def report(scheduler: Any, problem: Problem, bound: AllreduceBound | None) -> ForestReport | None:
    """Return what a :class:`ForestScheduler` has to say of a problem it solved; nothing for other schedulers.

    ``bound`` is the allreduce program's, where there is one.
    """
    if not isinstance(scheduler, ForestScheduler):
        return None
    choices, kind = scheduler.choices(problem), problem.collective.kind
    least: Fraction | None = None
    if kind != "allreduce" or scheduler.via != "reduce":
        least = sum((choice.optimum.one_over_x for choice in choices), Fraction(0))
        least *= 2 if kind == "allreduce" and len(choices) == 1 else 1  # the way back is like the way there
    return ForestReport(least, max(choice.optimum.k for choice in choices), choices[0].tried, bound)
