"""Two binary trees on the same ranks: inner nodes of one are leaves of the other (Sanders et al., 2009).

Each tree carries half of the data, so all ranks send: the double binary tree of NCCL. A tree is its array of parents,
-1 at the root.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array

__all__ = ["centre", "depths", "rooted", "two_trees"]


def two_trees(num_ranks: int) -> tuple[Array, Array]:
    """Return the parents in the two trees on ranks 0 .. num_ranks-1.

    In the first tree the parent of rank r with lowest bit b is r + b or r - b: the one whose bit 2b is set, or r - b if
    that rank does not exist. So odd ranks are leaves, and 0 is the root with one child. The second tree is the mirror
    image of the first if the number of ranks is even; otherwise every rank r has the place of rank r + 1. A rank has at
    most two children in both trees together. Only the last of an odd number of ranks can have children in both.

    >>> two_trees(4)[0].tolist(), two_trees(4)[1].tolist()
    ([-1, 2, 0, 2], [1, 3, 1, -1])
    """
    ranks = np.arange(num_ranks)
    low = ranks & -ranks
    above = (ranks ^ low) | (low << 1)
    first = np.where(above < num_ranks, above, ranks ^ low)
    first[:1] = -1
    original = ranks[::-1] if num_ranks % 2 == 0 else np.roll(ranks, -1)  # the rank of the first tree at each place
    place = np.argsort(original)
    second = np.where(first[original] >= 0, place[first[original]], -1)
    return first, second


def depths(parent: Array) -> Array:
    """Return the number of edges from the root to every rank."""
    depth, above = np.zeros(len(parent), dtype=np.int64), parent
    while (above >= 0).any():
        depth += above >= 0
        above = np.where(above >= 0, parent[above], -1)
    return depth


def rooted(parent: Array, root: int) -> Array:
    """Return the same tree with another root.

    >>> rooted(np.array([-1, 2, 0, 2]), 1).tolist()
    [2, -1, 1, 2]
    """
    result, below, rank = parent.copy(), -1, root
    while rank >= 0:
        result[rank], below, rank = below, rank, int(parent[rank])
    return result


def centre(parent: Array) -> int:
    """Return a rank with the least distance to the farthest other rank: the middle of a longest path."""
    one_end = int(depths(parent).argmax())
    parent = rooted(parent, one_end)
    length = depths(parent)
    rank = int(length.argmax())
    for _ in range(int(length.max()) // 2):
        rank = int(parent[rank])
    return rank
