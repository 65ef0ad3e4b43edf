"""LP (3) on classes of (source, link) pairs: exact flows that are best for all sources together, with few relays.

minimize T so that every source's flow delivers one shard to every other rank, and no link carries more than T times its
capacity. If shards differ in size, a source delivers what its demands say, and flows are in their unit. Switches and
ranks forward data. Of the flows of the least T, one that crosses the fewest links is taken: it has no circles.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import lcm
from typing import NamedTuple

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.ragged import starts
from collc.ir.topology import Topology

from ...solver import run
from .basis import solve_sparse
from .classes import Classes

__all__ = ["Flows", "best_flows", "best_prices", "near_prices"]

_MOST_EXACT = 3000  # rows of a basis that elimination in fractions mostly solves in a second
_LARGE = 4000  # columns, from which an interior point method is faster than the simplex method
_TINY = 1e-9

Row = dict[int, Fraction]


@attrs.frozen(eq=False)
class Flows:
    """``value[c]`` is the flow on every pair of class c, in shards; ``time`` the load of the busiest link.

    ``exact``: they are the exact optimum of the program; else floats near it, as fractions.
    """

    classes: Classes
    value: tuple[Fraction, ...]
    time: Fraction
    exact: bool


@attrs.frozen(eq=False)
class _Program:
    """Rows over the flows of classes, and T as the last column.

    A row is the ``demand`` of a node, or it is at most 0: the capacity of a class of links, its number in ``link``.
    ``cost`` is the number of links of each class of flows.
    """

    rows: Sequence[Row]
    demand: Sequence[Fraction | None]
    link: Sequence[int]
    columns: int
    cost: Sequence[int]


def best_flows(
    topology: Topology, sources: Array, capacity: Sequence[Fraction], demand: Array | None = None
) -> Flows:  # fmt: skip
    """Return the best flows from ``sources`` to all ranks; ``capacity`` is of every class of links.

    ``demand``: what every node needs of each source, in whole units, shape (sources, nodes); None: a unit for each
    rank.
    """
    classes = Classes.of(topology, sources, demand)
    program = _program(topology, classes, capacity, demand)
    first = _solved(program, None)
    exact = first.exact is not None
    time = first.exact[-1] if first.exact is not None else Fraction(first.floats[-1])
    fewest = _solved(program, time)
    value = fewest.exact or first.exact or [Fraction(x) for x in fewest.floats]
    return Flows(classes, tuple(value[: program.columns - 1]), time, exact)


def best_prices(
    topology: Topology, capacity: Sequence[Fraction], demand: Array | None = None
) -> list[int] | None:  # fmt: skip
    """Return whole prices of all links that solve the dual program of an all-to-all; None if elimination is too long.

    The caller checks what they prove: T is at least the sum of all pairs' cheapest routes over the sum of capacity
    times price. ``demand`` is that of :func:`best_flows` with all ranks as sources.
    """
    classes = Classes.of(topology, np.arange(topology.num_ranks), demand)
    program = _program(topology, classes, capacity, demand)
    basis = _basis(_solver(program, None))
    if basis is None:
        return None
    columns, rows = basis
    number = {i: k for k, i in enumerate(rows)}
    transposed: dict[int, Row] = {j: {} for j in columns}
    for i in rows:
        for j, x in program.rows[i].items():
            if j in transposed:
                transposed[j][number[i]] = x
    duals = solve_sparse(list(transposed.values()), [Fraction(j == program.columns - 1) for j in columns])
    if duals is None:
        return None
    _, size = np.unique(classes.link, return_counts=True)
    price = [Fraction(0)] * len(size)
    for i, dual in zip(rows, duals, strict=True):
        if program.demand[i] is None:
            price[program.link[i]] = max(-dual, Fraction(0)) / int(size[program.link[i]])
    scale = lcm(*(one.denominator for one in price))
    whole = [int(one * scale) for one in price]
    return [whole[c] for c in classes.link.tolist()]


def near_prices(topology: Topology, capacity: Sequence[Fraction], demand: Array, dearest: int) -> list[int]:
    """Return whole prices of all links, up to ``dearest``, near those that solve the dual program.

    ``demand`` is that of :func:`best_flows` with all ranks as sources. The caller checks what they prove.
    """
    classes = Classes.of(topology, np.arange(topology.num_ranks), demand)
    program = _program(topology, classes, capacity, demand)
    duals: list[float] = np.array(_solver(program, None).getSolution().row_dual).tolist()
    _, size = np.unique(classes.link, return_counts=True)
    price = np.zeros(len(size))
    for kind, dual in zip(program.link, duals[: len(program.link)], strict=True):  # capacities are the first rows
        price[kind] = max(-dual, 0.0) / size[kind]
    whole: list[int] = np.rint(price * (dearest / max(price.max(), 1e-300))).astype(np.int64)[classes.link].tolist()
    return whole


def _program(
    topology: Topology, classes: Classes, capacity: Sequence[Fraction], needs: Array | None = None
) -> _Program:  # fmt: skip
    columns = int(classes.flow.max()) + 2
    rows, demand, kinds = list[Row](), list[Fraction | None](), list[int]()
    links = np.unique(classes.link, return_index=True)[1]
    for link in links.tolist():
        used = Counter(classes.flow[classes.flow[:, link] >= 0, link].tolist())
        if used:
            width = capacity[topology.link_class[link]]
            rows.append({**{c: Fraction(n) for c, n in used.items()}, columns - 1: -width})
            demand.append(None)
            kinds.append(int(classes.link[link]))
    start_in, into = topology.in_links
    start_out, out = topology.out_links
    _, places = np.unique(classes.node, return_index=True)
    for place in places.tolist():
        source, node = divmod(place, topology.num_nodes)
        if node == classes.sources[source]:
            continue
        row = Counter[int]()
        row.update(_classes_of(classes.flow[source], into[start_in[node] : start_in[node + 1]]))
        row.subtract(_classes_of(classes.flow[source], out[start_out[node] : start_out[node + 1]]))
        rows.append({c: Fraction(n) for c, n in row.items() if n})
        demand.append(Fraction(node < topology.num_ranks) if needs is None else Fraction(int(needs[source, node])))
    counts = np.bincount(classes.flow[classes.flow >= 0], minlength=columns - 1)
    return _Program(rows, demand, kinds, columns, [*counts.tolist(), 0])


def _classes_of(flow: Array, links: Array) -> list[int]:
    found: list[int] = flow[links].tolist()
    return [c for c in found if c >= 0]


def _solver(program: _Program, time: Fraction | None):  # type: ignore[no-untyped-def]  # highspy has no types
    """Return HiGHS with the program: the least T, or the fewest links with T fixed."""
    import highspy

    infinity, last = highspy.kHighsInf, program.columns - 1
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = program.columns, len(program.rows)
    least = np.zeros(program.columns)
    most = np.full(program.columns, infinity)
    if time is None:
        lp.col_cost_ = np.r_[np.zeros(last), 1.0]
    else:
        lp.col_cost_ = np.array(program.cost, dtype=np.float64)
        least[last] = most[last] = float(time)
    lp.col_lower_, lp.col_upper_ = least, most
    lp.row_lower_ = np.array([-infinity if d is None else float(d) for d in program.demand])
    lp.row_upper_ = np.array([0.0 if d is None else float(d) for d in program.demand])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = starts([len(row) for row in program.rows]).astype(np.int32)
    lp.a_matrix_.index_ = np.array([c for row in program.rows for c in row], dtype=np.int32)
    lp.a_matrix_.value_ = np.array([float(x) for row in program.rows for x in row.values()])
    solver = highspy.Highs()
    method = "ipm" if program.columns > _LARGE else "choose"
    for option, setting in (("output_flag", False), ("threads", 1), ("random_seed", 0), ("solver", method)):
        solver.setOptionValue(option, setting)
    solver.passModel(lp)
    run(solver, "flows through the network")
    return solver


class _Solution(NamedTuple):
    """The flows and T of a program as floats, and exact ones if its last basis gives them."""

    floats: list[float]
    exact: list[Fraction] | None


def _solved(program: _Program, time: Fraction | None) -> _Solution:
    """Return the solution at the last basis; it is not exact if elimination takes too long or a check fails."""
    solver = _solver(program, time)
    found: list[float] = np.array(solver.getSolution().col_value).tolist()
    return _Solution([x if x > _TINY else 0.0 for x in found], _exact(program, time, _basis(solver)))


def _exact(
    program: _Program, time: Fraction | None, basis: tuple[list[int], list[int]] | None
) -> list[Fraction] | None:
    """Return the exact flows and T of a basis; None if it is too large, or if the result breaks a row."""
    if basis is None:
        return None
    columns, rows = basis
    number = {j: k for k, j in enumerate(columns)}
    fixed = {} if time is None else {program.columns - 1: time}
    right = [(program.demand[i] or Fraction(0)) - _part(program.rows[i], fixed) for i in rows]
    found = solve_sparse([{number[j]: x for j, x in program.rows[i].items() if j in number} for i in rows], right)
    if found is None:
        return None
    value = [Fraction(0)] * program.columns
    for j, x in zip(columns, found, strict=True):
        value[j] = x
    if time is not None:
        value[-1] = time
    return value if _holds(program, value) else None


def _basis(solver) -> tuple[list[int], list[int]] | None:  # type: ignore[no-untyped-def]  # highspy has no types
    """Return the basic columns, and the rows without a basic slack; None if elimination would take too long."""
    import highspy

    basis, basic = solver.getBasis(), highspy.HighsBasisStatus.kBasic
    columns = [j for j, status in enumerate(basis.col_status) if status == basic]
    rows = [i for i, status in enumerate(basis.row_status) if status != basic]
    return (columns, rows) if len(columns) == len(rows) <= _MOST_EXACT else None


def _part(row: Mapping[int, Fraction], fixed: Mapping[int, Fraction]) -> Fraction:
    return sum((row[j] * x for j, x in fixed.items() if j in row), Fraction(0))


def _holds(program: _Program, value: Sequence[Fraction]) -> bool:
    """Return whether values satisfy all rows, and none is negative."""
    if min(value) < 0:
        return False
    for row, demand in zip(program.rows, program.demand, strict=True):
        total = sum((x * value[j] for j, x in row.items()), Fraction(0))
        if total > 0 if demand is None else total != demand:
            return False
    return True
