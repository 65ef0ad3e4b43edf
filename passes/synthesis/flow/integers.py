"""The best whole chunks of some shards beside fixed others: an integer program on HiGHS."""

from __future__ import annotations

import numpy as np

from collc.ir.arrays import Array
from collc.ir.ragged import starts

from ...solver import run
from .mixing import Mix

__all__ = ["choose_chunks"]

#: Effort is counted in nodes of the search tree, not timed, so that results do not depend on the machine.
_OPTIONS = {"output_flag": False, "threads": 1, "random_seed": 0, "mip_max_nodes": 50}


def choose_chunks(mix: Mix, free: Array, base: Array, parts: int) -> Array | None:
    """Return how many of its shard's ``parts`` chunks each of the ``free`` paths carries, so that time is least.

    ``base`` is the other load of the cells. Returns None if the effort is not enough for a solution.
    """
    import highspy

    expanded, steps = mix.expanded, mix.expanded.steps
    shards, row = np.unique(mix.commodity[free], return_inverse=True)
    capacity = np.tile([float(c) for c in expanded.capacity], steps)
    path, cell = expanded.uses(mix.paths[free])
    # columns: every step's time, then every path; rows: the cells, then the shards
    counts = np.bincount(path, minlength=len(free)) + 1
    start = np.r_[np.arange(steps) * expanded.classes, expanded.cells + starts(counts)]
    index, value = np.arange(start[-1]), np.r_[-capacity, np.ones(start[-1] - expanded.cells)]
    index[expanded.cells + np.arange(len(path)) + path] = cell
    index[start[steps + 1 :] - 1] = expanded.cells + row
    columns, rows = steps + len(free), expanded.cells + len(shards)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = columns, rows
    lp.col_cost_ = np.r_[np.ones(steps), np.zeros(len(free))]
    lp.col_lower_, lp.col_upper_ = np.zeros(columns), np.full(columns, highspy.kHighsInf)
    lp.row_lower_ = np.r_[np.full(expanded.cells, -highspy.kHighsInf), np.full(len(shards), float(parts))]
    lp.row_upper_ = np.r_[-base.astype(np.float64), np.full(len(shards), float(parts))]
    integer, continuous = highspy.HighsVarType.kInteger, highspy.HighsVarType.kContinuous
    alike = set(expanded.capacity) == {1}
    lp.integrality_ = [integer if alike else continuous] * steps + [integer] * len(free)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = start, index, value
    solver = highspy.Highs()
    for option, setting in _OPTIONS.items():
        solver.setOptionValue(option, setting)
    solver.passModel(lp)
    run(solver, f"integer program of {columns} unknowns")
    solution = np.array(solver.getSolution().col_value[steps:])
    if len(solution) != len(free):
        return None
    units = np.rint(solution).astype(np.int64)
    sums = np.bincount(row, weights=units, minlength=len(shards))
    return units if (units >= 0).all() and (sums == parts).all() else None
