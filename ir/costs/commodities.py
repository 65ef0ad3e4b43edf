"""What a collective that copies has to move: the shards of one source for the same targets; and bounds by node sets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import attrs
import numpy as np

from ..arrays import Array
from ..collective import Collective
from ..graph.bottleneck import node_bandwidths
from ..ragged import group_starts
from ..topology import Topology
from .certificate import Bound, Prices
from .partitions import bandwidths_of_groups
from .readable import cut

__all__ = ["Commodity", "commodities", "commodity_bound", "reduction_bound"]

_MOST_WORK = 1 << 23  # sets of nodes times commodities


@attrs.frozen
class Commodity:
    """Shards of one source for the same targets, which ascend, without the source; ``weight`` is the sum of theirs."""

    source: int
    targets: tuple[int, ...]
    shards: tuple[int, ...]
    weight: int


def commodities(collective: Collective) -> tuple[Commodity, ...]:
    """Return the commodities of a collective that does not reduce, by source and targets.

    Shards that no other rank than their source needs are left out.

    >>> [one.targets for one in commodities(Collective("custom", 3, pre=(0, 0, 2), post=((1, 2), (1, 2), (2,))))]
    [(1, 2)]
    """
    groups: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    for shard, (source, targets) in enumerate(zip(collective.holders.tolist(), _targets(collective), strict=True)):
        others = tuple(target for target in targets if target != source)
        if others:
            groups.setdefault((source, others), []).append(shard)
    weight = collective.weight.tolist()
    return tuple(
        Commodity(source, targets, tuple(shards), sum(weight[shard] for shard in shards))
        for (source, targets), shards in sorted(groups.items())
    )


def _targets(collective: Collective) -> Sequence[Sequence[int]]:
    """Return the ranks that need each shard, ascending."""
    if collective.post is not None:
        return collective.post
    if collective.kind == "alltoall":
        return [(collective.pair(shard)[1],) for shard in range(collective.num_shards)]
    wants = collective.wants(np.arange(collective.num_ranks)[None, :], np.arange(collective.num_shards)[:, None])
    shard, rank = np.nonzero(wants)
    start = group_starts(shard, collective.num_shards)
    return [rank[a:b].tolist() for a, b in zip(start[:-1].tolist(), start[1:].tolist(), strict=True)]


def commodity_bound(topology: Topology, collective: Collective) -> Bound:
    """Return the least time per byte of M that sets of nodes, and all links together, allow a collective that copies.

    A set of nodes sends each shard that a rank inside has and a rank outside needs, at least once. The sets are single
    ranks, groups that wide links join, and all other nodes. Every shard crosses as many links as its farthest target is
    away, and enters each target.
    """
    moved = [one for one in commodities(collective) if one.weight]
    whole = collective.whole
    best, found = Fraction(0), Bound(Fraction(0), "all-schedules", "none")
    for nodes, carries, width, inward in _sets(topology, moved):
        if carries and width and Fraction(carries) / width > best:
            best = Fraction(carries) / width
            inside = set(range(topology.num_nodes)).difference(nodes) if inward else nodes
            proof = cut(topology, inside, Fraction(carries, whole), collective)
            found = Bound(best / whole, "all-schedules", proof.text, proof)
    together = _all_links(topology, moved)
    width = sum(node_bandwidths(topology, topology.src), Fraction(0))
    if together and width and together / width > best:
        useful = topology.src != topology.dst
        prices = (1,) if useful.all() else tuple(useful.astype(int).tolist())
        proof_of_all = Prices(prices, together, width)
        found = Bound(together / width / whole, "all-schedules", "all links together", proof_of_all)
    return found


def reduction_bound(topology: Topology, collective: Collective) -> Bound:
    """Return the least time per byte of M that sets of nodes allow a custom collective that reduces.

    A set of nodes sends each shard to which a rank inside contributes and that a rank outside needs, at least once. The
    sets are single ranks, groups that wide links join, and all other nodes.
    """
    moved = [
        (set(collective.contributions(shard)), set(targets), weight)
        for shard, (targets, weight) in enumerate(zip(collective.post or (), collective.weight.tolist(), strict=True))
    ]
    best, found = Fraction(0), Bound(Fraction(0), "all-schedules", "none")
    left = _MOST_WORK
    for nodes, out, into in _groups(topology):
        left -= len(moved)
        if left < 0:
            break
        inside = set(nodes)
        for width, inward in ((out, False), (into, True)):
            carries = sum(
                weight for sources, targets, weight in moved
                if not (targets if inward else sources).isdisjoint(inside)
                and not inside.issuperset(sources if inward else targets)
            )  # fmt: skip
            if carries and width and Fraction(carries) / width > best:
                best = Fraction(carries) / width
                side = set(range(topology.num_nodes)).difference(nodes) if inward else nodes
                proof = cut(topology, side, Fraction(carries, collective.whole), collective)
                found = Bound(best / collective.whole, "all-schedules", proof.text, proof)
    return found


def _groups(topology: Topology) -> Iterator[tuple[tuple[int, ...], Fraction, Fraction]]:
    """Yield single ranks and groups that wide links join, with the bandwidths out of them and into them."""
    outward, inward = node_bandwidths(topology, topology.src), node_bandwidths(topology, topology.dst)
    for rank in range(topology.num_ranks):
        yield (rank,), outward[rank], inward[rank]
    yield from (one for one in bandwidths_of_groups(topology) if len(one[0]) > 1)


def _sets(
    topology: Topology, moved: Sequence[Commodity]
) -> Iterator[tuple[tuple[int, ...], int, Fraction, bool]]:  # fmt: skip
    """Yield sets of nodes, what goes out of them or ``inward``, and the bandwidth that way."""
    sent, received = [0] * topology.num_ranks, [0] * topology.num_ranks
    for one in moved:
        sent[one.source] += one.weight
        for target in one.targets:
            received[target] += one.weight
    outward, inward = node_bandwidths(topology, topology.src), node_bandwidths(topology, topology.dst)
    for rank in range(topology.num_ranks):
        yield (rank,), sent[rank], outward[rank], False
        yield (rank,), received[rank], inward[rank], True
    left = _MOST_WORK
    for nodes, out, into in bandwidths_of_groups(topology):
        left -= len(moved)
        if left < 0:
            return
        if len(nodes) > 1:
            inside = set(nodes)
            yield nodes, sum(one.weight for one in moved if _leaves(one, inside)), out, False
            yield nodes, sum(one.weight for one in moved if _enters(one, inside)), into, True


def _leaves(one: Commodity, inside: set[int]) -> bool:
    return one.source in inside and not inside.issuperset(one.targets)


def _enters(one: Commodity, inside: set[int]) -> bool:
    return one.source not in inside and not inside.isdisjoint(one.targets)


def _all_links(topology: Topology, moved: Sequence[Commodity]) -> int:
    """Return the least links that all shards cross, by weight."""
    hops: Array = topology.distances
    between = hops[: topology.num_ranks, : topology.num_ranks].astype(np.int64)
    entering = np.where(between > 0, between, topology.num_nodes).min(axis=0, initial=topology.num_nodes).tolist()
    total = 0
    for one in moved:
        farthest = int(hops[one.source, list(one.targets)].max())
        total += one.weight * max(farthest, sum(entering[target] for target in one.targets))
    return total
