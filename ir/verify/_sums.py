"""Partial sums by number, if none of them is part of two others.

The contribution of a rank is a sum of one. Every reduction makes a new sum of others. If no sum is ever part of two
others, the sums are trees whose leaves are contributions. So two sums that are in no other have no contribution in
common, and a sum has as many contributions as it counts. A location then needs one number, the sum that it holds, in
place of a bit for every rank. Most schedules are of this kind. Wrong schedules, and those in which several ranks add
the same sum, need the bits.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array

__all__ = ["MOST", "Sums"]

#: most sums that are numbered
MOST = (1 << 31) - 1


class Sums:
    """Sums, numbered from 1: first ``first`` of one contribution, then ``more``. ``count`` are their contributions.

    Number 0 stands for no sum. There may be at most ``MOST``.
    """

    def __init__(self, first: int, more: int):
        self.count = np.ones(1 + first + more, dtype=np.int32)
        self.count[0] = 0
        self._taken_by = np.zeros(len(self.count), dtype=np.int32)
        self._next = 1 + first

    def take(self, parts: Array) -> bool:
        """Make sums parts of others; return whether none of them was one before, and none occurs twice."""
        if self._taken_by.take(parts).any():
            return False
        marks = np.arange(1, len(parts) + 1, dtype=np.int32)
        self._taken_by[parts] = marks
        return np.array_equal(self._taken_by.take(parts), marks)

    def add(self, count: Array) -> Array:
        """Return the numbers of new sums, and note their numbers of contributions."""
        first, self._next = self._next, self._next + len(count)
        self.count[first : self._next] = count
        return np.arange(first, self._next, dtype=np.int32)
