"""T_C of section C.4 of the direct-connect paper: the time that ranks spend adding what they receive.

Computation and communication do not overlap: in every step a rank adds what it has received before it sends in the
next. So a step lasts longer than its messages take, by gamma times the most that one rank adds. The sum over all steps
is given here as a share of M; times M gamma it is T_C.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ..arrays import Array
from ..bundles import loading
from ..schedule import Action, Schedule
from ..symmetric import SymmetricSchedule

__all__ = ["largest_sums", "reduced_share"]


def reduced_share(level: Schedule | SymmetricSchedule) -> Fraction:
    """Return the sum over steps of the most that a rank adds, as a share of M."""
    rows = level.seed if isinstance(level, SymmetricSchedule) else level
    adds = np.flatnonzero(rows.action == Action.REDUCE)
    amount = rows.amount[adds]
    heads = rows.routes.heads(rows.topology)[rows.route[adds]]
    if isinstance(level, SymmetricSchedule):  # what the template's ranks add, each rank of their orbit adds in all
        return Fraction(sum(largest_sums(rows.step[adds], heads % level.width, amount)), level.vector)
    route, routes = loading(rows)
    amount = routes.loads(routes.start[route[adds].astype(np.int64) + 1].astype(np.int64) - 1, amount)
    return Fraction(sum(largest_sums(rows.step[adds], heads, amount)), level.vector)


def largest_sums(step: Array, rank: Array, amount: Array) -> list[int]:
    """Return for every step that occurs, ascending, the largest sum of amounts of one rank."""
    if not len(step):
        return []
    ranks = int(rank.max()) + 1
    key, row = np.unique(step.astype(np.int64) * ranks + rank, return_inverse=True)
    total = np.zeros(len(key), dtype=amount.dtype)
    np.add.at(total, row, amount)
    first = np.flatnonzero(np.append(True, key[1:] // ranks != key[:-1] // ranks))
    return [int(most) for most in np.maximum.reduceat(total, first).tolist()]
