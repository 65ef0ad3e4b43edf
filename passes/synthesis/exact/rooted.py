"""Gather and scatter: all data end or begin at one rank, so a schedule is one flow and needs no program of arrivals.

Chunks of different shards are interchangeable on their routes. A schedule of S steps, with L_t rounds in step t, exists
if and only if all chunks can flow to (or from) the root in the time-expanded network, where a link carries its width
times L_t. Otherwise a cut of that network gives a row that all lengths must satisfy: a sum of L_t, with the widths of
links as factors, is at least the number of chunks behind the cut. The first rows come from the rings of ranks around
the root. The search adds the rows of cuts until the shortest lengths that satisfy all rows allow a flow. The flow is
integer, so every chunk has one route.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from collc.ir.graph.cuts import Cut, FlowNetwork
from collc.ir.progress import progress
from collc.ir.ragged import starts

from ...solver import run
from .demand import Demand
from .schedules import Arrivals

__all__ = ["Shortest", "network_size", "shortest"]
Row = tuple[tuple[int, ...], int]

_MOST_CUTS = 100


@attrs.frozen(eq=False)
class Shortest:
    """Arrivals in the fewest rounds for some steps and chunks; at least ``least`` rounds are needed."""

    arrivals: Arrivals
    rounds: int
    least: int


def network_size(demand: Demand, steps: int) -> int:
    """Return the number of links of the time-expanded network."""
    return len(demand.tail) * steps


def shortest(demand: Demand, steps: int, chunks: int) -> Shortest:
    """Return the fewest rounds of a gather or scatter in at most ``steps`` steps, which must be enough."""
    search = _Search(demand, steps, chunks)
    lengths, flow, least = search.run()
    return Shortest(_arrivals(demand, search.routes(flow), chunks), sum(lengths), least)


@attrs.frozen(eq=False)
class _Flow:
    """The flow of a network: ``carried`` by arc."""

    arcs: FlowNetwork
    carried: dict[int, int]

    def inward(self) -> list[list[list[int]]]:
        """Return, for every node, the nodes before it, each with the amount from there."""
        result: list[list[list[int]]] = [[] for _ in range(self.arcs.num_nodes)]
        head = self.arcs.head
        for arc, amount in self.carried.items():
            result[head[arc]].append([head[arc ^ 1], amount])
        return result


@attrs.frozen(eq=False)
class _Network:
    """The time-expanded network; ``links`` are (arc, step from 0, width), with capacities from the lengths of steps."""

    arcs: FlowNetwork
    links: list[tuple[int, int, int]]
    demand: int

    def flow(self, root: int, lengths: Sequence[int]) -> _Flow | Cut:
        """Return a flow of all data from the root, or a cut that prevents it."""
        for arc, step, width in self.links:
            self.arcs.capacity[arc] = width * lengths[step]
        supply = [0] * self.arcs.num_nodes
        supply[root] = self.demand
        found = self.arcs.flow(supply, self.arcs.num_nodes - 1, self.demand)
        return found if isinstance(found, Cut) else _Flow(self.arcs, found)


class _Search:
    """The search for a scatter; a gather is a scatter backwards in time, on reversed links."""

    def __init__(self, demand: Demand, steps: int, chunks: int) -> None:
        self.gathers = demand.collective.kind == "gather"
        self.ranks, self.root, self.steps, self.chunks = demand.num_ranks, demand.collective.root or 0, steps, chunks
        tail, head = (demand.head, demand.tail) if self.gathers else (demand.tail, demand.head)
        self.pairs = list(zip(tail.tolist(), head.tolist(), demand.width.tolist(), strict=True))
        hops = demand.topology.distances[: self.ranks, : self.ranks].astype(np.int64)
        self.distance: list[int] = (hops[:, self.root] if self.gathers else hops[self.root]).tolist()
        self.rows = self._rings()
        # data that only move away from the root waste no link, and rarely lose time
        self.straight, self.network = self._network(onwards=True), self._network()

    def run(self) -> tuple[list[int], _Flow, int]:
        """Return sufficient lengths of steps, a flow that proves it, and a lower bound on their sum."""
        lengths, least = self._shortest_for_rings(), 0
        for count in range(_MOST_CUTS):
            progress("cuts around the root", count)
            least = max(least, sum(lengths))
            found = self._flow_or_row(lengths)
            if isinstance(found, _Flow):
                return lengths, found, least
            self.rows.append(found)
            lengths = _least_lengths(self.rows, self.steps)
        least = max(least, sum(lengths))
        return *self._lengthened(lengths), least

    # ---- rows

    def _rings(self) -> list[Row]:
        """Return the rows for ranks at least h hops away: data for ranks j hops further must reach them in time."""
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

    def _shortest_for_rings(self) -> list[int]:
        """Return the shortest lengths that satisfy the rows of rings, with the last steps as long as possible.

        The steps of a row are an interval. Rows come in the order of their ends; each lengthens its last step.
        """
        lengths = [0] * self.steps
        for factors, needed in sorted(self.rows, key=lambda row: max(t for t, f in enumerate(row[0]) if f)):
            steps = [t for t, factor in enumerate(factors) if factor]
            lacking = needed - sum(factors[t] * lengths[t] for t in steps)
            lengths[steps[-1]] += max(0, -(-lacking // factors[steps[-1]]))
        return lengths

    def _lengthened(self, lengths: list[int]) -> tuple[list[int], _Flow]:
        """Lengthen the widest step of every violated row; each row is then satisfied for good."""
        while not isinstance(found := self._flow_or_row(lengths), _Flow):
            factors, needed = found
            widest = max(range(self.steps), key=lambda t: (factors[t], -t))
            lacking = needed - sum(f * n for f, n in zip(factors, lengths, strict=True))
            lengths[widest] += -(-lacking // factors[widest])
        return lengths, found

    # ---- the time-expanded network

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

    def _flow_or_row(self, lengths: Sequence[int]) -> _Flow | Row:
        """Return a flow that these lengths allow, or a row that they violate."""
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

    def routes(self, flow: _Flow) -> list[list[tuple[int, int]]]:
        """Return the route of every chunk, shard by shard (the root's is empty): its ranks and arrival steps."""
        inward = flow.inward()
        return [
            self._route(inward, rank) if rank != self.root else []
            for rank in range(self.ranks) for _ in range(self.chunks)
        ]  # fmt: skip

    def _route(self, inward: list[list[list[int]]], rank: int) -> list[tuple[int, int]]:
        """Trace a chunk back from its rank, take its route out of the flow, and remove the route's cycles."""
        node, visited = self.steps * self.ranks + rank, [(rank, self.steps)]
        while node >= self.ranks:
            sources = inward[node]
            sources[-1][1] -= 1
            before = sources[-1][0]
            if not sources[-1][1]:
                sources.pop()
            node = before
            visited.append((node % self.ranks, node // self.ranks))
        return self._without_cycles(visited[::-1])

    def _without_cycles(self, visited: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return the ranks on a chunk's route, without cycles, and its arrival steps."""
        route: list[tuple[int, int]] = []
        for rank, when in visited:
            known = next((i for i, (seen, _) in enumerate(route) if seen == rank), None)
            if known is None:
                route.append((rank, when))
            else:
                del route[known + 1 :]
        if not self.gathers:
            return route
        # backwards: a chunk that reaches a rank after step t leaves it for the one before in step S + 1 - t
        leaves = [self.steps + 1 - when for _, when in route]
        ranks = [rank for rank, _ in route]
        return [(ranks[-1], 0)] + [(ranks[i], leaves[i + 1]) for i in reversed(range(len(route) - 1))]


def _least_lengths(rows: Sequence[Row], steps: int) -> list[int]:
    """Return the integer lengths of least sum that satisfy all rows: an integer program with one unknown per step."""
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
    lp.a_matrix_.start_ = starts(np.bincount(row, minlength=len(rows))).astype(np.int32)
    lp.a_matrix_.index_, lp.a_matrix_.value_ = column.astype(np.int32), factors[row, column]
    solver = highspy.Highs()
    for option, setting in (("output_flag", False), ("threads", 1), ("random_seed", 0), ("mip_abs_gap", 0.999)):
        solver.setOptionValue(option, setting)
    solver.passModel(lp)
    run(solver, "lengths of steps")
    return [round(x) for x in solver.getSolution().col_value]


def _arrivals(demand: Demand, routes: list[list[tuple[int, int]]], chunks: int) -> Arrivals:
    step = np.full((len(routes), demand.num_ranks), -1, dtype=np.int64)
    for chunk, route in enumerate(routes):
        for rank, when in route:
            step[chunk, rank] = when
    for chunk, source in enumerate(np.repeat(demand.source, chunks).tolist()):
        step[chunk, source] = 0
    return Arrivals(chunks, 1, step)
