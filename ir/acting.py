"""Groups with one element a rank, other than a network's own symmetry, and the images of schedules under them.

Many networks are Cayley digraphs of several groups. The links out of a rank are then in another order, so a group moves
links by their ends. Its elements are automorphisms if the links out of every rank r are those of rank 0, moved by r.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from math import prod

import numpy as np

from .arrays import Array, fit, lexsort
from .frozen import frozen
from .group import Group, Mirrored, Translations
from .ragged import nth_in_group, starts
from .schedule import Routes, Schedule
from .shown import counted
from .symmetries import Symmetries

__all__ = ["Acting", "acted_routes", "interleaved", "route_orbits"]


@frozen(eq=False)
class Acting(Symmetries):
    """A group with one element a rank that moves a network without switches, whose own symmetry may be another one.

    Element g moves rank r to g*r, and a link to one of its class between the moved ranks; parallel links of one class
    go to each other in order. So a torus is moved by reflections too, which swap its links up and down.
    """

    group: Group

    @property
    def order(self) -> int:
        return self.group.order

    @property
    def shown(self) -> str:
        return f"the group {self.group.shown}"

    @property
    def degree(self) -> int:
        """Links out of a rank."""
        return self.topology.num_links // max(self.topology.num_ranks, 1)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the vectors that ranks are numbered as, last coordinate fastest."""
        return self.group.shape if isinstance(self.group, Mirrored | Translations) else (self.group.order,)

    def nodes(self, element: Array | int, node: Array | int) -> Array:
        return self.group.multiply(element, node)

    def links(self, element: Array | int, link: Array | int) -> Array:
        tail = self.topology.src[link].astype(np.int64)
        return self.link_at(self.nodes(element, tail), self.link_orbit[link])

    def link_at(self, rank: Array | int, orbit: Array | int) -> Array:
        """Return the links of orbits out of ranks, elementwise."""
        found: Array = self._order.reshape(-1, max(self.degree, 1))[rank, orbit]
        return found

    def flaws(self) -> Iterator[str]:
        topology = self.topology
        if topology.num_switches or self.order != topology.num_ranks:
            ranks = counted(topology.num_ranks, "rank")
            yield f"{self.shown} has {self.order} elements, needed one for each of {ranks}"
            return
        out = np.bincount(topology.src, minlength=topology.num_ranks)
        if (out != self.degree).any():
            yield f"{self.shown} moves ranks with different numbers of links to each other"
            return
        # automorphisms: the links out of rank r are those out of rank 0, moved by r
        for column in (self._back, topology.link_class):
            alike = column[self._order].reshape(-1, max(self.degree, 1))
            wrong = np.flatnonzero((alike != alike[:1]).any(axis=1))
            if len(wrong):
                yield f"{self.shown} does not move the links of rank 0 to those of rank {topology.names[wrong[0]]}"
                return

    @property
    def numbered(self) -> Group | None:
        return self.group

    @cached_property
    def _back(self) -> Array:
        """The head of each link, moved as its tail is to rank 0."""
        tail, head = self.topology.src.astype(np.int64), self.topology.dst.astype(np.int64)
        return self.group.multiply(self.group.inverse(tail), head)

    @cached_property
    def _order(self) -> Array:
        """The links by their tails, then by where they lead as seen from there."""
        return lexsort((self.topology.link_class, self._back, self.topology.src))

    @cached_property
    def rank_orbit(self) -> Array:
        return np.zeros(self.topology.num_ranks, dtype=np.int64)

    @cached_property
    def link_orbit(self) -> Array:
        orbit = np.empty(self.topology.num_links, dtype=np.int64)
        orbit[self._order] = np.arange(self.topology.num_links) % max(self.degree, 1)
        return orbit

    @property
    def stays(self) -> Array:
        return np.zeros(self.topology.num_ranks, dtype=bool)


def interleaved(shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Return two columns, one number a rank: the sum of the first of a and the second of b sorts pairs (a, b).

    The order is that of the first coordinates of both, then of the second, and so on.
    """
    rank = np.arange(prod(shape))
    first, second = np.zeros(len(rank), dtype=np.int64), np.zeros(len(rank), dtype=np.int64)
    weight = 1
    for size in reversed(shape):
        first += rank % size * size * weight
        second += rank % size * weight
        rank, weight = rank // size, weight * size * size
    return first, second


def route_orbits(seed: Schedule, group: Acting) -> tuple[Array, Array]:
    """Return the orbit of each route of a seed, and the routes of rank 0, one of each orbit: links, padded with -1.

    Routes over the same links are copies. The n-th copies are of one orbit: a seed has equally many of all images.
    """
    routes = seed.routes
    lengths, tails = routes.lengths, routes.tails(seed.topology).astype(np.int64)
    home = np.full((len(routes), int(lengths.max(initial=1))), -1, dtype=np.int64)
    back = group.links(np.repeat(group.group.inverse(tails), lengths), routes.links)
    home[np.arange(home.shape[1])[None, :] < lengths[:, None]] = back
    found, orbit = np.unique(np.append(home, _copies(seed.routes)[:, None], axis=1), axis=0, return_inverse=True)
    return orbit.reshape(-1), found[:, :-1]


def _copies(routes: Routes) -> Array:
    """Return for each route how many routes before it have the same links."""
    table = np.full((len(routes), int(routes.lengths.max(initial=1))), -1, dtype=np.int64)
    table[np.arange(table.shape[1])[None, :] < routes.lengths[:, None]] = routes.links
    order = lexsort(list(table.T)[::-1])
    fresh = np.ones(len(order), dtype=bool)
    fresh[1:] = (table[order][1:] != table[order][:-1]).any(axis=1)
    number = np.empty(len(order), dtype=np.int64)
    number[order] = nth_in_group(np.cumsum(fresh))
    return number


def acted_routes(seed: Schedule, group: Acting) -> tuple[Array, Routes, Array]:
    """Return the orbit of each route of a seed, the images of all its routes, and their numbers by rank and orbit.

    Images are sorted by their ends; those with the same ends by the first part of the data that they carry.
    """
    orbit, home = route_orbits(seed, group)
    part = np.full(len(home), seed.parts, dtype=np.int64)
    np.minimum.at(part, orbit[seed.route], seed.lo)
    rank, count = np.arange(group.order)[:, None], np.count_nonzero(home >= 0, axis=1)
    ends = seed.topology.dst[home[np.arange(len(home)), count - 1]].astype(np.int64)
    head = group.nodes(rank, ends[None, :])
    order = lexsort((np.tile(part, group.order), head.ravel(), np.repeat(np.arange(group.order), len(home))))
    number = np.empty(len(order), dtype=fit(0, len(order)))
    number[order] = np.arange(len(order))
    element, which = np.divmod(order, max(len(home), 1))
    kept = home[which] >= 0
    links = group.links(np.repeat(element, count[which]), home[which][kept])
    return orbit, Routes(starts(count[which]), links), number.reshape(group.order, -1)
