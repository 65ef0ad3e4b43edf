"""The most bandwidth of an allreduce by trees, by linear programs of flows on HiGHS: no cuts, no classes, no fractions.

``by_pairs`` is the program as ForestColl's appendix writes it: bandwidth from rank to rank, which the ranks' own flows
bring through switches. ``by_arcs`` sends a flow from all roots to every rank within what trees have of links, and
switches pass on what they get; ones that multicast may send more, ones that reduce may get more.
"""

from __future__ import annotations

from collections.abc import Collection

import highspy
import numpy as np

from collc.ir.topology import Topology

__all__ = ["by_arcs", "by_pairs"]


class Rows:
    """Columns of at least 0 and rows of at most something; the first ``weighed`` columns are maximized."""

    def __init__(self, weighed: int) -> None:
        self.weighed = weighed
        self.columns: list[list[tuple[int, float]]] = [[] for _ in range(weighed)]
        self.upper: list[float] = []

    def column(self) -> list[tuple[int, float]]:
        self.columns.append([])
        return self.columns[-1]

    def row(self, most: float = 0.0) -> int:
        self.upper.append(most)
        return len(self.upper) - 1

    def most(self) -> float:
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_, lp.sense_ = len(self.columns), len(self.upper), highspy.ObjSense.kMaximize
        lp.col_cost_ = np.r_[np.ones(self.weighed), np.zeros(len(self.columns) - self.weighed)]
        lp.col_lower_, lp.col_upper_ = np.zeros(len(self.columns)), np.full(len(self.columns), highspy.kHighsInf)
        lp.row_lower_, lp.row_upper_ = np.full(len(self.upper), -highspy.kHighsInf), np.array(self.upper)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_ = np.cumsum([0, *map(len, self.columns)]).astype(np.int32)
        lp.a_matrix_.index_ = np.array([row for entries in self.columns for row, _ in entries], dtype=np.int32)
        lp.a_matrix_.value_ = np.array([value for entries in self.columns for _, value in entries])
        model = highspy.Highs()
        model.setOptionValue("output_flag", False)
        model.passModel(lp)
        model.run()
        assert model.getModelStatus() == highspy.HighsModelStatus.kOptimal
        return float(model.getInfo().objective_function_value)


def widths(net: Topology) -> tuple[dict[tuple[int, int], float], float]:
    """Return the bandwidth between different nodes, and the largest."""
    width: dict[tuple[int, int], float] = {}
    for link, ends in enumerate(zip(net.src.tolist(), net.dst.tolist(), strict=True)):
        if ends[0] != ends[1]:
            width[ends] = width.get(ends, 0) + float(net.bandwidth(link))
    return width, max(width.values())


def by_pairs(net: Topology) -> float:
    """Both halves, every rank a sink, no two variables taken for one."""
    n, nodes, (width, unit) = net.num_ranks, net.num_nodes, widths(net)
    rows = Rows(n)
    pairs = list(width) if net.is_direct else [(a, b) for a in range(n) for b in range(n) if a != b]
    held = {(half, pair): rows.column() for half in (0, 1) for pair in pairs}
    for half in (0, 1):
        for sink in range(n):
            leaves = {v: rows.row() for v in range(n) if v != sink}
            for v, at in leaves.items():
                rows.columns[v].append((at, 1.0))
            for pair in pairs:
                flow, within = rows.column(), rows.row()
                flow.append((within, 1.0))
                held[half, pair].append((within, -1.0))
                for end, sign in zip(pair if half == 0 else pair[::-1], (-1.0, 1.0), strict=True):
                    if end in leaves:
                        flow.append((leaves[end], sign))
    budget = {ends: rows.row(most / unit) for ends, most in width.items()}
    if net.is_direct:
        for (_, pair), entries in held.items():
            entries.append((budget[pair], 1.0))
    for source in range(n if not net.is_direct else 0):
        arrives = {v: rows.row() for v in range(nodes) if v != source}
        for (_, pair), entries in held.items():
            if pair[0] == source:
                entries.append((arrives[pair[1]], 1.0))
        for ends, at in budget.items():
            flow = rows.column()
            flow.append((at, 1.0))
            flow += [(arrives[v], sign) for v, sign in zip(ends, (1.0, -1.0), strict=True) if v in arrives]
    return rows.most() * unit


def by_arcs(net: Topology, multicast: Collection[int] = (), reduces: Collection[int] = ()) -> float:
    """A flow of all roots to every rank, in each half, within what trees have of links."""
    n, nodes, (width, unit) = net.num_ranks, net.num_nodes, widths(net)
    rows = Rows(n)
    held = [{ends: rows.column() for ends in width} for _ in range(2)]
    for ends, most in width.items():
        at = rows.row(most / unit)
        for half in held:
            half[ends].append((at, 1.0))
    for half, able in zip(held, (multicast, reduces), strict=True):
        inward = half is held[1]
        for w in range(n, nodes):
            signs = [1.0] if w in able and not inward else [-1.0] if w in able else [1.0, -1.0]
            for sign in signs:
                at = rows.row()
                for (tail, head), column in half.items():
                    column.extend((at, sign * s) for v, s in ((head, 1.0), (tail, -1.0)) if v == w)
        for sink in range(n):
            leaves = {v: rows.row() for v in range(nodes) if v != sink}
            for v in range(n):
                if v != sink:
                    rows.columns[v].append((leaves[v], 1.0))
            for (tail, head), column in half.items():
                flow, within = rows.column(), rows.row()
                flow.append((within, 1.0))
                column.append((within, -1.0))
                start, end = (head, tail) if inward else (tail, head)
                flow += [(leaves[v], s) for v, s in ((start, -1.0), (end, 1.0)) if v in leaves]
    return rows.most() * unit
