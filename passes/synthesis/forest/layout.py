"""The tiers of a network of switches: the nodes below and above a switch, and the groups of its neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from collc.ir.graph.cuts import FlowNetwork

from .growing import bits

__all__ = ["Layout"]

#: the most pairs on one tier that are distinguished: 1,024 ranks with 128 others each
_MOST_PAIRS = 1 << 17


class Layout:
    """The tiers of a network before the removal of any switch.

    The *level* of a node is how far it is from the nearest rank. Switches are *alike* if they have the same level and
    the same widest link down: the leaves of a fat tree, the switches inside boxes, the fabrics between them.
    """

    def __init__(self, network: FlowNetwork, num_ranks: int) -> None:
        self.num_ranks = num_ranks
        self.joined: list[list[int]] = [[] for _ in range(network.num_nodes)]
        for tail, head, _ in network.arcs():
            self.joined[tail].append(head)
            self.joined[head].append(tail)
        self.joined = [sorted(set(row)) for row in self.joined]
        self.level = self._levels()
        widest = [0] * network.num_nodes
        for tail, head, capacity in network.arcs():
            upper = max(tail, head, key=lambda v: self.level[v])
            widest[upper] = max(widest[upper], capacity)
        self.kind = list(zip(self.level, widest, strict=True))
        self.below = [{u for u in row if self.level[u] < self.level[v]} for v, row in enumerate(self.joined)]
        self._total: dict[tuple[int, int], int] = {}
        for _, head, capacity in network.arcs():
            self._total[self.kind[head]] = self._total.get(self.kind[head], 0) + capacity
        self._parts: dict[tuple[int, int], list[int]] = {}
        self._places: dict[tuple[int, int], list[tuple[int, int]]] = {}

    def _levels(self) -> list[int]:
        level = [0] * self.num_ranks + [-1] * (len(self.joined) - self.num_ranks)
        front = list(range(self.num_ranks))
        while front:
            behind = []
            for node in front:
                for other in self.joined[node]:
                    if level[other] < 0:
                        level[other] = level[node] + 1
                        behind.append(other)
            front = behind
        return level

    def order(self) -> list[int]:
        """Return the switches that have links, from the top tier down."""
        switches = [v for v in range(self.num_ranks, len(self.joined)) if self.joined[v]]
        return sorted(switches, key=lambda v: (-self.level[v], v))

    def grain(self, switch: int) -> int:
        """Return the least capacity of a pair, so that the switches of a kind have at most ``_MOST_PAIRS`` pairs."""
        return max(1, self._total[self.kind[switch]] // _MOST_PAIRS)

    def groups(self, switch: int, neighbours: Iterable[int], tight: Sequence[int] = ()) -> list[list[int]]:
        """Divide the present neighbours of a switch; those of a group need not be joined through it.

        The neighbours that were not below the switch from the start are one group. The others are divided into parts
        that stay connected without switches that are higher, or as high and no wider. Tight cuts with the switch on the
        other side also join neighbours (``tight`` are the cuts that each node is inside, as bits). If that leaves one
        group, every neighbour is its own group.
        """
        nodes = sorted(neighbours)
        down = [u for u in nodes if u in self.below[switch]]
        part = self._connected(self.kind[switch])
        place = self._in_homes(self.kind[switch])
        up = sorted((u for u in nodes if u not in self.below[switch]), key=lambda u: (place[u], u))
        if len({part[u] for u in down}) == 1:
            part = list(range(len(self.joined)))
        leader = {u: u for u in nodes}
        first: dict[int, int] = {}
        for u in down:
            leader[u] = first.setdefault(part[u], u)
        for u in up:
            leader[u] = up[0] if down else u
        across: dict[int, int] = {}
        for u in nodes if tight else ():
            for cut in bits(tight[u] ^ tight[switch]):
                _join(leader, across.setdefault(cut, u), u)
        found: dict[int, list[int]] = {}
        for u in (*down, *up):
            found.setdefault(_find(leader, u), []).append(u)
        return list(found.values()) if len(found) > 1 else [[u] for u in nodes]

    def _connected(self, kind: tuple[int, int]) -> list[int]:
        """Return the connected part each node lies in without switches of this kind and higher or narrower ones."""
        if kind not in self._parts:
            level, widest = kind
            part = [-1] * len(self.joined)
            stays = [here < level or (here == level and width > widest) for here, width in self.kind]
            for start in range(len(part)):
                if part[start] >= 0:
                    continue
                part[start], front = start, [start] if stays[start] else []
                while front:
                    for other in self.joined[front.pop()]:
                        if part[other] < 0 and stays[other]:
                            part[other] = start
                            front.append(other)
            self._parts[kind] = part
        return self._parts[kind]

    def _in_homes(self, kind: tuple[int, int]) -> list[tuple[int, int]]:
        """Return for every node its place below the first switch of a kind above it, and that switch."""
        if kind not in self._places:
            place = [(0, v) for v in range(len(self.joined))]
            count: dict[int, int] = {}
            for node, row in enumerate(self.joined):
                home = next((v for v in row if self.kind[v] == kind and node in self.below[v]), None)
                if home is not None:
                    count[home] = count.get(home, -1) + 1
                    place[node] = (count[home], home)
            self._places[kind] = place
        return self._places[kind]


def _find(leader: dict[int, int], node: int) -> int:
    while leader[node] != node:
        leader[node] = leader[leader[node]]
        node = leader[node]
    return node


def _join(leader: dict[int, int], a: int, b: int) -> None:
    first, second = sorted((_find(leader, a), _find(leader, b)))
    leader[second] = first
