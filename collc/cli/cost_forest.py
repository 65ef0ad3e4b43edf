"""What ``collc cost`` says of forests besides: trees, what a number of them gives up, what an allreduce might reach."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from collc.ir.cost import Cost, algbw

from ..quantities import show_bandwidth

if TYPE_CHECKING:
    from collc.passes.synthesis.forest.report import ForestReport

    from ..driver import CollectiveResult

__all__ = ["forest_object", "forest_report", "forest_rows", "rational"]

Row = tuple[str, str, str]


def forest_report(result: CollectiveResult) -> ForestReport | None:
    """Return what the scheduler has to say of its trees, where it was the one of forests."""
    passes = result.plans[0].passes if result.plans else ()
    if result.forest is None or not passes or passes[0].name != "forest":
        return None
    from collc.passes.synthesis.forest.report import report

    return report(passes[0], result.request.problem, result.allreduce_bound)


def forest_rows(c: Cost, told: ForestReport | None, bandwidth: Fraction | None) -> list[Row]:
    """Return the rows of the table; none where there are no trees."""
    if c.forest is None:
        return []
    f, most = c.forest, algbw(c, bandwidth)
    per = "per GB/s" if c.unit == "B/s" else "per link unit"
    reached = "" if most is None else f"algbw {show_bandwidth(float(most))} at large sizes"
    return [
        ("1/x", f"{f.one_over_x} {per} ({float(f.one_over_x):.4g})", reached),
        *_choice_rows(c, told),
        ("trees", f"{f.k} a root, {f.trees} distinct in all", f"of height {f.max_height} at most"),
        *_allreduce_rows(c, told),
        ("pieces", str(f.pieces), ""),
    ]


def _choice_rows(c: Cost, told: ForestReport | None) -> list[Row]:
    if told is None or told.one_over_x is None or _part(c, told) == 1:
        return []
    best = "what equal shards allow" if c.collective == "allreduce" else "the best bandwidth"
    row = ("", f"{_percent(_part(c, told))} of {best}", f"reached by {told.k} trees a root: k: optimal")
    if len(told.tried) == 1:
        return [row]
    tried = ", ".join(f"{k}: {_percent(part)}" for k, part in _best(told.tried))
    return [row, ("k tried", f"1 to {max(k for k, _ in told.tried)}", tried)]


def _best(tried: Sequence[tuple[int, Fraction]], most: int = 4) -> list[tuple[int, Fraction]]:
    """Return the numbers of trees that reach most, the best first."""
    return sorted(tried, key=lambda one: (-one[1], one[0]))[:most]


def _allreduce_rows(c: Cost, told: ForestReport | None) -> list[Row]:
    if told is None or told.allreduce is None:
        return []
    found = told.allreduce
    if found.value == found.composed:
        return [
            ("allreduce", f"at most {_bandwidth(c, found.value)} by trees", "reduce-scatter and allgather reach it")
        ]
    reach = f"reduce-scatter and allgather reach {_bandwidth(c, found.composed)}"
    if found.reached < found.composed:  # switches that send less than they get, or get less than they send
        reach = f"reduce-scatter and allgather at most {_bandwidth(c, found.composed)}"
    if found.reached > found.composed:
        reach += f", roots of different amounts {_bandwidth(c, found.reached)}"
    return [("allreduce", f"at most {_bandwidth(c, found.value)} by trees", reach)]


def forest_object(c: Cost, told: ForestReport | None, bandwidth: Fraction | None = None) -> dict[str, Any]:
    """Return the JSON keys of forests; none where there are no trees.

    Bandwidths of an allreduce are in GB/s, or in link units where bandwidths are relative.
    """
    if c.forest is None:
        return {}
    f, most = c.forest, algbw(c, bandwidth)
    found: dict[str, Any] = {
        **rational("one_over_x", f.one_over_x), "k": f.k, "trees": f.trees, "max_height": f.max_height,
        "pieces": f.pieces, "algbw_GBps": None if most is None else float(most / 10**9),
    }  # fmt: skip
    if told is not None:
        found |= {
            **rational("one_over_x_optimal", told.one_over_x and told.one_over_x * _scale(c)), "k_optimal": told.k,
            **rational("given_up", 1 - _part(c, told)),
            "k_tried": [{"k": k, **rational("part", part)} for k, part in told.tried],
        }  # fmt: skip
    if told is not None and told.allreduce is not None:
        for name in ("value", "reached", "composed"):
            key = "allreduce_bound" if name == "value" else f"allreduce_{name}"
            found |= rational(key, getattr(told.allreduce, name) / _scale(c))
    return found


def rational(name: str, value: Fraction | None) -> dict[str, Any]:
    """Return an exact value as a string beside a float."""
    if value is None:
        return {name: None, f"{name}_float": None}
    return {name: str(value), f"{name}_float": float(value)}


def _scale(c: Cost) -> int:
    return 10**9 if c.unit == "B/s" else 1


def _part(c: Cost, told: ForestReport) -> Fraction:
    """Return the part of the best bandwidth that the trees have."""
    if c.forest is None or not c.forest.one_over_x or told.one_over_x is None:
        return Fraction(1)
    return min(told.one_over_x * _scale(c) / c.forest.one_over_x, Fraction(1))


def _percent(part: Fraction) -> str:
    """Return a part in percent; what is less than the whole is never rounded up to it."""
    return "100 %" if part == 1 else f"{min(float(part) * 100, 99.99):.2f} %"


def _bandwidth(c: Cost, value: Fraction) -> str:
    return show_bandwidth(float(value)) if c.unit == "B/s" else f"{value} link units"
