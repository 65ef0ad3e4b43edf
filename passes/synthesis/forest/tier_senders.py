"""Which rank of a pod sends a tree to another pod: of those with room, one that the tree reaches early.

How many trees every rank sends is fixed, and with it what is left for the trees inside of the pod. Once these are known
ranks may exchange what they send. A rank that roots a tree, or at which it enters the pod, keeps what it sends; the
others divide theirs anew.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collc.ir.arrays import Array

from .routes import Routed

__all__ = ["depths", "early_senders", "farthest_first"]

#: units [first, end) of the axis of all trees, and a number
Piece = tuple[int, int, int]


def depths(inner: Routed, size: int) -> Array:
    """Return the edges from the root to every rank, tree by tree; rows of a tree have its edges, parents first."""
    parent, child = inner.parent.reshape(-1, size - 1), inner.child.reshape(-1, size - 1)
    found, tree = np.zeros((len(inner.root), size), dtype=np.int64), np.arange(len(inner.root))
    for a, b in zip(parent.T, child.T, strict=True):
        found[tree, b] = found[tree, a] + 1
    return found


def early_senders(
    sent: Sequence[tuple[int, Piece]], modes: Sequence[Piece], depth: Array, ranks: Sequence[int]
) -> list[tuple[int, Piece]]:
    """Return what a pod sends, each time (target, (first, end, rank)), as ``sent`` has it, with the same load of ranks.

    ``modes`` has the tree of the pod's own that the axis has, ``depth`` the depth in it of every one of ``ranks``.
    """
    place = {v: i for i, v in enumerate(ranks)}
    start = np.array([low for low, _, _ in modes], dtype=np.int64)
    kept, moved = list[tuple[int, Piece]](), list[tuple[int, Piece, int]]()
    left = [0] * len(ranks)
    for target, (low, high, rank) in sent:
        at = int(np.searchsorted(start, low, side="right")) - 1
        for _, end, tree in modes[at : int(np.searchsorted(start, high))]:
            part = (low, min(high, end), rank)
            if depth[tree, place[rank]]:
                moved.append((target, part, tree))
                left[place[rank]] += part[1] - low
            else:
                kept.append((target, part))
            low = part[1]
    order = {
        tree: np.argsort(depth[tree], kind="stable").tolist() for tree in dict.fromkeys(tree for *_, tree in moved)
    }
    for target, (first, end, _), tree in moved:
        while first < end:
            i = next((i for i in order[tree] if left[i] >= end - first), -1)
            i = i if i >= 0 else max(range(len(left)), key=left.__getitem__)
            amount = min(left[i], end - first)
            kept.append((target, (first, first + amount, ranks[i])))
            left[i] -= amount
            first += amount
    return kept


def farthest_first(sent: Sequence[tuple[int, Piece]], home: Sequence[int]) -> list[tuple[int, Piece]]:
    """Return what all pods send in order of how often it is sent on from there, most often first.

    ``home`` is the pod of every rank; pieces of the same trees have the same ends.
    """
    above = {(piece[0], target): home[piece[2]] for target, piece in sent}
    below = dict.fromkeys(above, 0)
    for low, target in above:
        hops, key = 0, (low, target)
        while key in above and below[key] <= hops:
            below[key] = hops
            hops, key = hops + 1, (low, above[key])
    return sorted(sent, key=lambda row: -below[row[1][0], row[0]])
