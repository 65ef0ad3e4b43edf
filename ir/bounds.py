"""What no schedule can beat: Moore's bound on steps, the cuts of the network on time per byte. All exact."""

from __future__ import annotations

from fractions import Fraction

from .bottleneck import list_ranks, node_bandwidths, worst_ratio
from .collective import Collective
from .topology import Topology

__all__ = ["bandwidth_bound", "moore_bound", "moore_steps", "steps_bound", "time_per_byte_bound", "worst_cut"]


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
    """Return the fewest steps any network of this size and degree allows.

    Nothing where ranks differ in degree, or where there are switches: those forward within a step. An allreduce
    counts both phases (section C.3).
    """
    degree = topology.degree
    if degree is None or not topology.is_direct:
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
    leave it (section 4.2 of the ForestColl paper); broadcast: the vector, where the root is in S; gather: the shards
    of S, where the root is not. Reduce-scatter, reduce and scatter: the same on the transpose. All cuts count.
    Alltoall: all links together, and the links of single ranks. Raises C0301 where the network does not connect the
    ranks as the collective needs.
    """
    match collective.kind:
        case "allgather":
            return worst_cut(topology)
        case "reduce-scatter":
            return worst_cut(topology, inward=True)
        case "allreduce":
            (there, a), (back, b) = worst_cut(topology, inward=True), worst_cut(topology)
            return there + back, f"{a}; {b}"
        case "alltoall":
            return _alltoall_bound(topology)
        case _:
            return _rooted_bound(topology, collective.kind, collective.root or 0)


def worst_cut(topology: Topology, inward: bool = False) -> tuple[Fraction, str]:
    """Return max |S n ranks| / (N B+(S)) over node sets S that leave out a rank, and a description of the cut.

    ``inward``: the same of B-(S), the links into S, as a reduce-scatter needs it.
    """
    network = topology.transpose() if inward else topology
    ratio, nodes = worst_ratio(network, [1] * topology.num_ranks)
    return ratio / topology.num_ranks, _name(topology, _forwards(topology, nodes) if inward else nodes, None)


def _rooted_bound(topology: Topology, kind: str, root: int) -> tuple[Fraction, str]:
    """The worst cut between the root and the other ranks."""
    n = topology.num_ranks
    network = topology.transpose() if kind in ("reduce", "scatter") else topology
    if kind in ("broadcast", "reduce"):
        ratio, nodes = worst_ratio(network, [int(rank == root) for rank in range(n)])
    else:
        ratio, nodes = worst_ratio(network, [1] * n, [root])
        ratio /= n
    return ratio, _name(topology, nodes if network is topology else _forwards(topology, nodes), root)


def _forwards(topology: Topology, nodes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the nodes whose links out are, in the transpose, those out of ``nodes``: all others."""
    return tuple(sorted(set(range(topology.num_nodes)).difference(nodes))) if nodes else ()


def _name(topology: Topology, nodes: tuple[int, ...], root: int | None) -> str:
    """Describe the links out of a set of nodes."""
    if not nodes:
        return "none"

    def one(rank: int) -> str:
        return "the root" if rank == root else f"rank {topology.names[rank]}"

    outside = set(range(topology.num_nodes)).difference(nodes)
    if len(outside) == 1:
        return f"links into {one(outside.pop())}"
    if len(nodes) == 1:
        return f"links out of {one(nodes[0])}"
    return f"links out of ranks {list_ranks(topology, nodes)}"


def _alltoall_bound(topology: Topology) -> tuple[Fraction, str]:
    """Bounds of the alltoall from what all links, and those into single ranks, must carry."""
    n = topology.num_ranks
    if n == 1:
        return Fraction(0), "none"
    inward, outward = node_bandwidths(topology, topology.dst), node_bandwidths(topology, topology.src)
    share = Fraction(n - 1, n)
    cases = [(Fraction(topology.total_hops, n) / sum(outward, Fraction(0)), "all links together")]
    cases += [(share / inward[r], f"links into rank {topology.names[r]}") for r in range(n)]
    return max(cases, key=lambda case: case[0])
