"""The network of a process group: the links that data between members can use.

Other ranks forward as switches do, or are left out. Nodes on no path between two members are left out too: no data of
the group need pass them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

import attrs
import numpy as np

from ..arrays import Array
from ..collective import Collective
from ..frozen import frozen
from ..links import LinkClass
from ..ragged import group_starts
from ..topology import Topology, renumbered

__all__ = ["Inside", "inside", "member_parts", "shared", "wide_parts", "with_shares", "without_members"]


@frozen(eq=False)
class Inside:
    """A collective of members as one of all ranks of a smaller network.

    Rank v of ``topology`` is member v; relays are switches there. ``nodes`` and ``links`` are the numbers of its nodes
    and links in ``whole``; ``collective`` is the collective of all its ranks.
    """

    whole: Topology
    topology: Topology
    collective: Collective
    nodes: Array
    links: Array

    @property
    def relays(self) -> Array:
        """The ranks of the whole network that are switches here, ascending."""
        others = self.nodes[self.topology.num_ranks :]
        return others[others < self.whole.num_ranks]

    def outside(self, nodes: Iterable[int]) -> tuple[int, ...]:
        """Return a set of nodes in numbers of the whole network, with all that was left out and hangs on the set."""
        chosen = set(self.nodes[list(nodes)].tolist())
        left = set(range(self.whole.num_nodes)).difference(self.nodes.tolist())
        beside = _neighbours(self.whole)
        front = list(chosen) if left else []
        while front:
            more = {near for node in front for near in beside[node]} & left
            left -= more
            chosen |= more
            front = list(more)
        return tuple(sorted(chosen))


def without_members(collective: Collective) -> Collective:
    """Return the same collective of all ranks of a network that has only the members.

    >>> without_members(Collective("broadcast", 8, root=4, members=(0, 4)))
    Collective(kind='broadcast', num_ranks=2, root=1, size=None, op='sum', dtype='float32')
    """
    root = None if collective.root is None else int(collective.places[collective.root])
    return attrs.evolve(collective, num_ranks=collective.num_members, root=root, members=None)


def inside(topology: Topology, collective: Collective, relays: bool = True) -> Inside:
    """Return the network of a collective's members, with other ranks as relays or without them.

    >>> from collc.frontends.coll import topology
    >>> found = inside(topology("biring(6)"), Collective("allgather", 6, members=(0, 1, 2)))
    >>> found.topology.num_ranks, found.topology.num_switches, found.relays.tolist()
    (3, 3, [3, 4, 5])
    """
    members = collective.ranks
    allowed = np.ones(topology.num_nodes, dtype=bool)
    if not relays:
        allowed[: topology.num_ranks] = False
        allowed[members] = True
    kept = _between(topology, members, allowed)
    kept[members] = False
    nodes = np.concatenate([members, np.flatnonzero(kept)])
    number = np.full(topology.num_nodes, -1, dtype=np.int64)
    number[nodes] = np.arange(len(nodes))
    links = np.flatnonzero((number[topology.src] >= 0) & (number[topology.dst] >= 0))
    part = _part(topology, len(members), nodes, links, number)
    return Inside(topology, part, without_members(collective), nodes, links)


def shared(topology: Topology, collective: Collective, shares: Sequence[Fraction]) -> Inside:
    """Return the network of the members in which link e has the bandwidth ``shares[e]``; links with 0 are left out."""
    kept = np.array([link for link, share in enumerate(shares) if share], dtype=np.int64)
    kinds = [LinkClass(shares[link], topology.latency(link)) for link in kept.tolist()]
    classes = tuple(dict.fromkeys(kinds)) or topology.classes[:1]
    number = {kind: place for place, kind in enumerate(classes)}
    part = attrs.evolve(
        topology, src=topology.src[kept], dst=topology.dst[kept], link_class=[number[kind] for kind in kinds],
        classes=classes, symmetry=None, origin=None,
    )  # fmt: skip
    found = inside(part, collective)
    return attrs.evolve(found, whole=topology, links=kept[found.links])


def with_shares(topology: Topology, shares: Sequence[Fraction]) -> Topology:
    """Return the topology in which link e has the bandwidth ``shares[e]``; links with 0 stay unchanged."""
    kinds = [LinkClass(share or topology.bandwidth(link), topology.latency(link)) for link, share in enumerate(shares)]
    classes = tuple(dict.fromkeys(kinds))
    number = {kind: place for place, kind in enumerate(classes)}
    return attrs.evolve(
        topology, classes=classes, link_class=np.array([number[kind] for kind in kinds]), symmetry=None, origin=None
    )


def member_parts(network: Inside) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Yield partitions of the ranks of a members' network, relays included, in which every part has a member.

    Parts are groups that wider and wider links join; each switch is in the part of its group, or in none. A switch that
    multicasts or reduces is like a relay.
    """
    topology = network.topology
    outer = network.nodes < network.whole.num_ranks
    outer[[*topology.multicast, *topology.reduces]] = True
    yield from wide_parts(topology, outer)


def wide_parts(topology: Topology, outer: Array) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Yield partitions into groups that wider and wider links join; each group has a rank, all ``outer`` nodes are in
    one, and each other node is in the part of its group, or in none.
    """
    found = set[tuple[tuple[int, ...], ...]]()
    for width in [*sorted({kind.bandwidth for kind in topology.classes}), None]:
        label = _joined(topology, width)
        groups: dict[int, list[int]] = {}
        for node, group in enumerate(label.tolist()):
            groups.setdefault(group, []).append(node)
        parts = tuple(tuple(nodes) for nodes in groups.values() if nodes[0] < topology.num_ranks)
        covered = {node for part in parts for node in part}
        if len(parts) > 1 and covered.issuperset(np.flatnonzero(outer).tolist()) and parts not in found:
            found.add(parts)
            yield parts


def _joined(topology: Topology, width: Fraction | None) -> Array:
    """Return the group of each node, its least node: nodes joined by links of a width or more; None: by no links."""
    label = np.arange(topology.num_nodes)
    wide = np.array([width is not None and kind.bandwidth >= width for kind in topology.classes])[topology.link_class]
    src, dst = topology.src[wide], topology.dst[wide]
    while len(src):
        least = np.minimum(label[src], label[dst])
        before = label.copy()
        np.minimum.at(label, src, least)
        np.minimum.at(label, dst, least)
        if np.array_equal(before, label):
            break
    return label


def _part(topology: Topology, members: int, nodes: Array, links: Array, number: Array) -> Topology:
    used, kind = np.unique(topology.link_class[links], return_inverse=True)
    return Topology(
        name=topology.name, num_ranks=members, num_switches=len(nodes) - members,
        src=number[topology.src[links]], dst=number[topology.dst[links]], link_class=kind.ravel(),
        classes=tuple(topology.classes[c] for c in used.tolist()) or topology.classes[:1], unit=topology.unit,
        node_names=tuple(topology.names[n] for n in nodes.tolist()), gamma=topology.gamma, epsilon=topology.epsilon,
        multicast=renumbered(topology.multicast, number), reduces=renumbered(topology.reduces, number),
    )  # fmt: skip


def _between(topology: Topology, members: Array, allowed: Array) -> Array:
    """Return which allowed nodes are on a path from one member to another: shape (nodes,).

    Directions first: a node must be reachable from a member and reach one. Then a node is on a path without repetition
    between two members if and only if no single node separates it from a further node beside all members.
    """
    forth = _reached(topology.src, topology.dst, members, allowed)
    kept = forth & _reached(topology.dst, topology.src, members, allowed)
    return kept & _not_separated(topology, members, kept)


def _reached(tails: Array, heads: Array, start: Array, allowed: Array) -> Array:
    found = np.zeros(len(allowed), dtype=bool)
    found[start] = True
    usable = allowed[tails] & allowed[heads]
    while True:
        more = heads[usable & found[tails]]
        if found[more].all():
            return found
        found[more] = True


def _not_separated(topology: Topology, members: Array, kept: Array) -> Array:
    """Search depth first from a further node beside all members: a subtree that reaches no node above its parent is
    separated by the parent.
    """
    beyond = topology.num_nodes
    beside = _neighbours(topology, kept)
    beside.append(members.tolist())
    for member in members.tolist():
        beside[member].append(beyond)
    found = np.zeros(beyond + 1, dtype=bool)
    found[beyond] = True
    order, low, parent = _depth_first(beside, beyond)
    for node in sorted(order, key=order.__getitem__)[1:]:
        above = parent[node]
        found[node] = found[above] and (above == beyond or low[node] < order[above])
    return found[:beyond]


def _depth_first(beside: list[list[int]], root: int) -> tuple[dict[int, int], dict[int, int], dict[int, int]]:
    """Return each reached node's place in the search, the first place that its subtree is beside, and its parent."""
    order, low, parent = {root: 0}, {root: 0}, {root: root}
    stack = [(root, iter(beside[root]))]
    while stack:
        node, ends = stack[-1]
        for end in ends:
            if end not in order:
                order[end] = low[end] = len(order)
                parent[end] = node
                stack.append((end, iter(beside[end])))
                break
            if end != parent[node]:
                low[node] = min(low[node], order[end])
        else:
            stack.pop()
            low[parent[node]] = min(low[parent[node]], low[node])
    return order, low, parent


def _neighbours(topology: Topology, kept: Array | None = None) -> list[list[int]]:
    """Return the neighbours of every node in either direction, without those that are not kept."""
    src, dst = topology.src.astype(np.int64), topology.dst.astype(np.int64)
    if kept is not None:
        both = kept[src] & kept[dst]
        src, dst = src[both], dst[both]
    nodes = topology.num_nodes
    code = np.unique(np.concatenate([src * nodes + dst, dst * nodes + src]))
    tails, heads = np.divmod(code[code // nodes != code % nodes], nodes)
    start = group_starts(tails, nodes).tolist()
    ends = heads.tolist()
    return [ends[a:b] for a, b in pairwise(start)]
