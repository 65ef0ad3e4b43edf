"""Schedules that a group of ranks moves, whatever their routes.

Programs have no routes. So the program of a schedule is one rank's moved by a group if the group maps its transfers to
each other, given by their ends and their data. That holds for exchanges at distances on a ring, and of bits of ranks,
on every network: also on a cluster under switches, where no automorphism moves their routes.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TypeAlias

import attrs
import numpy as np

from .acting import Acting
from .arrays import Array, Columns, lexsort, numbered
from .group import Mirrored, Translations
from .ragged import nth_in_group
from .schedule import Routes, Schedule
from .symmetric import SYMMETRIC_KINDS, SymmetricSchedule
from .topology import Topology

__all__ = ["moved_by_ranks"]

#: bits of a number that is not negative
_WORD = 63

_Moves: TypeAlias = Translations | Mirrored


def moved_by_ranks(s: Schedule) -> SymmetricSchedule | None:
    """Return a schedule as the transfers of shard 0 and a group of ranks; None if no group tried moves it.

    The groups are the rotations of all ranks, the group that moves odd ranks against even ones, the exchanges of bits
    of ranks, and the rotations of equal boxes and of the ranks in all boxes. The network of the result has a link for
    each route from a rank to another. None too if the columns of a transfer have more than 63 bits together.
    """
    if s.collective.kind not in SYMMETRIC_KINDS or not s.collective.is_plain or s.placement is not None:
        return None
    if s.in_network:  # switches multicast and add, so transfers share routes
        return None
    rows = np.flatnonzero(s.shard == 0)
    groups = [group for group in _groups(s.topology.num_ranks) if len(rows) * group.order == len(s)]
    # Routes over the same links are one, unless other pairs of ranks as far apart have several.
    for route in (s.routes.first_alike.take(s.route), s.route):
        lane = _lanes(s, route)
        for group in groups:
            if _moves(s, lane, rows, group):
                return _on_pairs(s.rows(rows), lane[rows], group)
    return None


def _groups(ranks: int) -> Iterator[_Moves]:
    """Yield groups that have one element for each rank."""
    yield Translations((ranks,))
    if ranks % 2 == 0:
        yield Mirrored((ranks,))
    if ranks > 2 and ranks & (ranks - 1) == 0:
        yield Translations((2,) * (ranks.bit_length() - 1))
    for box in range(2, ranks // 2 + 1):
        if ranks % box == 0:
            yield Translations((ranks // box, box))


def _lanes(s: Schedule, route: Array) -> Array:
    """Number the routes from a rank to another in their order; return the number of each row's ``route``."""
    used, row = numbered(route)
    ends = np.zeros(len(used), dtype=np.int64)
    ends[row] = s.src.astype(np.int64) * s.topology.num_ranks + s.dst
    order = lexsort([ends])
    lane = np.empty(len(used), dtype=np.int64)
    lane[order] = nth_in_group(ends[order])
    return lane[row]


def _moves(s: Schedule, lane: Array, rows: Array, group: _Moves) -> bool:
    """Return whether the transfers of a schedule are the images of some rows, which move shard 0.

    Most groups fail at the first shards already: those to which the first steps along each coordinate lead.
    """
    n = s.topology.num_ranks
    sizes = (s.num_steps + 1, 2, int(lane.max(initial=0)) + 1, s.parts + 1, s.parts + 1, n, n, n)
    if prod(sizes).bit_length() > _WORD:
        return False
    same = (s.step, s.action, lane, s.lo, s.hi)

    def are_images(element: Array, of: Array) -> bool:
        ends = (group.multiply(element, end[rows].astype(np.int64)) for end in (s.src, s.dst))
        images = _keys(sizes, *(column[rows] for column in same), *ends, element)
        due = _keys(sizes, *(column[of] for column in (*same, s.src, s.dst, s.shard)))
        return np.array_equal(np.sort(due), np.sort(images.ravel()))

    first = {int(prod(group.shape[k:])) % n for k in range(1, len(group.shape) + 1)}
    if not all(are_images(np.array([[g]]), np.flatnonzero(s.shard == g)) for g in sorted(first)):
        return False
    return are_images(np.arange(n)[:, None], np.arange(len(s)))


def _keys(sizes: tuple[int, ...], *columns: Array) -> Array:
    """Return a number for each row of columns of numbers below some ``sizes``; the columns broadcast."""
    key: Array = np.zeros(1, dtype=np.int64)
    for size, column in zip(sizes, columns, strict=True):
        key = key * size + column
    return key


def _on_pairs(seed: Schedule, lane: Array, group: _Moves) -> SymmetricSchedule:
    """Return a seed on the network with links between ranks that send to each other, one for each of their lanes."""
    n, rank = group.order, np.arange(group.order)
    lanes, src = int(lane.max(initial=0)) + 1, seed.src.astype(np.int64)
    kinds, kind = numbered(group.multiply(group.inverse(src), seed.dst) * lanes + lane)
    heads = group.multiply(rank[:, None], kinds[None, :] // lanes)
    columns: Columns = {
        "src": np.repeat(rank, len(kinds)), "dst": heads.ravel(), "link_class": np.zeros(heads.size, dtype=np.int64),
    }  # fmt: skip
    topology = Topology(seed.topology.name, n, classes=seed.topology.classes[:1], **columns)
    direct = Routes.direct(topology.num_links)
    here = attrs.evolve(seed, topology=topology, route=src * len(kinds) + kind, routes=direct)
    return SymmetricSchedule(here, Acting(topology, group))
