"""Results of compilations as data frames: one row for each collective."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from collc.ir.frames import dataframe

if TYPE_CHECKING:
    import pandas

    from collc.ir.costs.cost import Cost
    from collc.ir.spec import Problem

__all__ = ["frame_of", "row_of"]

#: column -> its kind
_KINDS = {
    "name": "text", "collective": "text", "topology": "text", "ranks": "integer", "scheduler": "text", "T_L": "integer",
    "T_L_bound": "integer", "T_B": "rational", "T_B_float": "number", "time_per_byte": "rational",
    "time_per_byte_float": "number", "time_per_byte_bound": "rational", "time_per_byte_bound_float": "number",
    "files": "text",
}  # fmt: skip


def frame_of(rows: Sequence[dict[str, object]]) -> pandas.DataFrame:
    """Return these rows as a data frame; raise C0028 without pandas."""
    return dataframe(_KINDS, list(rows))


def row_of(name: str, problem: Problem, files: Sequence[str], cost: Cost | None) -> dict[str, object]:
    """Return the row of a result: its problem, its files, and the cost of its schedule if it has one."""
    about: dict[str, object] = {
        "name": name, "collective": problem.collective.name, "topology": problem.topology.name,
        "ranks": problem.collective.num_ranks, "files": ", ".join(files),
    }  # fmt: skip
    if cost is None:
        return about
    values = {"T_B": cost.T_B, "time_per_byte": cost.time_per_byte, "time_per_byte_bound": cost.time_per_byte_bound}
    return {**about, "scheduler": cost.scheduler, "T_L": cost.T_L, "T_L_bound": cost.T_L_bound, **values} | {
        f"{name}_float": None if value is None else float(value) for name, value in values.items()
    }
