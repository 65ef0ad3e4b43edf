"""Climbs to networks with links one way: directed polycirculants, and smaller networks with a node inserted.

What is known of a size are the rows with links both ways too, because a network with links one way must beat them. Its
load is the sum of those of an allgather and of a reduce-scatter, which may differ.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from collc.frontends import coll
from collc.ir.costs.bounds import moore_steps
from collc.passes.finder.database import Row
from collc.passes.finder.evaluate import load_unit
from collc.passes.finder.measure import bfb_costs, with_reduce_scatter

from .compiled import FAR, LINKS, PATIENCE, PERIOD, STEPS, BestLift, Lift, library
from .search import SLACK, Search

__all__ = ["Directed", "light"]

_LIGHT = Fraction(11, 10)  # of the least bandwidth time: bases that a node is inserted into
_INSERTED = 4  # nodes that are inserted into one base, one after another
_GAIN = Fraction(101, 100)  # of the least bandwidth time: less is not worth a climb


class Directed(Search):
    """The search among networks with links one way; ``known`` has half the T_B of an allreduce."""

    @property
    def bound(self) -> int:
        """Moore's bound for digraphs."""
        return moore_steps(self.nodes, self.degree)

    def lifts(self, periods: range) -> None:
        """Climb to directed polycirculants of every one of these periods that the size has."""
        for m in periods:
            if self.nodes % m == 0 and self.nodes // m > 2 and m <= PERIOD // 2:
                for target in self._targets():
                    self._lift(m, target)

    def inserted(self, base: Row) -> None:
        """Insert a node into a base of a node less, in the middle of links."""
        topology = coll.topology(base.expression)
        heads = topology.dst.reshape(base.nodes, -1)
        tails = topology.src[topology.in_links[1]].reshape(base.nodes, -1)
        for target in self._targets():
            if target >= base.T_L:
                self._insert(base, heads.astype(np.int32), tails.astype(np.int32), target)

    def _targets(self) -> range:
        """Return the numbers of steps at which less bandwidth time than known may exist, and is worth a climb."""
        optimum = Fraction(self.nodes - 1, self.nodes)
        near = min(
            (steps for steps, bandwidth in self.known.items() if bandwidth <= _GAIN * optimum), default=STEPS - 1
        )
        return range(self.bound, min(near, self.bound + 2 * SLACK))

    def loads(self) -> list[int]:
        """Return the least known load of up to 0, 1, .. steps: that of both collectives."""
        loads, unit = [FAR] * STEPS, Fraction(2 * self.nodes * load_unit(self.degree), self.degree)
        for steps, bandwidth in self.known.items():
            loads[steps:] = [min(load, int(bandwidth * unit)) for load in loads[steps:]]
        return loads

    def _lift(self, m: int, target: int) -> None:
        best = (BestLift * STEPS)()
        for one, load in zip(best, self.loads(), strict=True):
            one.load = load
        library().climb_directed(
            self.nodes, m, self.degree, target, self.evaluations, PATIENCE, self.seed(), ctypes.byref(best)
        )
        for steps, one in enumerate(best):
            if one.lift.count:
                self._add(steps, _polycirculant(self.nodes, m, one.lift))

    def _insert(self, base: Row, heads: np.ndarray, tails: np.ndarray, target: int) -> None:
        steps, cut = ctypes.c_int(), (ctypes.c_int * (2 * LINKS))()
        load = int(library().insert_one_way(
            self.nodes, self.degree, np.ascontiguousarray(heads).ctypes.data, np.ascontiguousarray(tails).ctypes.data,
            target, self.evaluations, self.evaluations // 10 + 1, self.seed(), ctypes.byref(steps), cut,
        ))  # fmt: skip
        if load < self.loads()[target]:
            ends = cut[: 2 * self.degree]
            shown = ", ".join(f"{one} -> {two}" for one, two in zip(ends[::2], ends[1::2], strict=True))
            self._add(steps.value, f"inserted({base.expression}, {{{shown}}})")

    def _add(self, steps: int, expression: str) -> None:
        """Keep a result, with the exact T_B of each of its collectives."""
        topology = coll.topology(expression)
        found, bandwidth = bfb_costs(topology)
        assert found == steps, f"{expression} takes {found} steps"
        both_ways = topology.reverse_links is not None  # links that close a cable each may be all there are
        row = with_reduce_scatter(
            Row(expression, self.nodes, self.degree, steps, bandwidth, steps, both_ways), coll.topology
        )
        self.known[steps] = row.allreduce_T_B / 2
        self.found.append(row)


def light(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of little bandwidth time that a node is inserted into."""
    return [
        row for row in rows
        if row.allreduce_T_B <= 2 * _LIGHT and row.scheduler == "bfb"
        and row.expression.count("inserted") < _INSERTED
    ]  # fmt: skip


def _polycirculant(nodes: int, m: int, lift: Lift) -> str:
    sets: list[list[int]] = [[] for _ in range(m)]
    for one in lift.link[: lift.count]:
        sets[one.a].append((one.b + m * one.v - one.a) % nodes)
    shown = ["{" + ", ".join(map(str, sorted(own))) + "}" for own in sets]
    return f"directed_polycirculant({nodes}, {', '.join(shown)})"
