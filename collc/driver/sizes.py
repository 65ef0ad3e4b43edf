"""A collective at other sizes: each is planned as a compilation for that size would plan it.

Trees go in as many pieces as are best at the size, `swing` exchanges whole vectors if they are short, `auto` chooses
another scheduler. What does not depend on the size is not computed again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from collc.ir.costs.cost import Cost, cost
from collc.ir.schedule import Forest
from collc.ir.spec import CollectiveRequest, Problem
from collc.ir.symmetric_forest import SymmetricForest

from .automatic import compile_automatic
from .decided import compile_decided
from .relaying import may_relay
from .result import CollectiveResult

if TYPE_CHECKING:
    from collc.passes.base import Pass

__all__ = [
    "algorithm_name", "at_size", "cost_at_size", "is_planned_by_size", "num_pieces", "own_size", "scheduler_of",
]  # fmt: skip


def at_size(result: CollectiveResult, size: int) -> CollectiveResult:
    """Return the result of the same collective for M of ``size`` bytes, the given one if it is the same schedule.

    An algorithm of a range of sizes stays: its file serves all calls of the range.
    """
    if result.request.problem.collective.size == size or not is_planned_by_size(result):
        return result
    if result.kept is not None:
        return compile_automatic(_with_size(result.kept.request, size), (), result.settings, None, result.kept)
    request = _with_size(result.request, size)
    scheduler, *later = result.plans[0].passes
    if result.forest is None or later or scheduler.chooses_trees or may_relay(request.problem):
        return compile_decided(request, (), result.settings)
    trees = scheduler.resized(request.problem, result.forest)
    assert isinstance(trees, (Forest, SymmetricForest)), "a scheduler of forests returns one"
    if trees.pieces == result.forest.pieces:
        return result
    settings = attrs.evolve(result.settings, verify="off")  # the trees were executed, and are the same
    return compile_decided(request, (), settings, ready={scheduler: trees})


def is_planned_by_size(result: CollectiveResult) -> bool:
    """Return whether another size of the collective may have another schedule."""
    if result.window is not None or result.algorithms:
        return False
    if result.kept is not None:
        return all(option.name != "size" for option in result.kept.request.schedule.options)
    scheduler = scheduler_of(result)
    if scheduler is None or scheduler.by_hand:
        return False
    problem = result.request.problem
    return len(result.plans[0].passes) > 1 or scheduler.plans_by_size(problem) or may_relay(problem)


def cost_at_size(result: CollectiveResult, base: CollectiveResult) -> Cost:
    """Return the cost of what :func:`at_size` made of ``base``, with the bounds of ``base``."""
    if result is base or result.schedule is None:
        return base.plain_cost
    return cost(result.schedule, base.plain_cost)


def num_pieces(result: CollectiveResult) -> int:
    """Return in how many pieces the schedule sends the data, one after the other."""
    if result.forest is not None:
        return result.forest.pieces
    scheduler = scheduler_of(result)
    return 1 if scheduler is None else scheduler.num_pieces(result.request.problem) or 1


def algorithm_name(result: CollectiveResult) -> str:
    """Return the algorithm that `auto` chose for one size; empty for other schedulers."""
    choice = result.choice
    return "" if choice is None or choice.ranged else choice.intervals[0].algorithm.name


def own_size(result: CollectiveResult) -> int | None:
    """Return the size of the collective as declared; None without one."""
    request = result.request if result.kept is None else result.kept.request
    return request.problem.collective.size


def _with_size(request: CollectiveRequest, size: int) -> CollectiveRequest:
    return attrs.evolve(request, problem=request.problem.sized(size))


def scheduler_of(result: CollectiveResult) -> Pass | None:
    """Return the scheduler of a result; None for a schedule that was read."""
    first = result.plans[0].passes[:1] if result.plans else ()
    return first[0] if first and first[0].takes is Problem else None
