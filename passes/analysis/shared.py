"""How many messages carry two intervals of chunks, where a group turns the messages of rank 0 into all others."""

from __future__ import annotations

import numpy as np

from collc.ir.arrays import Array, fit, lexsort
from collc.ir.group import Group
from collc.ir.ragged import first_of_group, ranges, starts

__all__ = ["shared_by_images", "shared_with_first"]


def shared_with_first(group: Group, per_shard: int, message: Array, interval: Array) -> Array:
    """Return how many messages carry interval i of shard 0 and interval j of shard s, at ``[i, s, j]``.

    ``message`` and ``interval`` are the pairs of rank 0's messages; the n-th interval of a shard has the number ``shard
    * per_shard + n``. An element of the group maps both intervals of a pair, so the number of messages depends on their
    places in their shards, and on the element that leads from one shard to the other.
    """
    order = lexsort([message])
    size = np.diff(np.append(np.flatnonzero(first_of_group(message[order])), len(order)))
    one = np.repeat(interval[order], np.repeat(size, size))
    other = interval[order][ranges(np.repeat(starts(size)[:-1], size), np.repeat(size, size))]
    between = group.multiply(group.inverse(one // per_shard), other // per_shard)
    place = (one % per_shard * group.order + between) * per_shard + other % per_shard
    count = np.bincount(place, minlength=per_shard * group.order * per_shard)
    return count.reshape(per_shard, group.order, per_shard)


def shared_by_images(group: Group, count: Array) -> Array:
    """Return how many messages carry both of two intervals, shape (intervals, intervals), from those with shard 0."""
    count = count.astype(fit(-1, int(count.max(initial=0))))  # a quarter of the bytes in a table of many pairs
    shard = np.arange(group.order)
    leads = group.multiply(group.inverse(shard)[:, None], shard)
    number = len(count) * group.order
    return count[:, leads].transpose(1, 0, 2, 3).reshape(number, number)
