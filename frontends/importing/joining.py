"""Joins a machine and a fabric: every chosen host of the fabric is replaced by a copy of the machine.

The NICs of the machine become the ends of the fabric's links. Rails and planes stay apart: no nodes are merged.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

import numpy as np

from collc.ir.arrays import Array
from collc.ir.diagnostic import Diagnostic, error, warning
from collc.ir.frozen import frozen
from collc.ir.node_names import LONGEST_NAME
from collc.ir.shown import some
from collc.ir.topology import Topology

from .model import is_open_end
from .ports import Fabric, JoinError, Seat, seats

__all__ = ["Box", "Joint", "box_of", "joint"]

_MOST_NAMES = 8


# ---- the machine


@frozen(eq=False)
class Box:
    """A machine without its open ends: ``nodes`` and ``links`` are those that its copies have, ascending.

    ``nics`` are the nodes that join a fabric, ``dropped`` the names of NICs that do not.
    """

    topology: Topology
    nodes: Array
    links: Array
    nics: tuple[int, ...]
    dropped: tuple[str, ...] = ()

    @property
    def num_ranks(self) -> int:
        """Ranks of one copy."""
        return int((self.nodes < self.topology.num_ranks).sum())


def box_of(topology: Topology, pattern: str | None = None) -> Box:
    """Return a machine as its copies are: without its open ends, the switches ``fabric`` and ``fabric/..``.

    The NICs are the nodes that are linked to these; with a ``pattern`` only those whose names match, and without open
    ends all nodes whose names match. Other NICs are left out, unless they are ranks, and so are switches that joined
    only those to others. Raises JoinError C0951 for a machine without NICs.
    """
    names, ranks = topology.names, topology.num_ranks
    ends = {node for node in range(ranks, topology.num_nodes) if is_open_end(names[node])}
    near = _near(topology)
    beside = sorted({node for end in ends for node in near[end]} - ends)
    nodes = beside if ends else list(range(topology.num_nodes)) if pattern is not None else []
    nics = [node for node in nodes if pattern is None or fnmatchcase(names[node], pattern)]
    if not nics:
        raise _without_nics(topology, beside, pattern)
    others = [node for node in beside if node not in set(nics)]
    absent = ends | _pruned(near, ends, [node for node in others if node >= ranks], set(nics), ranks)
    kept = np.ones(topology.num_nodes, dtype=bool)
    kept[list(absent)] = False
    links = np.flatnonzero(kept[topology.src] & kept[topology.dst])
    return Box(topology, np.flatnonzero(kept), links, tuple(nics), tuple(names[node] for node in others))


def _near(topology: Topology) -> dict[int, set[int]]:
    """Return the neighbours of every node."""
    near = defaultdict[int, set[int]](set)
    for a, b in zip(topology.src.tolist(), topology.dst.tolist(), strict=True):
        if a != b:
            near[a].add(b)
            near[b].add(a)
    return near


def _pruned(
    near: dict[int, set[int]], ends: set[int], dropped: Iterable[int], protected: set[int], ranks: int
) -> set[int]:
    """Return the dropped nodes, and the switches that without them have fewer than two neighbours."""
    absent, pending = set(ends), list(dropped)
    removed = set(pending)
    while pending:
        node = pending.pop()
        absent.add(node)
        for other in near[node] - absent:
            single = len(near[other] - absent) < 2
            if single and other >= ranks and other not in protected and other not in removed:
                removed.add(other)
                pending.append(other)
    return removed


def _without_nics(topology: Topology, beside: Sequence[int], pattern: str | None) -> JoinError:
    if pattern is None:
        message = f"`{topology.name}` has no NICs: no node is linked to a switch `fabric` or `fabric/..`"
        hint = "name the nodes that are NICs, as in `nic: mlx5_*`, or link them to a `switch fabric;`"
        return JoinError(error("C0951", message, hint=hint), "node")
    what = "NIC" if beside else "node"
    names = [f"`{topology.names[node]}`" for node in beside or range(topology.num_nodes)]
    hint = f"its {what}s are {some(names, _MOST_NAMES)}"
    return JoinError(error("C0951", f"no {what} of `{topology.name}` matches `{pattern}`", hint=hint), "nic")


# ---- both


@frozen(eq=False)
class Joint:
    """A machine and a fabric that fit, before the network is built: its size, and what is to be warned of."""

    box: Box
    fabric: Fabric
    seats: tuple[Seat, ...]
    absent: frozenset[int]  # nodes of the fabric that the network does not have
    warnings: tuple[Diagnostic, ...]

    @property
    def num_nodes(self) -> int:
        """Nodes of the network."""
        return self.fabric.topology.num_nodes - len(self.absent) + len(self.seats) * len(self.box.nodes)

    @property
    def num_links(self) -> int:
        """The most links that the network has."""
        cabled = sum(len(cable) for seat in self.seats for cable in seat.cables)
        return self.fabric.topology.num_links + cabled + len(self.seats) * len(self.box.links)

    def topology(self, name: str) -> Topology:
        """Return the network: the ranks of copies in place of their host, then the switches of all copies, then those
        of the fabric.

        Nodes of a copy are called ``HOST/NAME``. Raises JoinError C0953 if two nodes would have one name.
        """
        fabric, box = self.fabric.topology, self.box.topology
        numbers = _Numbers(self)
        names = numbers.names()
        _require_names(names, box.name, fabric.name)
        src, dst, kind = numbers.links()
        used, kind = np.unique(kind, return_inverse=True)
        both = (*box.classes, *fabric.classes)
        classes = tuple(dict.fromkeys(both[i] for i in used))
        number = np.array([classes.index(both[i]) for i in used], dtype=np.int64)
        ranks = fabric.num_ranks + len(self.seats) * (self.box.num_ranks - 1)
        return Topology(
            name, ranks, src, dst, len(names) - ranks, link_class=number[kind], classes=classes,
            unit=box.unit if len(self.box.links) else fabric.unit, node_names=tuple(names),
            gamma=max(box.gamma, fabric.gamma), epsilon=max(box.epsilon, fabric.epsilon),
            multicast=numbers.switches(box.multicast, fabric.multicast),
            reduces=numbers.switches(box.reduces, fabric.reduces),
        )  # fmt: skip


def joint(box: Box, fabric: Topology, hosts: Sequence[int], pattern: str | None = None) -> Joint:
    """Return how copies of a machine join a fabric in place of its ``hosts``, ranks in ascending order.

    A switch linked to a host and called ``HOST/NIC`` is the port of that NIC, which takes its place. Ports of other
    names are joined in order if their number fits. A host without ports gives its links to the NICs: link i to NIC i,
    or its only link to all. Raises JoinError C0312 for units that differ, C0952 if NICs and ports do not match.
    """
    if len(box.links) and fabric.num_links and box.topology.unit != fabric.unit:
        units = [f"`{one.name}` are in {_unit(one)}" for one in (box.topology, fabric)]
        hint = "give both a bandwidth in B/s: `with { bandwidth: 25 GB/s }`"
        raise JoinError(error("C0312", f"links of {units[0]}, those of {units[1]}", hint=hint), "fabric")
    links = Fabric(fabric)
    nics = [box.topology.names[node] for node in box.nics]
    found, warnings = seats(links, hosts, nics, pattern, box.topology.name)
    near, ranks = _near(fabric), fabric.num_ranks
    ports = {port for seat in found for port in seat.ports}
    dropped = [port for seat in found for port in seat.dropped]
    absent = {*hosts, *ports, *_pruned(near, set(), dropped, ports, ranks)}
    return Joint(box, links, tuple(found), frozenset(absent), (*_dropped(box), *warnings))


def _require_names(names: Sequence[str], machine: str, fabric: str) -> None:
    """Raise C0953 if two nodes have one name, or a name is too long."""
    if twice := [one for one, count in Counter(names).items() if count > 1]:
        message = f"two nodes would be called `{twice[0]}`"
        hint = f"rename the node of `{fabric}`: those of `{machine}` get the name of their host"
        raise JoinError(error("C0953", message, hint=hint), "fabric")
    longest = max(names, key=len)
    if len(longest) > LONGEST_NAME:
        message = f"a node's name would have {len(longest)} characters, needed at most {LONGEST_NAME}"
        raise JoinError(error("C0953", message, hint="give the hosts shorter names"), "fabric")


def _unit(topology: Topology) -> str:
    return "B/s" if topology.unit == "B/s" else "link units"


def _dropped(box: Box) -> list[Diagnostic]:
    if not box.dropped:
        return []
    names = some([f"`{name}`" for name in box.dropped], _MOST_NAMES)
    plural = "s" * (len(box.dropped) > 1)
    message = f"the NIC{plural} {names} of `{box.topology.name}` {'do' if plural else 'does'} not join the fabric"
    return [warning("C0954", message)]


class _Numbers:
    """The numbers that nodes of copies and of the fabric have in the joined network."""

    def __init__(self, joint: Joint):
        self.joint = joint
        fabric, box, absent = joint.fabric.topology, joint.box, joint.absent
        seat_of = {seat.host: number for number, seat in enumerate(joint.seats)}
        inner, count = box.num_ranks, 0
        first = np.zeros(len(joint.seats), dtype=np.int64)  # rank of each copy
        self.outer = np.full(fabric.num_nodes, -1, dtype=np.int64)  # node of the fabric -> its number
        for rank in range(fabric.num_ranks):
            if rank in seat_of:
                first[seat_of[rank]] = count
                count += inner
            else:
                self.outer[rank] = count
                count += 1
        outer = len(box.nodes) - inner
        places = np.arange(len(box.nodes))
        begin = count + np.arange(len(joint.seats)) * outer - inner
        # [copy, place in the box] -> number
        self.copies = np.where(places < inner, first[:, None] + places, begin[:, None] + places)
        rest = [node for node in range(fabric.num_ranks, fabric.num_nodes) if node not in absent]
        self.outer[rest] = count + len(joint.seats) * outer + np.arange(len(rest))
        self.place = np.full(box.topology.num_nodes, -1, dtype=np.int64)
        self.place[box.nodes] = places

    def names(self) -> list[str]:
        """Return the names of all nodes."""
        fabric, box = self.joint.fabric.topology, self.joint.box
        names = [""] * self.joint.num_nodes
        own = [box.topology.names[node] for node in box.nodes.tolist()]
        for seat, numbers in zip(self.joint.seats, self.copies.tolist(), strict=True):
            host = fabric.names[seat.host]
            for name, number in zip(own, numbers, strict=True):
                names[number] = f"{host}/{name}"
        for node in np.flatnonzero(self.outer >= 0).tolist():
            names[self.outer[node]] = fabric.names[node]
        return names

    def switches(self, inside: tuple[int, ...], outside: tuple[int, ...]) -> tuple[int, ...]:
        """Return the switches that these of the machine and of the fabric are, ascending."""
        places = [self.place[node] for node in inside if self.place[node] >= 0]
        found = [*self.copies[:, places].ravel().tolist(), *self.outer[list(outside)].tolist()]
        return tuple(sorted(node for node in found if node >= 0))

    def links(self) -> tuple[Array, Array, Array]:
        """Return the ends and classes of all links: those of copies, then those of the fabric; classes of the fabric
        are numbered after those of the machine.
        """
        box, fabric = self.joint.box.topology, self.joint.fabric.topology
        inside = self.joint.box.links
        ends = [self.copies[:, self.place[column[inside]]].ravel() for column in (box.src, box.dst)]
        kinds = np.tile(box.link_class[inside].astype(np.int64), len(self.joint.seats))
        outside = np.array(self._outside(), dtype=np.int64).reshape(-1, 3)
        classes = fabric.link_class.astype(np.int64)[outside[:, 2]] + len(box.classes)
        return (
            np.concatenate([ends[0], outside[:, 0]]), np.concatenate([ends[1], outside[:, 1]]),
            np.concatenate([kinds, classes]),
        )  # fmt: skip

    def _outside(self) -> list[tuple[int, int, int]]:
        """Return tail, head and number of the fabric's links, one for each NIC that takes a link over."""
        fabric, joint = self.joint.fabric, self.joint
        number = {node: [int(new)] for node, new in enumerate(self.outer) if new >= 0}
        taken = defaultdict[tuple[int, int], list[int]](list)  # (host, link) -> the NICs that take it over
        hosts = {seat.host for seat in joint.seats}
        for seat, copy in zip(joint.seats, self.copies, strict=True):
            nics = [int(copy[self.place[nic]]) for nic in joint.box.nics]
            number.update({port: [nic] for port, nic in zip(seat.ports, nics, strict=False)})
            for nic, cable in zip(nics, seat.cables, strict=False):
                for link in cable:
                    taken[seat.host, link].append(nic)
        rows = list[tuple[int, int, int]]()
        for link, ends in enumerate(zip(fabric.src, fabric.dst, strict=True)):
            tails, heads = (taken[end, link] if end in hosts else number.get(end, []) for end in ends)
            rows += [(a, b, link) for a, b in _paired(tails, heads)]
        return rows


def _paired(tails: Sequence[int], heads: Sequence[int]) -> Iterable[tuple[int, int]]:
    """Return the links that stand for one: NIC i to NIC i between two hosts, else one for each NIC."""
    if len(tails) == len(heads):
        return zip(tails, heads, strict=True)
    return [(a, b) for a in tails for b in heads]
