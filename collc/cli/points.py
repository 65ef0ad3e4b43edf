"""The rows of predicted times by size in ``collc cost`` and ``collc simulate``: as data, and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import attrs

from ..messages.quantities import show_bandwidth, show_time
from ..tables.columns import Cell, Table
from ..tables.forms import objects, rational
from ..tables.listed import POINTS, SIMULATED, STEP_MODELS
from .table import table

__all__ = ["Row", "legend", "overheads_object", "point_cells", "point_objects", "point_table"]


@attrs.frozen
class Row:
    """One size (bytes of M): the exact time (seconds), and the steps, pieces and T_C of the schedule for this size.

    ``reduced`` is T_C in units of M gamma, None if unknown; it has a column if ``gamma`` (seconds a byte) is not 0.
    ``bus_factor`` is busbw over algbw, None for collectives that nccl-tests do not have. ``algorithm`` is what `auto`
    chose for the size, empty for other schedulers.
    """

    size: int
    time: Fraction
    steps: int
    pieces: int
    bus_factor: Fraction | None
    reduced: Fraction | None = None
    gamma: Fraction = Fraction(0)
    algorithm: str = ""
    in_step: Fraction | None = None
    run_ahead: Fraction | None = None

    @property
    def other_model(self) -> str:
        """The key of the time with or without global steps that ``time`` is not; empty if both are equal or unknown."""
        if self.in_step == self.run_ahead:
            return ""
        return "in_step_us" if self.time == self.run_ahead else "run_ahead_us"

    @property
    def algbw(self) -> float:
        """M over the time, in bytes per second; 0 if it takes no time."""
        return float(self.size / self.time) if self.time else 0.0

    @property
    def busbw(self) -> float | None:
        """The bus bandwidth of nccl-tests, in bytes per second."""
        if self.bus_factor is None:
            return None
        return float(self.bus_factor * self.size / self.time) if self.time else 0.0


def point_cells(rows: Sequence[Row]) -> list[dict[str, Cell]]:
    """Return the rows by the keys of their columns: times in microseconds, bandwidths in GB/s."""
    return [
        {
            "size_bytes": row.size, "time_us": float(row.time) * 1e6, "algbw_GBps": row.algbw / 1e9,
            "busbw_GBps": None if row.busbw is None else row.busbw / 1e9, "steps": row.steps, "pieces": row.pieces,
            "T_C": row.reduced, "algorithm": row.algorithm, "in_step_us": _microseconds(row.in_step),
            "run_ahead_us": _microseconds(row.run_ahead),
        }
        for row in rows
    ]  # fmt: skip


def point_objects(rows: Sequence[Row]) -> list[dict[str, object]]:
    """Return the rows for JSON."""
    return objects(Table(SIMULATED, point_cells(rows)))


def _microseconds(seconds: Fraction | None) -> float | None:
    return None if seconds is None else float(seconds) * 1e6


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


_PLANNED = (
    "each size is planned anew, as a compilation for it does; the lines above describe the collective as declared"
)
