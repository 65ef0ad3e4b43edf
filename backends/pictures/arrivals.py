"""The trees of a schedule in steps: from whom each rank gets data first, or to whom it gives its own for the sum.

A part of a shard that is copied reaches a rank for the first time by one transfer, whose sender has it already. So
these transfers form a tree. A contribution to a sum goes one way, since nothing is added twice; what a rank sends has
the contributions that came before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.schedule import Action, Forest, Schedule

__all__ = ["MOST", "arrival_forest"]

#: trees that are made, at most
MOST = 256


@attrs.frozen
class _Tree:
    """A tree: its root, its direction, and for each row of the schedule in it the ranks nearer to the root and
    farther from it, parents first."""

    root: int
    inward: bool
    edges: tuple[tuple[int, int, int], ...]


def arrival_forest(level: Schedule) -> Forest | None:
    """Return the trees of one root of a schedule in steps, as a forest; None if nothing moves.

    An all-to-all, a gather or a scatter has one tree for all data of a root. Of other collectives, every part of the
    first shard that moves has a tree, parts with equal trees together; of rooted ones, every part of the vector.
    """
    if not len(level):
        return None
    whole = level.collective.root is not None
    weights: dict[_Tree, int] = {}
    for tree, weight in _trees(level):
        weights[tree] = weights.get(tree, 0) + weight
        if len(weights) >= MOST:
            break
    edges = [(place, *edge) for place, tree in enumerate(weights) for edge in tree.edges]
    number, row, parent, child = (np.array(column, dtype=np.int64) for column in zip(*edges, strict=True))
    return Forest(
        level.topology, level.collective, level.parts * (level.collective.num_shards if whole else 1),
        root=[one.root for one in weights], weight=list(weights.values()), inward=[one.inward for one in weights],
        tree=number, parent=parent, child=child, route=level.route[row], routes=level.routes, whole=whole,
        scheduler=level.scheduler, in_network=level.in_network,
    )  # fmt: skip


def _trees(level: Schedule) -> Iterator[tuple[_Tree, int]]:
    """Yield trees with what they carry, in parts of a shard."""
    collective, first = level.collective, int(level.shard.min())
    if collective.kind in ("alltoall", "scatter", "gather"):
        of = level.shard.astype(np.int64) // (collective.num_members if collective.kind == "alltoall" else 1)
        rows = np.flatnonzero(of == of.min()) if collective.kind == "alltoall" else np.arange(len(level))
        trees = [_gathered(level, rows)] if collective.kind == "gather" else _copied(level, rows)
        whole = level.parts * (1 if collective.root is None else collective.num_shards)
        yield from ((tree, whole) for tree in trees)
        return
    shards = [first] if collective.root is None else np.unique(level.shard).tolist()
    for shard in shards:
        rows = np.flatnonzero(level.shard == shard)
        ends = np.unique(np.concatenate([level.lo[rows], level.hi[rows]])).tolist()
        for low, high in pairwise(ends):
            part = rows[(level.lo[rows] <= low) & (level.hi[rows] >= high)]
            yield from ((tree, high - low) for tree in _of_part(level, part, shard))


def _of_part(level: Schedule, rows: Array, shard: int) -> Iterator[_Tree]:
    """Yield the trees of one part: that of its sum, and that of its copies."""
    adds = level.action[rows] == Action.REDUCE
    summed, copied = rows[adds], rows[~adds]
    if len(summed):
        yield _summed(level, summed, _owner(level, summed, copied, shard))
    if len(copied):
        yield from _copied(level, copied)


def _owner(level: Schedule, summed: Array, copied: Array, shard: int) -> int:
    """Return the rank whose sum is drawn: the first that others copy, or that keeps it."""
    if len(copied):
        return int(level.src[copied[np.argmin(level.step[copied])]])
    ends = np.unique(level.dst[summed])
    wanting = ends[level.collective.wants(ends, np.full(len(ends), shard))]
    return int(wanting[0] if len(wanting) else level.dst[summed[-1]])


def _summed(level: Schedule, rows: Array, root: int) -> _Tree:
    """Return the tree by which contributions reach the sum of one rank."""
    into: dict[int, list[int]] = {}
    for row in rows.tolist():
        into.setdefault(int(level.dst[row]), []).append(row)
    edges, seen, waiting = list[tuple[int, int, int]](), {root}, [(root, level.num_steps)]
    for rank, before in waiting:
        for row in into.get(rank, ()):
            child = int(level.src[row])
            if level.step[row] < before and child not in seen:
                seen.add(child)
                edges.append((row, rank, child))
                waiting.append((child, int(level.step[row])))
    return _Tree(root, True, tuple(edges))


def _copied(level: Schedule, rows: Array) -> Iterator[_Tree]:
    """Yield the trees by which data reach ranks for the first time, one for each rank that has them from the start."""
    begin = np.full(level.topology.num_nodes, level.num_steps)
    np.minimum.at(begin, level.src[rows], level.step[rows])
    before: dict[int, int] = {}
    for row in rows.tolist():  # steps never decrease
        rank = int(level.dst[row])
        if begin[rank] > level.step[row]:
            before.setdefault(rank, row)
    yield from _rooted(level, before, level.src, level.dst, inward=False)


def _gathered(level: Schedule, rows: Array) -> _Tree:
    """Return the tree by which data reach the root of a gather: where each rank sends last."""
    root, after = level.collective.root, dict[int, int]()
    assert root is not None, "a gather has a root"
    for row in rows.tolist():
        if int(level.src[row]) != root:
            after[int(level.src[row])] = row
    return next(_rooted(level, after, level.dst, level.src, inward=True))


def _rooted(level: Schedule, rows: Mapping[int, int], near: Array, far: Array, inward: bool) -> Iterator[_Tree]:
    """Yield the trees whose edges are one row for each rank below a root."""
    children: dict[int, list[int]] = {}
    for rank, row in rows.items():
        children.setdefault(int(near[row]), []).append(rank)
    for root in sorted(children.keys() - rows.keys()):
        edges, waiting = list[tuple[int, int, int]](), [root]
        for rank in waiting:
            below: Sequence[int] = children.get(rank, ())
            edges += [(rows[one], rank, one) for one in below]
            waiting += below
        yield _Tree(root, inward, tuple(edges))
