"""What no schedule can beat: Moore's bound on steps, the cuts of the network on time per byte. All exact."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from .collective import Collective
from .topology import Topology

__all__ = ["bandwidth_bound", "moore_bound", "moore_steps", "steps_bound", "time_per_byte_bound", "worst_cut"]

_EXACT_CUT_RANKS = 32  # the exact minimum over all cuts runs a max-flow per rank; beyond this, cuts round single nodes


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


def steps_bound(topology: Topology, collective: Collective) -> int | None:
    """Return the fewest steps any network of this size and degree allows; nothing where ranks differ in degree.

    An allreduce counts both phases (section C.3).
    """
    degree = topology.degree
    if degree is None:
        return None
    once = moore_steps(topology.num_ranks, degree)
    return 2 * once if collective.kind == "allreduce" else once


def bandwidth_bound(topology: Topology, collective: Collective) -> Fraction | None:
    """Return the least T_B in units of M/B (Theorem 4 and section C.3), or nothing where ranks differ in bandwidth."""
    total = topology.node_bandwidth
    if total is None or not topology.is_direct:
        return None
    n = topology.num_ranks
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
    """Return the least time per byte of M (per unit of bandwidth) that cuts of the network allow, and the cut's name.

    Allgather: every set S of nodes that leaves out a rank must send the shards of its ranks over the links that
    leave it (section 4.2 of the ForestColl paper). Reduce-scatter: the same on the transpose. Cuts are exact for
    up to 32 ranks, and those round single nodes beyond.
    """
    match collective.kind:
        case "allgather":
            return worst_cut(topology)
        case "reduce-scatter":
            return worst_cut(topology.transpose())
        case "allreduce":
            (there, a), (back, b) = worst_cut(topology.transpose()), worst_cut(topology)
            return there + back, a if a == b else f"{a}; {b}"
        case _:
            return _endpoint_bound(topology, collective)


def worst_cut(topology: Topology) -> tuple[Fraction, str]:
    """Return max |S n ranks| / (N B+(S)) over node sets S that leave out a rank, and a description of S."""
    ratio, name = _single_node_cuts(topology)
    if topology.num_ranks > _EXACT_CUT_RANKS:
        return ratio, name
    return _improve(topology, ratio, name)


def _single_node_cuts(topology: Topology) -> tuple[Fraction, str]:
    """The cuts round one rank: everything it must receive, over its links in; and its shard, over its links out."""
    n = topology.num_ranks
    best, name = Fraction(0), "none"
    inward, outward = _totals(topology, topology.dst), _totals(topology, topology.src)
    for rank in range(n):
        for capacity, shards, text in (
            (inward[rank], n - 1, "into"),
            (outward[rank], 1 if n > 1 else 0, "out of"),
        ):
            if shards and capacity and Fraction(shards) / (n * capacity) > best:
                best, name = Fraction(shards) / (n * capacity), f"links {text} rank {topology.names[rank]}"
    return best, name


def _totals(topology: Topology, ends: Any) -> list[Fraction]:
    """Total bandwidth by node at this end, loops left out (they cross no cut)."""
    table = np.zeros((topology.num_nodes, len(topology.classes)), dtype=np.int64)
    keep = topology.src != topology.dst
    np.add.at(table, (ends[keep], topology.link_class[keep]), 1)
    widths = [c.bandwidth for c in topology.classes]
    return [sum((w * k for w, k in zip(widths, row, strict=True)), Fraction(0)) for row in table.tolist()]


def _improve(topology: Topology, ratio: Fraction, name: str) -> tuple[Fraction, str]:
    """Newton's method on cuts: a max-flow at the current ratio either proves it the largest or finds a larger one."""
    import networkx

    n = topology.num_ranks
    weight: dict[tuple[int, int], Fraction] = {}
    for a, b, c in zip(topology.src.tolist(), topology.dst.tolist(), topology.link_class.tolist(), strict=True):
        if a != b:
            weight[a, b] = weight.get((a, b), Fraction(0)) + topology.classes[c].bandwidth
    for sink in range(n):
        while True:
            graph = networkx.DiGraph()
            for (a, b), width in weight.items():
                graph.add_edge(a, b, capacity=width * ratio * n)
            for rank in range(n):
                graph.add_edge("source", rank, capacity=Fraction(1))
            value, (side, _) = networkx.minimum_cut(graph, "source", sink)
            if value >= n:
                break
            ranks = sorted(x for x in side if x != "source" and x < n)
            leaving = sum((w for (a, b), w in weight.items() if a in side and b not in side), Fraction(0))
            ratio = Fraction(len(ranks), n) / leaving
            listed = ", ".join(topology.names[r] for r in ranks[:8]) + (", ..." if len(ranks) > 8 else "")
            name = f"links out of ranks {{{listed}}} ({len(ranks)} of {n})"
    return ratio, name


def _endpoint_bound(topology: Topology, collective: Collective) -> tuple[Fraction, str]:
    """Bounds of rooted collectives and alltoall from what single ranks must send and receive."""
    n, root = topology.num_ranks, collective.root
    if n == 1:
        return Fraction(0), "none"
    inward, outward = _totals(topology, topology.dst), _totals(topology, topology.src)
    others = [r for r in range(n) if r != root]
    share = Fraction(n - 1, n)
    cases: list[tuple[Fraction, str]] = []
    if collective.kind == "broadcast":
        cases = [(1 / outward[root or 0], "links out of the root")]
        cases += [(1 / inward[r], f"links into rank {topology.names[r]}") for r in others]
    elif collective.kind == "reduce":
        cases = [(1 / inward[root or 0], "links into the root")]
        cases += [(1 / outward[r], f"links out of rank {topology.names[r]}") for r in others]
    elif collective.kind == "gather":
        cases = [(share / inward[root or 0], "links into the root")]
    elif collective.kind == "scatter":
        cases = [(share / outward[root or 0], "links out of the root")]
    else:
        all_links = sum(outward, Fraction(0))
        cases = [(Fraction(topology.total_hops, n) / all_links, "all links together")]
        cases += [(share / inward[r], f"links into rank {topology.names[r]}") for r in range(n)]
    return max(cases, key=lambda case: case[0])
