"""Rows of the shipped database against a second implementation: T_L, T_B and the all-to-all rate from the links alone.

It shares only the language with collc: LP (1) by its formula over sets of links, LP (3) as a linear program. Every
tenth row of up to 64 nodes with ``COLLC_EXHAUSTIVE=1``, else a sample of the smaller ones.
"""

from __future__ import annotations

from fractions import Fraction

import highspy
import numpy as np
import pytest
from sampling import EXHAUSTIVE

from collc.frontends import coll
from collc.passes.finder.database import DEGREES, Row, parse_rows, shipped

Links = list[tuple[int, int]]

_LARGEST = 64 if EXHAUSTIVE else 14
_SETS = 2**12  # of links into a node, that are tried one by one


def rows_of(degree: int) -> list[Row]:
    """Return every tenth row of a degree, the first with each number of nodes."""
    rows = [row for row in parse_rows(shipped(degree) or "", degree, "shipped") if row.nodes <= 64]
    return [row for row in rows[::10] if row.nodes <= _LARGEST]


ROWS = [row for degree in DEGREES for row in rows_of(degree)]


def links_of(row: Row) -> Links:
    topology = coll.topology(row.expression)
    assert topology.num_nodes == row.nodes
    return list(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))


def hops_to(links: Links, nodes: int, target: int) -> list[int]:
    hops = [-1] * nodes
    hops[target], reached = 0, [target]
    for node in reached:
        for tail, head in links:
            if head == node and hops[tail] < 0:
                hops[tail] = hops[node] + 1
                reached.append(tail)
    return hops


def costs(links: Links, nodes: int, degree: int) -> tuple[int, Fraction]:
    """Return T_L and T_B: in each step the busiest link of the most level assignment of shards to links (LP (1)).

    By Hall's theorem its load is the most, over sets of links, of the shards that only these can bring over their
    number.
    """
    hops = [hops_to(links, nodes, target) for target in range(nodes)]  # [target][source]
    steps = max(map(max, hops))
    busiest = [Fraction(0)] * (steps + 1)
    for node in range(nodes):
        tails = [tail for tail, head in links if head == node and tail != node]
        for step in range(1, steps + 1):
            usable = [
                frozenset(i for i, tail in enumerate(tails) if hops[tail][source] == step - 1)
                for source in range(nodes)
                if hops[node][source] == step
            ]
            busiest[step] = max(busiest[step], load(usable))
    return steps, sum(busiest) * Fraction(degree, nodes)


def load(usable: list[frozenset[int]]) -> Fraction:
    """Return the least load of the busiest link; unions of the shards' sets are the only sets to try."""
    kinds = sorted(set(usable), key=sorted)
    unions = {frozenset[int]()}
    for kind in kinds:
        unions |= {union | kind for union in unions}
        if len(unions) > _SETS:
            pytest.skip("too many sets of links")
    return max(
        (Fraction(sum(one <= union for one in usable), len(union)) for union in unions if union), default=Fraction(0)
    )


def optimum(links: Links, nodes: int) -> float:
    """Return f of LP (3): a variable for every source and link, and f."""
    used = [(tail, head) for tail, head in links if tail != head]
    count = len(used)
    start, index, value, lower, upper = [0], [], [], [], []
    infinity = highspy.kHighsInf

    def add(columns: list[int], values: list[float], low: float, high: float) -> None:
        index.extend(columns)
        value.extend(values)
        start.append(len(index))
        lower.append(low)
        upper.append(high)

    for link in range(count):
        add([1 + s * count + link for s in range(nodes)], [1.0] * nodes, -infinity, 1.0)
    for s in range(nodes):
        for node in set(range(nodes)) - {s}:
            into = [1 + s * count + i for i, (_, head) in enumerate(used) if head == node]
            out = [1 + s * count + i for i, (tail, _) in enumerate(used) if tail == node]
            add([0, *into, *out], [-1.0] + [1.0] * len(into) + [-1.0] * len(out), 0.0, infinity)
    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = 1 + nodes * count, len(lower)
    program.col_cost_ = np.r_[-1.0, np.zeros(nodes * count)]
    program.col_lower_, program.col_upper_ = np.zeros(1 + nodes * count), np.full(1 + nodes * count, infinity)
    program.row_lower_, program.row_upper_ = np.array(lower), np.array(upper)
    matrix = program.a_matrix_
    matrix.format_ = highspy.MatrixFormat.kRowwise
    matrix.start_, matrix.index_, matrix.value_ = np.array(start), np.array(index), np.array(value)
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    solver.passModel(program)
    solver.run()
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return -float(solver.getObjectiveValue())


def rate_holds(row: Row, found: float) -> bool:
    assert row.alltoall_rate is not None and row.most_alltoall is not None, row
    return float(row.alltoall_rate) * (1 - 1e-6) <= found <= float(row.most_alltoall) * (1 + 1e-6)


def shown(row: Row) -> str:
    return f"{row.nodes}-{row.degree}-{row.expression[:40]}"


@pytest.mark.parametrize("row", [row for row in ROWS if row.scheduler == "bfb"], ids=shown)
def test_steps_and_bandwidth_time(row: Row) -> None:
    assert costs(links_of(row), row.nodes, row.degree) == (row.T_L, row.T_B)


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=shown)
def test_alltoall_rate(row: Row) -> None:
    assert rate_holds(row, optimum(links_of(row), row.nodes))


def test_the_checks_can_fail() -> None:
    """A network with two links exchanged has other values."""
    (row, *_) = parse_rows(shipped(4) or "", 4, "shipped", 13)
    links = links_of(row)
    assert costs(links, 13, 4) == (row.T_L, row.T_B) and rate_holds(row, optimum(links, 13))
    (a, b), (c, d) = links[0], next(
        link for link in links if len({*links[0], *link}) == 4
        and (links[0][0], link[1]) not in links and (link[0], links[0][1]) not in links
    )  # fmt: skip
    changed = [link for link in links if link not in ((a, b), (c, d))] + [(a, d), (c, b)]
    assert costs(changed, 13, 4) != (row.T_L, row.T_B) and not rate_holds(row, optimum(changed, 13))


def test_the_sample_has_rows_of_every_degree() -> None:
    assert {row.degree for row in ROWS} == set(DEGREES) - ({16} if not EXHAUSTIVE else set())
