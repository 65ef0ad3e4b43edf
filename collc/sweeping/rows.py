"""The rows of a sweep as cells: with units, for programs and for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from ..messages.quantities import show_bandwidth, show_size, show_time
from ..tables.columns import Cell, Table, with_floats
from ..tables.listed import SWEEP
from .cases import SweepRow

__all__ = ["HEAD", "cells", "html_rows", "shown_row", "table_of"]

#: the headings of :func:`shown_row`
HEAD = ("network", "collective", "using", "size", "steps", "time", "algbw", "time / bound", "")


def table_of(rows: Sequence[SweepRow], best: Iterable[SweepRow]) -> Table:
    """Return the table of all columns; ``best`` are the rows to mark."""
    marked = {id(row) for row in best}
    return Table(SWEEP, [cells(row, id(row) in marked) for row in rows])


def cells(row: SweepRow, is_best: bool = False) -> dict[str, Cell]:
    """Return the cells of a row by the keys of their columns: times in microseconds, bandwidths in GB/s."""
    exact: dict[str, Cell] = {"T_B": row.T_B, "time_per_byte": row.time_per_byte}
    return {
        "network": row.network, "ranks": row.ranks, "degree": row.degree, "collective": row.collective,
        "using": row.using, "scheduler": row.scheduler or None, "algorithm": row.algorithm or None,
        "size_bytes": row.size, "best": is_best, "steps": row.steps, "pieces": row.pieces, "T_L": row.T_L,
        "T_B_float": None, "time_per_byte_float": None, **with_floats(exact), "time_s": row.time,
        "time_us": None if row.time is None else float(row.time) * 1e6,
        "algbw_GBps": _gigabytes(Fraction(row.size), row.time),
        "busbw_GBps": None if row.bus_factor is None else _gigabytes(row.bus_factor * row.size, row.time),
        "bound_us": None if row.bound is None else float(row.bound) * 1e6, "over_bound": _over_bound(row),
        "code": row.code or None, "message": row.message or None,
    }  # fmt: skip


def _gigabytes(amount: Fraction, time: Fraction | None) -> float | None:
    """Return bytes over seconds in GB/s, 0 if they take no time; None without a time."""
    if time is None:
        return None
    return float(amount / time) / 1e9 if time else 0.0


def _over_bound(row: SweepRow) -> float | None:
    return float(row.time / row.bound) if row.time is not None and row.bound else None


def shown_row(row: SweepRow) -> tuple[str, ...]:
    """Return a row as people read it, one cell for each of :data:`HEAD`."""
    about = (row.network, row.collective, row.using, show_size(row.size))
    if row.time is None:
        return (*about, "", "", "", "", f"{row.code}: {row.message}")
    over = _over_bound(row)
    bandwidth = show_bandwidth(float(row.size / row.time)) if row.time else ""
    ratio = "" if over is None else f"{over:.2f}x"
    chosen = row.algorithm if row.algorithm not in ("", row.using) else ""
    return (*about, str(row.steps), show_time(float(row.time)), bandwidth, ratio, chosen)


def html_rows(rows: Iterable[SweepRow]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the headings and rows of a table for a notebook."""
    return HEAD, [shown_row(row) for row in rows]
