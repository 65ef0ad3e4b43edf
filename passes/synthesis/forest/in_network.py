"""Trees through switches that multicast: they copy, so a tree may branch in them.

For the packing they are ranks without data that every tree reaches. Then a tree's edges through them are joined: from
the rank before the switch to each rank behind it. Edges of one parent that share links carry the data over them once
(:mod:`collc.ir.bundles`). Trees to the roots are such trees of the transpose, where switches that reduce multicast.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.ragged import inverse
from collc.ir.schedule import Routes
from collc.ir.topology import Topology

from .routes import Routed

__all__ = ["copying", "divided", "joined"]


def copying(topology: Topology) -> Topology:
    """Return the network in which switches that multicast are ranks, after the others; links keep their numbers.

    >>> from collc.frontends.coll import topology
    >>> copying(topology("dgx_h100(2, 0, 1)"))
    Topology(dgx_h100(2, 0, 1): 18 ranks, 1 switch, 64 links)
    """
    if not topology.multicast:
        return topology
    switches = [node for node in range(topology.num_ranks, topology.num_nodes) if node not in set(topology.multicast)]
    order = np.array([*range(topology.num_ranks), *topology.multicast, *switches], dtype=np.int64)
    number = np.argsort(order)
    return attrs.evolve(
        topology, num_ranks=topology.num_nodes - len(switches), num_switches=len(switches),
        src=number[topology.src], dst=number[topology.dst], symmetry=None, origin=None, multicast=(), reduces=(),
        node_names=tuple(topology.names[node] for node in order),
    )  # fmt: skip


def joined(trees: Routed, topology: Topology) -> Routed:
    """Return trees of :func:`copying` as trees of the topology's ranks, with their edges through switches joined.

    A switch below which no rank is left is cut off. A route that would pass a switch twice leaves out what is between.
    """
    num_ranks, ends = topology.num_ranks, topology.dst.tolist()
    parent, route, keep = trees.parent.astype(np.int64), trees.route.astype(np.int64), trees.child < num_ranks
    above = _row_above(trees)
    table: dict[tuple[int, ...], int] = {(int(r),): number for number, r in enumerate(range(len(trees.routes)))}
    chains: list[tuple[int, ...]] = [(int(r),) for r in route]
    for row in np.flatnonzero(keep & (parent >= num_ranks)).tolist():
        chain, upper = chains[row], int(above[row])
        while True:
            chain = (int(route[upper]), *chain)
            if parent[upper] < num_ranks:
                break
            upper = int(above[upper])
        chains[row], parent[row] = chain, parent[upper]
    rows = np.flatnonzero(keep)
    number = [table.setdefault(chains[row], len(table)) for row in rows.tolist()]
    links = [_without_loops([link for part in chain for link in trees.routes.links_of(part)], ends) for chain in table]
    used, which = np.unique(np.array(number, dtype=np.int64), return_inverse=True)
    return attrs.evolve(
        trees, tree=trees.tree[rows], parent=parent[rows], child=trees.child[rows], route=which.reshape(-1),
        routes=Routes.of([links[route] for route in used.tolist()]),
    )  # fmt: skip


def _without_loops(links: list[int], ends: list[int]) -> list[int]:
    """Return a route that passes no node twice; ``ends`` are the heads of links."""
    found = list[int]()
    place: dict[int, int] = {}
    for link in links:
        if ends[link] in place:
            found = found[: place[ends[link]]]
            place = {node: at for node, at in place.items() if at <= len(found)}
            continue
        found.append(link)
        place[ends[link]] = len(found)
    return found


def _row_above(trees: Routed) -> Array:
    """Return for each row the row of its tree whose child is this row's parent; -1 at the root."""
    width = int(max(trees.parent.max(initial=0), trees.child.max(initial=0))) + 1
    base = trees.tree.astype(np.int64) * width
    order = np.argsort(base + trees.child, kind="stable")
    key = (base + trees.child)[order]
    place = np.minimum(np.searchsorted(key, base + trees.parent), max(len(key) - 1, 0))
    found: Array = np.where(key[place] == base + trees.parent, order[place], -1) if len(key) else place
    return found


# ---- an allreduce whose halves divide the links


def divided(topology: Topology, time: Fraction) -> tuple[int, Routed, Routed, bool] | None:
    """Return the trees of an allreduce at the optimum: how many of equal share, inward and outward ones, and whether
    all ranks are roots of as many. None if they are no faster than ``time`` per byte.

    A reduce-scatter and an allgather need other links of switches that add and copy, so together they can use links
    better than one after the other. The packing lets every tree reach every such switch. If the optimum has trees that
    do not, it is that of the network without other switches. Also None if the program is too large, or if not all trees
    can reach some switch there either.
    """
    plain = np.setdiff1d(np.arange(topology.num_ranks, topology.num_nodes), [*topology.multicast, *topology.reduces])
    found = _divided(topology, time)
    if found is not None or not len(plain):
        return found
    kept = np.flatnonzero(~np.isin(topology.src, plain) & ~np.isin(topology.dst, plain))
    columns = {name: getattr(topology, name)[kept] for name in ("src", "dst", "link_class")}
    part = attrs.evolve(topology, symmetry=None, origin=None, **columns)
    found = _divided(part, time) if part.is_connected else None
    if found is None:
        return None
    trees, inward, outward, equal = found
    moved = [attrs.evolve(one, routes=Routes(one.routes.start, kept[one.routes.links])) for one in (inward, outward)]
    return trees, moved[0], moved[1], equal


def _divided(topology: Topology, time: Fraction) -> tuple[int, Routed, Routed, bool] | None:
    from .allreduce_optimum import allreduce_optimum

    found = allreduce_optimum(topology, multicast=topology.multicast, reduces=topology.reduces)
    if found is None or found.value * time <= 1:
        return None
    division, partner = found.division, topology.reverse_links
    outward = _packed(topology, division.roots, division.outward)
    if outward is None:
        return None
    mirrored = partner is not None and topology.multicast == topology.reduces
    if mirrored and partner is not None and division.inward == tuple(division.outward[link] for link in partner):
        return division.trees, _reversed(outward, partner), outward, found.has_equal_roots
    inward = _packed(topology.transpose(), division.roots, division.inward)
    if inward is None:
        return None
    every = np.arange(topology.num_links)
    return division.trees, _by_root(_reversed(inward, every)), _by_root(outward), found.has_equal_roots


def _packed(topology: Topology, roots: Sequence[int], held: Sequence[int]) -> Routed | None:
    """Return ``roots[r]`` trees of every rank within what links hold; None if a switch cannot be in all of them."""
    from .capacities import flow_network
    from .packing import height, pack
    from .routes import routed
    from .switches import removals

    network = copying(topology)
    trees = [*roots, *[0] * len(topology.multicast)]
    flows = flow_network(network, list(held))
    if flows.violated([*trees, *[0] * network.num_switches], range(network.num_ranks)):
        return None
    forests = [
        (pack(network.num_ranks, one.capacity, trees), one)
        for one in removals(flows, network.num_ranks, trees, network.names)
    ]
    packed, logical = min(forests, key=lambda found: (height(found[0]), len(found[0])))
    return joined(routed(packed, logical, network, list(held)), topology)


def _reversed(trees: Routed, partner: Array) -> Routed:
    """Return the trees with every route reversed, over the partners of its links."""
    lengths = trees.routes.lengths
    start = trees.routes.start.astype(np.int64)
    back = np.repeat(start[1:] + start[:-1] - 1, lengths) - np.arange(len(trees.routes.links))
    return attrs.evolve(trees, routes=Routes(start, partner[trees.routes.links[back]]))


def _by_root(trees: Routed) -> Routed:
    """Return the trees in the order of their roots."""
    order = np.argsort(trees.root, kind="stable")
    number = inverse(order)[trees.tree]
    rows = np.argsort(number, kind="stable")
    return attrs.evolve(
        trees, root=trees.root[order], weight=trees.weight[order], tree=number[rows], parent=trees.parent[rows],
        child=trees.child[rows], route=trees.route[rows],
    )  # fmt: skip
