"""Cheap trees at prices of links: each target in turn joins by the cheapest route from a rank that has the data.

Switches forward but do not copy, so a tree branches at ranks only, and may cross a link into a switch several times.
The heuristic is that of Takahashi and Matsuyama (An approximate solution for the Steiner problem in graphs, 1980). With
one target the tree is a cheapest route.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import TypeAlias

from .needs import Needs

__all__ = ["Hop", "Tree", "cheapest_routes", "cheapest_tree", "distances", "nearest"]

#: the links from a rank that has the data to one that gets them; ranks and switches between only forward
Hop: TypeAlias = tuple[int, ...]
#: hops, each after the one that brings the data to its first rank
Tree: TypeAlias = tuple[Hop, ...]
Price: TypeAlias = Sequence[float] | Sequence[int]

_FAR = float("inf")


def cheapest_routes(needs: Needs, price: Price, source: int, targets: Sequence[int]) -> tuple[list[Hop], int]:
    """Return the cheapest route from a source to each target, and the number of links that the search looked at."""
    via, looked = _search(needs, price, source, set(targets))
    return [_back(needs, via, target, source) for target in targets], looked


def distances(needs: Needs, price: Price, source: int, among: set[int] | None = None) -> list[float]:
    """Return the price of the cheapest route from a node to every node.

    Prices that are integers give integers, nodes without a route infinity. If the nodes ``among`` are given, only their
    prices are right; the set is emptied.
    """
    links = needs.out
    found: list[float] = [_FAR] * len(links)
    found[source] = 0
    heap: list[tuple[float, int]] = [(0, source)]
    while heap:
        cost, node = heapq.heappop(heap)
        if cost > found[node]:
            continue
        if among is not None:
            among.discard(node)
            if not among:
                break
        for link, other in links[node]:
            new = cost + price[link]
            if new < found[other]:
                found[other] = new
                heapq.heappush(heap, (new, other))
    return found


def nearest(needs: Needs, price: Sequence[int], target: int) -> int:
    """Return the price of the cheapest route to a rank from any other rank, of which there must be one."""
    found, ranks = {target: 0}, needs.topology.num_ranks
    heap = [(0, target)]
    while True:
        cost, node = heapq.heappop(heap)
        if node < ranks and node != target:
            return cost
        for link, other in needs.into[node]:
            new = cost + price[link]
            if new < found.get(other, _FAR):
                found[other] = new
                heapq.heappush(heap, (new, other))


def _search(needs: Needs, price: Price, source: int, left: set[int]) -> tuple[list[int], int]:
    """Return the link by which the cheapest route enters each node, up to the last of the nodes ``left``."""
    out, looked = needs.out, 0
    cost, via = [_FAR] * len(out), [-1] * len(out)
    cost[source] = 0
    heap: list[tuple[float, int]] = [(0, source)]
    while heap:
        here, node = heapq.heappop(heap)
        if here > cost[node]:
            continue
        left.discard(node)
        if not left:
            break
        looked += len(out[node])
        for link, head in out[node]:
            new = here + price[link]
            if new < cost[head]:
                cost[head], via[head] = new, link
                heapq.heappush(heap, (new, head))
    return via, looked


def _back(needs: Needs, via: Sequence[int], target: int, source: int) -> Hop:
    tails, links, node = needs.tails, list[int](), target
    while node != source:
        links.append(via[node])
        node = tails[via[node]]
    return tuple(reversed(links))


def cheapest_tree(needs: Needs, price: Price, source: int, targets: Sequence[int]) -> tuple[Tree, int]:
    """Return a cheap tree from a source to all targets, and the number of links that the search looked at."""
    if len(targets) == 1:
        routes, looked = cheapest_routes(needs, price, source, targets)
        return (routes[0],), looked
    out, tails, ranks, looked = needs.out, needs.tails, needs.topology.num_ranks, 0
    cost, via = [_FAR] * len(out), [-1] * len(out)
    left, joined, paths = set(targets), {source}, dict[int, tuple[int, Hop]]()
    cost[source] = 0
    heap: list[tuple[float, int]] = [(0, source)]
    while left:
        here, node = heapq.heappop(heap)
        if here > cost[node]:
            continue
        if node in left:
            for rank, (parent, links) in _new_ranks(tails, via, node, joined, ranks):
                paths[rank] = parent, links
                left.discard(rank)
                joined.add(rank)
                cost[rank] = 0
                heapq.heappush(heap, (0, rank))
            continue
        looked += len(out[node])
        for link, head in out[node]:
            new = here + price[link]
            if new < cost[head]:
                cost[head], via[head] = new, link
                heapq.heappush(heap, (new, head))
    return _joined(source, set(targets), paths), looked


def _new_ranks(
    tails: Sequence[int], via: Sequence[int], target: int, joined: set[int], ranks: int
) -> list[tuple[int, tuple[int, Hop]]]:
    """Return the ranks on the route to a new target, the nearest to the tree first, each with its hop."""
    found, links, node, rank = list[tuple[int, tuple[int, Hop]]](), list[int](), target, target
    while node not in joined:
        links.append(via[node])
        node = tails[via[node]]
        if node < ranks:
            found.append((rank, (node, tuple(reversed(links)))))
            links, rank = [], node
    return found[::-1]


def _joined(source: int, targets: set[int], paths: dict[int, tuple[int, Hop]]) -> Tree:
    """Return the tree's hops: a rank that neither needs the data nor has two hops onward only forwards them."""
    onward: dict[int, int] = {}
    for parent, _ in paths.values():
        onward[parent] = onward.get(parent, 0) + 1
    stops = {source, *targets, *(rank for rank, count in onward.items() if count > 1)}
    hops, before = list[Hop](), dict[int, Hop]()
    for rank, (parent, links) in paths.items():  # parents first
        links = links if parent in stops else before[parent] + links
        before[rank] = links
        if rank in stops:
            hops.append(links)
    return tuple(hops)
