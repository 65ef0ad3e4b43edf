"""Sets of numbers as disjoint intervals."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

__all__ = ["Intervals"]


class Intervals:
    """A set of numbers; adding an interval and asking for one take the logarithm of their number of steps.

    >>> some = Intervals()
    >>> some.add(2, 4); some.add(6, 8)
    >>> some.meets(0, 2), some.meets(3, 5), some.meets(4, 6), some.meets(0, 9)
    (False, True, False, True)
    """

    def __init__(self) -> None:
        self._ends: list[int] = []  # where the set begins and ends, in turn, ascending

    def add(self, first: int, last: int) -> None:
        """Add the numbers from ``first`` to ``last`` (exclusive), which is more."""
        low, high = bisect_left(self._ends, first), bisect_right(self._ends, last)
        self._ends[low:high] = [first] * (low % 2 == 0) + [last] * (high % 2 == 0)

    def meets(self, first: int, last: int) -> bool:
        """Return whether a number from ``first`` to ``last`` (exclusive) is in the set."""
        at = bisect_right(self._ends, first)
        return at % 2 == 1 or (at < len(self._ends) and self._ends[at] < last)
