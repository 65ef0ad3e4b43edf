"""Faults and their cost, as ``collc replan`` prints them: texts, and objects for JSON."""

from __future__ import annotations

from fractions import Fraction

from collc.frontends.coll.faults import Fault
from collc.ir.shown import counted

from ..driver.replan import FaultCost
from ..driver.result import Replan
from ..tables.columns import Cell, with_floats
from ..tables.forms import rational

__all__ = [
    "cost_cells",
    "cost_object",
    "cost_text",
    "fault_object",
    "per_byte",
    "plan_text",
    "ranks_before",
    "times_text",
]

#: bound kind -> what a schedule is optimal among
_AMONG = {"all-schedules": "all schedules", "tree-schedules": "tree schedules", "multi-commodity-flow": "all routes"}


def fault_object(fault: Fault) -> dict[str, object]:
    """Return the JSON object of a fault."""
    return {"kind": fault.kind, "where": fault.where, "rate": fault.rate or None}


def cost_object(cost: FaultCost) -> dict[str, object]:
    """Return the JSON keys of what faults cost."""
    return {
        **rational("time_per_byte_healthy", cost.healthy), **rational("time_per_byte_bound", cost.optimum),
        **rational("time_per_byte", cost.reached), **rational("times_healthy", cost.times), "bound_kind": cost.among,
        "bound_met": cost.is_optimal,
    }  # fmt: skip


def cost_cells(cost: FaultCost) -> dict[str, Cell]:
    """Return the cells of what faults cost, by the keys of their columns."""
    exact: dict[str, Cell] = {
        "time_per_byte_healthy": cost.healthy, "time_per_byte_bound": cost.optimum, "time_per_byte": cost.reached,
        "times_healthy": cost.times,
    }  # fmt: skip
    return {**with_floats(exact), "bound_met": cost.is_optimal}


def plan_text(plan: Replan) -> str:
    """Return in words what stayed of a plan."""
    if plan.how == "kept":
        return f"{counted(plan.kept, 'tree')} kept, {plan.new} new"
    if plan.how == "unchanged":
        return "unchanged: all its links are left"
    if plan.how == "auto":
        return f"compiled again by auto, because of {plan.reason}"
    return f"compiled again: {plan.reason}" if plan.reason else "compiled again"


def cost_text(cost: FaultCost, unit: str) -> str:
    """Return the times before and after faults, and whether the new schedule is optimal."""
    before, now, bound = (per_byte(time, unit) for time in (cost.healthy, cost.reached, cost.optimum))
    among = _AMONG[cost.among]
    verdict = f"optimal among {among}" if cost.is_optimal else f"{among} need at least {bound}"
    return f"healthy {before}, now {now} ({times_text(cost.times)}), {verdict}"


def per_byte(time: Fraction | str, unit: str) -> str:
    """Return a time a byte with its unit."""
    time = Fraction(time)
    return f"{float(time):.5g} s/B" if unit == "B/s" else f"{time} per link unit"


def times_text(ratio: Fraction | int | str) -> str:
    """Return a ratio of times."""
    return f"{float(Fraction(ratio)):.4f} times"


def ranks_before(plan: Replan) -> list[int]:
    """Return the number before the faults of every rank that is left."""
    return [old for old, now in enumerate(plan.ranks) if now is not None]
