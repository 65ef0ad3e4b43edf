"""Put the nodes of a network into racks so that few links leave a rack, and bound from below how few there can be.

Assignments come from the structure: consecutive numbers, boxes of a grid, cosets of the subgroups that some generators
span. A search that exchanges nodes of two racks (Kernighan and Lin) improves the best, then annealing (`annealed.py`).
Every choice is made in integers, ties go to the lowest number, and effort is counted, so all machines get the same
racks.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, product
from math import ceil, prod

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.diagnostic import error
from collc.ir.group import Translations
from collc.ir.progress import counting, progress
from collc.ir.ragged import group_starts, inverse
from collc.ir.shown import counted
from collc.ir.topology import Topology

from .annealed import annealed

__all__ = ["Racks", "assign_racks", "links_between", "racks_bound"]

_MOST_JOINED = 3  # generators whose cosets are tried together
_MOST_STARTS = 3  # assignments that are improved by exchanges
_EXCHANGES = 12_000  # exchanges that a search tries
_DEPTH = 16  # exchanges between two racks, before the best prefix is kept
_MOST_DENSE = 4096  # nodes, up to which a table of all their pairs is made; units that grow, but for the nodes
_MOST_ROUTED = 40_000  # nodes times diameter, up to which the bound routes all pairs


@attrs.frozen(eq=False)
class Racks:
    """The rack of every node, at most ``size`` nodes in each, and as few racks as possible.

    ``links`` is the number of directed links between racks; a two-way cable has two. No assignment to racks of this
    size has less than ``bound``.
    """

    size: int
    rack: Array
    links: int
    bound: int


def links_between(topology: Topology, rack: Array) -> int:
    """Return the number of directed links whose ends are in different racks."""
    return int((rack[topology.src] != rack[topology.dst]).sum())


def assign_racks(topology: Topology, size: int, rate: Fraction | None = None) -> Racks:
    """Return the assignment of fewest links between racks of those that are tried; ``rate`` is the all-to-all rate.

    Raises C0579 for networks with switches.
    """
    if topology.num_switches:
        raise error(
            "C0579",
            f"racks hold ranks, and `{topology.name}` has {counted(topology.num_switches, 'switch')}",
            hint="leave out --rack, or name a network of ranks",
        )
    nodes = topology.num_ranks
    starts = {tuple(rack.tolist()): links_between(topology, rack) for rack in _starts(topology, size)}
    ranked = sorted(starts, key=lambda rack: (starts[rack], rack))[:_MOST_STARTS]
    progress("bound on links between racks")
    bound = racks_bound(topology, size, rate)
    best = np.array(ranked[0], dtype=np.int64)
    links = starts[ranked[0]]
    if size < nodes <= _MOST_DENSE:
        joined = _joined(topology)
        for start in counting(ranked, "assignments to racks"):
            if links == bound:
                break
            improved = _exchanged(joined, np.array(start, dtype=np.int64))
            if (found := links_between(topology, improved)) < links:
                best, links = improved, found
    if links > bound and size < nodes:
        cooled = annealed(topology, best)
        if nodes <= _MOST_DENSE:
            cooled = _exchanged(joined, cooled)
        if (found := links_between(topology, cooled)) < links:
            best, links = cooled, found
    return Racks(size, _numbered(best), links, bound)


def _numbered(rack: Array) -> Array:
    """Return the racks numbered in the order of their lowest nodes."""
    _, first, which = np.unique(rack, return_index=True, return_inverse=True)
    return inverse(np.argsort(first))[which]


# ---- assignments from the structure


def _starts(topology: Topology, size: int) -> Iterator[Array]:
    nodes = topology.num_ranks
    yield np.arange(nodes) // size
    for shape in _shapes(topology):
        yield from _boxes(shape, size)
    for number, unit in enumerate(_units(topology, size)):
        if not number or len(np.unique(unit)) <= _MOST_DENSE:  # of a large network, the nodes one by one
            yield _grown(topology, unit, size)


def _shapes(topology: Topology) -> Iterator[tuple[int, ...]]:
    """Yield the shapes of grids whose last coordinate counts fastest: of a group, and of the factors of a product."""
    if isinstance(topology.symmetry, Translations) and len(topology.symmetry.shape) > 1:
        yield topology.symmetry.shape
    origin = topology.origin
    if origin is None:
        return
    sides = [number for number in origin.arguments if isinstance(number, int)]
    if origin.name in ("product", "power"):
        sides = [base.num_ranks for base in origin.bases] * (origin.times if origin.name == "power" else 1)
    if len(sides) > 1 and prod(sides) == topology.num_ranks:
        yield tuple(sides)


def _boxes(shape: tuple[int, ...], size: int) -> Iterator[Array]:
    """Yield the assignments to equal boxes of ``size`` nodes."""
    where = np.indices(shape).reshape(len(shape), -1)
    choices = [[side for side in range(1, extent + 1) if extent % side == 0] for extent in shape]
    for box in product(*choices):
        if prod(box) == size:
            grid = [extent // side for extent, side in zip(shape, box, strict=True)]
            corner = [axis // side for axis, side in zip(where, box, strict=True)]
            yield np.ravel_multi_index(corner, grid)


def _units(topology: Topology, size: int) -> Iterator[Array]:
    """Yield what must stay together as a number for every node: itself, cosets, links of one tail or head."""
    nodes, degree = topology.num_ranks, topology.degree
    yield np.arange(nodes)
    origin = topology.origin
    if origin is not None and origin.name == "line" and degree and size % degree == 0:
        first = topology.dst[topology.out_links[1]].reshape(nodes, -1).min(axis=1)
        yield np.unique(first, return_inverse=True)[1]  # nodes with the same successors
    if topology.symmetry is None or not degree:
        return
    places = topology.dst.reshape(nodes, degree)
    for count in range(1, _MOST_JOINED + 1):
        for chosen in combinations(range(degree), count):
            unit = _cosets(places[:, list(chosen)], size)
            if unit is not None and size % int((unit == 0).sum()) == 0:
                yield unit


def _cosets(heads: Array, most: int) -> Array | None:
    """Return the lowest node of every node's coset, of the subgroup that some generators span; None if it is trivial
    or has more than ``most`` elements. Heads have shape (N, generators)."""
    span, at = np.zeros(len(heads), dtype=bool), np.array([0])
    while len(at) and span.sum() <= most:
        span[at] = True
        at = np.unique(heads[at])
        at = at[~span[at]]
    if len(at) or not 1 < span.sum() <= most:
        return None
    label = np.arange(len(heads))
    while True:  # a generator has an inverse among its powers, so links one way lead everywhere in the coset
        fresh = np.minimum(label, label[heads].min(axis=1))
        if (fresh == label).all():
            return label
        label = fresh


def _grown(topology: Topology, unit: Array, size: int) -> Array:
    """Return racks that grow unit by unit, each time by the one with most links to the rack."""
    names, which = np.unique(unit, return_inverse=True)
    count = len(names)
    ends = np.stack([which[topology.src], which[topology.dst]]).astype(np.int64)
    ends = ends[:, ends[0] != ends[1]]
    pairs, links = np.unique(np.concatenate([ends[0] * count + ends[1], ends[1] * count + ends[0]]), return_counts=True)
    near, first = pairs % count, group_starts(pairs // count, count).tolist()
    room = np.bincount(which)
    rack = np.full(count, -1, dtype=np.int64)
    free = np.ones(count, dtype=bool)
    outside = np.bincount(pairs // count, weights=links, minlength=count).astype(np.int64)
    number = 0
    while free.any():
        left, ties = size, np.zeros(count, dtype=np.int64)
        while True:
            fits = np.flatnonzero(free & (room <= left))
            if not len(fits):
                break
            fits = fits[ties[fits] == ties[fits].max()]
            taken = int(fits[np.argmin(outside[fits])])
            rack[taken], free[taken] = number, False
            others = slice(first[taken], first[taken + 1])
            ties[near[others]] += links[others]
            outside[near[others]] -= links[others]
            left -= int(room[taken])
        number += 1
    return rack[which]


# ---- exchanges


def _joined(topology: Topology) -> Array:
    """Return the number of links between two nodes, in both directions, shape (N, N)."""
    nodes = topology.num_ranks
    joined = np.zeros((nodes, nodes), dtype=np.int32)
    np.add.at(joined, (topology.src, topology.dst), 1)
    np.fill_diagonal(joined, 0)
    return joined + joined.T


def _exchanged(joined: Array, rack: Array) -> Array:
    """Return the assignment after exchanges between pairs of racks, until none helps or the effort is spent."""
    rack = rack.copy()
    racks = int(rack.max()) + 1
    member = np.eye(racks, dtype=np.int32)[rack]
    ties = joined @ member  # (N, racks): links between a node and a rack
    effort, improved = _EXCHANGES, True
    while improved and effort > 0:
        improved = False
        for one, two in combinations(range(racks), 2):
            gain, tried = _exchange(joined, rack, ties, one, two)
            effort -= tried
            improved |= gain > 0
            if effort <= 0:
                break
    return rack


def _exchange(joined: Array, rack: Array, ties: Array, one: int, two: int) -> tuple[int, int]:
    """Exchange the nodes of two racks as far as it helps; change ``rack`` and ``ties``; return gain and effort."""
    left, right = np.flatnonzero(rack == one), np.flatnonzero(rack == two)
    here, there = ties[left, two] - ties[left, one], ties[right, one] - ties[right, two]
    if int(here.max()) + int(there.max()) < 0:
        return 0, 1
    between = joined[np.ix_(left, right)]
    inside, beside = joined[np.ix_(left, left)], joined[np.ix_(right, right)]
    gains, pairs = [0], []
    here, there = here.astype(np.int64), there.astype(np.int64)
    locked = -(1 << 40)
    for _ in range(min(len(left), len(right), _DEPTH)):
        values = here[:, None] + there[None, :] - 2 * between
        a, b = divmod(int(values.argmax()), len(right))
        gains.append(gains[-1] + int(values[a, b]))
        pairs.append((a, b))
        here += 2 * inside[a] - 2 * between[:, b]
        there += 2 * beside[b] - 2 * between[a]
        here[a] = there[b] = locked
    best = int(np.argmax(gains))
    for a, b in pairs[:best]:
        u, v = left[a], right[b]
        rack[u], rack[v] = two, one
        shift = joined[:, v] - joined[:, u]
        ties[:, one] += shift
        ties[:, two] -= shift
    return gains[best], len(pairs)


# ---- the bound


def racks_bound(topology: Topology, size: int, rate: Fraction | None = None) -> int:
    """Return a number of directed links between racks that no assignment can go below.

    An all-to-all of rate f sends f between all pairs of nodes and at most 1 over a link. So the pairs in different
    racks, which are fewest if all racks but one are full, need f links each. Any routing gives a rate: 1 over the
    number of routes on the busiest link. Beside it, every rack of a connected network has a link out, and a node has
    at most one link to each other node of its rack unless links are parallel.
    """
    nodes = topology.num_ranks
    if nodes <= size:
        return 0
    full, rest = divmod(nodes, size)
    apart = nodes**2 - full * size**2 - rest**2
    if rate is None and (busiest := _busiest(topology)) is not None:
        rate = Fraction(1, busiest)
    crossing = [full + (rest > 0) if topology.is_connected else 0]
    if rate is not None:
        crossing.append(ceil(rate * size * (nodes - size)) * full if rest == 0 else ceil(rate * apart))
    ends = topology.src.astype(np.int64) * nodes + topology.dst
    distinct = ends[topology.src != topology.dst]
    if len(np.unique(distinct)) == len(distinct):
        out = np.bincount(topology.src[topology.src != topology.dst], minlength=nodes)
        crossing.append(int(np.maximum(out - (size - 1), 0).sum()))
    return max(crossing)


def _busiest(topology: Topology) -> int | None:
    """Return the number of routes on the busiest link, when every pair has one shortest route; None without routes.

    Routes to nodes far away are chosen first; each takes the link into its end that has the fewest routes so far.
    """
    if topology.symmetry is not None and topology.degree:
        return _busiest_kind(topology.dst.reshape(topology.num_ranks, -1))
    if topology.num_ranks > _MOST_DENSE or not topology.is_connected:
        return None
    if topology.num_ranks * int(topology.distances.max()) > _MOST_ROUTED:
        return None
    return _busiest_link(topology)


def _busiest_kind(heads: Array) -> int | None:
    """Return the same for a Cayley graph: all links of a generator have as many routes as they have from node 0."""
    hops = np.full(len(heads), -1, dtype=np.int64)
    order = [0]
    tails: list[list[tuple[int, int]]] = [[] for _ in heads]
    hops[0] = 0
    for node in order:
        for kind, head in enumerate(heads[node].tolist()):
            if hops[head] < 0:
                hops[head] = hops[node] + 1
                order.append(head)
            if hops[head] == hops[node] + 1:
                tails[head].append((kind, node))
    if len(order) < len(heads):
        return None
    load, routes = [0] * heads.shape[1], [1] * len(heads)
    for node in reversed(order[1:]):
        kind, tail = min(tails[node], key=lambda hop: (load[hop[0]], hop))
        load[kind] += routes[node]
        routes[tail] += routes[node]
    return max(load)


def _busiest_link(topology: Topology) -> int:
    """Return the same from the routes of all pairs."""
    nodes = topology.num_ranks
    start, links = topology.in_links
    width = int(np.diff(start).max())
    place = start[:-1, None] + np.arange(width)[None, :]
    valid = place < start[1:, None]
    into = links[np.where(valid, place, 0)]
    tails = topology.src[into]
    load = np.zeros(topology.num_links, dtype=np.int64)
    never = np.iinfo(np.int64).max
    for source in range(nodes):
        hops = topology.distances[source]
        routes = np.ones(nodes, dtype=np.int64)
        for step in range(int(hops.max()), 0, -1):
            ends = np.flatnonzero(hops == step)
            usable = valid[ends] & (hops[tails[ends]] == step - 1)
            chosen = np.where(usable, load[into[ends]], never).argmin(axis=1)
            taken = into[ends, chosen]
            load[taken] += routes[ends]
            np.add.at(routes, topology.src[taken], routes[ends])
    return int(load.max())
