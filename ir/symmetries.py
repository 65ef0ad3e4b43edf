"""Symmetries of a network, ranks, switches and links together: what a template of trees is moved by.

A group of automorphisms moves nodes and links. Images are computed when needed, by arithmetic, so that no table of
elements times nodes exists. No element but the identity keeps a rank in place, except ranks that all elements keep:
those of boxes that are not like the others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property

import attrs
import numpy as np

from .arrays import Array, as_column, fit, lexsort
from .frozen import frozen
from .group import Group, Translations
from .ragged import owners, ranges, starts
from .schedule import Routes
from .shown import counted
from .topology import Topology

__all__ = ["Identity", "Regular", "Rotations", "Symmetries", "moved_routes"]


@frozen(eq=False)
class Symmetries(ABC):
    """A group of automorphisms of ``topology``, numbered 0 .. order-1; 0 is the identity.

    ``nodes`` and ``links`` take columns of elements and of nodes or links, which broadcast.
    """

    topology: Topology

    @property
    @abstractmethod
    def order(self) -> int:
        """The number of elements."""

    @property
    @abstractmethod
    def shown(self) -> str:
        """The group in words, for reports."""

    @abstractmethod
    def nodes(self, element: Array | int, node: Array | int) -> Array:
        """Return the images of ranks or switches, elementwise."""

    @abstractmethod
    def links(self, element: Array | int, link: Array | int) -> Array:
        """Return the images of links, elementwise."""

    @abstractmethod
    def flaws(self) -> Iterator[str]:
        """Yield what is wrong: a generator that is no automorphism, or an element that keeps a rank in place."""

    @property
    @abstractmethod
    def numbered(self) -> Group | None:
        """The group, if element g moves rank e*w + i to (g*e)*w + i, where w ranks of different orbits come first.

        None if ranks have other numbers.
        """

    @property
    @abstractmethod
    def rank_orbit(self) -> Array:
        """The number of the orbit of each rank."""

    @property
    @abstractmethod
    def link_orbit(self) -> Array:
        """The number of the orbit of each link."""

    @property
    @abstractmethod
    def stays(self) -> Array:
        """Whether each rank is kept in place by all elements, though others move."""

    @property
    def roots(self) -> Array:
        """The least rank of every orbit, ascending."""
        return np.sort(np.unique(self.rank_orbit, return_index=True)[1])

    def summed(self, loads: Array, orbit: Array) -> Array:
        """Return the sums of loads (rows of one value a rank or link) over the images under all elements.

        A link that s elements keep in place gets each load of its orbit s times.
        """
        size = np.bincount(orbit)
        times = self.order // size
        total = np.zeros((len(loads), len(size)), dtype=loads.dtype)
        np.add.at(total.T, orbit, loads.T)
        moved: Array = (total * times.astype(loads.dtype))[:, orbit]
        return moved


@frozen(eq=False)
class Regular(Symmetries):
    """The topology's own symmetry (:attr:`Topology.symmetry`): one element a rank, no switches."""

    @property
    def order(self) -> int:
        return self.topology.num_ranks

    @property
    def shown(self) -> str:
        return f"the group {self.topology.symmetry.shown}" if self.topology.symmetry is not None else "no group"

    @property
    def degree(self) -> int:
        """Links out of a rank."""
        return self.topology.num_links // max(self.topology.num_ranks, 1)

    def nodes(self, element: Array | int, node: Array | int) -> Array:
        assert self.topology.symmetry is not None, "checked by flaws"
        return self.topology.symmetry.multiply(element, node)

    def links(self, element: Array | int, link: Array | int) -> Array:
        place = np.asarray(link, dtype=np.int64) % self.degree
        return self.nodes(element, np.asarray(link, dtype=np.int64) // self.degree) * self.degree + place

    def flaws(self) -> Iterator[str]:
        if self.topology.symmetry is None:  # a symmetry is checked with the topology
            yield f"`{self.topology.name}` has no symmetry"

    @property
    def numbered(self) -> Group | None:
        return self.topology.symmetry

    @cached_property
    def rank_orbit(self) -> Array:
        return np.zeros(self.topology.num_ranks, dtype=np.int64)

    @cached_property
    def link_orbit(self) -> Array:
        return np.arange(self.topology.num_links) % max(self.degree, 1)

    @property
    def stays(self) -> Array:
        return np.zeros(self.topology.num_ranks, dtype=bool)


@frozen(eq=False)
class Identity(Symmetries):
    """The group of one element, which every network has."""

    @property
    def order(self) -> int:
        return 1

    @property
    def shown(self) -> str:
        return "the identity"

    def nodes(self, element: Array | int, node: Array | int) -> Array:
        return np.broadcast_arrays(element, np.asarray(node, dtype=np.int64))[1]

    def links(self, element: Array | int, link: Array | int) -> Array:
        return self.nodes(element, link)

    def flaws(self) -> Iterator[str]:
        return iter(())

    @property
    def numbered(self) -> Group | None:
        return Translations((1,))

    @property
    def rank_orbit(self) -> Array:
        return np.arange(self.topology.num_ranks)

    @property
    def link_orbit(self) -> Array:
        return np.arange(self.topology.num_links)

    @property
    def stays(self) -> Array:
        return np.zeros(self.topology.num_ranks, dtype=bool)


@frozen(eq=False)
class Rotations(Symmetries):
    """The powers of one permutation of nodes: ``generator[v]`` is where node v goes.

    All ranks lie on cycles of one length, the order, or stay; switches on cycles of that length, or of a divisor of it.
    Parallel links of one class go to each other in order.
    """

    generator: Array = attrs.field(converter=as_column)

    @property
    def order(self) -> int:
        return int(self._nodes.length[: self.topology.num_ranks].max(initial=1))

    @property
    def shown(self) -> str:
        kept = int(np.count_nonzero(self.stays))
        return f"a rotation of order {self.order}" + (f" that keeps {counted(kept, 'rank')}" if kept else "")

    def nodes(self, element: Array | int, node: Array | int) -> Array:
        return self._nodes.moved(element, node)

    def links(self, element: Array | int, link: Array | int) -> Array:
        return self._links.moved(element, link)

    def flaws(self) -> Iterator[str]:
        topology, generator = self.topology, self.generator.astype(np.int64)
        nodes = np.arange(topology.num_nodes)
        if not np.array_equal(np.sort(generator), nodes):
            yield "the generator is no permutation of the nodes"
            return
        if (generator[: topology.num_ranks] >= topology.num_ranks).any():
            yield "the generator moves a rank to a switch"
            return
        wrong = np.flatnonzero(self._unlike)
        if len(wrong):
            link = int(self._order[wrong[0]])
            ends = topology.node_text(topology.src[link]), topology.node_text(topology.dst[link])
            yield f"the generator maps no link to {ends[0]} -> {ends[1]} with its class"
            return
        length = self._nodes.length
        wrong = (length[: topology.num_ranks] != self.order) & ~self.stays
        if wrong.any() or (self.order % length).any():
            yield f"a power of the generator below {self.order} keeps a rank in place, and moves another"
            return
        for kind in ("multicast", "reduces"):
            own = np.array(getattr(topology, kind), dtype=np.int64)
            if not np.array_equal(np.sort(generator[own]), np.sort(own)):
                yield f"the generator moves a switch that {kind} to one that does not"

    @cached_property
    def _order(self) -> Array:
        topology = self.topology
        return lexsort((topology.link_class, topology.dst, topology.src))

    @cached_property
    def _moved_order(self) -> Array:
        topology, generator = self.topology, self.generator.astype(np.int64)
        return lexsort((topology.link_class, generator[topology.dst], generator[topology.src]))

    @cached_property
    def _unlike(self) -> Array:
        """The links, in order, that are the image of no link."""
        topology, generator = self.topology, self.generator.astype(np.int64)
        ends = np.stack([topology.src, topology.dst]).astype(np.int64)
        there, here = ends[:, self._order], generator[ends[:, self._moved_order]]
        kind = topology.link_class
        differ: Array = (there != here).any(axis=0) | (kind[self._order] != kind[self._moved_order])
        return differ

    @cached_property
    def _nodes(self) -> _Cycles:
        return _Cycles.of(self.generator.astype(np.int64))

    @cached_property
    def _links(self) -> _Cycles:
        image = np.empty(self.topology.num_links, dtype=np.int64)
        image[self._moved_order] = self._order
        return _Cycles.of(image)

    @property
    def numbered(self) -> Group | None:
        ranks = self.topology.num_ranks
        if not ranks or ranks % self.order:
            return None
        turned = (np.arange(ranks) + ranks // self.order) % ranks
        return Translations((self.order,)) if np.array_equal(self.generator[:ranks], turned) else None

    @property
    def stays(self) -> Array:
        stays: Array = (self._nodes.length[: self.topology.num_ranks] == 1) & (self.order > 1)
        return stays

    @property
    def rank_orbit(self) -> Array:
        return np.unique(self._nodes.first[: self.topology.num_ranks], return_inverse=True)[1].reshape(-1)

    @cached_property
    def link_orbit(self) -> Array:
        return np.unique(self._links.first, return_inverse=True)[1].reshape(-1)


@frozen(eq=False)
class _Cycles:
    """The cycles of a permutation one after another in ``members``; each point's cycle begins at ``first``, where it
    is at ``place``, and has ``length`` points."""

    members: Array
    first: Array
    place: Array
    length: Array

    @classmethod
    def of(cls, image: Array) -> _Cycles:
        to, members, lengths = image.tolist(), list[int](), list[int]()
        seen = bytearray(len(to))
        for start in range(len(to)):
            before, point = len(members), start
            while not seen[point]:
                seen[point] = 1
                members.append(point)
                point = to[point]
            if len(members) > before:
                lengths.append(len(members) - before)
        cycle, order = owners(lengths), np.array(members, dtype=np.int64)
        first, place, length = (np.empty(len(to), dtype=np.int64) for _ in range(3))
        begin, size = starts(lengths)[:-1].astype(np.int64), np.array(lengths, dtype=np.int64)
        first[order], length[order] = begin[cycle], size[cycle]
        place[order] = ranges(np.zeros(len(lengths), dtype=np.int64), size)
        return cls(order, first, place, length)

    def moved(self, times: Array | int, point: Array | int) -> Array:
        """Return where points are after the permutation was applied so often, elementwise."""
        found: Array = self.members[self.first[point] + (self.place[point] + times) % self.length[point]]
        return found


def moved_routes(routes: Routes, group: Symmetries) -> tuple[Routes, Array]:
    """Return the images of routes under all elements, and the number of the image of route r under g, at [g, r]."""
    element = np.arange(group.order)[:, None]
    if routes.is_direct:
        used = np.arange(len(routes))
        return routes, group.links(element, used[None, :]).astype(fit(0, len(used)))
    lengths = routes.lengths
    padded = np.full((len(lengths), int(lengths.max(initial=0))), -1, dtype=np.int64)
    filled = np.arange(padded.shape[1])[None, :] < lengths[:, None]
    padded[filled] = routes.links
    table = np.full((group.order, *padded.shape), -1, dtype=np.int64)
    table[:, filled] = group.links(element, padded[filled][None, :])
    found, number = np.unique(table.reshape(-1, padded.shape[1]), axis=0, return_inverse=True)
    known: Sequence[Sequence[int]] = [[link for link in row if link >= 0] for row in found.tolist()]
    return Routes.of(known), number.reshape(group.order, len(lengths)).astype(fit(0, len(known)))
