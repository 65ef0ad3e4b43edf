"""A larger network that keeps links of a given one, and the tables of several of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import attrs

from collc.frontends import coll
from collc.passes.finder.database import Row
from collc.passes.finder.growth import Grown

from ..tables.columns import Cell, Table
from ..tables.listed import GROWN, PLACES, RECABLED
from .recabling import ADDED, KEPT, REMOVED, Recabling, recabling

__all__ = ["Expansion", "chosen", "growth_objects", "growth_tables", "recabling_object"]


@attrs.frozen(slots=False)
class Expansion:
    """A larger topology, and the placement of the smaller one's nodes in it. ``base`` is the smaller one."""

    base: str
    row: Row
    grown: Grown

    @cached_property
    def recabling(self) -> Recabling:
        """The new number of every node, and the cables that are kept, removed and added."""
        return recabling(coll.topology(self.base), coll.topology(self.row.expression), self.grown.place)


def chosen(found: Sequence[Expansion]) -> Expansion | None:
    """Return the largest topology, of several the one that keeps most links; None without one."""
    return min(found, key=lambda one: (-one.row.nodes, -one.grown.kept), default=None)


def growth_objects(found: Sequence[Expansion]) -> list[dict[str, Cell]]:
    """Return the objects of ``expansions`` in JSON."""
    return [
        {"n": one.row.nodes, "T_L": one.row.T_L, "T_B": str(one.row.T_B), "T_B_float": float(one.row.T_B),
         "bidirectional": one.row.bidirectional, "links_kept": one.grown.kept, "links": one.grown.links,
         "links_kept_bound": one.grown.bound, "labelling": one.grown.labelling, "scheduler": one.row.scheduler,
         "expression": one.row.expression}
        for one in found
    ]  # fmt: skip


def recabling_object(found: Sequence[Expansion]) -> dict[str, object] | None:
    """Return the object of ``recabling`` in JSON: how to get to the chosen topology; None without one."""
    one = chosen(found)
    if one is None:
        return None
    changes = one.recabling
    return {
        "n": one.row.nodes, "expression": one.row.expression,
        **{f"cables_{change}": changes.count(change) for change in (KEPT, REMOVED, ADDED)},
        "places": changes.place_rows(), "cables": changes.cable_rows(),
    }  # fmt: skip


def growth_tables(found: Sequence[Expansion]) -> dict[str, Callable[[], Table]]:
    """Return the tables of larger topologies, by name: the topologies, and nodes and cables of the chosen one."""
    one = chosen(found)
    return {
        "expansions": lambda: Table(GROWN, growth_objects(found)),
        "places": lambda: Table(PLACES, [] if one is None else one.recabling.place_rows()),
        "recabling": lambda: Table(RECABLED, [] if one is None else one.recabling.cable_rows()),
    }
