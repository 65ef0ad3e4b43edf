"""The cost model of section 3.2 of the direct-connect paper: exact steps, bandwidth time, bounds; predicted seconds."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import singledispatch
from typing import Any

import attrs
import numpy as np

from . import bounds
from .schedule import Forest, Schedule
from .topology import Topology

__all__ = ["Cost", "ForestCost", "Point", "assumptions", "cost", "link_loads", "predict"]

Array = np.ndarray[Any, np.dtype[Any]]

#: What a prediction assumes where neither the topology nor the caller says: the paper's testbed figures.
DEFAULT_ALPHA = Fraction(10, 10**6)
DEFAULT_BANDWIDTH = Fraction(100 * 10**9, 8)


@attrs.frozen
class Point:
    """Predicted time (seconds) and algorithmic bandwidth (bytes per second) at one size (bytes)."""

    size: int
    time: float
    bandwidth: float


@attrs.frozen
class Cost:
    """What a schedule costs.

    ``T_L`` counts steps; ``T_B`` is bandwidth time in units of M/B, where B is the total egress bandwidth of a node
    (nothing where nodes differ); ``time_per_byte`` is the same per byte of M and unit of bandwidth: per link unit, or
    seconds where the topology's bandwidths are absolute. For allreduce both phases count, in the bounds too.
    ``latency`` is what the links' own latencies add up to (seconds).
    """

    collective: str
    scheduler: str
    ranks: int
    degree: int | None
    diameter: int | None
    parts: int
    transfers: int
    T_L: int
    T_B: Fraction | None
    T_L_bound: int | None
    T_B_bound: Fraction | None
    time_per_byte: Fraction
    time_per_byte_bound: Fraction
    bottleneck_cut: str
    latency: Fraction
    unit: str
    node_bandwidth: Fraction | None
    forest: ForestCost | None = None

    @property
    def bw_optimal(self) -> bool:
        """Whether no schedule on this network moves the data in less bandwidth time."""
        if self.T_B is not None and self.T_B_bound is not None:
            return self.T_B_bound == self.T_B
        return self.time_per_byte == self.time_per_byte_bound

    @property
    def moore_optimal(self) -> bool | None:
        """Whether no network of this size and degree allows fewer steps (Definition 10)."""
        return None if self.T_L_bound is None else self.T_L_bound == self.T_L


@attrs.frozen
class ForestCost:
    """What forests have besides: 1/x* per unit of bandwidth, trees per root, their number and greatest height."""

    one_over_x: Fraction
    k: int
    trees: int
    max_height: int


@singledispatch
def cost(level: Schedule | Forest) -> Cost:
    """Return the exact cost of a verified schedule or forest."""
    raise TypeError(f"a {type(level).__name__} has no cost")


@cost.register
def _(level: Schedule) -> Cost:
    busiest, waits = [], []
    for a, b in zip(level.step_start[:-1].tolist(), level.step_start[1:].tolist(), strict=True):
        moved = level.hi[a:b].astype(np.int64) - level.lo[a:b]
        load = link_loads(level, level.route[a:b], moved)
        busiest.append(_busiest(level.topology, load))
        waits.append(_latency(level.topology, level, np.unique(level.route[a:b])))
    per_shard = sum(busiest, Fraction(0)) / level.parts
    return _cost(level, len(level), level.num_steps, per_shard / level.collective.num_ranks, sum(waits, Fraction(0)))


@cost.register
def _(level: Forest) -> Cost:
    load = link_loads(level, level.route, level.weight[level.tree].astype(np.int64))
    per_root = _busiest(level.topology, load) / level.parts
    n = level.collective.num_ranks
    # In a rooted collective a tree's share is of the whole vector, otherwise of one rank's shard.
    per_byte = per_root if level.collective.root is not None else per_root / n
    trees = Fraction(level.num_trees, len(np.unique(level.root)) or 1)
    detail = ForestCost(per_root, int(trees), level.num_trees, level.height)
    waits = _latency(level.topology, level, np.unique(level.route)) * level.height
    return attrs.evolve(_cost(level, len(level.tree), level.height, per_byte, waits), forest=detail)


def _cost(level: Schedule | Forest, transfers: int, steps: int, per_byte: Fraction, latency: Fraction) -> Cost:
    topology, collective = level.topology, level.collective
    total = topology.node_bandwidth if topology.is_direct else None
    floor = bounds.bandwidth_bound(topology, collective)
    if total and floor is not None and per_byte * total == floor:
        # The schedule meets the simplest bound, the links of every single rank, so no other cut is tighter.
        cut, name = per_byte, "links into every rank"
    else:
        cut, name = bounds.time_per_byte_bound(topology, collective)
    return Cost(
        collective=collective.kind, scheduler=level.scheduler, ranks=collective.num_ranks, degree=topology.degree,
        diameter=topology.diameter, parts=level.parts, transfers=transfers, T_L=steps,
        T_B=None if total is None else per_byte * total, T_L_bound=bounds.steps_bound(topology, collective),
        T_B_bound=floor, time_per_byte=per_byte, time_per_byte_bound=cut, bottleneck_cut=name, latency=latency,
        unit=topology.unit, node_bandwidth=total,
    )  # fmt: skip


def link_loads(level: Schedule | Forest, route: Array, amount: Array) -> Array:
    """Return the exact sum of ``amount`` (integers) that crosses each link, by its rows' routes."""
    routes = level.routes
    per_route = np.zeros(len(routes), dtype=np.int64)
    np.add.at(per_route, route, amount)
    if routes.is_direct:
        return per_route
    load = np.zeros(level.topology.num_links, dtype=np.int64)
    np.add.at(load, routes.links, np.repeat(per_route, np.diff(routes.start.astype(np.int64)).astype(np.int64)))
    return load


def _busiest(topology: Topology, load: Array) -> Fraction:
    """Return the largest load over bandwidth: the time of the slowest link, in parts per unit of bandwidth."""
    slowest = Fraction(0)
    for number, kind in enumerate(topology.classes):
        most = int(load[topology.link_class == number].max(initial=0))
        slowest = max(slowest, Fraction(most) / kind.bandwidth)
    return slowest


def _latency(topology: Topology, level: Schedule | Forest, used: Array) -> Fraction:
    """Return the largest latency of the routes in use."""
    kinds = {c.latency for c in topology.classes}
    if kinds == {Fraction(0)}:
        return Fraction(0)
    waits = [c.latency for c in topology.classes]
    paths = (level.routes.links[level.routes.start[r] : level.routes.start[r + 1]] for r in used.tolist())
    known = {tuple(topology.link_class[path].tolist()) for path in paths}
    return max((sum((waits[c] for c in path), Fraction(0)) for path in known), default=Fraction(0))


def predict(
    cost: Cost, sizes: Iterable[int], alpha: Fraction | None = None, bandwidth: Fraction | None = None
) -> tuple[Point, ...]:
    """Return the predicted time at each size (bytes): latency plus bandwidth time.

    ``alpha`` is the latency of a step (seconds), else the links' own where they have any, else 10 us; ``bandwidth``
    is B, the total egress bandwidth of a node (bytes per second), else the links' own, else 100 Gbps. Where nodes
    differ it is the bandwidth of a link unit, and links that have bandwidths of their own keep them.
    """
    seconds = cost.latency if alpha is None and cost.latency else cost.T_L * (DEFAULT_ALPHA if alpha is None else alpha)
    per_byte = _seconds_per_byte(cost, bandwidth)
    points = []
    for size in sizes:
        time = seconds + per_byte * size
        points.append(Point(size, float(time), float(size / time) if time else 0.0))
    return tuple(points)


def _seconds_per_byte(cost: Cost, bandwidth: Fraction | None) -> Fraction:
    if cost.unit == "B/s" and (bandwidth is None or cost.T_B is None):
        return cost.time_per_byte
    total = DEFAULT_BANDWIDTH if bandwidth is None else bandwidth
    if cost.T_B is not None:
        return cost.T_B / total
    return cost.time_per_byte / total


def assumptions(cost: Cost, alpha: Fraction | None = None, bandwidth: Fraction | None = None) -> tuple[str, ...]:
    """Return what :func:`predict` assumes because neither the topology nor the caller says it."""
    found = []
    if alpha is None and not cost.latency:
        found.append(f"{DEFAULT_ALPHA * 10**6} us a step")
    if bandwidth is None and cost.unit != "B/s":
        of = "out of a node" if cost.T_B is not None else "a link unit"
        found.append(f"{DEFAULT_BANDWIDTH * 8 / 10**9} Gbps {of}")
    return tuple(found)
