"""Two binary trees on the same ranks in which inner nodes of one are leaves of the other (Sanders et al., 2009).

Each carries half of the data, so that no rank idles as a leaf: the double binary tree of NCCL. A tree is its array of
parents, -1 at the root.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array

__all__ = ["centre", "depths", "rooted", "two_trees"]


def two_trees(num_ranks: int) -> tuple[Array, Array]:
    """Return the parents in the two trees on ranks 0 .. num_ranks-1.

    In the first, rank r of lowest bit b has the one of r + b and r - b as its parent whose bit 2b is set, where there
    is such a rank, else r - b; so odd ranks are leaves, and 0 is the root with one child. The second is its mirror
    image where the number of ranks is even, else the first with every part moved to the rank before. A rank has at
    most two children in both trees together, and but for the last of an odd number in one of them only.

    >>> two_trees(4)[0].tolist(), two_trees(4)[1].tolist()
    ([-1, 2, 0, 2], [1, 3, 1, -1])
    """
    ranks = np.arange(num_ranks)
    low = ranks & -ranks
    above = (ranks ^ low) | (low << 1)
    first = np.where(above < num_ranks, above, ranks ^ low)
    first[:1] = -1
    turned = ranks[::-1] if num_ranks % 2 == 0 else np.roll(ranks, -1)
    place = np.argsort(turned)  # who plays the part of each rank of the first tree
    second = np.where(first[turned] >= 0, place[first[turned]], -1)
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
    """Return a rank from which the farthest other is as near as possible: the middle of a longest path."""
    one_end = int(depths(parent).argmax())
    parent = rooted(parent, one_end)
    length = depths(parent)
    rank = int(length.argmax())
    for _ in range(int(length.max()) // 2):
        rank = int(parent[rank])
    return rank
