"""What the scheduler of forests says of its trees."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import attrs

from collc.ir.costs.cost import Cost

if TYPE_CHECKING:
    from collc.passes.synthesis.forest.report import ForestReport

    from ..driver.result import CollectiveResult

__all__ = ["forest_report", "part_of", "scale_of"]


def forest_report(result: CollectiveResult) -> ForestReport | None:
    """Return what the scheduler of forests says of its trees; None for other schedulers."""
    passes = result.plans[0].passes if result.plans else ()
    if result.forest is None or not passes or not result.request.problem.is_whole:
        return None
    from collc.passes.synthesis.forest.report import report

    found = report(passes[0], result.request.problem, result.allreduce_bound)
    return found if found is None or found.sizes is not None else attrs.evolve(found, sizes=_chosen_sizes(result))


def _chosen_sizes(result: CollectiveResult) -> tuple[int, int | None] | None:
    """Return the sizes for which `auto` chose a schedule (bytes, both ends included); None without `auto`."""
    if result.window is not None:
        return result.window.low, result.window.high
    one = None if result.choice is None else result.choice.intervals[0]
    return None if one is None else (one.low, one.high)


def scale_of(c: Cost) -> int:
    """Return the units of bandwidth in one that is printed: bytes a second in a GB/s, or 1 for units of a link."""
    return 10**9 if c.unit == "B/s" else 1


def part_of(c: Cost, report: ForestReport) -> Fraction:
    """Return the part of the best bandwidth that the trees have."""
    if c.forest is None or not c.forest.one_over_x or report.one_over_x is None:
        return Fraction(1)
    if report.uneven and report.allreduce is not None:
        return 1 / (report.allreduce.value * c.forest.time_per_byte)
    return min(report.one_over_x * scale_of(c) / c.forest.one_over_x, Fraction(1))
