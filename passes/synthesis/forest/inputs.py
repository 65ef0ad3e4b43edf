"""Checks of the forest scheduler's input; each message names the place and the remedy."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from collc.ir.arrays import Array, distinct_pairs
from collc.ir.collective import Collective
from collc.ir.diagnostic import Subject, error
from collc.ir.spec import Problem
from collc.ir.topology import Topology

from ...applying import not_scheduled
from ..operations import require_commutative, require_routes

__all__ = ["COLLECTIVES", "check_inputs", "require_balanced"]

#: the collectives of spanning trees
COLLECTIVES = ("allgather", "reduce-scatter", "allreduce", "broadcast", "reduce")

_NETWORK = (Subject.TOPOLOGY, Subject.COLLECTIVE)
_SWITCHES_LOSE = "a switch forwards data and cannot copy, so the larger bandwidth is partly lost"
_RANKS_LOSE = "every rank receives and forwards the same data, so different bandwidths are mostly a mistake"


def check_inputs(topology: Topology, collective: Collective, unbalanced: bool = False) -> None:
    """Raise unless there are trees for this collective on this network.

    C0503 (a collective without spanning trees), C0580 (a link without bandwidth), C0582 (a switch that no route can
    pass), C0581 (a node whose bandwidth in and out differ), C0593 (an operation that needs an order), C0301 (ranks
    without a route between them). A broadcast needs routes from its root only, a reduce to it.

    Trees of all ranks do not need balanced networks (Theorem 10), but unbalanced networks have mostly lost a link by
    mistake. ``unbalanced`` allows them. Switches need balance as far as trees use them, which shows when they are
    removed; :func:`require_balanced` then reports the node. With one root, links may have one direction only.
    """
    if collective.kind not in COLLECTIVES:
        raise not_scheduled("C0503", "forest", Problem(topology, collective), COLLECTIVES)
    require_commutative("forest", collective)
    _require_bandwidth(topology)
    _require_two_way_switches(topology)
    require_routes(topology, collective)
    if collective.root is None and not unbalanced:
        require_balanced(topology, range(topology.num_nodes))


def require_balanced(topology: Topology, nodes: Iterable[int]) -> None:
    """Raise C0581 at the first of these nodes with more bandwidth in than out, or less."""
    into, out = (_totals(topology, ends) for ends in (topology.dst, topology.src))
    for node in nodes:
        if into[node] != out[node]:
            switch = node >= topology.num_ranks
            found = f"{_bandwidth_text(topology, into[node])} in and {_bandwidth_text(topology, out[node])} out"
            hint = _balanced(topology, node)
            raise error(
                "C0581",
                f"{'switch' if switch else 'rank'} {topology.names[node]} of `{topology.name}` has {found}, "
                "needed as much out as in",
                notes=[_SWITCHES_LOSE if switch else _RANKS_LOSE],
                hint=hint if switch else f"{hint}; `using forest {{ unbalanced: true }}` allows the difference",
                exit_status=3,
                about=_NETWORK,
            )


def _balanced(topology: Topology, node: int) -> str:
    """Return what balances a node: the reverse of a link that has none, or other bandwidths."""
    pairs = set(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))
    for a, b in sorted(pair for pair in pairs if node in pair and pair[0] != pair[1]):
        if (b, a) not in pairs:
            ends = topology.node_text(a), topology.node_text(b)
            return f"`{ends[0]} -> {ends[1]}` has no reverse: write `link {ends[0]} <-> {ends[1]}` with its bandwidth"
    return f"give the links of {topology.names[node]} the same bandwidth in sum in both directions"


def _require_bandwidth(topology: Topology) -> None:
    none = np.array([kind.bandwidth <= 0 for kind in topology.classes])
    empty = np.flatnonzero(none[topology.link_class])
    if len(empty):
        raise error(
            "C0580",
            f"link {_link(topology, int(empty[0]))} of `{topology.name}` has no bandwidth"
            + (f", and {len(empty) - 1} more" if len(empty) > 1 else ""),
            hint="leave out links that carry nothing",
            about=_NETWORK,
        )


def _require_two_way_switches(topology: Topology) -> None:
    real = topology.src != topology.dst
    into, out = (np.bincount(ends[real], minlength=topology.num_nodes) for ends in (topology.dst, topology.src))
    one_way = np.flatnonzero((into > 0) != (out > 0))
    switches = one_way[one_way >= topology.num_ranks]
    _require_neighbours(topology)
    if len(switches):
        switch = int(switches[0])
        count, is_in = int(into[switch] + out[switch]), bool(into[switch])
        link = int(np.flatnonzero(real & ((topology.dst if is_in else topology.src) == switch))[0])
        only = f"a single link, {_link(topology, link)}" if count == 1 else f"{count} links {'in' if is_in else 'out'}"
        raise error(
            "C0582",
            f"switch {topology.names[switch]} of `{topology.name}` has {only}, and no link {'out' if is_in else 'in'}",
            notes=["a switch forwards data: it needs links in and links out"],
            hint=f"write `<->` in place of `->`: `link {_link(topology, link, '<->')};`, or leave the switch out",
            exit_status=3,
            about=_NETWORK,
        )


def _require_neighbours(topology: Topology) -> None:
    """Raise C0582 at the first switch with a rank as its single neighbour.

    A switch beside a single switch is an open end, as imported machines have behind a NIC; no route uses it.
    """
    proper = topology.src != topology.dst
    src, dst = topology.src[proper], topology.dst[proper]
    node, neighbour = distinct_pairs(np.concatenate([src, dst]), np.concatenate([dst, src]))
    neighbours = np.bincount(node, minlength=topology.num_nodes)
    stubs = np.flatnonzero(neighbours == 1)
    for switch in stubs[stubs >= topology.num_ranks].tolist():
        only = int(neighbour[node == switch][0])
        if only < topology.num_ranks and (topology.src == switch).any() and (topology.dst == switch).any():
            raise error(
                "C0582",
                f"switch {topology.names[switch]} of `{topology.name}` has links to {topology.names[only]} alone",
                notes=["no route passes through a switch with a single neighbour"],
                hint="add the links that are missing, or leave the switch out",
                exit_status=3,
                about=_NETWORK,
            )


def _totals(topology: Topology, ends: Array) -> list[Fraction]:
    """Return the bandwidth of all links with each node at this end, loops left out."""
    table = np.zeros((topology.num_nodes, len(topology.classes)), dtype=np.int64)
    real = topology.src != topology.dst
    np.add.at(table, (ends[real], topology.link_class[real]), 1)
    kinds = topology.classes
    return [
        sum((kind.bandwidth * count for kind, count in zip(kinds, row, strict=True) if count), Fraction(0))
        for row in table.tolist()
    ]


def _link(topology: Topology, link: int, sign: str = "->") -> str:
    return f"{topology.node_text(topology.src[link])} {sign} {topology.node_text(topology.dst[link])}"


def _bandwidth_text(topology: Topology, bandwidth: Fraction) -> str:
    if topology.unit == "link":
        return f"{bandwidth} link unit{'' if bandwidth == 1 else 's'}"
    return f"{float(bandwidth / 10**9):g} GB/s"
