"""The bandwidth bound of any allreduce by trees: the linear program of ForestColl's appendix E, on HiGHS.

Ranks may be the roots of different amounts x_v of data, and links may divide their bandwidth freely between the
reduction and the broadcast; sum x_v is the bandwidth of the allreduce. Through switches, the ranks' data are a
multi-commodity flow. Reduce-scatter and allgather is a solution, so the bound is at least its bandwidth.
"""

from __future__ import annotations

from fractions import Fraction

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.graph.bottleneck import worst_ratio
from collc.ir.topology import Topology

from ...solver import run
from .allreduce_network import Half, Net, reduced
from .allreduce_prices import price_bound
from .allreduce_solution import reached

__all__ = ["MOST_COLUMNS", "AllreduceBound", "allreduce_bound", "allreduce_program"]

#: larger programs are not tried
MOST_COLUMNS = 10_000


@attrs.frozen
class AllreduceBound:
    """No allreduce by trees has more bandwidth than ``value``, in the topology's unit.

    One has ``reached``: reduce-scatter and allgather, which have ``composed``, or one with roots of different amounts.
    ``columns`` and ``rows`` are the program's.
    """

    value: Fraction
    reached: Fraction
    composed: Fraction
    columns: int
    rows: int

    @property
    def exact(self) -> bool:
        """Whether the bound can be reached."""
        return self.value == self.reached


def allreduce_bound(topology: Topology) -> Fraction | None:
    """Return the value of :func:`allreduce_program`, or None if the program is too large.

    >>> from collc.frontends.coll import topology
    >>> allreduce_bound(topology("hypercube(3)"))
    Fraction(12, 7)
    """
    found = allreduce_program(topology)
    return None if found is None else found.value


def allreduce_program(topology: Topology, most_columns: int = MOST_COLUMNS) -> AllreduceBound | None:
    """Return the bound; None for a single rank, or if the program has more than ``most_columns`` unknowns.

    The bound is an exact fraction and proved, in spite of the solver's floating point: any prices prove a bound, and
    flows check the rounded solution. Raises C0301 unless every rank reaches every other.
    """
    topology.require_connected("an allreduce")
    if topology.num_ranks < 2 or _least_columns(topology) > most_columns:
        return None
    net = reduced(topology)
    program = Program(net)
    if program.columns > most_columns:
        return None
    solution = program.solve()
    value = price_bound(net, solution.potentials, solution.tolls)
    together = composed(topology)
    best = together if is_lossless(topology) else Fraction(0)
    if best < value:
        best = max(best, reached(net, solution.roots, solution.held, solution.arc_flows))
    return AllreduceBound(value, best, together, program.columns, program.rows)


def composed(topology: Topology) -> Fraction:
    """Return the bandwidth of the best reduce-scatter, then the best allgather."""
    alike = [1] * topology.num_ranks
    gather, _ = worst_ratio(topology, alike)
    scatter = gather if topology.reverse_links is not None else worst_ratio(topology.transpose(), alike)[0]
    return topology.num_ranks / (gather + scatter)


def is_lossless(topology: Topology) -> bool:
    """Return whether all switches can be removed without loss: as much bandwidth into each as out of it."""
    switches = range(topology.num_ranks, topology.num_nodes)
    return all(topology.ingress(switch) == topology.egress(switch) for switch in switches)


def _least_columns(topology: Topology) -> int:
    """Return a lower bound on the unknowns: one flow along every link, or between all ranks."""
    ranks = topology.num_ranks
    return ranks * (ranks - 1) if topology.num_switches else ranks


@attrs.frozen(eq=False)
class Solution:
    """An optimum: x of every kind of rank (``roots``); per half c of every kind of pair (``held``) and every first
    rank's flow along its arcs (``arc_flows``); and its prices: per half and first rank a ``potential`` of every rank,
    and a toll per budget."""

    objective: float
    roots: Array
    held: list[Array]
    arc_flows: list[list[Array]]
    potentials: list[list[Array]]
    tolls: Array


class Program:
    """The rows and columns of the program, as blocks of triplets.

    Columns: x of every kind of rank; then for each half c of every kind of pair, f of every first rank as sink and
    every pair not out of it, and with switches g of every first rank as source and every arc it may use. Rows: budgets;
    then x leaves every rank but the sink by f, f is at most c, g brings c to every other rank and leaves nothing in
    switches. All but budgets are at most 0.
    """

    def __init__(self, net: Net) -> None:
        self.net, self.columns, self.rows = net, len(net.first), len(net.width)
        self.held: list[Array] = []  # per half: the columns of c
        self.arc_flows: list[list[Array]] = []  # per half and first rank: the columns of g
        self.potentials: list[list[Array]] = []  # per half and first rank: the row of every rank, -1 for the sink
        self._triplets: list[tuple[Array, Array, Array]] = []
        for half in net.halves:
            held, firsts = self._new_columns(int(half.pair_kind.max()) + 1), net.first.tolist()
            self.held.append(held)
            self.potentials.append([self._sink(half, held, rank) for rank in firsts])
            if net.is_direct:
                self.arc_flows.append([])
                self._put(half.budget, held[half.pair_kind], 1)
            else:
                counts = zip(firsts, net.count.tolist(), strict=True)
                self.arc_flows.append([self._source(half, held, rank, count) for rank, count in counts])

    def _sink(self, half: Half, held: Array, sink: int) -> Array:
        """Send x from all ranks to one within c; return the rows of the flow out of the ranks."""
        n = self.net.num_ranks
        used = np.flatnonzero(half.pairs[0] != sink)
        flow, within, at = self._new_columns(len(used)), self._new_rows(len(used)), np.full(n, -1)
        at[np.arange(n) != sink] = self._new_rows(n - 1)
        self._put(at, self.net.kind, 1)
        self._put(at[half.pairs[0][used]], flow, -1)
        self._put(at[half.pairs[1][used]], flow, 1)
        self._put(within, flow, 1)
        self._put(within, held[half.pair_kind[used]], -1)
        return at

    def _source(self, half: Half, held: Array, source: int, count: int) -> Array:
        """Bring c from one rank of ``count`` equivalent ones to all others through switches; return the columns."""
        arcs, pairs = half.usable_arcs(source, self.net.num_ranks), np.flatnonzero(half.pairs[0] == source)
        flow, at = self._new_columns(len(arcs)), np.full(self.net.num_nodes, -1)
        at[np.arange(self.net.num_nodes) != source] = self._new_rows(self.net.num_nodes - 1)
        self._put(at[half.pairs[1][pairs]], held[half.pair_kind[pairs]], 1)
        self._put(at[half.arcs[0][arcs]], flow, 1)
        self._put(at[half.arcs[1][arcs]], flow, -1)
        self._put(half.budget[arcs], flow, count)
        return flow

    def _new_rows(self, count: int) -> Array:
        self.rows += count
        return np.arange(self.rows - count, self.rows)

    def _new_columns(self, count: int) -> Array:
        self.columns += count
        return np.arange(self.columns - count, self.columns)

    def _put(self, rows: Array, columns: Array, value: int) -> None:
        """Add entries; rows of -1 are left out."""
        kept = rows >= 0
        self._triplets.append((rows[kept], columns[kept], np.full(int(kept.sum()), value, dtype=np.float64)))

    def solve(self) -> Solution:
        """Return an optimum; the solver counts bandwidth in widest budgets, the solution in ``net.unit``."""
        import highspy

        lp, infinity = highspy.HighsLp(), highspy.kHighsInf
        unit, budgets, kinds = max(self.net.width), len(self.net.width), len(self.net.first)
        most = np.array([float(width / unit) for width in self.net.width])
        lp.num_col_, lp.num_row_, lp.sense_ = self.columns, self.rows, highspy.ObjSense.kMaximize
        lp.col_cost_ = np.r_[self.net.count.astype(np.float64), np.zeros(self.columns - kinds)]
        lp.col_lower_, lp.col_upper_ = np.zeros(self.columns), np.full(self.columns, infinity)
        lp.row_lower_, lp.row_upper_ = np.full(self.rows, -infinity), np.r_[most, np.zeros(self.rows - budgets)]
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = self._matrix()
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("threads", 1)
        solver.setOptionValue("solver", "ipm")  # then a vertex; the simplex method takes minutes on large ones
        solver.passModel(lp)
        run(solver, f"linear program of {self.rows} rows")
        found = solver.getSolution()
        values, duals = np.array(found.col_value) * float(unit / self.net.unit), np.abs(np.array(found.row_dual))
        return Solution(
            solver.getInfo().objective_function_value * float(unit), values[:kinds],
            [values[held] for held in self.held], [[values[flow] for flow in half] for half in self.arc_flows],
            [[np.where(at >= 0, duals[at], 0.0) for at in half] for half in self.potentials], duals[:budgets],
        )  # fmt: skip

    def _matrix(self) -> tuple[Array, Array, Array]:
        """Return the matrix by columns: their starts, rows, values; entries of one place are added up."""
        rows, columns, values = (np.concatenate(part) for part in zip(*self._triplets, strict=True))
        code, place = np.unique(columns * self.rows + rows, return_inverse=True)
        start = np.searchsorted(code, np.arange(self.columns + 1) * self.rows)
        return start.astype(np.int32), (code % self.rows).astype(np.int32), np.bincount(place.ravel(), values)
