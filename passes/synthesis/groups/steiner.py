"""Cheapest trees to the members of groups at prices of links, by the program of Dreyfus and Wagner.

A rank may send what it has to several nodes, a switch to one only. ``cost[v, g, D]`` is the least price of links over
which a copy at node v reaches the members D of group g: over one link, or divided at a rank between two parts of D. No
schedule without coding brings a byte to the members for less. On the transposed network the trees point inward.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, cached_property

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.topology import Topology

__all__ = ["UNUSABLE", "Hop", "Network", "arborescence", "distances", "hops", "path", "spanning_tree", "trees"]

#: a price of links that may not be used; the dearest tree costs less, and twice this fits into 32 bits
UNUSABLE = 1 << 29

Hop = tuple[int, int, tuple[int, ...]]  # parent, child, the links of the route in the direction of the data


@attrs.frozen(eq=False, slots=False)
class Network:
    """Slots of the links out of every node, and groups of equally many ``members`` (shape (groups, members)).

    ``usable[g]`` tells which nodes group g may use. ``inward``: on the transpose, where links run from heads to tails.
    """

    num_ranks: int
    heads: Array
    links: Array
    members: Array
    usable: Array
    inward: bool

    @classmethod
    def of(cls, topology: Topology, members: Array, usable: Array, inward: bool) -> Network:
        """Return the network of some groups; loops are left out."""
        tails, heads = (topology.dst, topology.src) if inward else (topology.src, topology.dst)
        order = np.argsort(tails, kind="stable")
        order = order[tails[order] != heads[order]]
        degree = np.bincount(tails[order], minlength=topology.num_nodes)
        links = np.full((topology.num_nodes, int(degree.max(initial=0))), -1, dtype=np.int64)
        links[np.arange(links.shape[1]) < degree[:, None]] = order
        ends = np.where(links >= 0, heads[links], np.arange(topology.num_nodes)[:, None])
        return cls(topology.num_ranks, ends.astype(np.int64), links, members, usable, inward)

    @property
    def num_nodes(self) -> int:
        """Ranks and switches."""
        return len(self.heads)

    @cached_property
    def closed(self) -> Array:
        """Which slots a group may not use; shape (nodes, slots, groups)."""
        found: Array = ~self.usable.T[self.heads] | ~self.usable.T[:, None] | (self.links < 0)[:, :, None]
        return found

    def weights(self, prices: Array) -> Array:
        """Return the price of every slot for every group; shape (nodes, slots, groups)."""
        each = np.where(self.links >= 0, prices[self.links], UNUSABLE)[:, :, None]
        return np.where(self.closed, UNUSABLE, each).astype(np.int32)


def distances(network: Network, prices: Array) -> Array:
    """Return the price of the cheapest route from every node to every member; shape (nodes, groups, members).

    ``prices`` are whole, at least 1, and so small that no tree costs as much as ``UNUSABLE``.
    """
    groups, members = network.members.shape
    cost = np.full((network.num_nodes, groups, members), UNUSABLE, dtype=np.int32)
    cost[network.members, np.arange(groups)[:, None], np.arange(members)] = 0
    _relax(network, network.weights(prices), cost)
    return cost


def trees(network: Network, prices: Array) -> Array:
    """Return the price of the cheapest tree from every node to every set of members: shape (nodes, groups, sets).

    Bit i of a set's number is member i.
    """
    weights, members = network.weights(prices), network.members.shape[1]
    cost = np.full((network.num_nodes, len(network.members), 1 << members), UNUSABLE, dtype=np.int32)
    cost[:, :, 1 << np.arange(members)] = distances(network, prices)
    for size in range(2, members + 1):
        sets, halves = _splits(members, size)
        at_ranks = cost[: network.num_ranks]
        fresh = np.full((*cost.shape[:2], len(sets)), UNUSABLE, dtype=np.int32)
        for half in halves:
            both = at_ranks[:, :, half]
            both += at_ranks[:, :, sets ^ half]
            np.minimum(fresh[: network.num_ranks], both, out=fresh[: network.num_ranks])
        _relax(network, weights, fresh)
        cost[:, :, sets] = fresh
    return cost


@cache
def _splits(members: int, size: int) -> tuple[Array, Array]:
    """Return all sets of a size, and for each the halves with its first member: shape (splits, sets)."""
    sets = [one for one in range(1 << members) if one.bit_count() == size]
    halves = [[half for half in _subsets(one) if half & one & -one and half != one] for one in sets]
    return np.array(sets), np.array(halves).T


def _subsets(whole: int) -> Iterator[int]:
    part = whole
    while part:
        yield part
        part = (part - 1) & whole


def _relax(network: Network, weights: Array, cost: Array) -> None:
    """Extend cheapest trees backwards over links until none becomes cheaper."""
    while True:
        before = cost.copy()
        for slot in range(network.heads.shape[1]):
            there = cost[network.heads[:, slot]]
            there += weights[:, slot, :, None]
            np.minimum(cost, there, out=cost)
        if np.array_equal(before, cost):
            return


# ---- the links of a tree


def hops(network: Network, prices: Array, cost: Array, group: int, root: int) -> list[Hop]:
    """Return the hops of a cheapest tree from a root to all members of a group, by the table of :func:`trees`."""
    found, pending = list[Hop](), [(root, cost.shape[2] - 1)]
    while pending:
        node, missing = pending.pop()
        missing &= ~_own(network, group, node)
        if not missing:
            continue
        half = _half(cost[node, group], missing)
        if half:
            pending += [(node, half), (node, missing ^ half)]
            continue
        end, links = _hop(network, prices, cost[:, group, missing], group, node)
        found.append((node, end, links))
        pending.append((end, missing))
    return found


def path(network: Network, prices: Array, cost: Array, group: int, node: int) -> list[Hop]:
    """Return the hops of a cheapest route from a node; ``cost`` is its price from every node."""
    found = list[Hop]()
    while cost[node] > 0:
        end, links = _hop(network, prices, cost, group, node)
        found.append((node, end, links))
        node = end
    return found


def _own(network: Network, group: int, node: int) -> int:
    return sum(1 << place for place in np.flatnonzero(network.members[group] == node).tolist())


def _half(cost: Array, missing: int) -> int:
    """Return a part of a set of members whose tree and that of the rest cost as much as that of all; 0: none."""
    halves = np.array(
        [half for half in _subsets(missing) if half & missing & -missing and half != missing], dtype=np.int64
    )
    if not len(halves):
        return 0
    equal = np.flatnonzero(cost[halves] + cost[missing ^ halves] == cost[missing])
    return int(halves[equal[0]]) if len(equal) else 0


def _hop(network: Network, prices: Array, cost: Array, group: int, node: int) -> tuple[int, tuple[int, ...]]:
    """Return the next rank on a cheapest way from a node, and the links to it."""
    links = list[int]()
    while True:
        node, link = _next(network, prices, cost, group, node)
        links.append(link)
        if node < network.num_ranks:
            return node, tuple(links[::-1] if network.inward else links)


def _next(network: Network, prices: Array, cost: Array, group: int, node: int) -> tuple[int, int]:
    for head, link, closed in zip(
        network.heads[node].tolist(), network.links[node].tolist(), network.closed[node, :, group].tolist(), strict=True
    ):  # fmt: skip
        if not closed and cost[head] + prices[link] == cost[node]:
            return head, link
    raise AssertionError("a tree ends at its members")


def arborescence(weights: Sequence[Sequence[int]], root: int) -> list[int]:
    """Return the parent of every node in a cheapest spanning tree out of a root (Chu, Liu, Edmonds); -1 for the root.

    ``weights[a][b]`` is the price of b below a.

    >>> arborescence([[0, 1, 9], [9, 0, 1], [9, 1, 0]], 0)
    [-1, 0, 1]
    """
    found: list[int] = _arborescence(np.array(weights, dtype=np.int64), root).tolist()
    return found


def spanning_tree(weights: Array) -> int:
    """Return the price of a least spanning tree (Prim); ``weights`` are symmetric.

    >>> spanning_tree(np.array([[0, 1, 9], [1, 0, 2], [9, 2, 0]]))
    3
    """
    left, total = weights[0].copy(), 0
    reached = np.zeros(len(weights), dtype=bool)
    reached[0] = True
    for _ in range(len(weights) - 1):
        node = int(np.where(reached, UNUSABLE * 2, left).argmin())
        total += int(left[node])
        reached[node] = True
        left = np.minimum(left, weights[node])
    return total


def _arborescence(weights: Array, root: int) -> Array:
    price = weights.copy()
    np.fill_diagonal(price, UNUSABLE * 2)
    parent: Array = np.argmin(price, axis=0)
    parent[root] = -1
    circle = _circle(parent.tolist())
    if not circle:
        return parent
    inner, rest = np.array(circle), np.setdiff1d(np.arange(len(price)), circle)
    saved = price[:, inner] - price[parent[inner], inner]
    into, out = saved[rest].argmin(axis=1), price[np.ix_(inner, rest)].argmin(axis=0)
    joined = np.zeros((len(rest) + 1, len(rest) + 1), dtype=np.int64)
    joined[:-1, :-1] = price[np.ix_(rest, rest)]
    joined[:-1, -1], joined[-1, :-1] = saved[rest].min(axis=1), price[np.ix_(inner, rest)].min(axis=0)
    above = _arborescence(joined, int(np.flatnonzero(rest == root)[0]))
    names = np.append(rest, -2)
    for place, node in enumerate(rest.tolist()):
        found = int(above[place])
        parent[node] = -1 if found < 0 else inner[out[place]] if found == len(rest) else names[found]
    entry = int(above[-1])
    parent[inner[into[entry]]] = rest[entry]
    return parent


def _circle(parent: list[int]) -> list[int]:
    """Return the nodes of a circle of parents; none if there is none."""
    seen = [-1] * len(parent)
    for start in range(len(parent)):
        node = start
        while node >= 0 and seen[node] < 0:
            seen[node] = start
            node = parent[node]
        if node >= 0 and seen[node] == start:
            found = [node]
            while parent[found[-1]] != node:
                found.append(parent[found[-1]])
            return found
    return []
