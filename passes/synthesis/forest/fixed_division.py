"""The best division of an allreduce into a given number of trees: whole numbers of trees of roots and over links.

N trees take the least time per byte at the least U at which links of bandwidth b hold floor(U b) of them, both
directions together: U / N (ForestColl's Algorithm 5, with roots and directions free). U is one of the fractions j / b,
and more of it never hurts, so bisection finds it. At each U an integer program decides:

    maximize    the sum of x_v, at most N, over whole x_v >= 0 of ranks v
    subject to  out(e) + in(e) <= floor(U b(e)), whole, of every link e
                out = what leaves a switch, in likewise
                out(links out of S) >= x(S), in(links into S) >= x(S), of every set S of nodes that lacks a rank

Sets are found by flows, and hold at every U. The linear program, whose values are not whole, rules out most U. If every
link has a reverse, inward trees are first tried as the outward trees backwards: without switches no others are better,
because a network of undirected links holds N trees of any roots if every partition does (Tutte, Nash-Williams).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from collc.ir.arrays import Array
from collc.ir.effort import spend, within
from collc.ir.ragged import starts
from collc.ir.topology import Topology

from ...solver import run
from .allreduce_classes import Classes, by_maps
from .allreduce_division import division_holds, spread
from .division import Division

__all__ = ["MOST_UNKNOWNS", "fixed_division"]

#: unknowns of the largest program that is tried
MOST_UNKNOWNS = 2000
_QUESTIONS = 200  # of one integer program
_FINE = 1 << 20  # values of the linear program as whole numbers
_CLOSE = 1e-6
_MOST_WORK = 1 << 26  # steps of all programs
_HARDER = 8  # times the work of a linear program is that of an integer program, about
_CUTS = 64  # sets of one flow network


def fixed_division(topology: Topology, trees: int, best: Fraction, alike: bool = False) -> Division | None:
    """Return the division of most bandwidth into ``trees`` trees in all; ``alike``: equally many of every rank.

    ``best`` is the bandwidth that no trees exceed, in the topology's unit. If an integer program takes too much work,
    the trees per unit of bandwidth are as if it had no solution. None for networks of more than ``MOST_UNKNOWNS``
    unknowns, or whose switches multicast or reduce, and if all programs take too much work.
    """
    backwards = topology.reverse_links is not None
    directions = 1 if backwards and topology.is_direct else 2
    if topology.num_ranks + directions * topology.num_links > MOST_UNKNOWNS or topology.in_network:
        return None
    kinds = (True, False)[:directions] if backwards else (False,)
    programs = [_Program(topology, trees, alike, mirrored) for mirrored in kinds]
    widths = sorted({kind.bandwidth for kind in topology.classes})
    return within(_MOST_WORK, lambda: _least(programs, _Steps(widths, trees / best)))


class _Steps:
    """The trees per unit of bandwidth at which a link holds one tree more, ascending from a first one."""

    def __init__(self, widths: Sequence[Fraction], first: Fraction) -> None:
        self.widths, self.known = widths, [first]

    def at(self, place: int) -> Fraction:
        """Return the trees per unit at a place."""
        while len(self.known) <= place:
            last = self.known[-1]
            self.known.append(min((int(last * width) + 1) / width for width in self.widths))
        return self.known[place]


def _least(programs: Sequence[_Program], steps: _Steps) -> Division:
    """Return the division at the first step at which there is one."""

    def at(place: int) -> Division | None:
        # Of a solution that is not mirrored, the mean with its reverse is one in fractions: the first program decides.
        per_unit = steps.at(place)
        for one in programs:
            if not one.is_open(per_unit):
                return None
            if (found := one.at(per_unit)) is not None:
                return found
        return None

    low, high, found = -1, 0, at(0)
    while found is None:
        low, high = high, 2 * high + 1
        found = at(high)
    while high - low > 1:
        middle = (low + high) // 2
        better = at(middle)
        low, high, found = (middle, high, found) if better is None else (low, middle, better)
    return found


class _Program:
    """The columns are x of every rank, then the trees of every arc and direction, once if both are ``mirrored``."""

    def __init__(self, topology: Topology, trees: int, alike: bool, mirrored: bool) -> None:
        self.topology, self.trees = topology, trees
        self.classes: Classes = by_maps(topology, [], mirrored)
        self.ranks, self.columns = topology.num_ranks, topology.num_ranks + self.classes.num_columns
        self.most = trees // topology.num_ranks if alike else trees
        self.rows = list(self._cuts_of([[rank] for rank in range(self.ranks)]))

    def is_open(self, per_unit: Fraction) -> bool:
        """Return whether the linear program has a solution; learn the sets that it needs."""
        import highspy

        solver = self._solver(highspy, self._room(per_unit))
        while (values := self._solved(solver, None)) is not None:
            fresh = self._violated(np.maximum(values, 0.0), _FINE)
            if not fresh:
                return True
            for row in fresh:
                used = np.flatnonzero(row).astype(np.int32)
                solver.addRow(-highspy.kHighsInf, 0.0, len(used), used, row[used].astype(float))
            self.rows += fresh
        return False

    def at(self, per_unit: Fraction) -> Division | None:
        """Return a division of this many trees per unit of bandwidth, or None if there is none."""
        import highspy

        room = self._room(per_unit)
        while (values := self._solved(self._solver(highspy, room, whole=True), _QUESTIONS)) is not None:
            fresh = self._violated(np.rint(values), 1)
            if not fresh:
                return self._checked(np.rint(values).astype(np.int64).tolist(), per_unit)
            self.rows += fresh
        return None

    def _room(self, per_unit: Fraction) -> dict[tuple[int, ...], int]:
        """Return the trees that each pair of columns holds: whole ones on each of parallel links."""
        topology, nodes = self.topology, self.classes.num_nodes
        held = dict.fromkeys((self.classes.arcs[0] * nodes + self.classes.arcs[1]).tolist(), 0)
        whole = [int(kind.bandwidth * per_unit) for kind in topology.classes]
        ends = (topology.src.astype(np.int64) * nodes + topology.dst).tolist()
        for arc, kind in zip(ends, topology.link_class.tolist(), strict=True):
            if arc in held:  # not a loop
                held[arc] += whole[kind]
        pairs = map(tuple, np.sort(self.classes.column, axis=0).T.tolist())
        return dict(zip(pairs, held.values(), strict=True))

    # ---- sets

    def _cuts_of(self, sides: Sequence[Sequence[int]], halves: Sequence[int] = (0, 1)) -> Iterator[Array]:
        """Yield rows: roots on a side less what crosses, of the sides and of all nodes but them."""
        for side in sides:
            near = np.zeros(self.classes.num_nodes, dtype=bool)
            near[list(side)] = True
            for half in self.classes.halves:
                for flags in (near, ~near):
                    yield self._row(flags, half)

    def _row(self, near: Array, half: int) -> Array:
        row = np.zeros(self.columns, dtype=np.int64)
        row[: self.ranks] = near[: self.ranks]
        row[self.ranks :] = -self.classes.crossing(near, bool(half))
        return row

    def _violated(self, values: Array, scale: int) -> list[Array]:
        """Return the rows that values break."""
        slack = 0.0 if scale == 1 else _CLOSE
        supply = np.floor(values[: self.ranks] * (1 - slack) * scale + (scale == 1) / 2).astype(np.int64).tolist()
        held = np.ceil(values[self.ranks :] * scale - (scale == 1) / 2).astype(np.int64).tolist()
        supply += [0] * (self.classes.num_nodes - self.ranks)
        found = list[Array]()
        for half in self.classes.halves:
            network, bypass = self.classes.network(held, bool(half))
            for cut in network.violated(supply, range(self.ranks), _CUTS):
                near = np.zeros(self.classes.num_nodes, dtype=bool)
                near[list(bypass.whole(cut.nodes))] = True
                found.append(self._row(near, half))
        return found

    # ---- solutions

    # Any: the package and its solver, which have no types
    def _solver(self, highspy: Any, room: dict[tuple[int, ...], int], whole: bool = False) -> Any:
        solver = highspy.Highs()
        settings = {"output_flag": False, "threads": 1, "random_seed": 0, "mip_rel_gap": 0.0}
        for option, setting in settings.items():
            solver.setOptionValue(option, setting)
        solver.passModel(self._model(highspy, room, whole))
        return solver

    def _solved(self, solver: Any, most: int | None) -> Array | None:  # Any: as above
        """Return values of most trees with the known rows; None if they are fewer than all, or if work ends first.

        ``most`` are the questions of an integer program, None of a linear one.
        """
        spend(len(self.rows) * self.columns * (1 if most is None else _HARDER))
        questions = run(solver, f"{self.trees} trees", most)
        if most is not None:
            spend(questions * len(self.rows))
        values: Array = np.array(solver.getSolution().col_value)
        least = self.trees - (_CLOSE if most is None else 0.5)
        return values if len(values) and values[: self.ranks].sum() >= least else None

    # Any: the package, which has no types
    def _model(self, highspy: Any, room: dict[tuple[int, ...], int], whole: bool) -> object:
        rows = list[tuple[Array, float, float]]()
        infinity = highspy.kHighsInf
        for (a, b), most in room.items():
            row = np.zeros(self.columns, dtype=np.int64)
            row[self.ranks + a] += 1
            row[self.ranks + b] += 1
            rows.append((row, -infinity, float(most)))
        for switch in range(self.ranks, self.classes.num_nodes):
            for half in self.classes.halves:
                row = np.zeros(self.columns, dtype=np.int64)
                row[self.ranks :] = self.classes.balance(switch, bool(half))
                rows.append((row, 0.0, 0.0))
        rows += [(row, -infinity, 0.0) for row in self.rows]
        ones = (np.arange(self.columns) < self.ranks).astype(np.int64)
        rows.append((ones, -infinity, float(self.trees)))
        table = np.array([row for row, _, _ in rows])
        line, column = np.nonzero(table)
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_, lp.sense_ = self.columns, len(rows), highspy.ObjSense.kMaximize
        lp.col_cost_ = ones.astype(float)
        lp.col_lower_ = np.zeros(self.columns)
        lp.col_upper_ = np.where(ones > 0, float(self.most), infinity)
        lp.row_lower_ = np.array([least for _, least, _ in rows])
        lp.row_upper_ = np.array([most for _, _, most in rows])
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = starts(np.bincount(line, minlength=len(rows)))
        lp.a_matrix_.index_ = column
        lp.a_matrix_.value_ = table[line, column].astype(float)
        if whole:
            lp.integrality_ = [highspy.HighsVarType.kInteger] * self.columns
        return lp

    def _checked(self, numbers: list[int], per_unit: Fraction) -> Division:
        """Return the solution of an integer program as a division, checked exactly."""
        roots, held = numbers[: self.ranks], numbers[self.ranks :]
        whole = [int(kind.bandwidth * per_unit) for kind in self.topology.classes]
        free = [whole[kind] for kind in self.topology.link_class.tolist()]
        columns = self.classes.column.tolist()
        outward, inward = (spread(self.topology, self.classes, [held[c] for c in half], free) for half in columns)
        if outward is not None and inward is not None:
            found = Division(tuple(roots), tuple(inward), tuple(outward), per_unit)
            if division_holds(self.topology, found):
                return found
        raise ArithmeticError(f"{self.trees} trees of an integer program do not exist")
