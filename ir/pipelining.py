"""Forests -> steps: which interval of which shard crosses which tree edge when, all edges and pieces at once."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from .arrays import as_column
from .schedule import Action, Forest, Schedule

__all__ = ["to_steps", "turns"]

Array = np.ndarray[Any, np.dtype[Any]]

_WIDEST = 1 << 62


def to_steps(forest: Forest, pieces: int) -> Schedule:
    """Return the pipelined step form of a sound forest; see :meth:`~collc.ir.schedule.Forest.to_steps`."""
    cuts = _cuts(forest, pieces)
    tree = forest.tree.astype(np.int64)
    inward = forest.inward[tree].astype(bool)
    begin = turns(forest)
    count = np.bincount(cuts.tree, minlength=forest.num_trees)
    edge, cut = _paired(tree, count)
    step = as_column(begin[edge] + cuts.piece[cut])  # narrow: sorting is linear then
    order = np.argsort(step, kind="stable")
    edge, cut = edge[order], cut[order]
    return Schedule(
        forest.topology, forest.collective, forest.parts * pieces, step=step[order],
        action=np.where(inward, Action.REDUCE, Action.COPY)[edge], shard=cuts.shard[cut], lo=cuts.lo[cut],
        hi=cuts.hi[cut], route=forest.route[edge], routes=forest.routes, scheduler=forest.scheduler,
    )  # fmt: skip


def turns(forest: Forest) -> Array:
    """Return the step in which the first piece uses each edge; every later piece uses it one step after the other."""
    climb = forest.heights[0]
    return np.where(forest.inward[forest.tree] == 1, climb - forest.depth, climb + forest.depth - 1)


@attrs.frozen(eq=False)
class _Cuts:
    """What a tree carries: row i is ``lo`` .. ``hi`` of ``shard``, of piece ``piece`` of tree ``tree``; by tree, piece
    and shard.
    """

    tree: Array
    piece: Array
    shard: Array
    lo: Array
    hi: Array


def _paired(tree: Array, count: Array) -> tuple[Array, Array]:
    """Return for every edge each cut of its tree: (edge, cut), by edge; ``count`` is the number of cuts a tree has."""
    each = count[tree]
    edge = np.repeat(np.arange(len(tree)), each)
    first = (np.cumsum(count) - count)[tree] - (np.cumsum(each) - each)
    return edge, first[edge] + np.arange(len(edge))


def _cuts(forest: Forest, pieces: int) -> _Cuts:
    trees = forest.num_trees
    tree, piece = np.repeat(np.arange(trees), pieces), np.tile(np.arange(pieces), trees)
    lo = piece * np.int64(forest.parts) + _below(forest)[tree]
    hi = lo + forest.weight[tree].astype(np.int64)
    if not forest.whole:
        return _Cuts(tree, piece, forest.root[tree].astype(np.int64), lo, hi)
    return _spread(tree, piece, lo, hi, forest.parts * pieces, forest.collective.num_ranks)


def _below(forest: Forest) -> Array:
    """Return what the trees before it of its stack carry, for each tree, in 1/parts."""
    stack = forest.inward.astype(np.int64)
    if not forest.whole:
        stack = stack * forest.collective.num_ranks + forest.root
    order = np.argsort(stack, kind="stable")
    weight = forest.weight[order].astype(np.int64)
    before = np.cumsum(weight) - weight  # over all stacks it may leave 64 bits, and comes back by the difference
    first = np.searchsorted(stack[order], stack[order])
    below = np.empty(forest.num_trees, dtype=np.int64)
    below[order] = before - before[first]
    return below


def _spread(tree: Array, piece: Array, lo: Array, hi: Array, parts: int, shards: int) -> _Cuts:
    """Cut intervals of the whole vector, given in 1/parts, where shards end, in 1/parts of a shard each."""
    if parts * shards >= _WIDEST:
        lo, hi = lo.astype(object), hi.astype(object)
    lo, hi = lo * shards, hi * shards
    first, end = (lo // parts).astype(np.int64), (-(-hi // parts)).astype(np.int64)
    which = np.repeat(np.arange(len(tree)), end - first)
    count = end - first
    shard = first[which] + np.arange(len(which)) - (np.cumsum(count) - count)[which]
    base = shard.astype(lo.dtype) * parts
    return _Cuts(tree[which], piece[which], shard, np.maximum(lo[which] - base, 0), np.minimum(hi[which] - base, parts))
