"""The transfers of a schedule as columns, for following a chunk; of a large schedule those of some shards."""

from __future__ import annotations

import attrs
import numpy as np

from collc.ir.arrays import Columns
from collc.ir.collective import Collective
from collc.ir.levels import Scheduled
from collc.ir.schedule import Forest, Routes, Schedule
from collc.ir.shown import counted
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.symmetric_forest import SymmetricForest

from .numbers import Json, integers

__all__ = ["COLUMNS", "MOST_ROWS", "listed", "transfers_of"]

#: transfers of a page with one collective, at most
MOST_ROWS = 20_000
#: a schedule with more is not written out
_MOST_WRITTEN = 4_000_000

COLUMNS = ("step", "action", "shard", "lo", "hi", "route")


def transfers_of(level: Scheduled, num_steps: int) -> dict[str, Json] | None:
    """Return the columns of the transfers that the page lists; None if they are too many or in other steps.

    ``all`` is whether these are all transfers, ``about`` which ones they are. ``links`` are those of each route, one
    after the other, from ``start`` on. ``pairs`` are the ranks of an alltoall: its shard s * N + t goes from the s-th
    to the t-th.
    """
    found = listed(level)
    if found is None or found[0].num_steps > num_steps:
        return None
    steps, is_all, about = found
    used, route = np.unique(steps.route, return_inverse=True)
    lists = [steps.routes.links_of(int(one)) for one in used.tolist()]
    routes = Routes.of(lists) if lists else Routes([0], [])
    columns = {name: integers(getattr(steps, name)) for name in COLUMNS if name != "route"}
    return {
        **columns, "route": integers(route), "start": integers(routes.start), "links": integers(routes.links),
        "parts": steps.parts, "all": is_all, "about": about, "pairs": _pairs(steps.collective),
    }  # fmt: skip


def _pairs(collective: Collective) -> list[Json]:
    """Return the ranks that take part in an alltoall; none of another collective, whose shards are no pairs."""
    if collective.kind != "alltoall":
        return []
    return list(range(collective.num_ranks) if collective.members is None else collective.members)


def listed(level: Scheduled) -> tuple[Schedule, bool, str] | None:
    """Return the transfers to list, whether they are all, and which ones they are in words; None if too many."""
    if isinstance(level, SymmetricSchedule) and len(level) > MOST_ROWS:
        steps, of = level.seed, f"the other {counted(level.topology.num_ranks - level.width, 'shard')} move alike"
        return _first_shards(steps, f"the transfers of {counted(level.width, 'shard')}; {of}")
    if isinstance(level, SymmetricForest | Forest):
        return _of_trees(level)
    steps = level.unfold() if isinstance(level, SymmetricSchedule) else level
    return _first_shards(steps, f"all {counted(len(steps), 'transfer')}")


def _of_trees(level: SymmetricForest | Forest) -> tuple[Schedule, bool, str] | None:
    """Return the transfers of trees; of very many those of the trees of the first root.

    Trees that carry the whole vector are not independent; if those are too many, none are listed.
    """
    forest = level.unfold() if isinstance(level, SymmetricForest) else level
    if len(forest.tree) * forest.pieces <= _MOST_WRITTEN:
        steps = forest.to_steps()
        return _first_shards(steps, f"all {counted(len(steps), 'transfer')}")
    if forest.whole:
        return None
    first = int(forest.root.min())
    steps = _rooted(forest, first).to_steps()
    ranks = forest.topology.num_ranks
    return _first_shards(steps, f"those of shard {first}, of {counted(ranks, 'shard')}")


def _rooted(forest: Forest, root: int) -> Forest:
    """Return the trees of one root."""
    trees = np.flatnonzero(forest.root == root)
    number = np.full(forest.num_trees, -1)
    number[trees] = np.arange(len(trees))
    rows = np.flatnonzero(number[forest.tree] >= 0)
    columns: Columns = {name: getattr(forest, name)[rows] for name in ("parent", "child", "route")}
    columns |= {name: getattr(forest, name)[trees] for name in ("root", "weight", "inward")}
    return attrs.evolve(forest, tree=number[forest.tree[rows]], **columns)


def _first_shards(steps: Schedule, about: str) -> tuple[Schedule, bool, str]:
    """Return the transfers of the first shards, and of their first parts, as many as a page holds.

    ``about`` says which these are, and begins with ``all`` if nothing else is missing.
    """
    if len(steps) <= MOST_ROWS:
        return steps, about.startswith("all "), about
    order = np.lexsort((np.arange(len(steps)), steps.lo, steps.shard))
    shard, lo = steps.shard[order].astype(np.int64), steps.lo[order].astype(np.int64)
    same = (shard == shard[MOST_ROWS]) & (lo == lo[MOST_ROWS])  # parts are listed whole
    end = int(np.flatnonzero(same)[0]) or MOST_ROWS
    keep = np.sort(order[:end])
    shards = len(np.unique(steps.shard[keep]))
    text = f"{counted(len(keep), 'transfer')}: the first parts of {counted(shards, 'shard')}"
    return steps.rows(keep), False, text
