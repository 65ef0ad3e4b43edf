"""Larger networks that keep many links of a given one: what a cluster can grow into."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import attrs

from collc.frontends import coll
from collc.ir.diagnostic import CollcError, error
from collc.passes.finder.bases import can_be_bidirectional
from collc.passes.finder.database import Row
from collc.passes.finder.growth import Grown, grown
from collc.tables.columns import Cell, Table
from collc.tables.listed import GROWN, PLACES, RECABLED

from ..processes.workers import Work
from .building import NO_QUESTION
from .finding import Frontier, check_sizes, find
from .recabling import ADDED, KEPT, REMOVED, Recabling, recabling

__all__ = ["MOST_MORE", "Expansion", "chosen", "expansions", "growth_objects", "growth_tables", "recabling_object"]

#: the most nodes that may be added
MOST_MORE = 64


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


def expansions(
    found: Frontier, largest: int, *, database: tuple[str, str] | None = None, evaluations: int | None = None,
    seed: int = 0, work: Work | None = None,
) -> list[Expansion]:  # fmt: skip
    """Return the frontiers of all sizes up to ``largest``, by nodes, then by the links of ``found.best`` that are kept.

    Sizes without a topology are left out. Raises C0030 for sizes that are not larger, or larger by more than
    ``MOST_MORE``.
    """
    goal, base, work = found.wanted, found.best, work or Work()
    if not goal.nodes < largest <= goal.nodes + MOST_MORE:
        message = f"found {largest} nodes to expand to, needed {goal.nodes + 1} to {goal.nodes + MOST_MORE}"
        raise error("C0030", message, exit_status=2)
    check_sizes(largest, goal.degree)
    if base is None:
        return []
    rows: list[Row] = []
    for nodes in range(goal.nodes + 1, largest + 1):
        if goal.bidirectional and not can_be_bidirectional(nodes, goal.degree):
            continue
        larger_goal = attrs.evolve(goal, nodes=nodes, questions=NO_QUESTION)
        try:
            larger = find(larger_goal, database=database, evaluations=evaluations, seed=seed, work=work)
        except CollcError as mistake:
            if mistake.exit_status != 3:
                raise
            continue
        rows += dict.fromkeys((*larger.frontier, *larger.both_ways))
    names = [row.expression for row in rows]
    results = work.run(_grown, [(base.expression, name) for name in names], names)
    pairs = [Expansion(base.expression, row, result) for row, result in zip(rows, results, strict=True)]
    return sorted(pairs, key=lambda one: (one.row.nodes, -one.grown.kept, one.row.T_L, one.row.T_B, one.row.expression))


def _grown(small: str, large: str) -> Grown:
    return grown(coll.topology(small), coll.topology(large))


# ---- what is shown


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
