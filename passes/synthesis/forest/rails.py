"""Clusters whose GPUs hang from rails: every rank has a link to one of several fabrics, directly or through its NIC.

A rail is a switch that joins ranks of different boxes. No switch leads from one rail to another, so what crosses a rail
leaves a box at a rank of this rail, and enters the next box at one. Without the rails the network falls into boxes, as
in :mod:`.boxes`. A NIC that only one rank uses is a part of the rank's link.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from fractions import Fraction

import attrs

from collc.ir.topology import Topology

from .boxes import Box, Cluster, box_of_part

__all__ = ["Rails", "rails"]

#: the links from one node to another through a NIC, or the one link
Path = tuple[int, ...]


@attrs.frozen
class Rails:
    """The boxes, the rail of every rank (-1: none), and the physical links of the ranks' links to their rails.

    A link up stands for the links through the NIC that begin with it, and a link down for those that end with it:
    ``paths`` has both.
    """

    cluster: Cluster
    rail: tuple[int, ...]
    paths: dict[int, Path]

    def room(self, held: Sequence[int]) -> list[int]:
        """Return how much every link holds if a link to a rail holds as little as each of its physical links."""
        found = list(held)
        for link, path in self.paths.items():
            found[link] = min(held[one] for one in path)
        return found


def rails(topology: Topology) -> Rails | None:
    """Return the network as a cluster on rails, or None if it is none.

    There must be at least two boxes, no two parallel links, and at most one rail for every rank.
    """
    if not topology.num_switches:
        return None
    links: dict[tuple[int, int], int] = {}
    for link, ends in enumerate(zip(topology.src.tolist(), topology.dst.tolist(), strict=True)):
        if ends[0] == ends[1] or ends in links:
            return None
        links[ends] = link
    ports = _Ports(topology, links)
    fabrics = _fabrics(ports)
    if fabrics is None:
        return None
    hung = [[switch for switch in ports.switches[rank] if switch in fabrics] for rank in range(topology.num_ranks)]
    if max(map(len, hung)) > 1 or any(node in ports.others for node in fabrics):
        return None
    boxes = _boxes(ports, fabrics)
    if boxes is None:
        return None
    rail, up, down, paths = list[int](), list[int](), list[int](), dict[int, Path]()
    number = {switch: i for i, switch in enumerate(sorted(fabrics))}
    for rank, switches in enumerate(hung):
        rail.append(number[switches[0]] if switches else -1)
        there, back = ports.switches[rank][switches[0]] if switches else ((-1,), (-1,))
        up.append(there[0])
        down.append(back[-1])
        paths |= {there[0]: there, back[-1]: back} if switches else {}
    return Rails(Cluster(boxes, tuple(up), tuple(down)), tuple(rail), paths)


class _Ports:
    """The switches that every rank is linked to, with the paths there and back; NICs are parts of paths.

    ``others`` are the switches next to a switch that is no NIC.
    """

    def __init__(self, topology: Topology, links: dict[tuple[int, int], int]) -> None:
        self.topology, self.links, ranks = topology, links, topology.num_ranks
        self.out: list[list[int]] = [[] for _ in range(topology.num_nodes)]
        for tail, head in links:
            self.out[tail].append(head)
        nics = {node for node in range(ranks, topology.num_nodes) if self._is_nic(node)}
        self.switches: list[dict[int, tuple[Path, Path]]] = [{} for _ in range(ranks)]
        self.others = set[int]()
        for node in range(ranks, topology.num_nodes):
            if node not in nics:
                self._reach(node, nics)

    def _is_nic(self, node: int) -> bool:
        """Whether a switch lies between one rank and one switch."""
        around = self.out[node]
        two_way = len(around) == 2 and all((other, node) in self.links for other in around)
        return two_way and sum(other < self.topology.num_ranks for other in around) == 1

    def _reach(self, node: int, nics: Collection[int]) -> None:
        links, ranks = self.links, self.topology.num_ranks
        for other in self.out[node]:
            if other < ranks and (other, node) in links:
                self.switches[other][node] = (links[other, node],), (links[node, other],)
            elif other in nics:
                rank = min(self.out[other])
                path = links[rank, other], links[other, node]
                self.switches[rank][node] = path, (links[node, other], links[other, rank])
            elif other >= ranks and len(self.out[other]) == 1:
                continue  # a dead end, as a NIC that has lost its rank
            else:
                self.others.add(node)


def _fabrics(ports: _Ports) -> set[int] | None:
    """Return the rails; None if switches that share ranks are not of two kinds.

    Most switches of a box are faster than those between boxes.
    """
    beside: dict[int, set[int]] = {}
    for found in ports.switches:
        for switch in found:
            beside.setdefault(switch, set()).update(other for other in found if other != switch)
    speed = _speeds(ports)
    side, fabrics = dict[int, int](), set[int]()
    for first in sorted(beside):
        if first in side:
            continue
        side[first], part = 0, [first]
        for node in part:
            for other in sorted(beside[node]):
                if side.setdefault(other, 1 - side[node]) == side[node]:
                    return None
                if other not in part:
                    part.append(other)
        kinds = [sorted(node for node in part if side[node] == one) for one in range(2)]
        slower = [(_usual(speed[node] for node in kind), kind) for kind in kinds if kind]
        fabrics.update(min(slower)[1])
    return fabrics or None


def _speeds(ports: _Ports) -> dict[int, Fraction]:
    found = dict[int, Fraction]()
    for switches in ports.switches:
        for switch, (there, _) in switches.items():
            wide = min(ports.topology.bandwidth(link) for link in there)
            found[switch] = max(found.get(switch, wide), wide)
    return found


def _usual(speeds: Iterable[Fraction]) -> Fraction:
    """Return the most frequent number, the largest of several."""
    count = Counter(speeds)
    return max(count, key=lambda speed: (count[speed], speed))


def _boxes(ports: _Ports, fabrics: Collection[int]) -> tuple[Box, ...] | None:
    """Return the boxes in order of their first ranks: ranks that links or other switches join."""
    ranks = ports.topology.num_ranks
    around: list[set[int]] = [set() for _ in range(ports.topology.num_nodes)]
    for tail, heads in enumerate(ports.out[:ranks]):
        for head in heads:
            if head < ranks:
                around[tail].add(head)
                around[head].add(tail)
        for switch in ports.switches[tail]:
            if switch not in fabrics:
                around[tail].add(switch)
                around[switch].add(tail)
    box_of, found = dict[int, int](), list[Box]()
    for rank in range(ranks):
        if rank in box_of:
            continue
        part = [rank]
        box_of[rank] = rank
        for node in part:
            fresh = sorted(other for other in around[node] if other not in box_of)
            box_of.update((other, rank) for other in fresh)
            part += fresh
        box = box_of_part(part, ports.out, ports.links, fabrics, ranks)
        if box is None:
            return None
        found.append(box)
    return tuple(found) if len(found) > 1 else None
