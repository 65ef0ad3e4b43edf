"""How many rings fit at all: an integer program over the listed paths, for searches that end without an answer.

Prices of pairs bound the rings: if every path costs at least 1, no more rings fit than the room costs. The dual of the
linear program gives the prices. They are rounded, and the bound is computed from the rounded ones, exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import gcd, lcm
from typing import TYPE_CHECKING

import numpy as np

from collc.ir.arrays import Array

from ...solver import run

if TYPE_CHECKING:
    import highspy

__all__ = ["fitting_rows", "most_bandwidth", "price_bound"]

_MOST_PATHS = 6_000
#: counted work of an integer program, and the parts of a price
_MOST_QUESTIONS = 5_000
_PRICE = 1 << 20


def price_bound(uses: Array, room: Array) -> Fraction | None:
    """Return a bound on the rings, whole or not, that fit into ``room``, (pairs,).

    Each takes a path of ``uses``, (paths, pairs). None if there are too many paths, or none.
    """
    if not 0 < len(uses) <= _MOST_PATHS:
        return None
    solver = _program(uses, room, whole=False)
    run(solver, "rings that fit")
    prices = [round(abs(dual) * _PRICE) for dual in solver.getSolution().row_dual]
    least = int((uses.astype(np.int64) @ np.array(prices, dtype=np.int64)).min())
    spent = sum(price * int(amount) for price, amount in zip(prices, room.tolist(), strict=True))
    return Fraction(spent, least) if least > 0 else None


def most_bandwidth(uses: Array, bandwidths: Sequence[Fraction]) -> Fraction | None:
    """Return a bound on the bandwidth of all rings together, equal or not; None as for :func:`price_bound`.

    ``bandwidths`` are those of the pairs. One program excludes all numbers of rings whose bandwidth is higher.
    """
    scale = lcm(*(one.denominator for one in bandwidths))
    unit = gcd(*(int(one * scale) for one in bandwidths))
    bound = price_bound(uses, np.array([int(one * scale) // unit for one in bandwidths], dtype=np.int64))
    return None if bound is None else bound * unit / scale


def fitting_rows(uses: Array, room: Array, rings: int) -> list[int] | bool:
    """Return rows of paths for a number of rings; False if they do not fit, True if that stays unknown."""
    bound = price_bound(uses, room)
    if bound is None or bound < rings:
        return bound is None
    solver = _program(uses, room, whole=True)
    run(solver, "rings that fit", _MOST_QUESTIONS)
    if -solver.getInfo().mip_dual_bound < rings - 0.5:
        return False
    counts = np.rint(np.array(solver.getSolution().col_value)).astype(np.int64)
    if len(counts) != len(uses) or counts.sum() < rings or (counts @ uses.astype(np.int64) > room).any():
        return True
    found: list[int] = np.repeat(np.arange(len(uses)), counts).tolist()
    return found[:rings]


def _program(uses: Array, room: Array, whole: bool) -> highspy.Highs:
    """Return the program: the most rings whose paths fit into the room."""
    import highspy

    solver = highspy.Highs()
    for option, value in (("output_flag", False), ("threads", 1), ("random_seed", 0)):
        solver.setOptionValue(option, value)
    for path in range(len(uses)):
        solver.addVar(0, highspy.kHighsInf)
        solver.changeColCost(path, -1.0)
        if whole:
            solver.changeColIntegrality(path, highspy.HighsVarType.kInteger)
    for pair, amount in enumerate(room.tolist()):
        users = np.flatnonzero(uses[:, pair]).astype(np.int32)
        solver.addRow(-highspy.kHighsInf, float(amount), len(users), users, uses[users, pair].astype(np.float64))
    return solver
