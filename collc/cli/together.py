"""What ``collc cost`` and ``collc simulate`` say of collectives that run together."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from collc.ir.costs.cost import unit_seconds
from collc.ir.shown import counted

from ..costing.together import link_of
from ..driver.whole import Whole
from ..messages.quantities import show_time
from ..tables.forms import rational
from .table import table

if TYPE_CHECKING:
    from collc.passes.synthesis.groups.division import JointCuts
    from collc.passes.synthesis.groups.mixture import Priced

__all__ = ["simulated_object", "simulated_text", "whole_object", "whole_text"]

_LISTED = 4


def whole_text(whole: Whole, bandwidth: Fraction | None = None) -> str:
    """Return the lines of a block: the time of all at once by the loads of the links, and its bound."""
    scale = unit_seconds(whole.topology, bandwidth)
    rows = [("time", show_time(float(whole.time * scale)), f"by the loads of all, most on {link_of(whole)}")]
    if whole.ratio is not None:
        rows.append(_bound_row("bound", whole.time, whole.bound.value, scale, "no schedules are faster"))
    if whole.tree_bound is not None:
        rows.append(_bound_row("trees", whole.time, whole.tree_bound.value, scale, "no schedules by trees are faster"))
    return f"together: {_names(whole.names)}\n" + table(rows, indent="  ")


def _bound_row(name: str, time: Fraction, bound: Fraction, scale: Fraction, proved: str) -> tuple[str, str, str]:
    how = f"met: {proved}" if time == bound else f"reached but for a factor of {float(time / bound):.4g}"
    return name, show_time(float(bound * scale)), how


def _names(names: Sequence[str]) -> str:
    listed = ", ".join(names[:_LISTED]) + (", .." if len(names) > _LISTED else "")
    return f"{counted(len(names), 'collective')} ({listed})"


def whole_object(whole: Whole, bandwidth: Fraction | None = None) -> dict[str, object]:
    """Return the JSON object of a block; times are in seconds."""
    scale = unit_seconds(whole.topology, bandwidth)
    return {
        "collectives": list(whole.names), **rational("time", whole.time * scale), "link": link_of(whole),
        **rational("time_bound", whole.bound.value * scale), **rational("ratio", whole.ratio),
        **rational("tree_time_bound", None if whole.tree_bound is None else whole.tree_bound.value * scale),
        "parts": [
            {"name": name, **rational("time", None if time is None else time * scale)}
            for name, time in zip(whole.names, whole.parts, strict=True)
        ],
        "certificate": _certificate(whole, whole.bound),
        "tree_certificate": None if whole.tree_bound is None else _certificate(whole, whole.tree_bound),
    }  # fmt: skip


def _certificate(whole: Whole, bound: JointCuts | Priced) -> dict[str, object]:
    """Return what proves a bound: prices of cuts, or of links."""
    sums = {**rational("carried", bound.carried), **rational("paid", bound.paid)}
    prices = getattr(bound, "prices", None)
    if prices is not None:
        return {"kind": "joint-prices", **sums, "prices": list(prices)}
    from collc.ir.graph.node_sets import NodeSets

    names = NodeSets(whole.topology)
    cuts = [
        {
            "collective": whole.names[cut.group], "parts": [list(part) for part in cut.parts],
            "named": [list(names.named(part)) for part in cut.parts],
            "direction": "into" if cut.inward else "out of", "carries": str(cut.carries), "price": str(cut.price),
        }
        for cut in getattr(bound, "cuts", ())
    ]  # fmt: skip
    return {"kind": "joint-cuts", **sums, "cuts": cuts}


def simulated_text(names: Sequence[str], time: Fraction) -> str:
    """Return the line of a block that was simulated: each collective on its part of every link."""
    return f"together: {_names(names)}\n  time  {show_time(float(time))}, each on its part of every link\n"


def simulated_object(names: Sequence[str], time: Fraction) -> dict[str, object]:
    """Return the JSON object of a block that was simulated; the time is in seconds."""
    return {"collectives": list(names), **rational("time", time)}
