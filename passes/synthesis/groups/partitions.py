"""Partitions of a group's network that prices of links suggest: every part has a member, and dear links cross.

Any partition into p parts bounds an allreduce: 2 (p - 1) vectors cross. At good prices, links that are cheap are not
needed to cross, so the parts of good partitions are joined by cheap links.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush

from collc.ir.graph.members import Inside

__all__ = ["Partition", "priced_partitions"]

Partition = tuple[tuple[int, ...], ...]
#: a price between nodes, and both
Link = tuple[int, int, int]


def priced_partitions(network: Inside, prices: Sequence[int]) -> Iterator[Partition]:
    """Yield partitions of a group's nodes; ``prices`` are of the links of the whole network. Both directions add up.

    Members are joined in order of the dearest link between them, and in order of the distance between them: the price
    of all links. Other nodes belong to the nearest part.
    """
    topology, found = network.topology, set[Partition]()
    between: dict[tuple[int, int], int] = {}
    for a, b, link in zip(topology.src.tolist(), topology.dst.tolist(), network.links.tolist(), strict=True):
        pair = min(a, b), max(a, b)
        between[pair] = between.get(pair, 0) + prices[link]
    links = [(price, a, b) for (a, b), price in between.items() if a != b]
    for adds in (False, True):
        owner, bridges = _cells(links, topology.num_ranks, topology.num_nodes, adds)
        for parts in _merged(owner, sorted(bridges), topology.num_ranks):
            if parts not in found:
                found.add(parts)
                yield parts


def _cells(links: Sequence[Link], members: int, nodes: int, adds: bool) -> tuple[list[int], list[Link]]:
    """Return the nearest member of every node, and the distances between members whose cells touch.

    The distance of a route is the price of all its links if it ``adds``, else that of the dearest.
    """
    beside: list[list[tuple[int, int]]] = [[] for _ in range(nodes)]
    for price, a, b in links:
        beside[a].append((price, b))
        beside[b].append((price, a))
    owner, far = [*range(members), *[-1] * (nodes - members)], [0] * nodes
    front = [(0, member, member) for member in range(members)]
    heapify(front)
    while front:
        distance, node, member = heappop(front)
        if owner[node] >= 0 and node != member:
            continue
        owner[node], far[node] = member, distance
        for price, other in beside[node]:
            if owner[other] < 0:
                heappush(front, (distance + price if adds else max(distance, price), other, member))
    touching = [(price, a, b) for price, a, b in links if owner[a] != owner[b]]
    return owner, [
        (far[a] + price + far[b] if adds else max(far[a], price, far[b]), owner[a], owner[b])
        for price, a, b in touching
    ]


def _merged(owner: Sequence[int], bridges: Sequence[Link], members: int) -> Iterator[Partition]:
    """Yield the partitions into cells, and into the cells that ever dearer bridges join."""
    label, last = list(range(members)), -1
    for price, a, b in [*bridges, (-1, 0, 0)]:
        if price != last:
            yield _parts([label[one] for one in owner])
            last = price
        joined = label[a], label[b]
        label = [min(joined) if one in joined else one for one in label]
        if len(set(label)) == 1:
            return


def _parts(label: Sequence[int]) -> Partition:
    found: dict[int, list[int]] = {}
    for node, part in enumerate(label):
        found.setdefault(part, []).append(node)
    return tuple(tuple(nodes) for nodes in found.values())
