"""What people do to grow a network: where its nodes go, and which cables they keep, unplug and connect.

A cable that is kept keeps its ports. A new cable takes the lowest free ports. Ports are those of the list of cables
(`backends/networks/cabling.py`): a port has a sender and a receiver.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

from collc.backends.networks.cabling import BOTH_WAYS, LOOP, ONE_WAY, Cable, cables

if TYPE_CHECKING:
    from collc.ir.topology import Topology

    from ..tables.columns import Cell

__all__ = ["ADDED", "KEPT", "REMOVED", "Recabled", "Recabling", "recabling"]

KEPT, REMOVED, ADDED = "kept", "removed", "added"

#: links of one direction that are still to be found, by the new numbers of their ends
_Left = Counter[tuple[int, int]]


@attrs.frozen
class Recabled:
    """A cable with its ``change``: ``kept``, ``removed`` or ``added``.

    ``node`` and ``peer`` are the new numbers of its ends. The ports are those it has, or had. The direction is ``<->``
    or ``->``, as in a list of cables.
    """

    change: str
    node: int
    port: int
    peer: int
    peer_port: int
    direction: str


@attrs.frozen
class Recabling:
    """The way from one network to a larger one: ``place`` has the new number of every node.

    ``cables`` has the kept ones first, then the removed, then the added ones, each in order of the old numbers.
    """

    place: tuple[int, ...]
    nodes: int
    cables: tuple[Recabled, ...]

    def count(self, change: str) -> int:
        """Return the number of cables with a change."""
        return sum(cable.change == change for cable in self.cables)

    @property
    def old(self) -> dict[int, int]:
        """The old number of a node by its new one; new nodes are missing."""
        return {new: old for old, new in enumerate(self.place)}

    def place_rows(self) -> list[dict[str, Cell]]:
        """Return a row for every node: the old ones in their order, then the new ones, without an old number."""
        rows: list[dict[str, Cell]] = [{"node": old, "new_node": new} for old, new in enumerate(self.place)]
        return rows + [{"node": None, "new_node": new} for new in range(self.nodes) if new not in self.old]

    def cable_rows(self) -> list[dict[str, Cell]]:
        """Return a row for every cable, with the old and the new numbers of its ends."""
        old = self.old
        return [
            {"change": one.change, "node": old.get(one.node), "port": one.port, "peer": old.get(one.peer),
             "peer_port": one.peer_port, "bidirectional": one.direction == BOTH_WAYS, "new_node": one.node,
             "new_peer": one.peer}
            for one in self.cables
        ]  # fmt: skip


def recabling(small: Topology, large: Topology, place: Sequence[int]) -> Recabling:
    """Return the way from ``small`` to ``large`` if node i gets the number ``place[i]``. All links are alike.

    As many links are kept as the placement allows. If a cable of two links has only one that is kept, the list has each
    link of it. Links of a node to itself need no cable.

    >>> from collc.frontends.coll import topology
    >>> found = recabling(topology("biring(4)"), topology("biring(5)"), range(4))
    >>> [(one.change, one.node, one.port, one.peer, one.peer_port) for one in found.cables[3:]]
    [('removed', 0, 1, 3, 0), ('added', 0, 1, 4, 0), ('added', 3, 0, 4, 1)]
    """
    have, need = [_placed(cable, place) for cable in _carrying(small)], _links(_carrying(large))
    stays = _links(have) & need
    need -= stays
    kept, removed = _sorted_out(have, stays)
    ports = max(_ports(small), _ports(large))
    added = _connected(need, _Free(large.num_ranks, ports, kept))
    old = {new: node for node, new in enumerate(place)}
    found = [
        Recabled(change, *cable[:5])
        for change, part in ((KEPT, kept), (REMOVED, removed), (ADDED, added))
        for cable in sorted(part, key=lambda one: (old.get(one.node, len(old) + one.node), one))
    ]
    return Recabling(tuple(place), large.num_ranks, tuple(found))


def _carrying(network: Topology) -> list[Cable]:
    return [cable for cable in cables(network) if cable.direction != LOOP]


def _placed(cable: Cable, place: Sequence[int]) -> Cable:
    return cable._replace(node=place[cable.node], peer=place[cable.peer], link_class=0)


def _turned(cable: Cable) -> Cable:
    return cable._replace(node=cable.peer, port=cable.peer_port, peer=cable.node, peer_port=cable.port)


def _links(listed: Sequence[Cable]) -> _Left:
    """Return the number of links from node to node."""
    found = _Left((cable.node, cable.peer) for cable in listed)
    found.update((cable.peer, cable.node) for cable in listed if cable.direction == BOTH_WAYS)
    return found


def _ports(network: Topology) -> int:
    """Return the number of ports of a node: its most links out or in."""
    ends = (network.src.tolist(), network.dst.tolist())
    return max((most for side in ends for most in Counter(side).values()), default=0)


def _sorted_out(have: Sequence[Cable], stays: _Left) -> tuple[list[Cable], list[Cable]]:
    """Return the cables that are kept and those that are removed, so that the links of ``stays`` are kept.

    Cables whose every link is kept come first, so that few cables of two links are kept by half.
    """
    left, kept, removed, halves = stays.copy(), list[Cable](), list[Cable](), list[Cable]()
    for cable in sorted(have, key=lambda one: (one.direction == ONE_WAY, one)):
        there, back = (cable.node, cable.peer), (cable.peer, cable.node)
        if cable.direction == BOTH_WAYS and left[there] and left[back]:
            left.subtract((there, back))
            kept.append(cable)
        elif cable.direction == BOTH_WAYS:
            halves.append(cable)
        elif left[there]:
            left[there] -= 1
            kept.append(cable)
        else:
            removed.append(cable)
    for cable in halves:
        links = [cable._replace(direction=ONE_WAY), _turned(cable)._replace(direction=ONE_WAY)]
        stay = [left[link.node, link.peer] > 0 for link in links]
        if not any(stay):
            removed.append(cable)
            continue
        for link, keeps in zip(links, stay, strict=True):
            left[link.node, link.peer] -= keeps
            (kept if keeps else removed).append(link)
    return kept, removed


class _Free:
    """The senders and receivers of every node's ports that no cable uses."""

    def __init__(self, nodes: int, ports: int, kept: Sequence[Cable]) -> None:
        self.send = [set(range(ports)) for _ in range(nodes)]
        self.receive = [set(range(ports)) for _ in range(nodes)]
        for cable in kept:
            self.send[cable.node].discard(cable.port)
            self.receive[cable.peer].discard(cable.peer_port)
            if cable.direction == BOTH_WAYS:
                self.receive[cable.node].discard(cable.port)
                self.send[cable.peer].discard(cable.peer_port)

    def both(self, node: int) -> int | None:
        """Return the lowest port of which both the sender and the receiver are free; None if there is none."""
        return min(self.send[node] & self.receive[node], default=None)

    def one_way(self, node: int, peer: int) -> Cable:
        """Return a cable from the lowest free sender to the lowest free receiver."""
        port, peer_port = min(self.send[node]), min(self.receive[peer])
        self.send[node].remove(port)
        self.receive[peer].remove(peer_port)
        return Cable(node, port, peer, peer_port, ONE_WAY, 0)

    def both_ways(self, node: int, peer: int) -> Cable | None:
        """Return a cable of two links; None if a node has no port of which both parts are free."""
        port, peer_port = self.both(node), self.both(peer)
        if port is None or peer_port is None:
            return None
        for at, number in ((node, port), (peer, peer_port)):
            self.send[at].remove(number)
            self.receive[at].remove(number)
        return Cable(node, port, peer, peer_port, BOTH_WAYS, 0)


def _connected(need: _Left, free: _Free) -> list[Cable]:
    """Return cables for links. Two links of opposite directions are one cable where ports allow it."""
    found, alone = list[Cable](), list[tuple[int, int]]()
    for node, peer in _pairs(need):
        cable = free.both_ways(node, peer)
        if cable is None:
            alone += [(node, peer), (peer, node)]
        else:
            found.append(cable)
    for (node, peer), count in need.items():
        alone += [(node, peer)] * max(count - need[peer, node], 0)
    return found + [free.one_way(node, peer) for node, peer in sorted(alone)]


def _pairs(need: _Left) -> Iterator[tuple[int, int]]:
    """Yield the ends of two links of opposite directions, the lower number first, as often as there are such links."""
    for (node, peer), count in sorted(need.items()):
        if node < peer:
            for _ in range(min(count, need[peer, node])):
                yield node, peer
