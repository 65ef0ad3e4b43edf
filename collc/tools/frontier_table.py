"""The frontier of the finder as a table: its rows as cells, with those that further questions add."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import attrs

from collc.tables.columns import Cell, Column, Table
from collc.tables.further import FASTEST
from collc.tables.listed import FRONTIER, RACKED, ROBUST

from .building import Facts

if TYPE_CHECKING:
    from collc.passes.finder.database import Row

    from .finding import Frontier

__all__ = ["by_size", "fastest_rows", "fastest_table", "frontier_table", "row_cells"]


def frontier_table(found: Frontier) -> Table:
    """Return the rows of the frontier, and the best topologies with links in both directions."""
    rows = [*found.frontier, *(row for row in found.both_ways if row not in found.frontier)]
    questions = found.wanted.questions
    more: tuple[Column, ...] = (*(RACKED if questions.rack else ()), *(ROBUST if questions.robust else ()))
    best = found.best
    return Table((*FRONTIER, *more), [{"best": row is best, **row_cells(row, found)} for row in rows])


def row_cells(row: Row, found: Frontier) -> dict[str, Cell]:
    """Return a row by the keys of its columns: rationals beside floats, times in microseconds."""
    time, rate, most = found.wanted.time(row), row.alltoall_rate, row.most_alltoall
    least = found.wanted.least_seconds(row)
    return {
        "expression": row.expression, "T_L": row.T_L, "T_B": row.T_B, "T_B_float": float(row.T_B),
        "T_B_reduce_scatter": row.reduce_scatter_T_B,
        "diameter": row.diameter,
        "bidirectional": row.bidirectional, "alltoall_rate": rate,
        "alltoall_rate_float": None if rate is None else float(rate),
        "alltoall_rate_upper": most, "alltoall_rate_upper_float": None if most is None else float(most),
        "only_for_alltoall": found.is_for_rate(row),
        "time_us": None if time is None else time * 1e6, "time_least_us": None if least is None else least * 1e6,
        "scheduler": row.scheduler,
        **_answers(row, found),
    }  # fmt: skip


def _answers(row: Row, found: Frontier) -> dict[str, Cell]:
    """Return the cells of racks and failures, if these were asked for."""
    questions, known = found.wanted.questions, found.facts.get(row, Facts())
    cells: dict[str, Cell] = {}
    if questions.rack:
        cells |= {"links_between_racks": known.between_racks, "links_between_racks_bound": known.between_racks_bound}
    for kind, after in (("link", known.after_link), ("node", known.after_node)):
        if after is not None:
            bandwidth = after.T_B
            cells |= {
                f"{kind}_failure": after.state, f"T_L_{kind}_failure": after.T_L, f"T_B_{kind}_failure": bandwidth,
                f"T_B_{kind}_failure_float": None if bandwidth is None else float(bandwidth),
            }  # fmt: skip
    return cells


def by_size(found: Frontier, sizes: Iterable[int]) -> Iterator[tuple[int, Row | None, float | None]]:
    """Yield every size (bytes) with the topology of the least time, and that time (seconds)."""
    for size in sizes:
        best = attrs.evolve(found, wanted=attrs.evolve(found.wanted, size=size))
        yield size, best.best, None if best.best is None else best.wanted.time(best.best)


def fastest_rows(found: Frontier, sizes: Iterable[int]) -> list[dict[str, Cell]]:
    """Return the fastest topology at each size, by the keys of the columns; times are in microseconds."""
    return [
        {"size_bytes": size, "time_us": None if time is None else time * 1e6,
         "best": None if row is None else row.expression, "scheduler": None if row is None else row.scheduler}
        for size, row, time in by_size(found, sizes)
    ]  # fmt: skip


def fastest_table(found: Frontier, sizes: Iterable[int]) -> Table:
    """Return the fastest topology at each size (bytes)."""
    return Table(FASTEST, fastest_rows(found, sizes))
