"""A list of cables for people who connect the network: one line for each, from a port of a node to a port of its peer.

Two links of opposite directions, equal in bandwidth and latency, are one cable. Its ports are a node's first ones. A
link without such a partner is a cable of its own, which one side only sends into. A port has a sender and a receiver,
so the same port number may occur once as the start and once as the end of such cables.
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from .values import require_printable

if TYPE_CHECKING:
    from collc.ir.topology import Topology

__all__ = ["BOTH_WAYS", "LOOP", "ONE_WAY", "Cable", "cables", "write"]

#: the direction of a cable of two links, of a cable of one link, and of a link from a node to itself
BOTH_WAYS, ONE_WAY, LOOP = "<->", "->", "loop"
_HEAD = ("cable", "node", "port", "peer", "peer_port", "direction", "bandwidth", "unit", "latency_s")
_RACKS = ("rack", "peer_rack")


class Cable(NamedTuple):
    """A cable: node and port at each end, its direction, and the number of its class of links.

    A ``loop`` carries no data and needs no cable; it is listed because it takes a port of the network's degree.
    """

    node: int
    port: int
    peer: int
    peer_port: int
    direction: str
    link_class: int


def cables(topology: Topology) -> list[Cable]:
    """Return the cables in order of node, port and direction; a node's ports follow the order of its links.

    >>> from collc.frontends.coll import topology
    >>> [tuple(cable[:5]) for cable in cables(topology("biring(3)"))]
    [(0, 0, 1, 1, '<->'), (0, 1, 2, 0, '<->'), (1, 0, 2, 1, '<->')]
    """
    ends = list(zip(topology.src.tolist(), topology.dst.tolist(), topology.link_class.tolist(), strict=True))
    partner = _partners(ends)
    used = [0] * topology.num_nodes
    ports: dict[int, int] = {}  # of the start of each link in a pair
    for link, (src, _, _) in enumerate(ends):
        if partner[link] >= 0:
            ports[link] = used[src]
            used[src] += 1
    found = [
        Cable(src, ports[link], dst, ports[partner[link]], LOOP if partner[link] == link else BOTH_WAYS, kind)
        for link, (src, dst, kind) in enumerate(ends)
        if partner[link] >= 0 and (src, link) <= (dst, partner[link])
    ]
    sends, receives = used[:], used[:]
    for link, (src, dst, kind) in enumerate(ends):
        if partner[link] < 0:
            found.append(Cable(src, sends[src], dst, receives[dst], ONE_WAY, kind))
            sends[src] += 1
            receives[dst] += 1
    return sorted(found)


def _partners(ends: Sequence[tuple[int, int, int]]) -> list[int]:
    """Return for each link the one of the opposite direction in its cable, itself for a loop, -1 for none."""
    waiting: defaultdict[tuple[int, int, int], list[int]] = defaultdict(list)
    partner = [-1] * len(ends)
    for link, (src, dst, kind) in enumerate(ends):
        if src == dst:
            partner[link] = link
        elif waiting[dst, src, kind]:
            partner[link] = waiting[dst, src, kind].pop(0)
            partner[partner[link]] = link
        else:
            waiting[src, dst, kind].append(link)
    return partner


def write(topology: Topology, racks: Sequence[int] | None = None) -> str:
    """Return the list as CSV, with ``racks`` also the rack of both ends; raise C0780 for names with control characters.

    ``bandwidth`` and ``latency_s`` are exact: integers or fractions. ``unit`` is ``B/s``, or ``link`` if bandwidths are
    relative.
    """
    require_printable(topology.names, "a cabling list")
    stream = io.StringIO()
    lines = csv.writer(stream, lineterminator="\n")
    lines.writerow(_HEAD if racks is None else (*_HEAD, *_RACKS))
    names, classes = topology.names, topology.classes
    for number, cable in enumerate(cables(topology)):
        node, port, peer, peer_port, direction, kind = cable
        where = () if racks is None else (racks[node], racks[peer])
        of_class = (classes[kind].bandwidth, topology.unit, classes[kind].latency)
        lines.writerow((number, names[node], port, names[peer], peer_port, direction, *of_class, *where))
    return stream.getvalue()
