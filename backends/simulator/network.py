"""Which links messages take and in which shares: along the ways they were given, or along shortest ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from .numbers import total
from .paths import Paths, given, shortest
from .torus import TorusWays, torus_shape
from .traffic import Traffic

__all__ = ["PathWays", "Routed", "route"]

Array = np.ndarray[Any, np.dtype[Any]]


class PathWays:
    """Messages over paths that are written out; ``which[i]`` is the path of message i.

    Loads are in 1/unit of what the amounts are in.
    """

    def __init__(self, paths: Paths, which: Array, num_links: int) -> None:
        self.paths, self.which, self.num_links, self.unit = paths, which, num_links, paths.unit

    def way(self, rows: slice) -> Array:
        """Return what makes messages late, a line each: links on the way, those at a switch, own latency (a number)."""
        p, which = self.paths, self.which[rows]
        return np.stack([p.hops[which], p.cables[which], p.wait[which]], axis=1)

    def incidence(self, rows: Array) -> tuple[Array, Array, Array]:
        """Return (which of the rows, link, share in 1/unit) for every link on the ways of messages ``rows``."""
        first, count = self._extent(self.which[rows])
        entry = _ranges(first, count)
        return np.repeat(np.arange(len(rows)), count), self.paths.link[entry], self.paths.part[entry]

    def loads(self, rows: Array, amount: Array) -> Array:
        """Return what each link carries of the messages ``rows``: added up by paths first, since many share one."""
        per_path = total(self.which[rows], amount, len(self.paths))
        used = np.flatnonzero(per_path)
        first, count = self._extent(used)
        entry, carried = _ranges(first, count), np.repeat(per_path[used], count)
        if self.unit > 1:  # else all of a message goes every link of its way
            carried = carried * self.paths.part[entry]
        return total(self.paths.link[entry], carried, self.num_links)

    def _extent(self, path: Array) -> tuple[Array, Array]:
        first = self.paths.start[path]
        return first, self.paths.start[path + 1] - first


Routed = PathWays | TorusWays


def route(traffic: Traffic, routing: str, lengths: tuple[int, int] = (1, 1)) -> Routed:
    """Return the ways of messages: those they have (``as-scheduled``), else shortest ones (``minimal``).

    A message over shortest ways divides evenly at every node among the links that lead nearer; on tori it crosses one
    dimension after the other, and divides evenly where both directions round a ring are as near. ``lengths`` are those
    of links between ranks and of links at a switch. Raises C0301 where a rank does not reach another.
    """
    topology = traffic.topology
    if routing == "as-scheduled" and traffic.routes is not None:
        return PathWays(given(topology, traffic.routes), traffic.route.astype(np.int64), topology.num_links)
    shape = torus_shape(topology)
    if shape is not None:
        return TorusWays(topology, shape, traffic.src.astype(np.int64), traffic.dst.astype(np.int64))
    pair = traffic.src.astype(np.int64) * topology.num_nodes + traffic.dst
    pairs, which = np.unique(pair, return_inverse=True)
    src, dst = np.divmod(pairs, topology.num_nodes)
    return PathWays(shortest(topology, src, dst, lengths), which, topology.num_links)


def _ranges(first: Array, count: Array) -> Array:
    """Return first, first + 1, .. (count of them) for every pair, one after the other."""
    return np.arange(int(count.sum())) + np.repeat(first - np.cumsum(count) + count, count)
