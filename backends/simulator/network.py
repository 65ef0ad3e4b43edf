"""Which links messages take, and in which shares: along their own routes, or along shortest routes."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from collc.ir.arrays import Array
from collc.ir.ragged import owners, ranges

from .numbers import total
from .paths import SplitRoutes, given_routes, shortest_routes
from .torus import TorusRoutes, torus_shape
from .traffic import Traffic

__all__ = ["ListedRoutes", "Routed", "route"]


class ListedRoutes:
    """Messages over listed routes; ``which[i]`` is the route of message i.

    Loads are in 1/unit of the unit of the amounts.
    """

    def __init__(self, routes: SplitRoutes, which: Array, num_links: int) -> None:
        self.routes, self.which, self.num_links, self.unit = routes, which, num_links, routes.unit

    def latency_terms(self, rows: slice) -> Array:
        """Return one line for each message: links of its route, those at a switch, and their latency (a number)."""
        routes, which = self.routes, self.which[rows]
        return np.stack([routes.hops[which], routes.cables[which], routes.latency[which]], axis=1)

    def incidence(self, rows: Array) -> tuple[Array, Array, Array]:
        """Return (which of the rows, link, share in 1/unit) for every link on the routes of messages ``rows``."""
        first, count = self._extent(self.which[rows])
        entry = ranges(first, count)
        return owners(count), self.routes.link[entry], self.routes.part[entry]

    def loads(self, rows: Array, amount: Array) -> Array:
        """Return the load of each link by messages ``rows``. It sums by route first: many messages share one."""
        per_route = total(self.which[rows], amount, len(self.routes))
        used = np.flatnonzero(per_route)
        first, count = self._extent(used)
        entry, load = ranges(first, count), np.repeat(per_route[used], count)
        if not self._is_whole:
            load = load * self.routes.part[entry]
        return total(self.routes.link[entry], load, self.num_links)

    def used(self, rows: Array) -> Array:
        """Return which links messages ``rows`` use, also where another message of a bundle loads them."""
        _, links, _ = self.incidence(rows)
        used = np.zeros(self.num_links, dtype=bool)
        used[links] = True
        return used

    @cached_property
    def _is_whole(self) -> bool:
        """Whether every link of a route carries the whole message."""
        return self.unit == 1 and bool((self.routes.part == 1).all())

    def _extent(self, route: Array) -> tuple[Array, Array]:
        first = self.routes.start[route]
        return first, self.routes.start[route + 1] - first


Routed = ListedRoutes | TorusRoutes


def route(traffic: Traffic, routing: str, lengths: tuple[int, int] = (1, 1)) -> Routed:
    """Return the routes of messages: those of the traffic (``as-scheduled``), else shortest routes (``minimal``).

    At every node a message divides evenly among the links of its shortest routes. On tori it crosses one dimension
    after the other, and divides evenly if both directions of a ring are equally short. ``lengths`` are those of a link
    between ranks and of a link at a switch. Raises C0301 if a rank does not reach another.
    """
    topology = traffic.topology
    if routing == "as-scheduled" and traffic.routes is not None:
        return ListedRoutes(given_routes(topology, traffic.routes), traffic.route.astype(np.int64), topology.num_links)
    shape = torus_shape(topology)
    if shape is not None:
        return TorusRoutes(topology, shape, traffic.src.astype(np.int64), traffic.dst.astype(np.int64))
    pair = traffic.src.astype(np.int64) * topology.num_nodes + traffic.dst
    pairs, which = np.unique(pair, return_inverse=True)
    src, dst = np.divmod(pairs, topology.num_nodes)
    return ListedRoutes(shortest_routes(topology, src, dst, lengths), which, topology.num_links)
