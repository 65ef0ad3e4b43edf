"""Tables 4, 5, 7 and 8 of the direct-connect paper beside what the compiler finds for the same topologies.

    python benchmarks/tables.py [--table N ..] [--no-rates]

T_L (steps) and T_B (M/B) are of the optimal breadth-first allgather, exact (of the expanded schedule where the base's
is not breadth first), D is the diameter and f the all-to-all rate of LP (3). After ours stands = where it has the
printed digits, < where it is better, > where it is worse. A rate is one that a routing reaches; where it is known
between bounds of different digits only, the end of the row says what none can exceed, and ~ stands for = if the printed
one is between them. Times are those of Table 4: alpha 10 us, 1 MB (2^20 bytes), 100 Gbps out of a node; an all-to-all
takes M d / (N f B). A row whose topology has no expression in the language says why. All of it takes a few
minutes of one core, nearly all for the rates of the unsymmetric line graphs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from fractions import Fraction
from functools import cache

import attrs

import collc
from collc.ir.collective import Collective
from collc.ir.costs.bounds import moore_steps
from collc.ir.costs.cost import cost, predicted_time
from collc.ir.diagnostic import CollcError
from collc.ir.spec import Problem
from collc.ir.topology import Topology
from collc.passes.base import Pass
from collc.passes.expansion.expansion import Expansion
from collc.passes.synthesis.breadth_first.bfb import BFB
from collc.passes.synthesis.flow.rate import Rate, alltoall_rate, rate_bound
from collc.passes.synthesis.trees.double_binary_tree import DoubleBinaryTree

ALPHA, SIZE, BANDWIDTH = Fraction(10, 10**6), 2**20, Fraction(100 * 10**9, 8)


@attrs.frozen
class Row:
    """A row of the paper: its figures as printed, None if absent.

    ``expression`` is the topology in the language, or nothing; ``note`` says why, or what else there is to say.
    ``times`` are the microseconds of an allreduce and of an all-to-all; ``scheduler`` makes our schedule.
    """

    name: str
    expression: str | None = None
    note: str = ""
    steps: int | None = None
    bandwidth: float | None = None
    diameter: int | None = None
    rate: float | None = None
    times: tuple[float | None, float | None] = (None, None)
    scheduler: Pass = attrs.Factory(BFB)


#: for bases whose bandwidth-optimal schedules are not breadth first
_CARRIED = Expansion(base="exact", objective="bandwidth")
_TOO_FAR = (
    "by hops alone f <= 64/79063 = 8.09e-4, by prices of the base 3/3806 = 7.88e-4: the printed one is of another"
)

TABLE_4 = [
    Row("Pi(4,1024)", "generalized_kautz(4, 1024)", "", 5, 1.332, 5, None, (323.5, 409.1)),
    Row("L^3(C(16,{3,4}))", "line(circulant(16, {3, 4}), 3)", _TOO_FAR, 6, 1.020, 6, None, (291.0, 403.5)),
    Row("L^2(Diamond^2)", "line(power(diamond(), 2), 2)", "", 8, 1.004, 8, None, (328.4, 446.6), scheduler=_CARRIED),
    Row("L(DBJMod(2,4)^2)", "line(power(modified_debruijn(2, 4), 2))", "", 11, 1.000, 9, None, (387.8, 529.9),
        scheduler=_CARRIED),
    Row("(UniRing(4) x UniRing(8))^2", "power(product(uniring(4), uniring(8)), 2)", "", 20, 0.999, 20, None,
        (567.6, 1174.4)),
    Row("bound", None, "", 5, 0.999, 5, None, (267.6, 382.3)),
]  # fmt: skip
#: the baselines of Table 4: name, expression, our scheduler, microseconds (the ring of the paper takes 2 (N - 1) steps)
BASELINES: list[tuple[str, str, Pass, tuple[float, float]]] = [
    ("ShiftedRing, breadth first", "shifted_ring(1024)", BFB(), (20640, 10738)),
    ("DoubleBinaryTree", "double_binary_tree(1024)", DoubleBinaryTree(), (1434, 21475)),
    ("DoubleBinaryTree, one port", "double_binary_tree(1024)", DoubleBinaryTree(one_port=True), (1434, 21475)),
]

_OPTIMAL_5 = {
    5: ("K_5", "complete(5)"), 6: ("K_3 * 2", "degree(complete(3), 2)"), 7: ("C(7,{2,3})", "circulant(7, {2, 3})"),
    8: ("K_{4,4}", "complete_bipartite(4)"), 9: ("H(2,3)", "hamming(2, 3)"),
    10: ("BiRing(2,5) * 2", "degree(biring(5), 2)"), 11: ("C(11,{2,3})", "circulant(11, {2, 3})"),
    12: ("C(12,{2,3})", "circulant(12, {2, 3})"),
}  # fmt: skip
TABLE_5 = [Row(name, text, bandwidth=(n - 1) / n) for n, (name, text) in _OPTIMAL_5.items()]

TABLE_7 = {
    32: [
        Row("L(K_{4,4})", "line(complete_bipartite(4))", "", 3, 1.000, 3, 5.71e-2),
        Row("DistReg(4,32)", 'distance_regular("ag(2,4)-minus-class")', "", 4, 0.969, 4, 5.26e-2),
        Row("bound", None, "", 3, 0.969, 3, 5.80e-2),
    ],
    64: [
        Row("Pi(4,64)", "generalized_kautz(4, 64)", "", 3, 1.312, 3, 2.17e-2),
        Row("L(DBJMod(4,2))", "line(modified_debruijn(4, 2))", "", 4, 1.000, 4, 2.21e-2, scheduler=_CARRIED),
        Row("Diamond^2", "power(diamond(), 2)", "", 6, 0.984, 6, 1.87e-2, scheduler=_CARRIED),
        Row("bound", None, "", 3, 0.984, 3, 2.42e-2),
    ],
    128: [
        Row("L^2(K_{4,4})", "line(complete_bipartite(4), 2)", "", 4, 1.031, 4, 9.89e-3),
        Row("L(DistReg(4,32))", 'line(distance_regular("ag(2,4)-minus-class"))', "", 5, 1.000, 5, 9.26e-3),
        Row("BiRing(8) x UniRing(4)^2", "product(biring(8), power(uniring(4), 2))", "", 10, 0.992, 10, 5.21e-3),
        Row("bound", None, "", 4, 0.992, 4, 1.00e-2),
    ],
    256: [
        Row("DBJ(4,4)", "debruijn(4, 4)", "", 4, 1.328, 4, 4.04e-3),
        Row("L^2(DBJMod(4,2))", "line(modified_debruijn(4, 2), 2)", "", 5, 1.016, 5, 4.10e-3, scheduler=_CARRIED),
        Row("L(Diamond^2)", "line(power(diamond(), 2))", "", 7, 1.000, 7, 3.62e-3, scheduler=_CARRIED),
        Row("DBJMod(2,4)^2", "power(modified_debruijn(2, 4), 2)", "", 10, 0.996, 8, 2.94e-3, scheduler=_CARRIED),
        Row("bound", None, "", 4, 0.996, 4, 4.39e-3),
    ],
    512: [
        Row("L^3(K_{4,4})", "line(complete_bipartite(4), 3)", "", 5, 1.039, 5, 1.88e-3),
        Row("L^2(DistReg(4,32))", 'line(distance_regular("ag(2,4)-minus-class"), 2)', "", 6, 1.008, 6, 1.78e-3),
        Row("L(UniRing(4)^3 x UniRing(2))", "line(product(power(uniring(4), 3), uniring(2)))", "", 11, 1.000, 11,
            1.12e-3),
        Row("UniRing(4)^3 x UniRing(8)", "product(power(uniring(4), 3), uniring(8))", "", 16, 0.998, 16, 5.58e-4),
        Row("bound", None, "", 5, 0.998, 5, 1.90e-3),
    ],
    1024: [
        Row("Pi(4,1024)", "generalized_kautz(4, 1024)", "", 5, 1.332, 5, 8.01e-4),
        Row("L^3(C(16,{3,4}))", "line(circulant(16, {3, 4}), 3)", _TOO_FAR, 6, 1.020, 6, 8.12e-4),
        Row("L^2(Diamond^2)", "line(power(diamond(), 2), 2)", "", 8, 1.004, 8, 7.34e-4, scheduler=_CARRIED),
        Row("L(DBJMod(2,4)^2)", "line(power(modified_debruijn(2, 4), 2))", "", 11, 1.000, 9, 6.18e-4,
            scheduler=_CARRIED),
        Row("(UniRing(4) x UniRing(8))^2", "power(product(uniring(4), uniring(8)), 2)", "", 20, 0.999, 20, 2.79e-4),
        Row("bound", None, "", 5, 0.999, 5, 8.57e-4),
    ],
}  # fmt: skip

#: name in the paper -> name in the language, nodes, diameter; all of degree 4 and bandwidth-optimal
_REGULAR_8 = {
    "Octahedron J(4,2)": ("octahedron", 6, 2), "Paley graph P9": ("paley9", 9, 2),
    "K_{5,5} minus a matching": ("k55-minus-matching", 10, 3), "Heawood distance-3": ("heawood-distance-3", 14, 3),
    "Line of Petersen": ("petersen-line", 15, 3), "4-cube": ("4-cube", 16, 4),
    "Line of Heawood": ("heawood-line", 21, 3), "PG(2,3)": ("pg(2,3)", 26, 3),
    "AG(2,4) minus a class": ("ag(2,4)-minus-class", 32, 4), "Odd graph O4": ("odd4", 35, 3),
    "Line of Tutte's 8-cage": ("tutte8-line", 45, 4), "Doubled odd D(O4)": ("doubled-odd4", 70, 7),
    "GQ(3,3)": ("gq(3,3)", 80, 4), "Line of Tutte's 12-cage": ("tutte12-line", 189, 6), "GH(3,3)": ("gh(3,3)", 728, 6),
}  # fmt: skip
TABLE_8 = [
    Row(name, f'distance_regular("{ours}")', steps=d, bandwidth=(n - 1) / n, diameter=d)
    for name, (ours, n, d) in _REGULAR_8.items()
]


@attrs.frozen
class Found:
    """What the compiler has for a topology: exact values; ``times`` as in :class:`Row`.

    ``rate`` is reached by a routing, ``most`` by none but where it is the same.
    """

    nodes: int
    steps: int
    bandwidth: Fraction
    diameter: int
    rate: Fraction | None
    times: tuple[float | None, float | None] = (None, None)
    most: Fraction | None = None

    @property
    def between(self) -> str:
        """What the rate is known not to exceed, where its digits are not known."""
        if self.rate is None or self.most is None or f"{float(self.rate):.2e}" == f"{float(self.most):.2e}":
            return ""
        return f"f <= {float(self.most):.3e}"


def bound(nodes: int, degree: int, rates: bool) -> Found:
    """Return what no topology of this size and degree can beat."""
    steps, share = moore_steps(nodes, degree), Fraction(nodes - 1, nodes)
    rate = rate_bound(nodes, degree)
    reduce = 2 * (steps * ALPHA + share * SIZE / BANDWIDTH)
    times = (float(reduce) * 1e6, alltoall_us(nodes, degree, rate))
    return Found(nodes, steps, share, steps, rate if rates else None, times)


def measure(expression: str, scheduler: Pass, rates: bool, timed: bool) -> Found:
    """Return what the scheduler's schedule costs, and the all-to-all rate and times where asked for."""
    topology = collc.topology(expression)
    n, degree = topology.num_ranks, topology.degree or 1
    found = _cost(topology, scheduler, "allgather")
    found_rate = rate_of(expression) if rates else None
    rate = found_rate.lower if found_rate else None
    reduce = predicted_time(_cost(topology, scheduler, "allreduce"), SIZE, ALPHA, BANDWIDTH) if timed else None
    times = (
        None if reduce is None else float(reduce) * 1e6,
        alltoall_us(n, degree, rate) if rate is not None and timed else None,
    )
    share, most = found.T_B or found.time_per_byte * degree, found_rate.upper if found_rate else None
    return Found(n, found.T_L, share, found.diameter or 0, rate, times, most)


@cache
def rate_of(expression: str) -> Rate:
    """Return a topology's rate; some stand in two tables."""
    return alltoall_rate(collc.topology(expression))


def _cost(topology: Topology, scheduler: Pass, kind: str) -> collc.ir.costs.cost.Cost:
    return cost(scheduler.run(Problem(topology, Collective(kind, topology.num_ranks))))


def alltoall_us(nodes: int, degree: int, rate: Fraction) -> float:
    """Return the microseconds of an all-to-all at this rate: every rank sends M/N to every other at f B/d."""
    return float(SIZE * degree / (nodes * rate * BANDWIDTH)) * 1e6


# ---- text


def lines(rows: list[Row], rates: bool, timed: bool = False, nodes: int | None = None) -> Iterator[str]:
    """Yield the lines of a table as its rows are measured."""
    yield _head(timed)
    for row in rows:
        if row.name == "bound":
            yield _line(row, bound(nodes or 1024, 4, rates), timed, 0.0)
            continue
        if row.expression is None:
            yield _line(row, None, timed, 0.0) + f"  {row.note}"
            continue
        start = time.perf_counter()
        try:
            found = measure(row.expression, row.scheduler, rates, timed)
        except CollcError as mistake:
            yield _line(row, None, timed, 0.0) + f"  {mistake.diagnostics[0].message}"
            continue
        notes = "; ".join(note for note in (found.between, row.note) if note)
        yield f"{_line(row, found, timed, time.perf_counter() - start)}  {notes}".rstrip()


def baselines(rates: bool) -> Iterator[str]:
    """Yield the baselines of Table 4, by the schedulers that are nearest to them."""
    head = ("allreduce us", "ours", "all-to-all us", "ours")
    yield "{:28}{:>14}{:>10}{:>15}{:>10}".format("baselines, N = 1024", *head)
    for name, expression, scheduler, (reduce, alltoall) in BASELINES:
        topology = collc.topology(expression)
        schedule = scheduler.run(Problem(topology, Collective("allreduce", topology.num_ranks, size=SIZE)))
        ours = float(predicted_time(cost(schedule), SIZE, ALPHA, _per_unit(topology))) * 1e6
        text = f"{name:28}{_show(reduce, 1):>14}" + _ours(ours, reduce, 1, 11, ".1f") + f"{_show(alltoall, 1):>14}"
        if rates and topology.symmetry is not None:  # the rate of the trees would take long
            time_ = alltoall_us(topology.num_ranks, 4, alltoall_rate(topology).lower)
            text += _ours(time_, alltoall, 1, 11, ".1f")
        yield text


def _per_unit(topology: Topology) -> Fraction:
    """Return the bandwidth that predictions take: out of a node, or of a link where nodes differ; four links a node."""
    return BANDWIDTH if topology.node_bandwidth is not None else BANDWIDTH / 4


def _head(timed: bool) -> str:
    head = f"{'':28}{'N':>5}" + "".join(f"{name:>{width}}" for name, width in (
        ("T_L paper", 10), ("ours", 6), ("T_B paper", 11), ("ours", 19), ("D paper", 9), ("ours", 6), ("f paper", 10),
        ("ours", 11)))  # fmt: skip
    return head + (f"{'allreduce us':>14}{'ours':>10}{'all-to-all us':>15}{'ours':>10}" if timed else "") + f"{'s':>7}"


def _line(row: Row, found: Found | None, timed: bool, seconds: float) -> str:
    digits = 3
    text = f"{row.name:28}{found.nodes if found else '':>5}{_show(row.steps):>10}"
    text += _ours(found.steps if found else None, row.steps, 0, 6, "d") + f"{_show(row.bandwidth, digits):>11}"
    exact = f"{found.bandwidth!s} " if found else ""
    text += f"{exact:>11}" + _ours(found.bandwidth if found else None, row.bandwidth, digits, 8, ".3f")
    text += f"{_show(row.diameter):>9}" + _ours(found.diameter if found else None, row.diameter, 0, 6, "d")
    text += f"{'' if row.rate is None else f'{row.rate:.2e}':>10}"
    text += _rate(found, row.rate)
    for paper, ours in zip(row.times, found.times if found else (None, None), strict=True) if timed else ():
        text += f"{_show(paper, 1):>14}" + _ours(ours, paper, 1, 11, ".1f")
    return f"{text}{seconds:7.1f}" if found else text.rstrip()


def _rate(found: Found | None, paper: float | None) -> str:
    """Return our rate with its mark; within bounds of different digits it may be the printed one."""
    text = _ours(found.rate if found else None, paper, None, 11, ".2e", less_is_better=False)
    if found is None or paper is None or not found.between or text[-1] != ">":
        return text
    return text[:-1] + ("~" if _ours(found.most, paper, None, 11, ".2e", less_is_better=False)[-1] in "=<" else ">")


def _show(value: float | None, digits: int = 0) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _ours(
    ours: Fraction | float | None, paper: float | None, digits: int | None, width: int, form: str,
    less_is_better: bool = True,
) -> str:  # fmt: skip
    """Return our figure and how it compares with the printed one: half a unit of its last digit either way is equal."""
    if ours is None:
        return " " * width
    text = f"{int(ours) if form == 'd' else float(ours):{form}}"
    if paper is None:
        return f"{text:>{width - 1}} "
    unit = 10.0**-digits if digits is not None else 10.0 ** int(f"{paper:e}".split("e")[1]) / 100
    near = abs(float(ours) - paper) <= unit * 0.501
    mark = "=" if near else "<" if (float(ours) < paper) == less_is_better else ">"
    return f"{text:>{width - 1}}{mark}"


def table(number: int, rates: bool) -> Iterator[str]:
    """Yield the lines of one table."""
    if number == 4:
        yield "Table 4: N = 1024, d = 4, M = 1 MB, alpha = 10 us, B = 100 Gbps"
        yield from lines(TABLE_4, rates, timed=True, nodes=1024)
        yield from baselines(rates)
    elif number == 5:
        yield "Table 5: d = 4, bandwidth-optimal"
        yield from lines(TABLE_5, rates)
    elif number == 7:
        for nodes, rows in TABLE_7.items():
            yield f"Table 7: N = {nodes}, d = 4"
            yield from lines(rows, rates, nodes=nodes)
    else:
        yield "Table 8: distance-regular, d = 4, bandwidth-optimal"
        yield from lines(TABLE_8, rates)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", type=int, choices=(4, 5, 7, 8), action="append", help="only this table")
    parser.add_argument("--no-rates", action="store_true", help="leave out the all-to-all rates")
    options = parser.parse_args()
    for number in options.table or (4, 5, 7, 8):
        for line in table(number, not options.no_rates):
            print(line, flush=True)
        print()


if __name__ == "__main__":
    main()
