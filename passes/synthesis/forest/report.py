"""A report on a forest beside its cost: the loss by fewer trees, and the bound for other trees."""

from __future__ import annotations

from fractions import Fraction
from math import gcd
from typing import TYPE_CHECKING

import attrs

from collc.ir.costs.pieces import USUAL_SIZE
from collc.ir.spec import Problem

from .allreduce_program import AllreduceBound, ReachedBound
from .allreduce_trees import optimal_number
from .scheduler import ForestScheduler

if TYPE_CHECKING:
    from ...base import Pass

__all__ = ["ForestReport", "report"]


@attrs.frozen
class ForestReport:
    """``one_over_x`` is the least time of trees from these roots, reached by ``k`` trees per root.

    It is that of :class:`~collc.ir.costs.cost.ForestCost`, in the topology's unit. For an allreduce it is both phases
    together; None for an allreduce through one rank, whose phases use different directions of links. If links or roots
    that are divided ``uneven`` are faster than equal shards, it is theirs; with ``whole``, ``k`` are then the trees of
    the whole vector.

    ``tried`` are the numbers of trees tried, each with its part of the best bandwidth. ``allreduce`` bounds an
    allreduce whose ranks are roots of different amounts; None for other collectives, and if the program is too large.
    ``sizes`` (bytes, both included; None: no end) are those at which the number is the fastest; None if it was given.
    """

    one_over_x: Fraction | None
    k: int
    tried: tuple[tuple[int, Fraction], ...]
    allreduce: AllreduceBound | ReachedBound | None
    uneven: bool = False
    whole: bool = False
    sizes: tuple[int, int | None] | None = None


def report(scheduler: Pass, problem: Problem, bound: AllreduceBound | ReachedBound | None) -> ForestReport | None:
    """Return the report of a :class:`ForestScheduler` on a problem it solved; None for other schedulers.

    ``bound`` is the allreduce program's, if there is one.
    """
    if not isinstance(scheduler, ForestScheduler):
        return None
    choices, kind = scheduler.choices(problem), problem.collective.kind
    sizes = _sizes_of_choice(scheduler, problem)
    least: Fraction | None = None
    if kind != "allreduce" or scheduler.via != "reduce":
        least = sum((choice.optimum.one_over_x for choice in choices), Fraction(0))
        if problem.collective.weights is not None:  # per byte of M, as the cost
            least *= Fraction(gcd(*problem.collective.weights), problem.collective.whole)
        least *= 2 if kind == "allreduce" and len(choices) == 1 else 1  # both phases take the same time
    k = max(choice.optimum.k for choice in choices)
    if bound is not None and bound.value > bound.composed and scheduler.divides(problem):
        if isinstance(bound, ReachedBound):
            k, whole = bound.k, True
        else:
            k, whole = optimal_number(problem.topology, bound.optimum)
        return ForestReport(problem.topology.num_ranks / bound.value, k, choices[0].tried, bound, True, whole, sizes)
    return ForestReport(least, k, choices[0].tried, bound, sizes=sizes)


def _sizes_of_choice(scheduler: ForestScheduler, problem: Problem) -> tuple[int, int] | None:
    if not scheduler.chooses_trees:
        return None
    size = USUAL_SIZE if problem.collective.size is None else problem.collective.size
    return size, size
