"""Every table of `collc cost`, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from ..driver.result import CollectiveResult
from ..driver.sizes import at_size
from ..driver.whole import Whole
from ..selection.choice import candidate_rows, range_rows, skipped_rows
from ..tables import further
from ..tables.columns import Cell, Table, with_floats
from ..tables.listed import COST
from .orbits import Orbits, orbit_rows, orbits_of, root_rows
from .points import Plan, Pricing, point_cells, priced
from .together import part_rows, whole_rows
from .trees import forest_report

if TYPE_CHECKING:
    from ..tables.columns import Column

__all__ = ["choice_tables", "cost_tables", "orbits_in", "title_of"]

Tables: TypeAlias = Mapping[str, Callable[[], Table]]
Rows: TypeAlias = Iterator[dict[str, Cell]]


def cost_tables(
    results: Sequence[CollectiveResult], blocks: Callable[[], Iterable[Whole]], pricing: Pricing, plan: Plan = at_size
) -> Tables:
    """Return the tables of results with schedules: for each name a function that makes it.

    ``blocks`` returns the collectives that run together; ``plan`` the result of a collective for another size.
    """
    orbits = partial(orbits_in, results, pricing, plan)
    return {
        "points": lambda: Table(COST, [row for one in _each(results) for row in _points(one, pricing, plan)]),
        "schedules": lambda: Table(further.SCHEDULES, [_schedule(one) for one in _each(results)]),
        "tried": lambda: Table(further.TRIED, [row for one in _each(results) for row in _tried(one)]),
        **choice_tables(results),
        "roots": lambda: _joined(further.ROOTS, map(root_rows, orbits())),
        "orbits": lambda: _joined(further.ORBITS, map(orbit_rows, orbits())),
        "together": lambda: Table(further.TOGETHER, list(whole_rows(blocks(), pricing.bandwidth))),
        "parts": lambda: Table(further.TOGETHER_PARTS, list(part_rows(blocks(), pricing.bandwidth))),
    }


def choice_tables(results: Sequence[CollectiveResult]) -> Tables:
    """Return the tables of what `auto` compared and chose."""
    chosen = [(result.name, result.choice) for result in results if result.choice is not None]
    return {
        "auto": lambda: _joined(further.RANGES, (range_rows(*one) for one in chosen)),
        "candidates": lambda: _joined(further.CANDIDATES, (candidate_rows(*one) for one in chosen)),
        "skipped": lambda: _joined(further.SKIPPED, (skipped_rows(*one) for one in chosen)),
    }


def title_of(result: CollectiveResult) -> str:
    """Return the name of a collective, with its sizes if it is one algorithm of several."""
    return result.name if result.window is None else f"{result.name}, {result.window.label}"


def orbits_in(results: Sequence[CollectiveResult], pricing: Pricing, plan: Plan = at_size) -> list[Orbits]:
    """Return the collectives with several roots, with the times of the algorithm that serves each size."""
    found = []
    for result in (one for one in results if one.request.roots is not None):
        times = dict[int, Fraction]()
        for one in result.each:
            low, high = (0, None) if one.window is None else (one.window.low, one.window.high)
            served = [
                row for row in priced(one, pricing, plan) if low <= row.size and (high is None or row.size <= high)
            ]
            times |= {row.size: row.time for row in served}
        found.append((result.request, times))
    return orbits_of(found)


def _each(results: Sequence[CollectiveResult]) -> Iterator[CollectiveResult]:
    return (one for result in results for one in result.each)


def _joined(columns: Sequence[Column], rows: Iterable[Rows]) -> Table:
    return Table(columns, [row for some in rows for row in some])


def _points(one: CollectiveResult, pricing: Pricing, plan: Plan) -> Rows:
    """Yield a row for every size of a schedule."""
    c = one.cost
    about = with_floats({
        "name": title_of(one), "collective": c.collective, "ranks": c.ranks, "scheduler": c.scheduler, "T_L": c.T_L,
        "T_B": c.T_B, "time_per_byte": c.time_per_byte, "time_per_byte_bound": c.time_per_byte_bound,
    })  # fmt: skip
    for cells in point_cells(priced(one, pricing, plan)):
        yield {**about, **cells}


def _schedule(one: CollectiveResult) -> dict[str, Cell]:
    c, forest = one.cost, one.cost.forest
    trees: dict[str, Cell] = {} if forest is None else {
        "one_over_x": forest.one_over_x, "k": forest.k, "trees": forest.trees, "max_height": forest.max_height,
    }  # fmt: skip
    return with_floats({
        "name": title_of(one), "collective": c.collective, "ranks": c.ranks, "degree": c.degree,
        "scheduler": c.scheduler, "T_L": c.T_L, "T_L_bound": c.T_L_bound, "T_B": c.T_B, "T_B_bound": c.T_B_bound,
        "time_per_byte": c.time_per_byte, "time_per_byte_bound": c.time_per_byte_bound,
        "bound_kind": c.tightest.kind, "bound_met": c.bound_met, "T_C": c.reduced, "chunks_per_shard": c.parts,
        "transfers": c.transfers, **trees,
    })  # fmt: skip


def _tried(one: CollectiveResult) -> Rows:
    report = forest_report(one)
    for k, part in () if report is None or one.cost.forest is None else report.tried:
        yield with_floats({"name": title_of(one), "k": k, "part": part})
