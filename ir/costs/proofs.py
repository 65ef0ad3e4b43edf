"""A check of certificates: what they state is computed again, from the links and the collective alone.

Nothing here is shared with the search that found a bound. A cut's data follow from who has and who needs each shard, a
partition's from the number of parts, prices from cheapest routes.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations

from ..collective import CUSTOM, Collective
from ..graph.members import inside
from ..topology import Topology
from .certificate import Bound, Cut, Prices
from .partitions import Partition
from .tree_cuts import TreeCuts

__all__ = ["certificate_holds", "vectors_out_of"]

_MOST_TARGETS = 8  # of a shard, for which the cheapest tree is computed


def certificate_holds(topology: Topology, collective: Collective, bound: Bound) -> bool:
    """Return whether a bound's certificate proves its value for this collective on this network.

    It is False too where no proof is in reach here: prices for shards that many ranks need. Cuts and partitions are
    checked at any size.

    >>> from collc.frontends.coll import topology
    >>> from collc.ir.costs.bounds import bound
    >>> ring, gather = topology("biring(6)"), Collective("allgather", 6)
    >>> certificate_holds(ring, gather, bound(ring, gather))
    True
    """
    proof = bound.certificate
    if proof is None:
        return bound.value == 0
    if isinstance(proof, Cut):
        return bound.value == _by_cut(topology, collective, proof)
    if isinstance(proof, Partition):
        return bound.value == _by_partition(topology, collective, proof)
    if isinstance(proof, TreeCuts):
        return bound.value == _by_tree_cuts(topology, collective, proof)
    return bound.value == _by_prices(topology, collective, proof)


# ---- sets of nodes


def _by_cut(topology: Topology, collective: Collective, proof: Cut) -> Fraction | None:
    """Return what a cut proves; None if it states what is not so."""
    nodes = set(proof.nodes)
    if not nodes <= set(range(topology.num_nodes)) or len(nodes) < len(proof.nodes):
        return None
    senders = set(range(topology.num_nodes)) - nodes if proof.inward else nodes
    width = _bandwidth_out_of(topology, senders)
    if not width or width != proof.bandwidth or proof.carries != vectors_out_of(collective, senders):
        return None
    return proof.carries / width


def _by_partition(topology: Topology, collective: Collective, proof: Partition) -> Fraction | None:
    """Return what a partition proves for an allreduce; None if it states what is not so.

    Nodes that copy or add are in one part each: ranks on a path between members, and switches that multicast or reduce.
    Other switches only forward. Every part has a member.
    """
    copying = {*range(topology.num_ranks), *topology.multicast, *topology.reduces}
    placed = [node for part in proof.parts for node in part if node in copying]
    members = set(collective.ranks.tolist())
    needed = copying
    if collective.members is not None:
        needed = copying.intersection(inside(topology, collective).nodes.tolist())
    if collective.kind != "allreduce" or len(proof.parts) < 2 or any(members.isdisjoint(part) for part in proof.parts):
        return None
    if len(set(placed)) < len(placed) or not needed.issubset(placed):
        return None
    everything = set(range(topology.num_nodes))
    sides = [everything - set(part) if proof.inward else set(part) for part in proof.parts]
    width = sum((_bandwidth_out_of(topology, side) for side in sides), Fraction(0))
    return proof.crossings / width if width and width == proof.bandwidth else None


def _bandwidth_out_of(topology: Topology, nodes: set[int]) -> Fraction:
    ends = zip(topology.src.tolist(), topology.dst.tolist(), topology.link_class.tolist(), strict=True)
    kinds = [0] * len(topology.classes)
    for tail, head, kind in ends:
        kinds[kind] += tail in nodes and head not in nodes
    counted = zip(topology.classes, kinds, strict=True)
    return sum((kind.bandwidth * count for kind, count in counted), Fraction(0))


def vectors_out_of(collective: Collective, nodes: set[int]) -> Fraction:
    """Return the least data, in vectors of M bytes, that leave a set of nodes in every schedule without coding.

    >>> vectors_out_of(Collective("allgather", 6), {0, 1}), vectors_out_of(Collective("allreduce", 6), {0, 1})
    (Fraction(1, 3), Fraction(1, 1))
    """
    if collective.kind in ("allreduce", "broadcast", "reduce"):
        return Fraction(int(_vector_leaves(collective, nodes)))
    return Fraction(sum(weight for weight in _shards_out_of(collective, nodes)), collective.whole)


def _vector_leaves(collective: Collective, nodes: set[int]) -> bool:
    members = set(collective.ranks.tolist())
    has = members if collective.kind != "broadcast" else {collective.root}
    needs = members if collective.kind != "reduce" else {collective.root}
    return not has.isdisjoint(nodes) and not needs <= nodes


def _shards_out_of(collective: Collective, nodes: set[int]) -> Iterator[int]:
    """Yield the weights of the shards that a node inside has, or contributes to, and a rank outside needs."""
    for has, needs, weight in _shards(collective):
        if not nodes.isdisjoint(has) and not nodes.issuperset(needs):
            yield weight


def _shards(collective: Collective) -> Iterator[tuple[Sequence[int], Sequence[int], int]]:
    """Yield for every shard who has it or contributes to it, who needs it, and its weight."""
    members, weights = collective.ranks.tolist(), collective.weight.tolist()
    if collective.kind == CUSTOM:
        for shard, (needs, weight) in enumerate(zip(collective.post or (), weights, strict=True)):
            has = (collective.pre or ())[shard : shard + 1]
            yield collective.contributions(shard) if collective.contributors is not None else has, needs, weight
        return
    root = () if collective.root is None else (collective.root,)
    for shard, weight in enumerate(weights):
        if collective.kind == "alltoall":
            source, target = divmod(shard, len(members))
            yield (members[source],), (members[target],), weight
        else:
            own = (members[shard],)
            ends = {
                "allgather": (own, members), "reduce-scatter": (members, own), "gather": (own, root),
                "scatter": (root, own),
            }  # fmt: skip
            yield (*ends[collective.kind], weight)


def _by_tree_cuts(topology: Topology, collective: Collective, proof: TreeCuts) -> Fraction | None:
    """Return what a family of cuts proves for an allreduce by trees; None if it states what is not so."""
    if collective.kind != "allreduce" or collective.members is not None:
        return None
    if not set(topology.multicast).issubset(proof.multicast) or not set(topology.reduces).issubset(proof.reduces):
        return None
    sums = proof.proved(topology)
    return proof.carries / proof.bandwidth if sums == (proof.carries, proof.bandwidth) and sums[1] else None


# ---- prices


def _by_prices(topology: Topology, collective: Collective, proof: Prices) -> Fraction | None:
    """Return what prices prove; None if they state what is not so."""
    number = len(proof.prices)
    if not number or topology.num_links % number or min(proof.prices) < 0 or collective.reduces:
        return None
    prices = [proof.prices[link % number] for link in range(topology.num_links)]
    paid = sum((topology.bandwidth(link) * price for link, price in enumerate(prices) if price), Fraction(0))
    if not paid or paid != proof.capacity or proof.distance > _least_paid(topology, collective, prices):
        return None
    return Fraction(proof.distance) / paid / collective.whole


def _least_paid(topology: Topology, collective: Collective, prices: Sequence[int]) -> int:
    """Return a lower bound of what the routes of all shards cost at these prices, by weight."""
    beside: list[list[tuple[int, int]]] = [[] for _ in range(topology.num_nodes)]
    entering = [max(prices)] * topology.num_nodes
    for tail, head, price in zip(topology.src.tolist(), topology.dst.tolist(), prices, strict=True):
        if tail != head:
            beside[tail].append((head, price))
            entering[head] = min(price, entering[head])
    known: dict[tuple[int, tuple[int, ...]], int] = {}
    distances: dict[int, list[int]] = {}
    total = 0
    for has, needs, weight in _shards(collective):
        source, targets = has[0], tuple(sorted(set(needs) - {has[0]}))
        if source not in distances:
            distances[source] = _cheapest(beside, [(0, source)])
        if (source, targets) not in known:
            known[source, targets] = _tree(beside, distances[source], source, targets, entering)
        total += weight * known[source, targets]
    return total


def _cheapest(beside: Sequence[Sequence[tuple[int, int]]], start: Iterable[tuple[int, int]]) -> list[int]:
    """Return the least cost to reach each node from nodes that have a cost already (Dijkstra); -1: unreachable."""
    found, queue = [-1] * len(beside), list(start)
    heapq.heapify(queue)
    while queue:
        cost, node = heapq.heappop(queue)
        if found[node] < 0:
            found[node] = cost
            for head, price in beside[node]:
                heapq.heappush(queue, (cost + price, head))
    return found


def _tree(
    beside: Sequence[Sequence[tuple[int, int]]], distance: Sequence[int], source: int, targets: tuple[int, ...],
    entering: Sequence[int],
) -> int:  # fmt: skip
    """Return the cost of the cheapest tree from a source to its targets; of many targets a lower bound."""
    if not targets:
        return 0
    if len(targets) <= _MOST_TARGETS:
        return _steiner(beside, source, targets)
    return max(max(distance[target] for target in targets), sum(entering[target] for target in targets))


def _steiner(beside: Sequence[Sequence[tuple[int, int]]], source: int, targets: tuple[int, ...]) -> int:
    """Return the cost of the cheapest tree from a source to some targets (Dreyfus and Wagner)."""
    behind: list[list[tuple[int, int]]] = [[] for _ in beside]
    for tail, ends in enumerate(beside):
        for head, price in ends:
            behind[head].append((tail, price))
    cost: dict[frozenset[int], list[int]] = {}
    for size in range(1, len(targets) + 1):
        for chosen in map(frozenset, combinations(targets, size)):
            start = [(0, next(iter(chosen)))] if size == 1 else _joined(cost, chosen, len(beside))
            cost[chosen] = _cheapest(behind, start)
    return cost[frozenset(targets)][source]


def _joined(cost: dict[frozenset[int], list[int]], chosen: frozenset[int], nodes: int) -> list[tuple[int, int]]:
    """Return for every node the least cost of two trees from it that together have all chosen targets."""
    first, *others = sorted(chosen)
    parts = [frozenset([first, *some]) for size in range(len(others)) for some in combinations(others, size)]
    found = []
    for node in range(nodes):
        sums = [
            cost[part][node] + cost[chosen - part][node]
            for part in parts
            if cost[part][node] >= 0 and cost[chosen - part][node] >= 0
        ]
        if sums:
            found.append((min(sums), node))
    return found
