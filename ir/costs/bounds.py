"""Lower bounds of all schedules: Moore's bound on steps, cuts and partitions on time per byte. All are exact.

Schedules may copy and add what they have; they do not code. Switches forward.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

import attrs
import numpy as np

from ..arrays import Array
from ..collective import CUSTOM, Collective
from ..graph.bottleneck import node_bandwidths, worst_ratio
from ..graph.members import Inside, inside, member_parts, wide_parts
from ..topology import Topology
from .certificate import Bound, Cut, Prices
from .commodities import commodity_bound, reduction_bound
from .groups import outside
from .partitions import MOST_EFFORT, Partition, bandwidths_of_groups, crossing, worst_partition
from .readable import cut, named_cut, named_partition

__all__ = [
    "allreduce_cuts", "bandwidth_bound", "bound", "finest_bound", "moore_bound", "moore_graph_steps",
    "moore_steps", "steps_bound",
    "time_per_byte_bound", "worst_cut",
]  # fmt: skip


def moore_bound(degree: int, diameter: int) -> int:
    """Return the most nodes a digraph of this degree and diameter can have (Definition 9 of the direct-connect paper).

    >>> moore_bound(4, 2)
    21
    """
    return sum(degree**i for i in range(diameter + 1))


def moore_steps(num_ranks: int, degree: int) -> int:
    """Return T_L*(N, d): the least k with N <= M(d, k) (Definition 10).

    >>> moore_steps(1024, 4)
    5
    """
    if num_ranks <= 1:
        return 0
    if degree <= 1:
        return num_ranks - 1
    k = 0
    while moore_bound(degree, k) < num_ranks:
        k += 1
    return k


def moore_graph_steps(num_ranks: int, degree: int) -> int:
    """Return T_L**(N, d), the least steps if every link has its reverse: that of the link to a node reaches no new one.

    >>> moore_graph_steps(1024, 4), moore_graph_steps(10, 3), moore_graph_steps(7, 2)
    (6, 2, 3)
    """
    if degree < 3:
        return num_ranks // 2 if degree == 2 else max(num_ranks - 1, 0)
    steps, layer, reached = 0, degree, 1
    while reached < num_ranks:
        steps, reached, layer = steps + 1, reached + layer, layer * (degree - 1)
    return steps


def steps_bound(topology: Topology, collective: Collective, phases: int = 1) -> int | None:
    """Return the fewest steps any network of this size and degree allows.

    None if ranks differ in degree, or if there are switches, which forward within a step; and of a custom collective.
    An allreduce in 2 ``phases`` has every sum at one rank before any other. All contributions need at least T_L* steps
    to that rank, and the sum as many from there to all (section C.3 of the direct-connect paper). Other algorithms,
    such as recursive doubling, may take half of that.
    """
    degree = topology.degree
    ours = collective.members is None and collective.kind != CUSTOM
    if degree is None or not topology.is_direct or not ours:
        return None
    return phases * moore_steps(topology.num_ranks, degree)


def bandwidth_bound(topology: Topology, collective: Collective) -> Fraction | None:
    """Return the T_B that links of single ranks allow, in units of M/B; None if ranks differ in bandwidth.

    No network of this size has less (Theorem 4). Every allreduce takes twice that: see :mod:`.partitions`. For an
    all-to-all, for which Theorem 4 is weak, it is the load of all links together. If shards differ in size, the rank
    with the most to receive (or to send) decides.
    """
    total = topology.node_bandwidth
    if total is None or not topology.is_direct or collective.members is not None or collective.kind == CUSTOM:
        return None
    n = topology.num_ranks
    if collective.weights is not None:
        return _single_rank_share(topology, collective)
    share = Fraction(n - 1, n)
    match collective.kind:
        case "allreduce":
            return 2 * share
        case "broadcast" | "reduce":
            return Fraction(1) if n > 1 else Fraction(0)
        case "alltoall":
            return Fraction(topology.total_hops, n * n)
        case _:
            return share


def time_per_byte_bound(topology: Topology, collective: Collective) -> tuple[Fraction, str]:
    """Return the value and the name of :func:`bound`."""
    found = bound(topology, collective)
    return found.value, found.name


def bound(topology: Topology, collective: Collective) -> Bound:
    """Return the least time per byte of M (per unit of bandwidth) that cuts of the network allow.

    Allgather: every set S of nodes without some rank must send the shards of its ranks over the links that leave it
    (section 4.2 of the ForestColl paper). Broadcast: the vector, if the root is in S. Gather: the shards of S, if the
    root is not in S. Reduce-scatter, reduce and scatter: the same on the transpose. All cuts count. Allreduce: a vector
    out of every set of nodes with ranks inside and outside, and partitions. Alltoall: all links together, and the links
    of single ranks and of groups that the widest links connect. Shards that differ in size count by their weights.
    Raises C0301 if the network does not connect the ranks as the collective needs. Ranks that are no members may relay.
    """
    if collective.members is not None:
        return _group_bound(topology, collective)
    match collective.kind:
        case "allgather":
            return _gathering(topology, collective, inward=False)
        case "reduce-scatter":
            return _gathering(topology, collective, inward=True)
        case "allreduce":
            return _allreduce_bound(topology)
        case "alltoall":
            return _alltoall_bound(topology) if collective.weights is None else _uneven_bound(topology, collective)
        case "custom" if collective.contributors is not None:
            return reduction_bound(topology, collective)
        case "custom":
            return commodity_bound(topology, collective)
        case _:
            return _rooted_bound(topology, collective)


def _group_bound(topology: Topology, collective: Collective) -> Bound:
    """The bound of members, whose relays are all other ranks: for cuts they are like switches.

    A relay may also copy and add. So the parts of a partition, which bounds an allreduce, contain all relays.
    """
    found = inside(topology, collective)
    if not _has_relays(found) or collective.kind != "allreduce" or collective.num_members < 2:
        return outside(bound(found.topology, found.collective), found, collective)
    parts = [
        Partition(each, inward, crossing(found.topology, each, inward))
        for each in member_parts(found) for inward in (False, True)
    ]  # fmt: skip
    bounds = [_by_parts(found.topology, one) for one in parts]
    return outside(max([allreduce_cuts(found.topology), *bounds], key=lambda one: one.value), found, collective)


def _has_relays(found: Inside) -> bool:
    """Return whether nodes besides the members copy and add."""
    return len(found.relays) > 0 or found.topology.in_network


def finest_bound(topology: Topology, collective: Collective, value: Fraction) -> Bound:
    """Return the bound of single ranks' links, of a schedule whose time per byte ``value`` is :func:`bandwidth_bound`.

    The schedule meets it, so no other bound is larger.
    """
    n, width, kind = topology.num_ranks, topology.node_bandwidth or Fraction(0), collective.kind
    if n < 2:
        return _zero_bound(kind)
    if kind == "alltoall":
        all_alike = Prices((1,), topology.total_hops, n * width)
        return Bound(value, "multi-commodity-flow", _ALL_LINKS, all_alike, value)
    if kind == "allreduce":
        finest = Partition(tuple((rank,) for rank in range(n)), False, n * width)
        return _by_parts(topology, finest)
    if collective.weights is not None:
        return _single_rank_bound(topology, collective, value)
    inward = kind in ("allgather", "broadcast", "gather")
    rank = 0 if collective.root is None else collective.root
    if kind in ("broadcast", "reduce"):
        rank = int(rank == 0)
    proof = named_cut(topology, Cut((rank,), inward, value * width, width), collective, _WHERE[kind])
    return Bound(value, "all-schedules", proof.text, proof)


def _by_parts(topology: Topology, parts: Partition) -> Bound:
    found = named_partition(topology, parts)
    return Bound(found.ratio, "all-schedules", found.text, found)


_ALL_LINKS = "all links together"

#: kind of collective -> the set of nodes whose links bound it if single ranks' links do
_WHERE = {
    "allgather": "every rank", "reduce-scatter": "every rank", "broadcast": "every rank", "reduce": "every rank",
    "scatter": "the root", "gather": "the root",
}  # fmt: skip


def _zero_bound(kind: str) -> Bound:
    return Bound(Fraction(0), "multi-commodity-flow" if kind == "alltoall" else "all-schedules", "none")


def _supplies(topology: Topology, collective: Collective) -> list[int]:
    """Return the weight of the shard of every rank."""
    supply = [0] * topology.num_ranks
    for rank, weight in zip(collective.ranks.tolist(), collective.weight.tolist(), strict=True):
        supply[rank] = weight
    return supply


def _inside(supply: Sequence[int], nodes: Iterable[int]) -> int:
    """Return the weight of the shards of a set of nodes."""
    return sum(supply[node] for node in nodes if node < len(supply))


def _gathering(topology: Topology, collective: Collective, inward: bool) -> Bound:
    """The bound of an allgather, or ``inward`` of a reduce-scatter."""
    supply, whole = _supplies(topology, collective), collective.whole
    ratio, nodes = worst_ratio(topology.transpose() if inward else topology, supply)
    carries = Fraction(_inside(supply, nodes), whole)
    if inward:
        nodes = _forwards(topology, nodes)
    return _by_cut(topology, collective, ratio / whole, nodes, carries)


def _by_cut(
    topology: Topology, collective: Collective, value: Fraction, nodes: tuple[int, ...], carries: Fraction
) -> Bound:  # fmt: skip
    if not nodes:
        return Bound(value, "all-schedules", "none")
    proof = cut(topology, nodes, carries, collective)
    return Bound(value, "all-schedules", proof.text, proof)


def worst_cut(topology: Topology, inward: bool = False) -> tuple[Fraction, str]:
    """Return max |S n ranks| / (N B+(S)) over node sets S that leave out a rank, and a description of the cut.

    ``inward``: the same of B-(S), the links into S, as a reduce-scatter needs it.
    """
    found = _gathering(topology, Collective("allgather", topology.num_ranks), inward)
    return found.value, found.name


def _rooted_bound(topology: Topology, collective: Collective) -> Bound:
    """The worst cut between the root and the other ranks."""
    kind, root = collective.kind, collective.root or 0
    network = topology.transpose() if kind in ("reduce", "scatter") else topology
    if kind in ("broadcast", "reduce"):
        ratio, nodes = worst_ratio(network, [int(rank == root) for rank in range(topology.num_ranks)])
        carries = Fraction(1)
    else:
        supply, whole = _supplies(topology, collective), collective.whole
        ratio, nodes = worst_ratio(network, supply, [root])
        ratio, carries = ratio / whole, Fraction(_inside(supply, nodes), whole)
    return _by_cut(topology, collective, ratio, nodes if network is topology else _forwards(topology, nodes), carries)


def _allreduce_bound(topology: Topology) -> Bound:
    """The worst of partitions, and of cuts, which a vector has to cross: no rank has the sum without the others."""
    n = topology.num_ranks
    if n < 2:
        return _zero_bound("allreduce")
    topology.require_connected("an allreduce")
    found = []
    if topology.symmetry is None or topology.in_network or n * topology.num_links <= MOST_EFFORT:
        found.append(allreduce_cuts(topology))
    partitions = _in_network_partitions(topology) if topology.in_network else [worst_partition(topology)]
    found += [_by_parts(topology, parts) for parts in partitions]
    return max(found, key=lambda one: one.value)


def _in_network_partitions(topology: Topology) -> list[Partition]:
    """Return partitions in which every switch that multicasts or reduces is in a part, as the proof needs of nodes that
    copy or add.
    """
    able = np.isin(np.arange(topology.num_nodes), [*range(topology.num_ranks), *topology.multicast, *topology.reduces])
    parts = list(wide_parts(topology, able))
    return [Partition(each, inward, crossing(topology, each, inward)) for each in parts for inward in (False, True)]


def allreduce_cuts(topology: Topology) -> Bound:
    """Return the worst of the cuts that a vector of an allreduce has to cross. Nodes may copy and add."""
    first = [int(rank == 0) for rank in range(topology.num_ranks)]
    collective = Collective("allreduce", topology.num_ranks)
    ratio, nodes = worst_ratio(topology, first)
    outward = _by_cut(topology, collective, ratio, nodes, Fraction(1))
    ratio, nodes = worst_ratio(topology.transpose(), first)
    inward = _by_cut(topology, collective, ratio, _forwards(topology, nodes), Fraction(1))
    return max(outward, inward, key=lambda one: one.value)


def _forwards(topology: Topology, nodes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the nodes whose links out are, in the transpose, those out of ``nodes``: all others."""
    return tuple(sorted(set(range(topology.num_nodes)).difference(nodes))) if nodes else ()


def _alltoall_bound(topology: Topology) -> Bound:
    """Bounds of LP (3) from the load of all links together, and of the links of single ranks and of groups."""
    n = topology.num_ranks
    if n < 2:
        return _zero_bound("alltoall")
    topology.require_connected("an all-to-all")
    width = sum(node_bandwidths(topology, topology.src), Fraction(0))
    value, nodes = Fraction(topology.total_hops, n) / width, tuple[int, ...]()
    for group, outward, inward in bandwidths_of_groups(topology):
        ranks = sum(node < n for node in group)
        if (least := Fraction(ranks * (n - ranks), n) / min(outward, inward)) > value:
            value, nodes = least, group if outward <= inward else _forwards(topology, group)
    if not nodes:
        useful = topology.src != topology.dst
        prices = (1,) if useful.all() else tuple(useful.astype(int).tolist())
        return Bound(value, "multi-commodity-flow", _ALL_LINKS, Prices(prices, topology.total_hops, width))
    proof = cut(topology, nodes, _sent(topology, nodes), Collective("alltoall", n))
    return Bound(value, "multi-commodity-flow", proof.text, proof)


def _sent(topology: Topology, nodes: tuple[int, ...]) -> Fraction:
    """Return the vectors of an all-to-all that leave a set of nodes: a shard for each rank inside and each outside."""
    inside = sum(node < topology.num_ranks for node in nodes)
    return Fraction(inside * (topology.num_ranks - inside), topology.num_ranks)


# ---- shards of different sizes


def _demands(collective: Collective) -> Array:
    """Return what every rank sends every other one, by weight: shape (ranks, ranks), Python's integers, 0 to itself."""
    found = np.zeros((collective.num_ranks, collective.num_ranks), dtype=object)
    g = collective.num_members
    found[np.ix_(collective.ranks, collective.ranks)] = collective.weight.astype(object).reshape(g, g)
    np.fill_diagonal(found, 0)
    return found


def _single_rank_share(topology: Topology, collective: Collective) -> Fraction:
    """Return the part of M that the links of the busiest rank carry; of an alltoallv at least that of all links."""
    if collective.kind == "alltoall":
        demand, n = _demands(collective), topology.num_ranks
        moved = Fraction(int((demand * _rank_distances(topology)).sum()), n)
        return Fraction(max(moved, *demand.sum(axis=0).tolist(), *demand.sum(axis=1).tolist())) / collective.whole
    supply = _supplies(topology, collective)
    if topology.num_ranks < 2:
        return Fraction(0)
    return 1 - Fraction(min(supply) if collective.root is None else supply[collective.root], collective.whole)


def _single_rank_bound(topology: Topology, collective: Collective, value: Fraction) -> Bound:
    """Return the bound of :func:`_single_rank_share`, which a schedule meets whose time per byte is ``value``."""
    if collective.kind == "alltoall" or not value:
        return attrs.evolve(bound(topology, collective), above=value if collective.kind == "alltoall" else None)
    kind, supply, width = collective.kind, _supplies(topology, collective), topology.node_bandwidth or Fraction(0)
    rank = supply.index(min(supply)) if collective.root is None else collective.root
    inward = kind in ("allgather", "gather")
    proof = named_cut(topology, Cut((rank,), inward, value * width, width), collective)
    return Bound(value, "all-schedules", proof.text, proof)


def _rank_distances(topology: Topology) -> Array:
    """Return the hops from rank to rank, as Python's integers."""
    n = topology.num_ranks
    found: Array = topology.distances[:n, :n].astype(object)
    return found


def _uneven_bound(topology: Topology, collective: Collective) -> Bound:
    """Bounds of LP (3) with these demands, from all links together, and the links of single ranks and of groups."""
    n, whole, demand = topology.num_ranks, collective.whole, _demands(collective)
    if n < 2 or not demand.any():
        return _zero_bound("alltoall")
    topology.require_connected("an all-to-all")
    width = sum(node_bandwidths(topology, topology.src), Fraction(0))
    distance = int((demand * _rank_distances(topology)).sum())
    value, nodes = Fraction(distance) / width, tuple[int, ...]()
    for group, outward, inward in bandwidths_of_groups(topology):
        for sent, room, out in ((_crossing(demand, group), outward, True), (_crossing(demand.T, group), inward, False)):
            if sent > value * room:
                value, nodes = sent / room, group if out else _forwards(topology, group)
    if not nodes:
        prices = (topology.src != topology.dst).astype(int).tolist()
        return Bound(value / whole, "multi-commodity-flow", _ALL_LINKS, Prices(tuple(prices), distance, width))
    proof = cut(topology, nodes, Fraction(_crossing(demand, nodes), whole), collective)
    return Bound(value / whole, "multi-commodity-flow", proof.text, proof)


def _crossing(demand: Array, nodes: Iterable[int]) -> Fraction:
    """Return the weight that leaves a set of nodes."""
    inside = np.zeros(len(demand), dtype=bool)
    inside[[node for node in nodes if node < len(demand)]] = True
    return Fraction(int(demand[np.ix_(inside, ~inside)].sum()))
