"""Partitions of the ranks: what an allreduce must carry between their parts. Exact.

Take an allreduce without coding, parts P_1 .. P_p of the ranks, p at least 2, and one element of the vector. Put its
messages from part to part in an order in which none comes before one it depends on. Say that a part knows another where
something it got depends on what the other has. Let P be the first part that knows all. The messages up to then include
one out of every other part: p - 1 at least. Only P has got the last of them, so every other part still lacks something
and needs a message that comes later: p - 1 more. So 2 (p - 1) vectors leave the parts in all, and as many enter them
(the one-way gossip problem: Harary and Schwenk; for single ranks Patarasuk and Yuan).

A message from one part to another leaves every set of nodes that has all ranks of the one and none of the other. So
switches may be given to parts as the bound likes, or to none, as long as they only forward: no multicast, no reduction.
Single ranks for parts make 2 (N-1)/N M/B where ranks are alike: what section C.3 of the direct-connect paper says of a
reduce-scatter and an allgather holds for every allreduce.

On networks of ranks whose links all have reverses as wide, the best partition is the strength of the network, which
trees reach (Tutte, Nash-Williams; Cunningham); so it bounds and is reached.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

import attrs
import numpy as np

from ..graph.bottleneck import leaving, node_bandwidths, whole_bandwidths
from ..graph.cuts import FlowNetwork
from ..topology import Topology

__all__ = ["MOST_EFFORT", "Partition", "bandwidths_of_groups", "worst_partition"]
Arcs = dict[tuple[int, int], int]
Sets = list[set[int]]

#: ranks times links of a network on which the best of all partitions is searched: about a second
MOST_EFFORT = 250_000
_LEVELS = 16  # bandwidths at which a network is taken apart
_UNBOUNDED = 1 << 100


@attrs.frozen
class Partition:
    """Parts of the ranks, each with the switches that are given to it (nodes ascend), and the ``bandwidth`` out of all
    parts together; ``inward``: into them."""

    parts: tuple[tuple[int, ...], ...]
    inward: bool
    bandwidth: Fraction

    @property
    def ratio(self) -> Fraction:
        """The least time of an allreduce per byte of M and unit of bandwidth."""
        return Fraction(2 * (len(self.parts) - 1)) / self.bandwidth

    @property
    def is_finest(self) -> bool:
        """Whether every part is a single rank."""
        return all(len(part) == 1 for part in self.parts)

    def to_json(self) -> dict[str, object]:
        """Return ``{kind, parts, direction, carries, bandwidth}``; carries over bandwidth is the bound.

        ``parts`` are lists of nodes, or ``"every rank"`` where each is a part of its own.
        """
        return {
            "kind": "partition", "parts": "every rank" if self.is_finest else [list(part) for part in self.parts],
            "direction": "into" if self.inward else "out of", "carries": str(2 * (len(self.parts) - 1)),
            "bandwidth": str(self.bandwidth),
        }  # fmt: skip


def worst_partition(topology: Topology, effort: int = MOST_EFFORT) -> Partition:
    """Return the partition with the largest 2 (p-1) / bandwidth out of (or into) the parts, of at least 2 ranks.

    It is the best of all where ranks times links are within ``effort``. Else it is the best of single ranks, of what
    the widest links hold together, and of all partitions into unions of those. The network must be strongly connected.
    """
    even = all(topology.ingress(s) == topology.egress(s) for s in range(topology.num_ranks, topology.num_nodes))
    ways = [False] if even else [False, True]  # the same both ways where switches send on what they get
    return max((_worst(topology, inward, effort) for inward in ways), key=lambda found: found.ratio)


def bandwidths_of_groups(topology: Topology) -> Iterator[tuple[tuple[int, ...], Fraction, Fraction]]:
    """Yield single ranks, and then what ever narrower links hold together, each group once and none of all ranks.

    With them stand the bandwidth out of them and the bandwidth into them.
    """
    arcs, (_, scale), seen = _arcs(topology, inward=False), whole_bandwidths(topology), set[tuple[int, ...]]()
    for label in _levels(topology.num_nodes, arcs):
        groups, joined = _joined(topology, label, arcs)
        outward, inward = dict.fromkeys(label, 0), dict.fromkeys(label, 0)
        for (tail, head), width in joined.items():
            outward[tail] += width
            inward[head] += width
        for group in groups if len(groups) > 1 else ():
            first, nodes = min(group), tuple(sorted(group))
            if nodes not in seen:
                seen.add(nodes)
                yield nodes, outward[first] / scale, inward[first] / scale


def _worst(topology: Topology, inward: bool, effort: int) -> Partition:
    arcs = _arcs(topology, inward)
    best, finest = _singles(topology, inward), None
    for label in _levels(topology.num_nodes, arcs):
        groups, joined = _joined(topology, label, arcs)
        if len(groups) > 1:
            best = max(best, _partition(topology, groups, inward), key=lambda found: found.ratio)
            if finest is None and len(groups) * len(joined) <= effort:
                finest = groups, joined, label
    return best if finest is None else _improved(topology, best, *finest)


def _arcs(topology: Topology, inward: bool) -> Arcs:
    """Return the bandwidth from node to node in whole numbers; ``inward``: of the transpose."""
    whole, _ = whole_bandwidths(topology)
    found: Arcs = {}
    for tail, head, width in zip(topology.src.tolist(), topology.dst.tolist(), whole, strict=True):
        if tail != head:
            ends = (head, tail) if inward else (tail, head)
            found[ends] = found.get(ends, 0) + width
    return found


def _singles(topology: Topology, inward: bool) -> Partition:
    n = topology.num_ranks
    widths = node_bandwidths(topology, topology.dst if inward else topology.src)[:n]
    return Partition(tuple((rank,) for rank in range(n)), inward, sum(widths, Fraction(0)))


def _levels(num_nodes: int, arcs: Arcs) -> Iterator[list[int]]:
    """Yield the nodes' groups: all apart, then joined by the widest links, and so on down to narrow ones.

    Nothing is joined by the narrowest, which would join everything. A group's label is its least node.
    """
    label = list(range(num_nodes))
    yield list(label)
    widths = sorted(set(arcs.values()), reverse=True)[:-1][:_LEVELS]
    for width in widths:
        for (a, b), bandwidth in arcs.items():
            if bandwidth >= width:
                _join(label, a, b)
        yield [_find(label, node) for node in range(num_nodes)]


def _find(label: list[int], node: int) -> int:
    while label[node] != node:
        label[node] = label[label[node]]
        node = label[node]
    return node


def _join(label: list[int], a: int, b: int) -> None:
    low, high = sorted((_find(label, a), _find(label, b)))
    label[high] = low


def _joined(topology: Topology, label: list[int], arcs: Arcs) -> tuple[Sets, Arcs]:
    """Return the groups that have ranks, and the bandwidth between labels: of these groups that of a rank."""
    groups: dict[int, set[int]] = {}
    for node, group in enumerate(label):
        groups.setdefault(group, set()).add(node)
    joined: Arcs = {}
    for (a, b), width in arcs.items():
        if label[a] != label[b]:
            ends = label[a], label[b]
            joined[ends] = joined.get(ends, 0) + width
    return [nodes for group, nodes in sorted(groups.items()) if group < topology.num_ranks], joined


def _partition(topology: Topology, parts: Iterable[set[int]], inward: bool) -> Partition:
    chosen = sorted(tuple(sorted(part)) for part in parts)
    return Partition(tuple(chosen), inward, crossing(topology, chosen, inward))


def crossing(topology: Topology, parts: Sequence[Sequence[int]], inward: bool) -> Fraction:
    """Return the bandwidth out of the parts (``inward``: into them), added up. Parts may share switches."""
    kinds = np.zeros(len(topology.classes), dtype=np.int64)
    part = np.full(topology.num_nodes, -1)
    if len({node for nodes in parts for node in nodes}) == sum(map(len, parts)):
        for number, nodes in enumerate(parts):
            part[list(nodes)] = number
        src, dst = part[topology.src], part[topology.dst]
        kinds += np.bincount(topology.link_class[(src != dst) & ((dst if inward else src) >= 0)], minlength=len(kinds))
    else:
        for nodes in parts:
            side = set(range(topology.num_nodes)).difference(nodes) if inward else nodes
            kinds += np.bincount(topology.link_class[leaving(topology, side)], minlength=len(kinds))
    counted = zip(topology.classes, kinds.tolist(), strict=True)
    return sum((kind.bandwidth * count for kind, count in counted if count), Fraction(0))


def _improved(topology: Topology, best: Partition, groups: Sets, arcs: Arcs, label: list[int]) -> Partition:
    """Return the best of all partitions into unions of groups, or the best known (Newton's method on the ratio)."""
    _, scale = whole_bandwidths(topology)
    members: dict[int, set[int]] = {}
    for node, group in enumerate(label):
        members.setdefault(group, set()).add(node)
    ranks = sorted(min(group) for group in groups)
    while True:
        rate = best.bandwidth * scale / (len(best.parts) - 1)
        parts = _cheapest(topology.num_nodes, ranks, arcs, rate)
        if len(parts) < 2:
            return best
        whole = [{node for group in part for node in members[group]} for part in parts]
        found = _partition(topology, whole, best.inward)
        if found.ratio <= best.ratio:
            return best
        best = found


def _cheapest(num_nodes: int, ranks: Sequence[int], arcs: Arcs, rate: Fraction) -> Sets:
    """Return the parts with the least sum of (bandwidth out of the part - rate): one part if none has less than -rate.

    The sum is -x(V) for the least x with x(S) >= rate - B+(S) for all S with ranks, found rank after rank, each lowered
    until some S around it is tight. Tight sets that meet may be joined (Frank; Dilworth truncation).
    """
    most, end = rate.numerator, num_nodes
    # turned round: flow runs from the ranks' x to the end, which the rank in question reaches at no cost
    network = FlowNetwork(num_nodes + 1, [(b, a, width * rate.denominator) for (a, b), width in arcs.items()])
    out = [0] * num_nodes
    for (tail, _), width in arcs.items():
        out[tail] += width * rate.denominator
    x = dict.fromkeys(ranks, most)
    supply = [0] * (num_nodes + 1)
    for rank in ranks:
        supply[rank] = most
    everything, total, owed, tight = set(range(num_nodes)), most * len(ranks), 0, Sets()
    for rank in ranks:
        network.add(rank, end, _UNBOUNDED)
        least, nodes = min((total, everything), (out[rank] + x[rank], {rank}), key=lambda case: case[0])
        cut = network.smallest_cut(supply, [end], least + owed)
        if cut is not None:
            least, nodes = cut.value - owed, everything.difference(cut.nodes)
        network.add(rank, end, -_UNBOUNDED)
        tight.append(nodes)
        lower = least - most
        x[rank] -= lower
        total -= lower
        supply[rank] = max(x[rank], 0)
        if x[rank] < 0:
            network.add(rank, end, -x[rank])
            owed -= x[rank]
    return [everything] if total == most else _merged(tight, set(ranks))


def _merged(sets: Sets, ranks: set[int]) -> Sets:
    """Join sets that share ranks."""
    found = Sets()
    for one in sets:
        meets = [other for other in found if other & one & ranks]
        found = [other for other in found if other not in meets] + [one.union(*meets)]
    return found
