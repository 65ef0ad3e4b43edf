"""Pipelined forests: which interval of which shard crosses which tree edge in which step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .arrays import Array, as_column, lexsort
from .frozen import frozen
from .ragged import owners, ranges, starts

if TYPE_CHECKING:
    from .schedule import Forest

__all__ = ["Crossings", "crossings", "first_steps"]

_WIDEST = 1 << 62


@frozen(eq=False)
class Crossings:
    """When data cross the edges of a forest: ``lo[i]`` .. ``hi[i]`` (exclusive) of ``shard[i]`` cross the edge of the
    forest's row ``edge[i]`` in ``step[i]``. Steps never decrease. Ends are in 1/(parts x pieces) of a shard.
    """

    step: Array
    edge: Array
    shard: Array
    lo: Array
    hi: Array


def crossings(forest: Forest, pieces: int) -> Crossings:
    """Return the data that cross the edges of a well-formed forest in ``pieces`` pieces.

    :meth:`~collc.ir.schedule.Forest.to_steps` defines the steps.
    """
    cuts = _cuts(forest, pieces)
    tree = forest.tree.astype(np.int64)
    begin = first_steps(forest)
    count = np.bincount(cuts.tree, minlength=forest.num_trees)
    edge, cut = _paired(tree, count)
    step = as_column(begin[edge] + cuts.piece[cut])  # narrow: sorting is linear then
    order = lexsort([step])
    edge, cut = edge[order], cut[order]
    return Crossings(step[order], edge, cuts.shard[cut], cuts.lo[cut], cuts.hi[cut])


def first_steps(forest: Forest) -> Array:
    """Return the step in which the first piece uses each edge; each later piece uses it one step later."""
    climb = forest.heights[0]
    return np.where(forest.inward[forest.tree] == 1, climb - forest.depth, climb + forest.depth - 1)


@frozen(eq=False)
class _Cuts:
    """The data of trees: ``lo`` .. ``hi`` of ``shard`` is in ``piece`` of ``tree``; sorted by tree, piece and shard."""

    tree: Array
    piece: Array
    shard: Array
    lo: Array
    hi: Array


def _paired(tree: Array, count: Array) -> tuple[Array, Array]:
    """Return (edge, cut) for every edge and each cut of its tree, by edge; ``count`` is each tree's number of cuts."""
    each = count[tree]
    return owners(each), ranges(starts(count)[tree], each)


def _cuts(forest: Forest, pieces: int) -> _Cuts:
    trees = forest.num_trees
    tree, piece = np.repeat(np.arange(trees), pieces), np.tile(np.arange(pieces), trees)
    lo = piece * np.int64(forest.parts) + _below(forest)[tree]
    hi = lo + forest.weight[tree].astype(np.int64)
    if not forest.whole:
        return _Cuts(tree, piece, forest.collective.places[forest.root[tree]], lo, hi)
    return _spread(tree, piece, lo, hi, forest.parts * pieces, forest.collective.num_shards)


def _below(forest: Forest) -> Array:
    """Return for each tree the sum of the shares before it, of its direction and root, in 1/parts."""
    stack = forest.inward.astype(np.int64)
    if not forest.whole:
        stack = stack * forest.collective.num_ranks + forest.root
    order = lexsort([stack])
    weight = forest.weight[order].astype(np.int64)
    before = starts(weight)[:-1]  # the sum may overflow 64 bits; the difference is right again
    first = np.searchsorted(stack[order], stack[order])
    below = np.empty(forest.num_trees, dtype=np.int64)
    below[order] = before - before[first]
    return below


def _spread(tree: Array, piece: Array, lo: Array, hi: Array, parts: int, shards: int) -> _Cuts:
    """Cut intervals of the whole vector, in 1/parts of it, at the ends of shards; results are in 1/parts of a shard."""
    if parts * shards >= _WIDEST:
        lo, hi = lo.astype(object), hi.astype(object)
    lo, hi = lo * shards, hi * shards
    first, end = (lo // parts).astype(np.int64), (-(-hi // parts)).astype(np.int64)
    which, shard = owners(end - first), ranges(first, end - first)
    base = shard.astype(lo.dtype) * parts
    return _Cuts(tree[which], piece[which], shard, np.maximum(lo[which] - base, 0), np.minimum(hi[which] - base, parts))
