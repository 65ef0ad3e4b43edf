"""Routes of messages between ranks that may be far apart: shortest routes, dimension after dimension.

To keep link loads low, a message takes the shorter direction, whatever the sign of the distance in the algorithm (in
dimensions of 18, 20 or 36 the last peer of Swing is nearer in the other direction). If both directions are equally
long, even and odd coordinates take different ones, and so do the two halves of the data.
"""

from __future__ import annotations

from functools import cached_property
from math import prod

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.frozen import frozen
from collc.ir.ragged import ranges, starts
from collc.ir.schedule import Routes
from collc.ir.topology import Topology

from .shape import Grid, grid

__all__ = ["GridRouter", "Router", "router"]


@frozen(eq=False)
class Router:
    """Finds the routes of pairs of ranks. A *key* stands for (source, target, direction, lane)."""

    topology: Topology
    lanes: int = 1  # number of parallel links between neighbours
    prefers_rank_links: bool = attrs.field(
        default=True, kw_only=True
    )  # whether links between ranks come before switches

    def keys(self, src: Array, dst: Array, direction: int, lane: int) -> Array:
        """Return the keys of messages."""
        return ((src * np.int64(self.topology.num_ranks) + dst) * 2 + direction) * self.lanes + lane % self.lanes

    def split(self, keys: Array) -> tuple[Array, Array, Array, Array]:
        """Return (source, target, direction, lane) of keys."""
        pair, lane = np.divmod(keys, self.lanes)
        pair, direction = np.divmod(pair, 2)
        return *np.divmod(pair, self.topology.num_ranks), direction, lane

    def routes(self, keys: Array) -> Routes:
        """Return the routes of different keys, in order. Raises C0301 if a target cannot be reached.

        On any network: a shortest path; the target's number chooses among next links, as in fat trees. If ranks also
        have links to each other, as on a HammingMesh's boards, a route without a switch may be one link longer: other
        pairs need the switches.
        """
        src, dst, direction, lane = self.split(keys)
        if self._rank_links is not None:
            return self._prefer_rank_links(keys, *self._rank_links)
        hops = self._hops
        if (hops[src, dst] < 0).any():
            self.topology.require_connected("an exchange between ranks that may be far apart")
        at, spread, columns = src.copy(), dst + direction + lane, []
        while len(moving := np.flatnonzero(hops[at, dst])):
            link, choices = self._next(at[moving], dst[moving], spread[moving])
            spread[moving] //= choices
            column = np.full(len(at), -1, dtype=np.int64)
            column[moving] = link
            columns.append(column)
            at[moving] = self.topology.dst[link]
        return _joined(np.stack(columns, axis=1) if columns else np.zeros((len(keys), 0), dtype=np.int64))

    def _next(self, at: Array, dst: Array, spread: Array) -> tuple[Array, Array]:
        """Return the next link of each message on its way from ``at`` to ``dst``, and how many links are as near.

        Links out of a node are compared once for each pair of nodes: a switch may have a thousand.
        """
        hops, (first, links) = self._hops, self.topology.out_links
        pairs, pair = np.unique(at * np.int64(len(hops)) + dst, return_inverse=True)
        here, there = np.divmod(pairs, len(hops))
        count = np.diff(first)[here]
        listed = links[ranges(first[:-1][here], count)]
        of = np.repeat(np.arange(len(pairs)), count)
        closer = np.flatnonzero(hops[self.topology.dst[listed], there[of]] == (hops[here, there] - 1)[of])
        choices = np.bincount(of[closer], minlength=len(pairs))
        place = starts(choices)[:-1][pair] + spread % choices[pair]
        return listed[closer[place]], choices[pair]

    def _prefer_rank_links(self, keys: Array, rank_router: Router, links: Array) -> Routes:
        src, dst, _, _ = self.split(keys)
        apart = rank_router._hops[src, dst]
        near = (apart >= 0) & (apart <= self._hops[src, dst] + 1)
        found = [Routes(r.start, links[r.links]) for r in [rank_router.routes(keys[near])]]
        found.append(Router(self.topology, self.lanes, prefers_rank_links=False).routes(keys[~near]))
        order = np.argsort(np.concatenate([np.flatnonzero(near), np.flatnonzero(~near)]), kind="stable")
        length = np.concatenate([r.lengths for r in found])
        place = ranges(starts(length)[order], length[order])
        return Routes(starts(length[order]), np.concatenate([r.links for r in found])[place])

    @cached_property
    def _rank_links(self) -> tuple[Router, Array] | None:
        """The network of the links between ranks, and their numbers, if there are switches too."""
        topology = self.topology
        links = np.flatnonzero((topology.src < topology.num_ranks) & (topology.dst < topology.num_ranks))
        if not self.prefers_rank_links or topology.is_direct or not len(links):
            return None
        rank_router = Topology(
            topology.name, topology.num_ranks, topology.src[links], topology.dst[links],
            link_class=topology.link_class[links], classes=topology.classes,
        )  # fmt: skip
        return Router(rank_router, self.lanes), links

    @cached_property
    def _hops(self) -> Array:
        return self.topology.distances


@frozen(eq=False)
class GridRouter(Router):
    """Routes on a torus or mesh that has all its links."""

    grid: Grid = attrs.field(kw_only=True)

    def keys(self, src: Array, dst: Array, direction: int, lane: int) -> Array:
        """Return the keys; ``direction`` matters only if both directions are equally long."""
        tied = np.zeros(len(src), dtype=bool)
        for size, stride, wraps in self._dimensions:
            tied |= wraps & (np.abs(src // stride % size - dst // stride % size) * 2 == size)
        return super().keys(src, dst, np.where(tied, direction, 0), lane)  # type: ignore[arg-type]

    def routes(self, keys: Array) -> Routes:
        src, dst, direction, lane = self.split(keys)
        moves = [self._offset(src, dst, direction, i) for i in range(len(self.grid.shape))]
        length = sum((np.abs(move) for move in moves), np.zeros(len(keys), dtype=np.int64))
        start = starts(length)
        links, at, cursor = np.empty(int(start[-1]), dtype=np.int64), src.copy(), start[:-1].copy()
        for i, move in enumerate(moves):
            for hop in range(int(np.abs(move).max(initial=0))):
                going = np.flatnonzero(np.abs(move) > hop)
                link = self.grid.links[at[going], i, (move[going] < 0).astype(np.int64), lane[going]]
                links[cursor[going]] = link
                cursor[going] += 1
                at[going] = self.topology.dst[link]
        return Routes(start, links)

    @cached_property
    def _dimensions(self) -> list[tuple[int, int, bool]]:
        shape = self.grid.shape
        return [(size, prod(shape[i + 1 :]), self.grid.wraps[i]) for i, size in enumerate(shape)]

    def _offset(self, src: Array, dst: Array, direction: Array, dim: int) -> Array:
        """Return how many links up (positive) or down the messages go in a dimension."""
        size, stride, wraps = self._dimensions[dim]
        a = src // stride % size
        ahead: Array = dst // stride % size - a
        if not wraps:
            return ahead
        ahead %= size
        up_at_tie = direction == 0 if size == 2 else (a + direction) % 2 == 0
        up = (2 * ahead < size) | ((2 * ahead == size) & up_at_tie)
        nearer: Array = np.where(up, ahead, ahead - size)
        return nearer


def _joined(table: Array) -> Routes:
    """Return the routes whose links are the rows of a table, without the entries of -1."""
    kept = table >= 0
    return Routes(starts(kept.sum(axis=1)), table[kept])


def router(topology: Topology, *shapes: tuple[int, ...]) -> Router:
    """Return the router of a topology: a grid's if it is a torus or mesh of one of these shapes."""
    for shape in shapes:
        found = grid(topology, shape)
        if found is not None and found.is_all(topology):
            return GridRouter(topology, found.lanes, grid=found)
    topology.require_connected("an exchange between ranks that are not neighbours")
    return Router(topology)
