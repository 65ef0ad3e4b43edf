"""The bounds in ``collc cost``: their kind, their proof, whether they are met. Text and JSON."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from collc.ir.collective import CUSTOM
from collc.ir.costs.certificate import Bound
from collc.ir.costs.cost import Cost

from .cost_forest import rational

__all__ = ["bandwidth_rows", "bound_object", "steps_bound_text"]

Row = tuple[str, str, str]

#: a denominator of more digits is printed as a decimal
_LONG = 10**6
_MET = {"tree-schedules": "met: no schedules by trees are faster"}
#: a longer cell is divided
_MOST = 60
_MOST_REASON = 66


def steps_bound_text(c: Cost) -> str:
    """Return the Moore bound on the steps; empty without one."""
    if c.T_L_bound is None:
        return ""
    both = " in two phases" if c.phases == 2 else ""
    return f"Moore bound {c.T_L_bound} steps{both}" + (", met" if c.moore_optimal else "")


def bandwidth_rows(c: Cost) -> list[Row]:
    """Return the rows on bandwidth time: all bounds, the tightest last, and whether it is met."""
    reached = f"{c.T_B} M/B ({float(c.T_B):.4f})" if c.T_B is not None else _per_byte(c, c.time_per_byte)
    first, *more = _bound_cells(c, c.bound, "bound")
    rows = [("T_B" if c.T_B is not None else "time per byte", reached, first)]
    if c.tightest is not c.bound:
        more += _bound_cells(c, c.tightest, "bound of trees")
    return rows + [("", "", cell) for cell in more]


def _bound_cells(c: Cost, bound: Bound, name: str) -> list[str]:
    """Return the text of a bound in one cell. If that is long, what proves the bound is in one or two further cells."""
    text = f"{name} {_value(c, bound.value)}"
    if bound.above is not None and bound.value < bound.above < c.time_per_byte:
        return [f"{text} to {_value(c, bound.above)}, a bracket around LP (3)"]
    reason, met = _reason(c, bound), _met(c, bound) + _ratio(c, bound)
    whole = text + reason + met
    return [whole] if len(whole) <= _MOST else [text + met, *_divided(reason.lstrip())]


def _divided(reason: str) -> list[str]:
    """Return a reason in one cell, or a long one in two: the nodes, and the sum."""
    nodes, colon, crossing = reason.partition(": ")
    return [reason] if len(reason) <= _MOST_REASON or not colon else [nodes + ":", crossing]


def _ratio(c: Cost, bound: Bound) -> str:
    """Return T_B over the bound of a custom collective, which may be far from any schedule."""
    if c.collective != CUSTOM or c.time_per_byte <= bound.value:
        return ""
    return f", ratio {float(c.time_per_byte / bound.value):.4g}" if bound.value else ""


def _met(c: Cost, bound: Bound) -> str:
    if c.time_per_byte > bound.value:
        return ""
    return f", {_MET.get(bound.kind, 'met: no schedule is faster')}"


def _reason(c: Cost, bound: Bound) -> str:
    """Return the text of the tightest bound, unless it is that of the links of every rank."""
    if c.T_B is not None and c.floor is not None and bound.kind == "all-schedules" and _units(c, bound) == c.floor:
        return ""
    any_network = c.T_B is not None and c.floor is not None and bound.kind == "all-schedules"
    return f" by {bound.name}" + (f" ({c.floor} M/B on any network)" if any_network else "")


def _units(c: Cost, bound: Bound) -> Fraction:
    return bound.value * (c.node_bandwidth or 1)


def _value(c: Cost, value: Fraction) -> str:
    if c.T_B is None:
        return _per_byte(c, value)
    exact = value * (c.node_bandwidth or 1)
    return f"{exact} M/B" if exact.denominator < _LONG else f"{float(exact):.6g} M/B"


def _per_byte(c: Cost, value: Fraction) -> str:
    return f"{float(value):.4g} {'s/B' if c.unit == 'B/s' else 'per link unit'}"


def bound_object(c: Cost) -> dict[str, object]:
    """Return the JSON keys of the tightest bound; of both, in ``bounds``, where there is one of trees.

    The ``above`` of an all-to-all is what some routing is known to reach, or this schedule: the other end of the
    bracket around LP (3).
    """
    best = c.tightest
    found: dict[str, object] = {"bound_kind": best.kind, "bound_met": c.bound_met, "certificate": best.to_json()}
    if best.kind == "multi-commodity-flow":
        above = None if best.above is None else min(_rounded_up(best.above), c.time_per_byte)
        found |= rational("time_per_byte_bound_above", above)
        found |= rational("T_B_bound_above", None if c.T_B is None or above is None else above * _scale(c))
    if c.tree_bound is not None:
        found["bounds"] = [_one(bound) for bound in (c.bound, c.tree_bound)]
    return found


def _rounded_up(value: Fraction, digits: int = 6) -> Fraction:
    """Return a value rounded up to this number of digits; a short rational unchanged."""
    if value.numerator < _LONG or value.denominator < _LONG:
        return value
    left = len(str(int(value))) if value >= 1 else 1 - len(str(int(1 / value)))
    scale = Fraction(10) ** (digits - left)
    return ceil(value * scale) / scale


def _scale(c: Cost) -> Fraction:
    return c.node_bandwidth or Fraction(1)


def _one(bound: Bound) -> dict[str, object]:
    return {
        "bound_kind": bound.kind, **rational("time_per_byte_bound", bound.value), "by": bound.name,
        "certificate": bound.to_json(),
    }  # fmt: skip
