"""The bottleneck of a network: the set of nodes with the most data to send per bandwidth out of it. Exact.

What every rank must receive leaves every set of nodes without that rank. So the largest ratio of what the ranks of a
set have to send to the bandwidth out of the set bounds every schedule, and packed trees reach it (ForestColl, section
4.2 and Theorem 1).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from ..arrays import Array, distinct
from ..diagnostic import CollcError, error
from ..ranges import runs
from ..topology import Topology
from .bypass import Bypass
from .cuts import FlowNetwork

__all__ = ["cut_ratio", "leaving", "list_ranks", "node_bandwidths", "sinks_to_see", "whole_bandwidths", "worst_ratio"]

_LISTED = 8


def worst_ratio(
    topology: Topology, supply: Sequence[int], sinks: Sequence[int] | None = None
) -> tuple[Fraction, tuple[int, ...]]:
    """Return max supply(S) / B+(S) over sets S of nodes that leave out a sink (any rank by default), and such an S.

    ``supply[r]`` is the amount that rank r has to send, an integer of at least 0. B+(S) is the bandwidth of the links
    out of S in the topology's unit. Nodes ascend. If no rank has to send data, the ratio is 0 and there are no nodes.

    Newton's method on cuts starts with the sets of single ranks and of all nodes but one. A flow that falls short gives
    a set of larger ratio, and the sweep continues with it at the same sink. Raises C0301 if a supply cannot reach a
    sink.
    """
    sinks = sinks_to_see(topology, supply) if sinks is None else sinks
    worst = _round_single_ranks(topology, supply, sinks)
    whole, scale = whole_bandwidths(topology)
    bypass = Bypass(topology.num_ranks, topology.num_nodes, topology.src.tolist(), topology.dst.tolist())
    network = FlowNetwork(topology.num_nodes)

    def load(ratio: Fraction) -> list[int]:
        """Set the capacity of every link to the units that it carries in a time of ``ratio``; return the supplies."""
        time = ratio / scale
        network.refill(bypass.arcs([width * time.numerator for width in whole]))
        return [amount * time.denominator for amount in supply] + [0] * topology.num_switches

    def worsen(nodes: tuple[int, ...]) -> list[int]:
        nonlocal worst
        nodes = bypass.whole(nodes)
        worst = cut_ratio(topology, supply, nodes), nodes
        return load(worst[0])

    network.settle(load(worst[0]), sinks, worsen)
    return worst


def sinks_to_see(topology: Topology, supply: Sequence[int]) -> range:
    """Return the ranks that a sweep must visit: all, or the first if all are equal by symmetry.

    A set without another rank is then the image of a set without this rank, with the same ratio.
    """
    alike = topology.symmetry is not None and len(set(supply)) == 1
    return range(1 if alike else topology.num_ranks)


def cut_ratio(topology: Topology, supply: Sequence[int], nodes: Iterable[int]) -> Fraction:
    """Return supply(S) / B+(S) of one set of nodes, in O(links). Raises C0301 if no link leaves a set with supply."""
    chosen = list(nodes)
    sent = sum(supply[node] for node in chosen if node < topology.num_ranks)
    links = np.bincount(topology.link_class[leaving(topology, chosen)], minlength=len(topology.classes)).tolist()
    width = sum((kind.bandwidth * count for kind, count in zip(topology.classes, links, strict=True)), Fraction(0))
    if sent and not width:
        raise _not_connected(topology, chosen)
    return Fraction(sent) / width if sent else Fraction(0)


def leaving(topology: Topology, nodes: Iterable[int]) -> Array:
    """Return the links out of a set of nodes, ascending."""
    inside = np.zeros(topology.num_nodes, dtype=bool)
    inside[list(nodes)] = True
    return np.flatnonzero(inside[topology.src] & ~inside[topology.dst])


def whole_bandwidths(topology: Topology) -> tuple[list[int], Fraction]:
    """Return every link's bandwidth as an integer, and the number of these units in a unit of bandwidth.

    The numbers have no common divisor. Loops have 0: they cross no cut.
    """
    proper = topology.src != topology.dst
    used = distinct(topology.link_class[proper]).tolist()
    widths = [topology.classes[number].bandwidth for number in used]
    scale = Fraction(math.lcm(*(w.denominator for w in widths)), math.gcd(*(w.numerator for w in widths)) or 1)
    table = [0] * len(topology.classes)
    for number, width in zip(used, widths, strict=True):
        table[number] = int(width * scale)
    kinds = topology.link_class.tolist()
    return [table[kind] if counts else 0 for kind, counts in zip(kinds, proper.tolist(), strict=True)], scale


def node_bandwidths(topology: Topology, ends: Array) -> list[Fraction]:
    """Return each node's total bandwidth at this end (``topology.src`` or ``dst``), without loops."""
    table = np.zeros((topology.num_nodes, len(topology.classes)), dtype=np.int64)
    keep = topology.src != topology.dst
    np.add.at(table, (ends[keep], topology.link_class[keep]), 1)
    rows, owner = np.unique(table, axis=0, return_inverse=True)  # most nodes have equal rows
    widths = [kind.bandwidth for kind in topology.classes]
    sums = [sum((w * k for w, k in zip(widths, row, strict=True)), Fraction(0)) for row in rows.tolist()]
    return [sums[number] for number in owner.ravel().tolist()]


def list_ranks(topology: Topology, nodes: Iterable[int]) -> str:
    """Return the names of the first ranks among the nodes, and their number out of all ranks, as text."""
    ranks = [node for node in nodes if node < topology.num_ranks]
    names = [topology.names[rank] for rank in ranks] if topology.node_names else runs(ranks)
    listed = ", ".join(names[:_LISTED]) + (", ..." if len(names) > _LISTED else "")
    return f"{{{listed}}} ({len(ranks)} of {topology.num_ranks})"


def _round_single_ranks(
    topology: Topology, supply: Sequence[int], sinks: Sequence[int]
) -> tuple[Fraction, tuple[int, ...]]:
    """Return the worst set of all nodes but one sink, or of one rank; of equals the first."""
    inward, outward = node_bandwidths(topology, topology.dst), node_bandwidths(topology, topology.src)
    total, all_sinks = sum(supply), set(sinks)
    best, place = Fraction(0), (-1, False)
    for rank in range(topology.num_ranks):
        for sent, width, into in (
            (total - supply[rank] if rank in all_sinks else 0, inward[rank], True),
            (supply[rank] if all_sinks - {rank} else 0, outward[rank], False),
        ):
            if sent and width and sent * best.denominator > best.numerator * width:
                best, place = sent / width, (rank, into)
    rank, into = place
    if rank < 0:
        return best, ()
    return best, tuple(node for node in range(topology.num_nodes) if (node != rank) == into)


def _not_connected(topology: Topology, nodes: Sequence[int]) -> CollcError:
    return error(
        "C0301",
        f"topology `{topology.name}` is not strongly connected: "
        f"no link leads out of ranks {list_ranks(topology, nodes)}",
        notes=["the data of these ranks must reach the others"],
        hint="add the missing links, or write `<->` for links in both directions",
    )
