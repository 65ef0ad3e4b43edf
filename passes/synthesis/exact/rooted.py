"""Gather and scatter: all data begin or end at one rank, so what is moved is one flow, and no program of arrivals.

Whole chunks of different shards are alike on their way: a schedule of S steps, of which step t is L_t rounds long,
exists if and only if a network of ranks and times, a link of which carries its width times L_t, lets all chunks flow to
(or from) the root. If not, a cut of that network is a row that all lengths must keep: a sum of L_t, with the widths of
links as factors, is at least the chunks behind the cut. Rows of rings of ranks around the root come first; what is
found to be cut joins them, until the shortest lengths that keep all rows do. Chunks take their ways in whole numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from collc.ir.cuts import Cut, FlowNetwork
from collc.ir.progress import progress

from ...solver import run
from .demand import Demand
from .schedules import Arrivals

__all__ = ["Shortest", "network_size", "shortest"]

Array = np.ndarray[Any, np.dtype[Any]]
Row = tuple[tuple[int, ...], int]

_MOST_CUTS = 100


@attrs.frozen(eq=False)
class Shortest:
    """Arrivals in the fewest rounds for some steps and chunks; at least ``least`` rounds are needed."""

    arrivals: Arrivals
    rounds: int
    least: int


def network_size(demand: Demand, steps: int) -> int:
    """Return how many links the network of ranks and times has."""
    return len(demand.tail) * steps


def shortest(demand: Demand, steps: int, chunks: int) -> Shortest:
    """Return the fewest rounds in which a gather or scatter ends after at most so many steps, which must be enough."""
    search = _Search(demand, steps, chunks)
    lengths, flow, least = search.run()
    return Shortest(_arrivals(demand, search.paths(flow), chunks), sum(lengths), least)


@attrs.frozen(eq=False)
class _Flow:
    """What every arc of a network carries."""

    arcs: FlowNetwork
    carried: dict[int, int]

    def inward(self) -> list[list[list[int]]]:
        """Return, for every node, where how much comes from."""
        result: list[list[list[int]]] = [[] for _ in range(self.arcs.num_nodes)]
        head = self.arcs.head
        for arc, amount in self.carried.items():
            result[head[arc]].append([head[arc ^ 1], amount])
        return result


@attrs.frozen(eq=False)
class _Network:
    """Ranks and times; ``links`` are (arc, step from 0, width), whose capacities follow from the lengths of steps."""

    arcs: FlowNetwork
    links: list[tuple[int, int, int]]
    demand: int

    def flow(self, root: int, lengths: Sequence[int]) -> _Flow | Cut:
        """Return a flow of all data from the root, or a cut in its way."""
        for arc, step, width in self.links:
            self.arcs.capacity[arc] = width * lengths[step]
        supply = [0] * self.arcs.num_nodes
        supply[root] = self.demand
        found = self.arcs.flow(supply, self.arcs.num_nodes - 1, self.demand)
        return found if isinstance(found, Cut) else _Flow(self.arcs, found)


class _Search:
    """A scatter; a gather is one backwards in time, on links turned round."""

    def __init__(self, demand: Demand, steps: int, chunks: int) -> None:
        self.gathers = demand.collective.kind == "gather"
        self.ranks, self.root, self.steps, self.chunks = demand.num_ranks, demand.collective.root or 0, steps, chunks
        tail, head = (demand.head, demand.tail) if self.gathers else (demand.tail, demand.head)
        self.pairs = list(zip(tail.tolist(), head.tolist(), demand.width.tolist(), strict=True))
        hops = demand.topology.distances[: self.ranks, : self.ranks].astype(np.int64)
        self.distance: list[int] = (hops[:, self.root] if self.gathers else hops[self.root]).tolist()
        self.rows = self._rings()
        # data that only go away from the root take no link in vain, and mostly lose no time
        self.straight, self.network = self._network(onwards=True), self._network()

    def run(self) -> tuple[list[int], _Flow, int]:
        """Return lengths of steps that do, a flow that shows it, and the least sum there could be."""
        lengths, least = self._latest(), 0
        for count in range(_MOST_CUTS):
            progress("cuts around the root", count)
            least = max(least, sum(lengths))
            found = self._judged(lengths)
            if isinstance(found, _Flow):
                return lengths, found, least
            self.rows.append(found)
            lengths = _least_lengths(self.rows, self.steps)
        least = max(least, sum(lengths))
        return *self._stretched(lengths), least

    # ---- rows

    def _rings(self) -> list[Row]:
        """Return, for ranks h hops away and more, what has to get there in time for those j hops further."""
        far = np.bincount(self.distance, minlength=self.steps + 1)[::-1].cumsum()[::-1].tolist()
        width = [0] * (self.steps + 1)
        for tail, head, wide in self.pairs:
            if self.distance[head] == self.distance[tail] + 1:
                width[self.distance[head]] += wide
        rows = []
        for h in range(1, self.steps + 1):
            for j in range(self.steps - h + 1):
                if far[h + j]:
                    within = [width[h] if h <= t <= self.steps - j else 0 for t in range(1, self.steps + 1)]
                    rows.append((tuple(within), self.chunks * far[h + j]))
        return rows

    def _latest(self) -> list[int]:
        """Return the shortest lengths that keep the rows of rings, each step as late as it can be.

        Their steps are intervals: what an interval lacks its last step gets, those that end first first.
        """
        lengths = [0] * self.steps
        for factors, needed in sorted(self.rows, key=lambda row: max(t for t, f in enumerate(row[0]) if f)):
            steps = [t for t, factor in enumerate(factors) if factor]
            lacking = needed - sum(factors[t] * lengths[t] for t in steps)
            lengths[steps[-1]] += max(0, -(-lacking // factors[steps[-1]]))
        return lengths

    def _stretched(self, lengths: list[int]) -> tuple[list[int], _Flow]:
        """Lengthen the widest step of every cut that is left; each cut is mended for good."""
        while not isinstance(found := self._judged(lengths), _Flow):
            factors, needed = found
            widest = max(range(self.steps), key=lambda t: (factors[t], -t))
            lacking = needed - sum(f * n for f, n in zip(factors, lengths, strict=True))
            lengths[widest] += -(-lacking // factors[widest])
        return lengths, found

    # ---- the network of ranks and times

    def _network(self, onwards: bool = False) -> _Network:
        """Return the network: node t N + v is rank v after step t, the last one the sink."""
        at, n, ends = self.distance, self.ranks, self.steps * self.ranks
        arcs, everything = FlowNetwork(ends + n + 1), self.chunks * n
        links = []
        for step in range(self.steps):
            before, after = step * n, (step + 1) * n
            for rank in range(n):
                if at[rank] <= step:
                    arcs.add(before + rank, after + rank, everything)
            for tail, head, width in self.pairs:
                if at[tail] <= step and (at[head] > at[tail] or not onwards):
                    links.append((len(arcs.head), step, width))
                    arcs.add(before + tail, after + head, 0)
        for rank in range(n):
            if rank != self.root:
                arcs.add(ends + rank, ends + n, self.chunks)
        return _Network(arcs, links, self.chunks * (n - 1))

    def _judged(self, lengths: Sequence[int]) -> _Flow | Row:
        """Return a flow that these lengths allow, or the row that they break."""
        found = self.straight.flow(self.root, lengths)
        if isinstance(found, Cut):
            found = self.network.flow(self.root, lengths)
        if isinstance(found, _Flow):
            return found
        inside, factors = set(found.nodes), [0] * self.steps
        head = self.network.arcs.head
        for arc, step, width in self.network.links:
            if head[arc ^ 1] in inside and head[arc] not in inside:
                factors[step] += width
        ends = self.steps * self.ranks
        outside = sum(ends + rank not in inside for rank in range(self.ranks) if rank != self.root)
        return tuple(factors), self.chunks * outside

    def paths(self, flow: _Flow) -> list[list[tuple[int, int]]]:
        """Return the way of every chunk, shard by shard (the root's is empty): its ranks and when it comes there."""
        inward = flow.inward()
        return [
            self._path(inward, rank) if rank != self.root else []
            for rank in range(self.ranks) for _ in range(self.chunks)
        ]  # fmt: skip

    def _path(self, inward: list[list[list[int]]], rank: int) -> list[tuple[int, int]]:
        """Take a chunk's way back from its rank out of the flow; it stays where it would come again."""
        node, met = self.steps * self.ranks + rank, [(rank, self.steps)]
        while node >= self.ranks:
            ways = inward[node]
            ways[-1][1] -= 1
            before = ways[-1][0]
            if not ways[-1][1]:
                ways.pop()
            node = before
            met.append((node % self.ranks, node // self.ranks))
        return self._timed(met[::-1])

    def _timed(self, met: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return the ranks that a chunk needs to visit, without rounds that lead back, and when it comes to them."""
        way: list[tuple[int, int]] = []
        for rank, when in met:
            known = next((i for i, (seen, _) in enumerate(way) if seen == rank), None)
            if known is None:
                way.append((rank, when))
            else:
                del way[known + 1 :]
        if not self.gathers:
            return way
        # backwards: a chunk that comes to a rank after step t leaves it for the one before in step S + 1 - t
        leaves = [self.steps + 1 - when for _, when in way]
        ranks = [rank for rank, _ in way]
        return [(ranks[-1], 0)] + [(ranks[i], leaves[i + 1]) for i in reversed(range(len(way) - 1))]


def _least_lengths(rows: Sequence[Row], steps: int) -> list[int]:
    """Return the whole lengths of the least sum that keep all rows: an integer program with an unknown a step."""
    import highspy

    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = steps, len(rows)
    lp.col_cost_, lp.col_lower_ = np.ones(steps), np.zeros(steps)
    lp.col_upper_ = np.full(steps, float(max(needed for _, needed in rows)))
    lp.row_lower_ = np.array([float(needed) for _, needed in rows])
    lp.row_upper_ = np.full(len(rows), highspy.kHighsInf)
    lp.integrality_ = [highspy.HighsVarType.kInteger] * steps
    factors = np.array([row for row, _ in rows], dtype=float)
    row, column = np.nonzero(factors)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.r_[0, np.cumsum(np.bincount(row, minlength=len(rows)))].astype(np.int32)
    lp.a_matrix_.index_, lp.a_matrix_.value_ = column.astype(np.int32), factors[row, column]
    solver = highspy.Highs()
    for option, setting in (("output_flag", False), ("threads", 1), ("random_seed", 0), ("mip_abs_gap", 0.999)):
        solver.setOptionValue(option, setting)
    solver.passModel(lp)
    run(solver, "lengths of steps")
    return [round(x) for x in solver.getSolution().col_value]


def _arrivals(demand: Demand, paths: list[list[tuple[int, int]]], chunks: int) -> Arrivals:
    step = np.full((len(paths), demand.num_ranks), -1, dtype=np.int64)
    for piece, path in enumerate(paths):
        for rank, when in path:
            step[piece, rank] = when
    for piece, source in enumerate(np.repeat(demand.source, chunks).tolist()):
        step[piece, source] = 0
    return Arrivals(chunks, 1, step)
