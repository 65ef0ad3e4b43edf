"""Timed paths: the link of each shard at each step.

A commodity is a shard: its source and the rank it goes to. A timed path is a row of links, one for each step, -1 where
the shard stays. A stay is free. But a shard leaves its source before the shard in the opposite direction arrives there,
so that schedules can run in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import attrs
import numpy as np

from collc.ir.arrays import Array, fit
from collc.ir.graph.isomorphism import orbits
from collc.ir.topology import Topology

from .action import Action
from .paths import Network

__all__ = ["Expanded"]


@attrs.frozen(eq=False)
class Expanded:
    """A network unrolled over ``steps``, for the shards of some ``sources``, each of which represents ``count`` ranks.

    Links of one class have the same load; class k at step t is cell t * classes + k. ``capacity`` is the total relative
    bandwidth of a class, for one shard of each source.
    """

    network: Network
    hops: Array
    num_links: int
    steps: int
    sources: Array
    count: Array
    link_class: Array
    capacity: tuple[Fraction, ...]

    @classmethod
    def moved(cls, topology: Topology, action: Action, width: Sequence[Fraction], steps: int) -> Expanded:
        """For one source of every orbit of a group that acts freely; the group moves its routes to all others.

        ``width`` is the relative bandwidth of every class of the topology.
        """
        kinds = topology.link_class[: action.links].tolist()
        ones = np.ones(action.ranks, dtype=np.int64)
        return cls(
            *_network(topology), topology.num_links, steps, np.arange(action.ranks), ones,
            np.arange(topology.num_links) % action.links, tuple(width[k] for k in kinds),
        )  # fmt: skip

    @classmethod
    def averaged(cls, topology: Topology, width: Sequence[Fraction], steps: int) -> Expanded:
        """For one source of every orbit of all automorphisms: gives the possible times and prices of the mean."""
        nodes, links = orbits(topology)
        _, sources, count = np.unique(nodes, return_index=True, return_counts=True)
        _, first, size = np.unique(links, return_index=True, return_counts=True)
        kinds = topology.link_class[first].tolist()
        capacity = tuple(width[k] * int(m) for k, m in zip(kinds, size, strict=True))
        return cls(*_network(topology), topology.num_links, steps, sources, count, links, capacity)

    @property
    def classes(self) -> int:
        """Classes of links."""
        return len(self.capacity)

    @property
    def cells(self) -> int:
        """Pairs of a step and a class of links."""
        return self.steps * self.classes

    @property
    def commodities(self) -> Array:
        """Source and target of every shard that the sources send, shape (shards, 2)."""
        n = len(self.network.tails)
        both = np.stack([np.repeat(self.sources, n), np.tile(np.arange(n), len(self.sources))], axis=1)
        different: Array = both[both[:, 0] != both[:, 1]]
        return different

    def cheapest(self, prices: Array, commodities: Array) -> tuple[Array, Array]:
        """Return the cheapest timed path of each of ``commodities`` (rows of source and target), and its cost.

        ``prices``, shape (steps, classes), are at least 0. Among equally cheap paths, those that leave and move early
        win.
        """
        tails, inward = self.network.tails, self.network.links
        kind = self.link_class[np.maximum(inward, 0)]
        last = np.minimum(
            self.steps - self.hops[commodities[:, 0], commodities[:, 1]],
            self.hops[commodities[:, 1], commodities[:, 0]] - 1,
        )
        sources, column = np.unique(commodities[:, 0], return_inverse=True)
        # a column for every source and every step at which shards may leave it
        leave, start = np.divmod(np.arange(len(sources) * (int(last.max()) + 1)), len(sources))
        place = np.arange(len(leave))
        cost = np.full((len(tails), len(leave)), np.inf)
        choices = []
        for step in range(self.steps):
            cost[sources[start], place] = np.where(leave == step, 0, np.inf)
            now, choice = cost, np.full(cost.shape, -1, dtype=fit(-1, tails.shape[1]))
            for slot in range(tails.shape[1]):
                weight = np.where(inward[:, slot] >= 0, prices[step][kind[:, slot]], np.inf)[:, None]
                candidate = cost[tails[:, slot]] + weight
                better = candidate < now
                now = np.where(better, candidate, now)
                choice[better] = slot
            choices.append(choice)
            cost = now
        at = commodities[:, 1].copy()
        options = cost.reshape(len(tails), -1, len(sources))[at, :, column]
        options[np.arange(options.shape[1]) > last[:, None]] = np.inf
        first = options.argmin(axis=1)
        column = column + first * len(sources)
        paths = np.full((len(commodities), self.steps), -1, dtype=fit(-1, self.num_links))
        for step in reversed(range(self.steps)):
            slot = choices[step][at, column]
            moves = np.flatnonzero((slot >= 0) & (step >= first))
            paths[moves, step] = inward[at[moves], slot[moves]]
            at[moves] = tails[at[moves], slot[moves]]
        return paths, options[np.arange(len(commodities)), first]

    def uses(self, paths: Array) -> tuple[Array, Array]:
        """Return the cells that timed paths use: numbers of paths, ascending, and of cells."""
        path, step = np.nonzero(paths >= 0)
        return path, step * self.classes + self.link_class[paths[path, step]]

    def loads(self, paths: Array, units: Array) -> Array:
        """Return the load of each cell if path i carries ``units[i]`` (integers)."""
        path, cell = self.uses(paths)
        loads: Array = np.bincount(cell, weights=units[path], minlength=self.cells).astype(np.int64)
        return loads

    def time(self, loads: Array) -> Fraction:
        """Return the sum over all steps of the time its busiest link takes for these loads."""
        total = Fraction(0)
        kinds = {size: [k for k, c in enumerate(self.capacity) if c == size] for size in set(self.capacity)}
        for row in loads.reshape(self.steps, -1):
            total += max(Fraction(int(row[places].max())) / size for size, places in kinds.items())
        return total


def _network(topology: Topology) -> tuple[Network, Array]:
    src, dst = topology.src.astype(np.int64), topology.dst.astype(np.int64)
    return Network.of(topology.num_ranks, src, dst), topology.distances.astype(np.int64)
