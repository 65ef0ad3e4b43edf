"""The linear program of column generation on HiGHS: mixes of routings, a mix for every source.

minimize the sum of L_g over all groups of classes, so that on every class the mean loads of all sources add up to at
most its capacity times its group's L. The rate has one group; schedules have one for every step. Routings join as they
are found; HiGHS continues from its last basis.
"""

from __future__ import annotations

import numpy as np

from collc.ir.arrays import Array
from collc.ir.ragged import starts

from ...solver import run

__all__ = ["Master"]

#: iterations of one run of the simplex method, which mostly takes some thousands, and of all; then an interior point
#: method goes on
_ITERATIONS, _MOST_ITERATIONS = 20_000, 30_000


class Master:
    """A row for each class of links, then one for each source; a column for each group, then one for each routing.

    ``group`` and ``capacity`` are of every class; groups are numbered from 0. ``method``: ``simplex`` (continues from
    its last basis), ``vertex`` (an interior point method, then a vertex; for large programs) or ``central`` (no vertex:
    the central ones of all best prices, which oscillate least).
    """

    def __init__(self, group: Array, capacity: Array, sources: int, method: str = "simplex") -> None:
        import highspy

        classes, groups = len(group), int(group.max()) + 1
        self.classes, self.groups, self._infinity = classes, groups, highspy.kHighsInf
        self._solver = highspy.Highs()
        self._solver.setOptionValue("output_flag", False)
        self._solver.setOptionValue("threads", 1)
        self._solver.setOptionValue("solver", "choose" if method == "simplex" else "ipm")
        self._solver.setOptionValue("simplex_iteration_limit", _ITERATIONS)
        self._solver.setOptionValue("run_crossover", "off" if method == "central" else "on")
        self._restarts, self._simplex, self._iterations = method == "central", method == "simplex", 0
        order = np.argsort(group, kind="stable")
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = groups, classes + sources
        lp.col_cost_, lp.col_lower_ = np.ones(groups), np.zeros(groups)
        lp.col_upper_ = np.full(groups, highspy.kHighsInf)
        lp.row_lower_ = np.r_[np.full(classes, -highspy.kHighsInf), np.ones(sources)]
        lp.row_upper_ = np.r_[np.zeros(classes), np.ones(sources)]
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_ = starts(np.bincount(group, minlength=groups)).astype(np.int32)
        lp.a_matrix_.index_ = order.astype(np.int32)
        lp.a_matrix_.value_ = -capacity[order].astype(np.float64)
        self._solver.passModel(lp)

    def join(self, sources: Array, routing: Array, classes: Array, loads: Array) -> None:
        """Add a routing for each of ``sources``: number ``routing[i]`` of them loads ``classes[i]`` by ``loads[i]``.

        The last three stand in order of routings.
        """
        count = len(sources)
        start = starts(np.bincount(routing, minlength=count) + 1)
        index, value = np.empty(start[-1], dtype=np.int32), np.ones(start[-1])
        place = np.arange(len(routing)) + routing  # every routing's loads are followed by its source's row
        index[place], value[place] = classes, loads
        index[start[1:] - 1] = self.classes + sources
        self._solver.addCols(
            count, np.zeros(count), np.zeros(count), np.full(count, self._infinity),
            len(index), start[:-1].astype(np.int32), index, value,
        )  # fmt: skip

    def solve(self) -> tuple[float, Array, Array]:
        """Return the objective, the shares of all routings in the order they joined, and the prices of the classes.

        Times capacities, the prices of a group add up to 1.
        """
        import highspy

        if self._restarts:
            self._solver.clearSolver()
        run(self._solver, "mix of routings")
        self._iterations += max(0, self._solver.getInfo().simplex_iteration_count) if self._simplex else 0
        if self._simplex and self._iterations > _MOST_ITERATIONS:
            self._simplex = False
            self._solver.setOptionValue("solver", "ipm")
        if self._solver.getModelStatus() == highspy.HighsModelStatus.kIterationLimit:
            self._solver.clearSolver()  # the simplex method cycles at this basis
            self._solver.setOptionValue("solver", "ipm")
            run(self._solver, "mix of routings")
            self._solver.setOptionValue("solver", "choose" if self._simplex else "ipm")
        solution = self._solver.getSolution()
        shares = np.maximum(np.array(solution.col_value[self.groups :]), 0)
        prices = np.maximum(-np.array(solution.row_dual[: self.classes]), 0)
        return float(self._solver.getObjectiveValue()), shares, prices

    @property
    def exhausted(self) -> bool:
        """Whether the simplex method has used up its iterations: then results need only be near the best."""
        return self._iterations > _MOST_ITERATIONS

    def basis(self) -> tuple[Array, Array]:
        """Return which columns (groups first) and which class rows' slacks are basic."""
        import highspy

        basis = self._solver.getBasis()
        basic = highspy.HighsBasisStatus.kBasic
        columns = np.array([status == basic for status in basis.col_status])
        return columns, np.array([status == basic for status in basis.row_status])[: self.classes]
