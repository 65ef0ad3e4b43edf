"""Checks of the forest scheduler's input; each message names the place and the remedy."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from collc.ir.arrays import Array
from collc.ir.collective import Collective
from collc.ir.diagnostic import error
from collc.ir.topology import Topology

from ..operations import require_commutative

__all__ = ["COLLECTIVES", "check_inputs", "require_balanced"]

#: the collectives of spanning trees
COLLECTIVES = ("allgather", "reduce-scatter", "allreduce", "broadcast", "reduce")

_SWITCHES_LOSE = "a switch forwards data and cannot copy, so the larger bandwidth is partly lost"
_RANKS_LOSE = "every rank receives and forwards the same data, so different bandwidths are mostly a mistake"
_INSTEAD = {"alltoall": "`flow` schedules alltoall, on networks without switches"}


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
        raise error(
            "C0503",
            f"forest cannot schedule `{collective.kind}`",
            notes=[f"it schedules {', '.join(COLLECTIVES)}"],
            hint=_INSTEAD.get(collective.kind, "`exact` schedules it, on small networks without switches"),
            exit_status=3,
        )
    require_commutative("forest", collective)
    _require_bandwidth(topology)
    _require_two_way_switches(topology)
    if collective.root is None:
        topology.require_connected("a forest")
        if not unbalanced:
            require_balanced(topology, range(topology.num_nodes))
    else:
        _require_routes(topology, collective.root, collective.kind == "broadcast")


def require_balanced(topology: Topology, nodes: Iterable[int]) -> None:
    """Raise C0581 at the first of these nodes with more bandwidth in than out, or less."""
    into, out = (_totals(topology, ends) for ends in (topology.dst, topology.src))
    for node in nodes:
        if into[node] != out[node]:
            switch = node >= topology.num_ranks
            found = f"{_bandwidth_text(topology, into[node])} in and {_bandwidth_text(topology, out[node])} out"
            hint = f"write `<->`, or give the links of the {'switch' if switch else 'rank'} equal bandwidth in and out"
            raise error(
                "C0581",
                f"{'switch' if switch else 'rank'} {topology.names[node]} of `{topology.name}` has {found}, "
                "needed as much out as in",
                notes=[_SWITCHES_LOSE if switch else _RANKS_LOSE],
                hint=hint if switch else f"{hint}; to allow it, write `using forest {{ unbalanced: true }}`",
                exit_status=3,
            )


def _require_bandwidth(topology: Topology) -> None:
    none = np.array([kind.bandwidth <= 0 for kind in topology.classes])
    empty = np.flatnonzero(none[topology.link_class])
    if len(empty):
        raise error(
            "C0580",
            f"link {_link(topology, int(empty[0]))} of `{topology.name}` has no bandwidth"
            + (f", and {len(empty) - 1} more" if len(empty) > 1 else ""),
            hint="leave out links that carry nothing",
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
            hint="write `<->` for links in both directions, or leave the switch out",
            exit_status=3,
        )


def _require_neighbours(topology: Topology) -> None:
    """Raise C0582 at the first switch all of whose links, in and out, join a single node."""
    ends = np.concatenate([np.stack([topology.src, topology.dst], 1), np.stack([topology.dst, topology.src], 1)])
    pairs = np.unique(ends[ends[:, 0] != ends[:, 1]].astype(np.int64), axis=0)
    neighbours = np.bincount(pairs[:, 0], minlength=topology.num_nodes)
    stubs = np.flatnonzero(neighbours == 1)
    for switch in stubs[stubs >= topology.num_ranks].tolist():
        only = int(pairs[pairs[:, 0] == switch, 1][0])
        if (topology.src == switch).any() and (topology.dst == switch).any():
            raise error(
                "C0582",
                f"switch {topology.names[switch]} of `{topology.name}` has links to {topology.names[only]} alone",
                notes=["no route passes through a switch with a single neighbour"],
                hint="add the links that are missing, or leave the switch out",
                exit_status=3,
            )


def _require_routes(topology: Topology, root: int, outward: bool) -> None:
    """Raise C0301 unless there is a route from the root to every rank, or from every rank to it."""
    hops = topology.hops_from(root) if outward else topology.hops_to(root)
    missing = np.flatnonzero(hops[: topology.num_ranks] < 0)
    if len(missing):
        ends = [topology.names[root], topology.names[int(missing[0])]]
        source, target = ends if outward else ends[::-1]
        need = "broadcast needs a path from its root to" if outward else "reduce needs a path to its root from"
        raise error(
            "C0301",
            f"topology `{topology.name}` is not strongly connected: rank {source} has no path to rank {target}",
            notes=[f"a {need} every rank"],
            hint="add the missing links, or write `<->` where a link should go both ways",
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


def _link(topology: Topology, link: int) -> str:
    return f"{topology.names[topology.src[link]]} -> {topology.names[topology.dst[link]]}"


def _bandwidth_text(topology: Topology, bandwidth: Fraction) -> str:
    if topology.unit == "link":
        return f"{bandwidth} link unit{'' if bandwidth == 1 else 's'}"
    return f"{float(bandwidth / 10**9):g} GB/s"
