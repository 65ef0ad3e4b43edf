"""Bounds of an allreduce by partitions of the ranks: the data that must pass between the parts. Exact.

Take an allreduce without coding, parts P_1 .. P_p of the ranks, p at least 2, and one element of the vector. Sort its
messages between parts so that each comes after those it depends on. A part knows another part if some message that it
received depends on data of the other. Let P be the first part that knows all parts. By then every other part has sent a
message: at least p - 1. Only P has received the last of these, so every other part needs one more message: p - 1 more.
So at least 2 (p - 1) vectors leave the parts in total, and the same number enters them (the one-way gossip problem:
Harary and Schwenk; for single ranks Patarasuk and Yuan).

A message from one part to another leaves every set of nodes that has all ranks of the one and none of the other. So the
bound may assign switches to any part, or to none, as long as they only forward. A switch that multicasts or reduces is
like a rank without data, so it has to be in one of the parts (:mod:`.bounds` finds such partitions). Single
ranks as parts give 2 (N-1)/N M/B if all ranks have the same bandwidth. Section C.3 of the direct-connect paper has this
value for a reduce-scatter and an allgather; it holds for every allreduce.

On networks of ranks in which every link has a reverse of the same bandwidth, the best partition is the strength of the
network. Trees reach it (Tutte, Nash-Williams; Cunningham), so the bound is tight.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

import attrs
import numpy as np

from ..graph.bottleneck import leaving, node_bandwidths, whole_bandwidths
from ..graph.cuts import FlowNetwork
from ..shown import brief_fields
from ..topology import Topology

__all__ = ["MOST_EFFORT", "Partition", "bandwidths_of_groups", "worst_partition"]
Arcs = dict[tuple[int, int], int]
Sets = list[set[int]]

#: ranks times links up to which the best of all partitions is searched: about a second
MOST_EFFORT = 250_000
_LEVELS = 16  # bandwidths at which a network is divided into groups
_UNBOUNDED = 1 << 100


@attrs.frozen
class Partition:
    """Parts of the ranks, each with the switches assigned to it (nodes ascend).

    ``bandwidth`` is that of all links out of the parts; ``inward``: into them. ``text`` is all of it in words.
    ``named`` are the nodes of every part by their names with ranges (:mod:`collc.ir.graph.node_sets`).
    """

    parts: tuple[tuple[int, ...], ...]
    inward: bool
    bandwidth: Fraction
    text: str = attrs.field(default="", eq=False)
    named: tuple[tuple[str, ...], ...] = attrs.field(default=(), eq=False, repr=False)

    __repr__ = brief_fields

    @property
    def crossings(self) -> int:
        """The vectors that leave the parts: 2 (p - 1) for p parts."""
        return 2 * (len(self.parts) - 1)

    @property
    def ratio(self) -> Fraction:
        """The least time of an allreduce per byte of M and unit of bandwidth."""
        return Fraction(self.crossings) / self.bandwidth

    @property
    def is_finest(self) -> bool:
        """Return whether every part is a single rank."""
        return all(len(part) == 1 for part in self.parts)

    def to_json(self) -> dict[str, object]:
        """Return ``{kind, text, parts, named, direction, carries, bandwidth}``; carries over bandwidth is the bound.

        ``parts`` are lists of nodes, ``named`` their names with ranges. Both are ``"every rank"`` if each part is a
        single rank.
        """
        parts, named = [list(part) for part in self.parts], [list(part) for part in self.named]
        return {
            "kind": "partition", "text": self.text, "parts": "every rank" if self.is_finest else parts,
            "named": "every rank" if self.is_finest else named, "direction": "into" if self.inward else "out of",
            "carries": str(self.crossings), "bandwidth": str(self.bandwidth),
        }  # fmt: skip


def worst_partition(topology: Topology, effort: int = MOST_EFFORT) -> Partition:
    """Return the partition with the largest 2 (p-1) / bandwidth out of (or into) the parts, of at least 2 ranks.

    It is the best of all partitions if ranks times links are within ``effort``. Otherwise it is the best of single
    ranks, of groups joined by the widest links, and of all partitions into unions of those. The network must be
    strongly connected.
    """
    into, out = (node_bandwidths(topology, ends)[topology.num_ranks :] for ends in (topology.dst, topology.src))
    even = into == out
    directions = [False] if even else [False, True]  # both are equal if all switches have equal bandwidth in and out
    return max((_worst(topology, inward, effort) for inward in directions), key=lambda found: found.ratio)


def bandwidths_of_groups(topology: Topology) -> Iterator[tuple[tuple[int, ...], Fraction, Fraction]]:
    """Yield single ranks, then groups joined by narrower and narrower links, each group once, never all ranks.

    Each comes as (nodes, bandwidth out of them, bandwidth into them).
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
    """Return the bandwidth from node to node as integers; ``inward``: of the transpose."""
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
    """Yield the group of each node: single nodes, then groups joined by the widest links, then by narrower ones.

    The narrowest links would join all nodes, so they are left out. The label of a group is its least node.
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
    """Return the groups that have ranks, and the bandwidth between labels. Labels of these groups are ranks."""
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
    """Return the total bandwidth out of the parts (``inward``: into them). Parts may share switches."""
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
    """Return the best of ``best`` and all partitions into unions of groups (Newton's method on the ratio)."""
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

    The sum is -x(V) for the least x with x(S) >= rate - B+(S) for all S with ranks. Each rank in turn gets the least x
    at which some set S around it is tight. Tight sets that share ranks are merged (Frank; Dilworth truncation).
    """
    most, end = rate.numerator, num_nodes
    # arcs are reversed: flow runs from the ranks' x to the end, to which the current rank has an unlimited arc
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
    """Return the unions of sets that share ranks."""
    found = Sets()
    for one in sets:
        meets = [other for other in found if other & one & ranks]
        found = [other for other in found if other not in meets] + [one.union(*meets)]
    return found
