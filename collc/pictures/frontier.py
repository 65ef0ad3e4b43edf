"""The frontier of topologies as a picture: steps against bandwidth time, and the bounds of both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from collc.backends.pictures.axes import Axis
from collc.backends.pictures.charts import Chart, Rule, Series
from collc.backends.pictures.style import QUIET, RING, Look

if TYPE_CHECKING:
    from collc.passes.finder.database import Row

    from ..tools.finding import Frontier

__all__ = ["pareto_svg"]

_ONE_WAY, _BOTH_WAYS = Look("c0"), Look("c1", mark="square")
_SUBTITLE = "allgather; B is the total bandwidth out of a node, M the whole vector"


def pareto_svg(found: Frontier) -> str:
    """Return the frontier as a scatter plot: T_L in steps against T_B in M/B, the bounds as dashed lines.

    Circles are topologies with one-way links, squares those in which every link has a reverse; a ring marks the best.
    Each of them is a link to its row below, which has the whole expression.
    """
    steps, bandwidth = found.bound
    rules = [Rule(steps, f"bound: {steps} steps"), Rule(bandwidth, f"bound: {bandwidth} M/B", upright=False)]
    rows = [(_name(number), f"{number + 1}. {_tip(row)}") for number, row in enumerate(found.frontier)]
    chart = Chart(
        _title(found), Axis("T_L (steps)", whole=True, margin=Fraction(1, 5)),
        Axis("T_B (M/B)", margin=Fraction(3, 20)), list(_series(found)), rules, _SUBTITLE,
        "; ".join([*(_tip(row) for row in found.frontier), *(rule.label for rule in rules)]), rows,
    )  # fmt: skip
    return chart.picture().file()


def _title(found: Frontier) -> str:
    wanted = found.wanted
    kind = "Bidirectional topologies" if wanted.bidirectional else "Topologies"
    return f"{kind} of {wanted.nodes} nodes and degree {wanted.degree}"


def _series(found: Frontier) -> Iterator[Series]:
    rows = found.frontier
    yield Series("", _edge(rows), QUIET, "steps")
    yield _marks("links one way", [one for one in enumerate(rows) if not one[1].bidirectional], _ONE_WAY)
    yield _marks("every link has its reverse", [one for one in enumerate(rows) if one[1].bidirectional], _BOTH_WAYS)
    best = [row for row in rows if row is found.best]
    yield Series("takes the least time" if best else "", [(row.T_L, row.T_B) for row in best], RING, "marks")


def _edge(rows: Sequence[Row]) -> list[tuple[int, Fraction]]:
    """Return the staircase of the frontier: the least T_B for each number of steps."""
    return [(row.T_L, min(other.T_B for other in rows[: i + 1])) for i, row in enumerate(rows)]


def _marks(name: str, rows: Sequence[tuple[int, Row]], look: Look) -> Series:
    return Series(
        name if rows else "", [(row.T_L, row.T_B) for _, row in rows], look, "marks",
        tips=[_tip(row) for _, row in rows], labels=[row.expression for _, row in rows],
        links=[_name(number) for number, _ in rows],
    )  # fmt: skip


def _name(number: int) -> str:
    return f"t{number + 1}"


def _tip(row: Row) -> str:
    return f"{row.expression}: {row.T_L} steps, {row.T_B} M/B"
