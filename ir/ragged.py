"""Lists of different lengths, concatenated in one column: the start of each list, the list of each entry.

Results are int64 for every input, so that sums of narrow columns cannot overflow.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from .arrays import Array

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = [
    "by_appearance", "first_of_group", "greatest", "group_starts", "inverse", "last_true", "next_true", "nth",
    "nth_in_group", "owners", "parts", "ranges", "starts", "stretches",
]  # fmt: skip


def starts(counts: ArrayLike) -> Array:
    """Return where each of the lists starts, and after the last where it ends.

    >>> starts([2, 0, 3]).tolist()
    [0, 2, 2, 5]
    """
    counts = np.asarray(counts, dtype=np.int64)
    found = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=found[1:])
    return found


def owners(counts: ArrayLike) -> Array:
    """Return for every entry the list that it is in.

    >>> owners([2, 0, 3]).tolist()
    [0, 0, 2, 2, 2]
    """
    counts = np.asarray(counts, dtype=np.int64)
    return np.repeat(np.arange(len(counts)), counts)


def ranges(first: ArrayLike, counts: ArrayLike) -> Array:
    """Return the numbers of ranges: ``counts[i]`` numbers from ``first[i]`` on.

    >>> ranges([7, 0, 4], [2, 0, 3]).tolist()
    [7, 8, 4, 5, 6]
    """
    first, counts = np.asarray(first, dtype=np.int64), np.asarray(counts, dtype=np.int64)
    ends = np.cumsum(counts)
    listed: Array = np.repeat(first - ends + counts, counts)
    listed += np.arange(len(listed))
    return listed


def nth(counts: ArrayLike) -> Array:
    """Return for every entry its number within its list.

    >>> nth([2, 0, 3]).tolist()
    [0, 1, 0, 1, 2]
    """
    return ranges(0, counts)


def group_starts(groups: ArrayLike, number: int) -> Array:
    """Return where each of ``number`` groups starts in a column of ascending groups, and after the last the end.

    >>> group_starts(np.array([0, 0, 2, 2, 2]), 3).tolist()
    [0, 2, 2, 5]
    """
    groups = np.asarray(groups)
    if len(groups) > number and groups[0] >= 0 and groups[-1] < number:  # many entries are counted, not searched
        return starts(np.bincount(groups, minlength=number))
    return np.searchsorted(groups, np.arange(number + 1)).astype(np.int64, copy=False)


def nth_in_group(groups: Array) -> Array:
    """Return for every entry of an ascending column its number among its equals.

    >>> nth_in_group(np.array([4, 4, 6, 6, 6])).tolist()
    [0, 1, 0, 1, 2]
    """
    listed: Array = np.arange(len(groups)) - last_true(first_of_group(groups))
    return listed


def first_of_group(groups: Array) -> Array:
    """Return which entries differ from the one before them; the first does.

    >>> first_of_group(np.array([4, 4, 6])).tolist()
    [True, False, True]
    """
    found = np.ones(len(groups), dtype=bool)
    np.not_equal(groups[1:], groups[:-1], out=found[1:])
    return found


def last_true(mask: Array) -> Array:
    """Return for each entry the last true one up to it, -1 if there is none.

    >>> last_true(np.array([False, True, False, True])).tolist()
    [-1, 1, 1, 3]
    """
    return np.append(np.flatnonzero(mask), -1).take(np.cumsum(mask) - 1)


def next_true(mask: Array) -> Array:
    """Return for each entry the first true one from it on, the number of entries if there is none.

    >>> next_true(np.array([False, True, False])).tolist()
    [1, 1, 3]
    """
    return np.append(np.flatnonzero(mask), len(mask)).take(np.cumsum(mask) - mask)


def greatest(rows: Array, first: Array, size: Array) -> Array:
    """Return the greatest of each list of rows, column by column. List k has ``size[k]`` rows, at least one.

    What ``np.maximum.reduceat(rows, first, axis=0)`` returns, in a fraction of its time where lists are short.

    >>> greatest(np.array([[1, 5], [4, 2], [3, 3]]), np.array([0, 2]), np.array([2, 1])).tolist()
    [[4, 5], [3, 3]]
    """
    found = rows.take(first, axis=0)
    nth, left = 1, np.flatnonzero(size > 1)
    while len(left):
        found[left] = np.maximum(found.take(left, axis=0), rows.take(first.take(left) + nth, axis=0))
        nth += 1
        left = left.compress(size.take(left) > nth)
    return found


def by_appearance(group: Array, value: Array) -> tuple[Array, Array]:
    """Number the values of each group as they first appear; also return the first rows of all, group by group.

    >>> [found.tolist() for found in by_appearance(np.array([0, 1, 0, 0]), np.array([7, 7, 5, 7]))]
    [[0, 0, 1, 0], [0, 2, 1]]
    """
    keys = group * (int(value.max(initial=0)) + 1) + value
    order = np.argsort(keys, kind="stable")
    new = first_of_group(keys[order])
    first = order[new]
    by_group = np.lexsort((first, group[first]))
    of_each = np.empty(len(first), dtype=np.int64)
    of_each[by_group] = nth_in_group(group[first][by_group])
    number = np.empty(len(keys), dtype=np.int64)
    number[order] = of_each[np.cumsum(new) - 1]
    return number, first[by_group]


def stretches(mask: Array) -> list[tuple[int, int]]:
    """Return the (start, stop) of each longest run of true entries.

    >>> stretches(np.array([True, False, True, True]))
    [(0, 1), (2, 4)]
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]))).tolist()
    return list(zip(edges[::2], edges[1::2], strict=True))


def inverse(order: ArrayLike) -> Array:
    """Return the place of every number in ``order``, which has each of 0, 1, 2, .. once.

    >>> inverse(np.array([2, 0, 1])).tolist()
    [1, 2, 0]
    """
    numbers = np.asarray(order)
    place = np.empty(len(numbers), dtype=np.int64)
    place[numbers] = np.arange(len(numbers))
    return place


def parts(size: Array, most: int) -> Iterator[slice]:
    """Yield the groups in parts with a total size of about ``most``.

    >>> list(parts(np.array([2, 1, 3, 9, 1]), 4))
    [slice(0, 2, None), slice(2, 3, None), slice(3, 4, None), slice(4, 5, None)]
    """
    part = np.cumsum(size, dtype=np.int64) // most
    bounds = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), len(size)]
    yield from (slice(first, end) for first, end in pairwise(bounds) if first < end)
