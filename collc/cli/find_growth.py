"""``collc find --expand-to``: the table of larger topologies that keep links of the best one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .table import table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collc.tables.columns import Cell, Table

    from ..tools.finding import Frontier
    from ..tools.growing import Expansion

__all__ = ["growth_objects", "growth_table", "growth_text"]


def growth_objects(found: Sequence[Expansion]) -> list[dict[str, Cell]]:
    """Return the objects of ``expansions`` in JSON."""
    return [
        {"n": one.row.nodes, "T_L": one.row.T_L, "T_B": str(one.row.T_B), "T_B_float": float(one.row.T_B),
         "bidirectional": one.row.bidirectional, "links_kept": one.grown.kept, "links": one.grown.links,
         "links_kept_bound": one.grown.bound, "labelling": one.grown.labelling, "scheduler": one.row.scheduler,
         "expression": one.row.expression}
        for one in found
    ]  # fmt: skip


def growth_table(found: Sequence[Expansion]) -> Table:
    """Return the rows of CSV and Markdown."""
    from collc.tables.columns import Table
    from collc.tables.listed import GROWN

    return Table(GROWN, growth_objects(found))


def growth_text(base: Frontier, found: Sequence[Expansion]) -> str:
    """Return the table that follows the frontier."""
    if base.best is None:
        return ""
    rows = [
        (str(one.row.nodes), str(one.row.T_L), str(one.row.T_B), "<->" if one.row.bidirectional else "->",
         str(one.grown.kept), str(one.grown.bound), one.grown.labelling, one.row.expression)
        for one in found
    ]  # fmt: skip
    head = ("nodes", "T_L", "T_B", "links", "kept", "at most", "labelling", "topology")
    links = found[0].grown.links if found else 0
    title = f"\nlarger topologies, and how many of the {links} links of {base.best.expression} they keep\n"
    return title + table(rows, head=head, right=(0, 1, 4, 5), indent="  ")
