"""Schedules of trees, step by step and piece after piece."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from collc.ir.arrays import Array, lexsort
from collc.ir.schedule import Action, Routes, Schedule

from .mix import Mix
from .shares import Portions
from .trees import Tree

__all__ = ["Rows", "height", "in_pieces", "rows_of"]


class Rows(NamedTuple):
    """The hops of all portions: ``row`` of the portions, ``depth`` of the hop in its tree from 0, number of its route.

    ``routes`` are the links of each route.
    """

    row: Array
    depth: Array
    route: Array
    routes: tuple[tuple[int, ...], ...]


def rows_of(mix: Mix, portions: Portions) -> Rows:
    """Return the hops of all portions."""
    depths = [_depths(mix, tree) for tree in mix.trees]
    number: dict[tuple[int, ...], int] = {}
    row, depth, route = list[int](), list[int](), list[int]()
    for i, tree in enumerate(portions.tree.tolist()):
        for hop, at in zip(mix.trees[tree], depths[tree], strict=True):
            row.append(i)
            depth.append(at)
            route.append(number.setdefault(hop, len(number)))
    return Rows(np.array(row, np.int64), np.array(depth, np.int64), np.array(route, np.int64), tuple(number))


def _depths(mix: Mix, tree: Tree) -> list[int]:
    """Return how many hops come before each hop of a tree."""
    src, dst = mix.needs.topology.src, mix.needs.topology.dst
    at = dict[int, int]()
    found = []
    for hop in tree:
        before = at.get(int(src[hop[0]]), 0)
        at[int(dst[hop[-1]])] = before + 1
        found.append(before)
    return found


def height(rows: Rows) -> int:
    """Return the steps of one piece."""
    return int(rows.depth.max(initial=-1)) + 1


def in_pieces(mix: Mix, portions: Portions, rows: Rows, pieces: int) -> Schedule:
    """Return the schedule in ``pieces`` equal pieces: piece j takes the hops of depth h in step h + j."""
    piece = np.arange(pieces)
    size = (portions.hi - portions.lo)[rows.row][:, None]
    lo = (portions.lo[rows.row] * pieces)[:, None] + size * piece
    step = rows.depth[:, None] + piece
    columns = [
        step, np.broadcast_to(portions.shard[rows.row][:, None], step.shape), lo, lo + size,
        np.broadcast_to(rows.route[:, None], step.shape),
    ]  # fmt: skip
    step, shard, lo, hi, route = (column.ravel() for column in columns)
    order = lexsort((lo, shard, route, step))
    return Schedule(
        mix.needs.topology, mix.needs.collective, portions.parts * pieces, step=step[order],
        action=np.full(len(order), Action.COPY, dtype=np.uint8), shard=shard[order], lo=lo[order], hi=hi[order],
        route=route[order], routes=Routes.of(rows.routes), scheduler="general",
    )  # fmt: skip
