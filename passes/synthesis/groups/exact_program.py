"""Small linear programs, solved by HiGHS and then exactly on its last basis."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import attrs
import numpy as np

from collc.ir.ragged import starts

from ...solver import run
from ..flow.basis import solve_sparse

__all__ = ["Optimum", "Row", "about_maximum", "maximum"]

#: approximate values are multiples of one over this
_GRID = 1 << 40


@attrs.frozen(eq=False)
class Row:
    """The sum of ``terms`` (column -> factor) is at most ``most``, or exactly ``most``."""

    terms: dict[int, Fraction]
    most: Fraction = Fraction(0)
    equal: bool = False


@attrs.frozen(eq=False)
class Optimum:
    """A solution: the value of each column, and the price of each row."""

    values: list[Fraction]
    prices: list[Fraction]


def maximum(objective: dict[int, Fraction], rows: Sequence[Row], columns: int) -> Optimum | None:
    """Return the largest value of an objective over nonnegative columns within the rows.

    None if the exact solution of the solver's basis breaks a row: then numbers differ too much in size for it.
    """
    import highspy

    solver = _solved(highspy, objective, rows, columns)
    basis = solver.getBasis()
    basic = highspy.HighsBasisStatus.kBasic
    inside = [column for column, status in enumerate(basis.col_status) if status == basic]
    tight = [row for row, status in enumerate(basis.row_status) if status != basic]
    if len(inside) != len(tight):
        return None
    number = {column: place for place, column in enumerate(inside)}
    square = [{number[c]: x for c, x in rows[row].terms.items() if c in number and x} for row in tight]
    values = solve_sparse(square, [rows[row].most for row in tight])
    turned: list[dict[int, Fraction]] = [{} for _ in inside]
    for place, terms in enumerate(square):
        for column, factor in terms.items():
            turned[column][place] = factor
    prices = solve_sparse(turned, [objective.get(column, Fraction(0)) for column in inside])
    if values is None or prices is None:
        return None
    found = Optimum([Fraction(0)] * columns, [Fraction(0)] * len(rows))
    for column, value in zip(inside, values, strict=True):
        found.values[column] = value
    for row, price in zip(tight, prices, strict=True):
        found.prices[row] = price
    return found if _is_within(found.values, rows) else None


def about_maximum(objective: dict[int, Fraction], rows: Sequence[Row], columns: int) -> Optimum:
    """Return the solver's own values and prices for the largest objective, rounded; they may break rows a little."""
    import highspy

    found = _solved(highspy, objective, rows, columns).getSolution()
    values, prices = ([Fraction(max(round(one * _GRID), 0), _GRID) for one in part]
                      for part in (found.col_value, found.row_dual))  # fmt: skip
    return Optimum(values, prices)


# Any: the package and its solver, which have no types
def _solved(highspy: Any, objective: dict[int, Fraction], rows: Sequence[Row], columns: int) -> Any:
    solver = highspy.Highs()
    for option, setting in {"output_flag": False, "threads": 1, "random_seed": 0, "solver": "simplex"}.items():
        solver.setOptionValue(option, setting)
    solver.passModel(_model(highspy, objective, rows, columns))
    run(solver, f"linear program of {len(rows)} rows")
    return solver


def _is_within(values: Sequence[Fraction], rows: Sequence[Row]) -> bool:
    for row in rows:
        total = sum((values[column] * factor for column, factor in row.terms.items()), Fraction(0))
        if total > row.most or (row.equal and total != row.most):
            return False
    return all(value >= 0 for value in values)


# Any: the package, which has no types
def _model(highspy: Any, objective: dict[int, Fraction], rows: Sequence[Row], columns: int) -> object:
    lp, infinity = highspy.HighsLp(), highspy.kHighsInf
    lp.num_col_, lp.num_row_, lp.sense_ = columns, len(rows), highspy.ObjSense.kMaximize
    lp.col_cost_ = np.array([float(objective.get(column, 0)) for column in range(columns)])
    lp.col_lower_, lp.col_upper_ = np.zeros(columns), np.full(columns, infinity)
    lp.row_lower_ = np.array([float(row.most) if row.equal else -infinity for row in rows])
    lp.row_upper_ = np.array([float(row.most) for row in rows])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = starts([len(row.terms) for row in rows])
    lp.a_matrix_.index_ = np.array([column for row in rows for column in row.terms], dtype=np.int64)
    lp.a_matrix_.value_ = np.array([float(factor) for row in rows for factor in row.terms.values()])
    return lp
