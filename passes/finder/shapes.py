"""Shapes of polycirculants: how many links there are between classes of ranks, alike for all classes.

Most polycirculants that are bandwidth-optimal in few steps have such a shape, because the ranks of all classes must see
as many others at each distance. In a climb that keeps the shape, only the voltages change.
"""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["PERIODS", "shapes"]

#: the numbers of classes that have shapes
PERIODS = (2, 3, 4)
_MOST_LOOPS = 2  # pairs of links of a rank inside its class


def shapes(period: int, degree: int) -> Iterator[list[tuple[int, int]]]:
    """Yield the shapes of 2, 3 or 4 classes, as the two classes of each link.

    Two or three classes have equally many links between any two, and maybe some inside. Four form a ring of one or of
    two alternating numbers of links, maybe with links across.

    >>> list(shapes(2, 3)), [len(shape) for shape in shapes(4, 3)]
    ([[(0, 1), (0, 1), (0, 1)], [(0, 0), (0, 1), (1, 1)]], [6, 6])
    """
    for loops in range(min((degree - 1) // 2, _MOST_LOOPS) + 1):
        left = degree - 2 * loops
        own = [(one, one) for one in range(period)] * loops
        if period == 2:
            yield sorted([*own, *[(0, 1)] * left])
        elif period == 3 and left % 2 == 0:
            yield sorted([*own, *[(0, 1), (0, 2), (1, 2)] * (left // 2)])
    if period == 4:
        for few in range(1, degree // 2 + 1):
            yield sorted([*[(0, 1), (2, 3)] * few, *[(0, 3), (1, 2)] * (degree - few)])
        for few in range(1, (degree + 1) // 2):
            yield sorted([*[(0, 1), (2, 3), (0, 3), (1, 2)] * few, *[(0, 2), (1, 3)] * (degree - 2 * few)])
