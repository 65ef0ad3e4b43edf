"""Equal consecutive steps as one repeated step: the many steps of a ring become few."""

from __future__ import annotations

import attrs
import numpy as np

from .traffic import Traffic

__all__ = ["repeated"]


def repeated(traffic: Traffic) -> Traffic:
    """Return the same messages. Consecutive steps with equal messages, in any order, become one repeated step."""
    start = traffic.step_start.tolist()
    first = np.ones(len(traffic.times), dtype=bool)
    for step in range(1, len(first)):
        before, after = slice(*start[step - 1 : step + 1]), slice(*start[step : step + 2])
        first[step] = not _is_equal(traffic, before, after)
    if first.all():
        return traffic
    kept = first[traffic.step]
    return attrs.evolve(
        traffic, step=(np.cumsum(first) - 1)[traffic.step[kept]], src=traffic.src[kept], dst=traffic.dst[kept],
        amount=traffic.amount[kept], times=np.add.reduceat(traffic.times.astype(np.int64), np.flatnonzero(first)),
        route=traffic.route[kept] if traffic.routes is not None else (),
    )  # fmt: skip


def _is_equal(traffic: Traffic, one: slice, other: slice) -> bool:
    """Return whether the rows of two steps are the same messages on the same routes."""
    columns = [traffic.amount, traffic.src, traffic.dst, *([traffic.route] if traffic.routes is not None else [])]
    if one.stop - one.start != other.stop - other.start or any(
        column[one].sum(dtype=np.int64) != column[other].sum(dtype=np.int64) for column in columns
    ):
        return False
    if all(np.array_equal(column[one], column[other]) for column in columns):
        return True
    orders = [np.lexsort([column[rows] for column in columns]) for rows in (one, other)]
    return all(np.array_equal(c[one][orders[0]], c[other][orders[1]]) for c in columns)
