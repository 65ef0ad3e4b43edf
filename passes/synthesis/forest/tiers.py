"""Clusters of two tiers: pods of boxes, each pod on leaf switches of its own, and spine switches that join the leaves.

A spine is a switch that no rank is linked to. Without the spines the network falls into parts: the pods. Each is a
cluster of boxes whose fabric is a leaf, or a single box below a leaf. A rank has one link to a leaf. A pod may have
several leaves, each a rail: they count as one fabric, and the spines join them too.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.topology import Topology

from .boxes import Box, Cluster, cluster

__all__ = ["Pod", "Tiers", "divided", "tiers"]


@attrs.frozen(eq=False)
class Pod:
    """``ranks`` of the whole network, ascending; ``inside`` is the cluster that the pod's own ``network`` is.

    The network numbers the pod's ranks in this order, and several leaves are one switch of it; ``links`` are its links
    in the whole network.
    """

    ranks: tuple[int, ...]
    network: Topology
    links: tuple[int, ...]
    inside: Cluster


@attrs.frozen(eq=False)
class Tiers:
    """The pods in order of their first rank, and the links of the whole network between the tiers.

    ``up[v]`` and ``down[v]`` join rank v and its leaf ``leaf[v]`` (-1: none). ``rise[a]`` and ``fall[a]`` are the links
    of leaf a to and from every spine.
    """

    pods: tuple[Pod, ...]
    up: tuple[int, ...]
    down: tuple[int, ...]
    leaf: tuple[int, ...]
    rise: dict[int, dict[int, int]]
    fall: dict[int, dict[int, int]]


def tiers(topology: Topology) -> Tiers | None:
    """Return the network as pods below spines, or None if it is none.

    There must be at least two pods, or one of several leaves, and no two parallel links.
    """
    tails, heads = topology.src.tolist(), topology.dst.tolist()
    links = {ends: link for link, ends in enumerate(zip(tails, heads, strict=True))}
    if topology.num_switches < 3 or len(links) < topology.num_links or any(a == b for a, b in links):
        return None
    spines = _spines(topology)
    leaves = {b for a, b in links if a in spines} | {a for a, b in links if b in spines}
    if not spines or leaves & spines:
        return None
    pods = list[Pod]()
    for part in _parts(topology.num_nodes, links, spines):
        pod = _pod(topology, part, leaves)
        if pod is None:
            return None
        pods.append(pod)
    if len(pods) == 1 and len(leaves) == 1:
        return None
    return _joined(topology, links, spines, leaves, sorted(pods, key=lambda pod: pod.ranks))


def divided(topology: Topology, found: Tiers, numbers: Collection[int], parts: int) -> Tiers:
    """Return the network with some pods cut into this many pods of consecutive boxes, or one of each box.

    They keep their leaf, over which they reach each other.
    """
    pods = list[Pod]()
    for number, pod in enumerate(found.pods):
        boxes = pod.inside.boxes
        count = min(parts, len(boxes)) if number in numbers else 1
        ends = [len(boxes) * i // count for i in range(count + 1)]
        pods += [pod] if count == 1 else [_part(topology, pod, boxes[a:b]) for a, b in pairwise(ends)]
    return attrs.evolve(found, pods=tuple(sorted(pods, key=lambda pod: pod.ranks)))


def _part(topology: Topology, pod: Pod, boxes: Sequence[Box]) -> Pod:
    """Return the pod of some of a pod's boxes."""
    inside, kept = pod.inside, [pod.links[link] for box in boxes for route in box.inside.values() for link in route]
    ranks = [v for box in boxes for v in box.ranks]
    kept += [pod.links[links[v]] for links in (inside.up, inside.down) for v in ranks if links[v] >= 0]
    links = np.unique(np.array(kept, dtype=np.int64))
    nodes = np.unique(np.concatenate([topology.src[links], topology.dst[links], [pod.ranks[v] for v in ranks]]))
    number = np.full(topology.num_nodes, -1, dtype=np.int64)
    number[nodes] = np.arange(len(nodes))
    place = np.full(topology.num_links, -1, dtype=np.int64)
    place[links] = np.arange(len(links))
    local = {v: int(number[pod.ranks[v]]) for v in ranks}

    def moved(route: Sequence[int]) -> tuple[int, ...]:
        return tuple(int(place[pod.links[link]]) if link >= 0 else -1 for link in route)

    found = tuple(
        Box(
            tuple(local[v] for v in box.ranks),
            {(local[a], local[b]): moved(route) for (a, b), route in box.inside.items()},
        )
        for box in boxes
    )
    order = sorted(ranks)
    up, down = (moved([table[v] for v in order]) for table in (inside.up, inside.down))
    network = _among(topology, number, links, len(ranks))
    return Pod(tuple(pod.ranks[v] for v in order), network, tuple(links.tolist()), Cluster(found, up, down))


def _among(topology: Topology, number: Array, links: Array, ranks: int) -> Topology:
    """Return the network of some links, with nodes renumbered."""
    return Topology(
        topology.name, ranks, number[topology.src[links]], number[topology.dst[links]], int(number.max()) + 1 - ranks,
        link_class=topology.link_class[links], classes=topology.classes, unit=topology.unit,
    )  # fmt: skip


def _spines(topology: Topology) -> set[int]:
    """Return the switches that no rank is linked to."""
    below = (topology.src < topology.num_ranks) | (topology.dst < topology.num_ranks)
    near = {*topology.src[below].tolist(), *topology.dst[below].tolist()}
    return set(range(topology.num_ranks, topology.num_nodes)) - near


def _parts(num_nodes: int, links: dict[tuple[int, int], int], spines: set[int]) -> list[list[int]]:
    """Return the parts that the network without the spines falls into; nodes of each ascend."""
    first = list(range(num_nodes))

    def find(node: int) -> int:
        while first[node] != node:
            first[node] = first[first[node]]
            node = first[node]
        return node

    for a, b in links:
        if a not in spines and b not in spines:
            low, high = sorted((find(a), find(b)))
            first[high] = low
    parts = dict[int, list[int]]()
    for node in range(num_nodes):
        if node not in spines:
            parts.setdefault(find(node), []).append(node)
    return list(parts.values())


def _pod(topology: Topology, part: Sequence[int], leaves: set[int]) -> Pod | None:
    ranks = [node for node in part if node < topology.num_ranks]
    number = np.full(topology.num_nodes, -1, dtype=np.int64)
    fabric = sorted(leaves.intersection(part))
    nodes = [node for node in part if node not in fabric[1:]]
    number[nodes] = np.arange(len(nodes))
    number[fabric] = number[fabric[:1]]
    links = np.flatnonzero((number[topology.src] >= 0) & (number[topology.dst] >= 0))
    if not ranks or not fabric:
        return None
    network = _among(topology, number, links, len(ranks))
    inside = cluster(network)
    if inside is None and len(fabric) == 1:
        inside = _one_box(network, int(number[fabric[0]]))
    return None if inside is None else Pod(tuple(ranks), network, tuple(links.tolist()), inside)


def _one_box(network: Topology, leaf: int) -> Cluster | None:
    """Return a pod of one box below a leaf; None if some of its ranks reach others only over the leaf."""
    ends = zip(network.src.tolist(), network.dst.tolist(), strict=True)
    links = {pair: link for link, pair in enumerate(ends)}
    ranks, inside = range(network.num_ranks), dict[tuple[int, int], tuple[int, ...]]()
    switches = [node for node in range(network.num_ranks, network.num_nodes) if node != leaf]
    for pair in ((v, u) for v in ranks for u in ranks if u != v):
        via = [(links[pair[0], s], links[s, pair[1]]) for s in switches if {(pair[0], s), (s, pair[1])} <= links.keys()]
        if pair not in links and not via:
            return None
        inside[pair] = (links[pair],) if pair in links else via[0]
    up, down = (tuple(links.get((v, leaf) if rising else (leaf, v), -1) for v in ranks) for rising in (True, False))
    return Cluster((Box(tuple(ranks), inside),), up, down)


def _joined(
    topology: Topology, links: dict[tuple[int, int], int], spines: set[int], leaves: set[int], pods: list[Pod]
) -> Tiers | None:
    up, down, leaf = ([-1] * topology.num_ranks for _ in range(3))
    for pod in pods:
        for v, rising, falling in zip(pod.ranks, pod.inside.up, pod.inside.down, strict=True):
            if rising >= 0:
                up[v] = pod.links[rising]
                leaf[v] = int(topology.dst[up[v]])
            if falling >= 0:
                down[v] = pod.links[falling]
                if leaf[v] not in (-1, int(topology.src[down[v]])):
                    return None
                leaf[v] = int(topology.src[down[v]])
    if not leaves.issuperset(leaf[v] for v in range(topology.num_ranks) if leaf[v] >= 0):
        return None
    order = sorted(spines)
    rise = {a: {s: links[a, s] for s in order if (a, s) in links} for a in sorted(leaves)}
    fall = {a: {s: links[s, a] for s in order if (s, a) in links} for a in sorted(leaves)}
    return Tiers(tuple(pods), tuple(up), tuple(down), tuple(leaf), rise, fall)
