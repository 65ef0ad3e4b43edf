"""What ``collc cost`` says of forests besides: trees, what a number of them gives up, what an allreduce might reach."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from collc.ir.collective import UNEVEN
from collc.ir.costs.cost import Cost, algbw

from ..costing.trees import part_of, scale_of
from ..messages.quantities import show_bandwidth, show_size
from ..tables.forms import rational

if TYPE_CHECKING:
    from collc.passes.synthesis.forest.report import ForestReport

__all__ = ["forest_object", "forest_rows", "rational"]

Row = tuple[str, str, str]


def forest_rows(c: Cost, report: ForestReport | None, bandwidth: Fraction | None) -> list[Row]:
    """Return the rows of the table; none if there are no trees."""
    if c.forest is None:
        return []
    f, most = c.forest, algbw(c, bandwidth)
    per = "per GB/s" if c.unit == "B/s" else "per link unit"
    reached = "" if most is None else f"algbw {show_bandwidth(float(most))} at large sizes"
    return [
        ("1/x", f"{f.one_over_x} {per} ({float(f.one_over_x):.4g})", reached),
        *_choice_rows(c, report),
        ("trees", f"{_per_root(c, report)}{f.trees} distinct in all", f"of height {f.max_height} at most"),
        *_allreduce_rows(c, report),
        ("pieces", str(f.pieces), ""),
    ]


def _per_root(c: Cost, report: ForestReport | None) -> str:
    """Return the trees of a root, or of the vector if roots differ; none if shards differ in size: roots do then."""
    if c.forest is None or c.collective in UNEVEN.values():
        return ""
    if report is not None and c.forest.whole and (report.whole or report.allreduce is not None):
        return f"{c.forest.k} of the vector, "
    return f"{c.forest.k} a root, "


def _choice_rows(c: Cost, report: ForestReport | None) -> list[Row]:
    if report is None or report.one_over_x is None or part_of(c, report) == 1:
        return []
    equal = c.collective == "allreduce" and not report.uneven
    best = "what equal shards allow" if equal else "the best bandwidth"
    trees = f"{report.k} trees {'in all' if report.whole else 'a root'}"
    row = ("", f"{_percent(part_of(c, report))} of {best}", f"reached by {trees}: k: optimal")
    if len(report.tried) == 1:
        return [row, *_taken_rows(c, report)]
    tried = ", ".join(f"{k}: {_percent(part)}" for k, part in _best(report.tried))
    return [row, *_taken_rows(c, report), ("k tried", f"1 to {max(k for k, _ in report.tried)}", tried)]


def _taken_rows(c: Cost, report: ForestReport) -> list[Row]:
    if c.forest is None or report.sizes is None:
        return []
    why = f"the fastest {_range(*report.sizes)}: {_percent(part_of(c, report))} of the bandwidth"
    return [("k taken", str(c.forest.k), f"{why}, {c.forest.max_height} high")]


def _range(low: int, high: int | None) -> str:
    if low == high:
        return f"at {show_size(low)}"
    return f"from {show_size(low)} on" if high is None else f"from {show_size(low)} to {show_size(high)}"


def _best(tried: Sequence[tuple[int, Fraction]], most: int = 4) -> list[tuple[int, Fraction]]:
    """Return the numbers of trees that reach most, the best first."""
    return sorted(tried, key=lambda one: (-one[1], one[0]))[:most]


def _allreduce_rows(c: Cost, report: ForestReport | None) -> list[Row]:
    if report is None or report.allreduce is None:
        return []
    found = report.allreduce
    if found.value == found.composed:
        return [
            ("allreduce", f"at most {_bandwidth(c, found.value)} by trees", "reduce-scatter and allgather reach it")
        ]
    reach = f"reduce-scatter and allgather reach {_bandwidth(c, found.composed)}"
    if found.reached < found.composed:  # switches that send less than they get, or get less than they send
        reach = f"reduce-scatter and allgather at most {_bandwidth(c, found.composed)}"
    rows = [("allreduce", f"at most {_bandwidth(c, found.value)} by trees", reach)]
    if found.reached > found.composed:
        rows.append(("", "", f"roots of different amounts reach {_bandwidth(c, found.reached)}"))
    return rows


def forest_object(c: Cost, report: ForestReport | None, bandwidth: Fraction | None = None) -> dict[str, object]:
    """Return the JSON keys of forests; none if there are no trees.

    Bandwidths of an allreduce are in GB/s, or in link units if bandwidths are relative.
    """
    if c.forest is None:
        return {}
    f, most = c.forest, algbw(c, bandwidth)
    found: dict[str, object] = {
        **rational("one_over_x", f.one_over_x), "k": f.k, "trees": f.trees, "max_height": f.max_height,
        "pieces": f.pieces, "algbw_GBps": None if most is None else float(most / 10**9),
    }  # fmt: skip
    if report is not None:
        found |= {
            **rational("one_over_x_optimal", report.one_over_x and report.one_over_x * scale_of(c)),
            "k_optimal": report.k,
            **rational("given_up", 1 - part_of(c, report)),
            "k_tried": [{"k": k, **rational("part", part)} for k, part in report.tried],
        }  # fmt: skip
    if report is not None and report.allreduce is not None:
        for name in ("value", "reached", "composed"):
            key = "allreduce_bound" if name == "value" else f"allreduce_{name}"
            found |= rational(key, getattr(report.allreduce, name) / scale_of(c))
    return found


def _percent(part: Fraction) -> str:
    """Return a part in percent; what is less than the whole is never rounded up to it."""
    return "100 %" if part == 1 else f"{min(float(part) * 100, 99.99):.2f} %"


def _bandwidth(c: Cost, value: Fraction) -> str:
    return show_bandwidth(float(value)) if c.unit == "B/s" else f"{value} link units"
