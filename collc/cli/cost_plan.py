"""What ``collc cost`` says of plans of MSCCL++, which have fewer operations of switches than schedules assume."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import attrs

from collc.ir.costs.cost import Cost
from collc.ir.diagnostic import CollcError

from ..tables.forms import rational

if TYPE_CHECKING:
    from ..driver.result import CollectiveResult

__all__ = ["plan_object", "plan_rows", "plan_time_of"]

Row = tuple[str, str, str]


def plan_time_of(result: CollectiveResult) -> Fraction | None:
    """Return the exact time per byte of a schedule as a plan of MSCCL++.

    None if its transfers share no links, if some ranks take no part (plans are for all ranks), or if it has no plan,
    since transfers overlap in part (C0578).
    """
    schedule, forest = result.schedule, result.forest
    if schedule is None or not getattr(schedule, "in_network", False) or schedule.collective.members is not None:
        return None
    from collc.ir.schedule import Forest, Schedule
    from collc.passes.one_sided.in_network import plan_time

    forest = forest if forest is None or isinstance(forest, Forest) else forest.unfold()
    steps = schedule if forest is None else attrs.evolve(forest, pieces=1).to_steps()
    if not isinstance(steps, Schedule) or steps.collective.weights:
        return None
    try:
        return plan_time(steps)
    except CollcError as problem:
        if problem.diagnostics[0].code != "C0578":
            raise
        return None


def plan_rows(c: Cost, time: Fraction | None) -> list[Row]:
    """Return the row of the table; none without a time."""
    if time is None:
        return []
    unit = "s/B" if c.unit == "B/s" else "per link unit"
    ratio = time / c.time_per_byte
    than = "as long as the schedule" if ratio == 1 else f"{float(ratio):.4g} times the schedule"
    return [("MSCCL++ plan", f"{float(time):.4g} {unit}", f"time as a MSCCL++ plan: {than}")]


def plan_object(time: Fraction | None) -> dict[str, object]:
    """Return the JSON key; none without a time."""
    return {} if time is None else rational("time_per_byte_mscclpp", time)
