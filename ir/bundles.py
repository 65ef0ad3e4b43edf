"""Which transfers share links inside the network: what a switch copies or adds crosses a link once.

Transfers are a bundle if they happen in one step and move the same interval of the same shard: copies from one sender,
or reductions to one receiver. Copies of a bundle share the beginnings of their routes up to a switch that multicasts;
behind it the data go on as copies. Reductions share the ends of their routes from a switch that reduces: it adds what
arrives. Where routes divide at any other node, data cross the links before it once for each continuation.
"""

from __future__ import annotations

import numpy as np

from .arrays import Array
from .ragged import owners, ranges, starts
from .schedule import Action, Forest, Routes, Schedule
from .topology import Topology

__all__ = ["bundles", "crossings_of", "loading"]


def loading(level: Schedule | Forest) -> tuple[Array, Routes]:
    """Return a route for each row, and the routes, which say what a row ``carries`` on its own.

    Without sharing they are the level's own. A row that shares a link with an earlier row of its bundle uses the link,
    but does not load it.
    """
    if not level.in_network or level.routes.is_direct or not level.topology.in_network:
        return level.route, level.routes
    mask = crossings_of(level)
    length = level.routes.lengths[level.route]
    whole: type = object if int(length.max(initial=0)) > 62 else np.int64
    bit = np.ones(len(mask), dtype=whole) << ranges(np.zeros_like(length), length).astype(whole)
    carries: Array = np.zeros(len(length), dtype=whole)
    np.add.at(carries, owners(length), np.where(mask, bit, 0))
    kinds, kind = np.unique(carries, return_inverse=True)
    key, first, route = np.unique(
        level.route.astype(np.int64) * max(len(kinds), 1) + kind.reshape(-1), return_index=True, return_inverse=True
    )
    old = key // max(len(kinds), 1)
    begin = starts(length)[first]
    carried = mask[ranges(begin, length[first])]
    routes = Routes(starts(level.routes.lengths[old]), level.routes.links[level.routes.places(old)], carried)
    return route.reshape(-1), routes


def crossings_of(level: Schedule | Forest) -> Array:
    """Return for every link of every row's route whether the row is the first of its bundle that data cross it for.

    Rows follow each other, and the links of a row are in the order of its route. The load of a link is the sum of the
    amounts of the rows for which this is true.
    """
    group, inward = bundles(level)
    found = np.empty(int(level.routes.lengths[level.route].sum()), dtype=bool)
    length = level.routes.lengths[level.route]
    begin = starts(length)
    for reducing, able in ((False, level.topology.multicast), (True, level.topology.reduces)):
        rows = np.flatnonzero(inward == reducing)
        places = ranges(begin[rows], length[rows])
        found[places] = _first(level.topology, level.routes, group[rows], level.route[rows], able, reducing)
    return found


def bundles(level: Schedule | Forest) -> tuple[Array, Array]:
    """Return the number of each row's bundle, and whether the row reduces."""
    if isinstance(level, Forest):
        inward = level.inward[level.tree].astype(bool)
        columns = [level.tree, level.parent]
    else:
        inward = level.action == Action.REDUCE
        columns = [level.step, level.shard, level.lo, level.hi, np.where(inward, level.dst, level.src), inward]
    group = np.zeros(len(inward), dtype=np.int64)
    for column in columns:
        group = _numbered(group, column)
    return group, inward


def _numbered(one: Array, other: Array) -> Array:
    """Return a number for each pair of numbers, the same for equal pairs."""
    other = np.unique(other, return_inverse=True)[1].reshape(-1)
    key = one * (int(other.max(initial=0)) + 1) + other
    return np.unique(key, return_inverse=True)[1].reshape(-1)


def _first(
    topology: Topology, routes: Routes, group: Array, route: Array, able: tuple[int, ...], reducing: bool
) -> Array:
    """Return :func:`crossings_of` for rows that all copy or all reduce; switches ``able`` copy or add."""
    length = routes.lengths[route]
    begin = starts(length)
    links = routes.links[routes.places(route)].astype(np.int64)
    row = owners(length)
    place = ranges(np.zeros_like(length), length)  # from the end that the bundle shares
    if reducing:
        place = length[row] - 1 - place
    far = (topology.src if reducing else topology.dst)[links]
    at = begin[row] + place  # entries by row and place
    ordered, ends = np.empty(len(links), dtype=np.int64), np.empty(len(links), dtype=np.int64)
    ordered[at], ends[at] = links, far
    token = np.full(len(links), -1, dtype=np.int64)  # the shared path up to each place that ends at an able switch
    path, base = group.copy(), 0
    copies = np.isin(ends, np.array(able, dtype=np.int64))
    for depth in range(int(length.max(initial=0))):
        here = np.flatnonzero(length > depth)
        path[here] = _numbered(path[here], ordered[begin[here] + depth])
        token[begin[here] + depth] = path[here] + base
        base += len(links) + 1
    # the nearest able switch at or behind each place; none: the row itself, which shares nothing there
    alone = base + row
    token = np.where(copies, token, -1)
    for depth in range(int(length.max(initial=0)) - 1, -1, -1):
        here = begin[np.flatnonzero(length > depth)] + depth
        last = here + 1 == begin[row[here] + 1]
        behind = np.where(last, alone[here], token[np.minimum(here + 1, len(links) - 1)])
        token[here] = np.where(token[here] >= 0, token[here], behind)
    depths = np.arange(len(links)) - np.repeat(begin[:-1], length)
    _, first = np.unique(token * (int(length.max(initial=0)) + 1) + depths, return_index=True)
    chosen = np.zeros(len(links), dtype=bool)
    chosen[first] = True
    found: Array = chosen[at]
    return found
