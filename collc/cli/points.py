"""The rows of predicted times by size in ``collc cost`` and ``collc simulate``: as data, and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from ..costing.points import Row, point_cells
from ..messages.quantities import show_bandwidth, show_time
from ..tables.columns import Table
from ..tables.forms import objects, rational
from ..tables.listed import POINTS, SIMULATED, STEP_MODELS
from .table import table

__all__ = ["legend", "overheads_object", "point_objects", "point_table"]


def point_objects(rows: Sequence[Row]) -> list[dict[str, object]]:
    """Return the rows for JSON."""
    return objects(Table(SIMULATED, point_cells(rows)))


def point_table(rows: Sequence[Row]) -> str:
    """Return the rows as text; T_C, the algorithm and the other model's times have columns only if they matter."""
    other = next((row.other_model for row in rows if row.other_model), "")
    columns_of_all = (*POINTS, *(column for column in STEP_MODELS if column.key == other))
    points = Table(columns_of_all, point_cells(rows))
    columns = [column for column in points.shown if column.key != "T_C" or any(row.gamma for row in rows)]
    lines = [[column.show(row[column.key]) or "-" for column in columns] for row in points.rows]
    numbers = [place for place, column in enumerate(columns) if column.kind != "text"]
    return table(lines, head=[column.heading for column in columns], right=numbers, indent="  ")


def overheads_object(reduced: Fraction | None, gamma: Fraction, epsilon: Fraction) -> dict[str, object]:
    """Return T_C in units of M gamma, gamma (seconds a byte) and epsilon (seconds), exact beside floats."""
    return {**rational("T_C", reduced), **rational("gamma", gamma), **rational("epsilon", epsilon)}


def legend(
    assumed: Sequence[str], planned_by_size: bool, gamma: Fraction = Fraction(0), epsilon: Fraction = Fraction(0)
) -> str:
    """Return the lines below a table: what its times assume and include, whether each size has its own schedule."""
    text = f"  times assume {' and '.join(assumed)}: --alpha, --bandwidth\n" if assumed else ""
    included = [f"additions at {show_bandwidth(float(1 / gamma))} a rank"] if gamma else []
    included += [f"a launch of {show_time(float(epsilon))}"] if epsilon else []
    text += f"  times include {' and '.join(included)}\n" if included else ""
    return text + (f"  {_PLANNED}\n" if planned_by_size else "")


_PLANNED = "every size has its own schedule, as if compiled for it; the lines above are for the declared size"
