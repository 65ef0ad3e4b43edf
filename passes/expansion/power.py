"""Cartesian powers (Definition 14): the base's schedule along one axis after the other, n orders at once."""

from __future__ import annotations

import numpy as np

from collc.ir.arrays import Array
from collc.ir.schedule import Schedule
from collc.ir.topology import Topology

from .rows import Rows, common_parts, levels, links_of, placed, require_rows

__all__ = ["power"]


def power(schedule: Schedule, topology: Topology, n: int) -> Schedule:
    """Return the allgather of the n-th Cartesian power of G = ``topology``, the last coordinate fastest.

    Each shard has n parts. G's allgather moves part i along axis i, then i+1, and so on cyclically, on every line of
    ranks along the axis. So all axes are busy in all steps. That takes n times the steps, and the T_B of Theorem 12 if
    G is regular. Raises C0521 if the topology has other links.
    """
    base, size = schedule.topology, schedule.topology.num_ranks
    require_rows(topology, n * len(schedule) * sum(size ** (n - 1 + phase) for phase in range(n)))
    weights = size ** np.arange(n)[::-1]
    tables = _tables(base, topology, weights)
    parts = common_parts(schedule.parts * n)
    rows, width = Rows(topology, parts), parts // n
    scale = width // schedule.parts
    step, shard, lo, hi = (getattr(schedule, c).astype(np.int64) for c in ("step", "shard", "lo", "hi"))
    links = links_of(schedule)
    for part in range(n):
        for phase in range(n):
            axes = (part + np.arange(n)) % n  # in order; those before `phase` are gathered
            axis, done, remaining = axes[phase], axes[:phase], axes[phase + 1 :]
            x, z = _vectors(size, weights[done]), _vectors(size, weights[remaining])
            rows.add(
                (phase * schedule.num_steps + step)[:, None, None, None],
                (shard * weights[axis])[:, None, None, None] + x[:, None, None] + z,
                (part * width + lo * scale)[:, None, None, None],
                (part * width + hi * scale)[:, None, None, None],
                tables[axis][links[:, None, None, None], x[:, None] + z],
            )
    return rows.schedule()


def _vectors(size: int, weights: Array) -> Array:
    """Return the numbers of all vectors whose coordinates have these weights, the others 0."""
    numbers = np.zeros(1, dtype=np.int64)
    for weight in weights.tolist():
        numbers = (numbers[:, None] + np.arange(size) * weight).ravel()
    return numbers


def _tables(base: Topology, topology: Topology, weights: Array) -> list[Array]:
    """Return a table for each axis: the link along base link l, by the vector of all other coordinates."""
    src, dst, level = base.src.astype(np.int64), base.dst.astype(np.int64), levels(base)
    ends = list[tuple[Array, Array, Array]]()
    others = [_vectors(base.num_ranks, np.delete(weights, axis)) for axis in range(len(weights))]
    for weight, rest in zip(weights.tolist(), others, strict=True):
        tails, heads, which = np.broadcast_arrays(
            (src * weight)[:, None] + rest, (dst * weight)[:, None] + rest, level[:, None]
        )
        ends.append((tails.ravel(), heads.ravel(), which.ravel()))
    number = placed(topology, *(np.concatenate([end[i] for end in ends]) for i in range(3)))
    tables = list[Array]()
    for rest, found in zip(others, np.split(number, len(weights)), strict=True):
        table = np.zeros((base.num_links, topology.num_ranks), dtype=np.int64)
        table[:, rest] = found.reshape(base.num_links, len(rest))
        tables.append(table)
    return tables
