"""The sizes of balls: how many nodes reach each node within 1, 2, .. hops, by sets of nodes as bits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..arrays import Array
from ..ragged import nth_in_group

__all__ = ["ball_sizes"]


def ball_sizes(size: int, tails: Array, heads: Array) -> Iterator[Array]:
    """Yield how many of ``size`` nodes reach each node within 1, 2, .. hops (int64), itself included, until none more
    does. ``tails`` and ``heads`` are columns of links.

    >>> [sizes.tolist() for sizes in ball_sizes(3, np.array([0, 1]), np.array([1, 2]))]
    [[1, 2, 2], [1, 2, 3]]
    """
    order = np.argsort(heads, kind="stable")
    slot = nth_in_group(heads[order])
    before = np.repeat(np.arange(size)[:, None], int(slot.max(initial=-1)) + 1, axis=1)  # padded with the node itself
    before[heads[order], slot] = tails[order]
    everyone = np.arange(size)
    bits = np.zeros((size, -(-size // 64) * 8), dtype=np.uint8)  # bit s of row v: whether s reaches v
    bits[everyone, everyone // 8] = 1 << everyone % 8
    near, count = bits.view(np.uint64), np.ones(size, dtype=np.int64)
    while True:
        further = near.copy()
        for own in before.T:
            further |= near[own]
        sizes = np.bitwise_count(further).sum(axis=1, dtype=np.int64)
        if (sizes == count).all():
            return
        near, count = further, sizes
        yield sizes
