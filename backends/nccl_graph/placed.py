"""Rings on the nodes of a cluster: the path of each ring through every node, and the NICs between the paths."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import attrs

from collc.ir.diagnostic import CollcError, Kind, Subject, error
from collc.ir.graph.nics import Cabling, Nic
from collc.ir.schedule import Forest, Schedule

from .rings import Ring, refused

__all__ = ["Placed", "place"]


@attrs.frozen(eq=False)
class Placed:
    """A ring on the nodes, in the order of the nodes.

    ``paths[n]`` are its ranks of node n, ``entries[n]`` and ``exits[n]`` the NICs by which it enters and leaves the
    node: none if all ranks are one node. ``links`` are the links that it uses, each as often as it does.
    """

    paths: tuple[tuple[int, ...], ...]
    entries: tuple[Nic | None, ...]
    exits: tuple[Nic | None, ...]
    share: Fraction
    links: tuple[int, ...]


def place(ring: Ring, cables: Cabling, schedule: Schedule | Forest) -> Placed:
    """Return a ring on the nodes of a cluster.

    Raises C0911 if the ring leaves a node and returns, or visits the nodes in another order than NCCL. Raises C0913 for
    routes that NCCL does not take.
    """
    order, routes = _from_first_node(ring, cables, schedule)
    boxes = [int(cables.box_of[rank]) for rank in order]
    paths = tuple(tuple(rank for rank, box in zip(order, boxes, strict=True) if box == n) for n in range(len(cables)))
    for rank, other, route in zip(order, (*order[1:], order[0]), routes, strict=True):
        _require_no_relay(cables, rank, other, route)
    entries: list[Nic | None] = [None] * len(paths)
    exits: list[Nic | None] = [None] * len(paths)
    last = -1
    for box, path in enumerate(paths):
        last += len(path)
        after = (box + 1) % len(paths)
        if len(paths) > 1 or _leaves(cables, routes[last], box):
            exits[box], entries[after] = _nics(cables, path[-1], routes[last], paths[after][0])
    for box, path in enumerate(paths):
        _require_one_nic(cables, path, entries[box], exits[box])
    links = tuple(link for route in routes if route is not None for link in route)
    return Placed(paths, tuple(entries), tuple(exits), ring.share, links)


def _from_first_node(
    ring: Ring, cables: Cabling, schedule: Schedule | Forest
) -> tuple[list[int], list[tuple[int, ...] | None]]:
    """Return a ring from where it enters node 0; raise C0911 unless it visits every node once, by number."""
    boxes = [int(cables.box_of[rank]) for rank in ring.order]
    several = len(cables) > 1
    leaving = [
        place
        for place, (box, route) in enumerate(zip(boxes, ring.routes, strict=True))
        if (boxes[(place + 1) % len(boxes)] != box if several else _leaves(cables, route, box))
    ]
    names = schedule.topology.names
    if len(leaving) > len(cables):
        first = names[ring.order[leaving[0]]]
        raise refused(
            schedule,
            f"a ring enters nodes {len(leaving)} times, but there are {len(cables)}: it leaves the node of {first} "
            "before it has passed all its ranks",
        )
    turn = next((place + 1 for place in leaving if boxes[(place + 1) % len(boxes)] == 0), 0) % len(boxes)
    visited = [boxes[(turn + place) % len(boxes)] for place in range(len(boxes))]
    nodes = list(dict.fromkeys(visited))
    if nodes != sorted(nodes):
        raise refused(
            schedule,
            f"a ring visits the nodes in the order {', '.join(map(str, nodes))}; "
            "NCCL's rings visit them by number, on every channel",
        )
    return [*ring.order[turn:], *ring.order[:turn]], [*ring.routes[turn:], *ring.routes[:turn]]


def _leaves(cables: Cabling, route: tuple[int, ...] | None, box: int) -> bool:
    """Return whether a route leaves a node, as it does by a NIC of a single node."""
    return route is not None and any(cables.box_of[cables.topology.dst[link]] != box for link in route)


def _require_no_relay(cables: Cabling, src: int, dst: int, route: tuple[int, ...] | None) -> None:
    topology = cables.topology
    between = [] if route is None else topology.dst[list(route[:-1])].tolist()
    relay = next((node for node in between if node < topology.num_ranks), None)
    if relay is not None:
        raise _cannot(
            f"data from {topology.names[src]} to {topology.names[dst]} pass {topology.names[relay]}",
            "a GPU of NCCL does not forward what it does not use; the graph file would mean another route",
        )


def _nics(cables: Cabling, src: int, route: tuple[int, ...] | None, dst: int) -> tuple[Nic, Nic]:
    """Return the NICs by which a ring leaves the node of a rank and enters the node of another."""
    box, after = int(cables.box_of[src]), int(cables.box_of[dst])
    if route is None:
        for leaving in cables.nics[box]:
            for entering in cables.nics[after]:
                if cables.crossing(src, leaving, entering, dst) is not None:
                    return leaving, entering
        names = cables.topology.names
        raise _cannot(f"no NICs join {names[src]} and {names[dst]}", "a ring closes the chain of this schedule")
    ends = cables.topology.src[list(route)].tolist(), cables.topology.dst[list(route)].tolist()
    pairs = list(zip(*ends, strict=True))
    out = next((a, b) for a, b in pairs if cables.box_of[b] != box or (box == after and cables.box_of[b] < 0))
    into = next((b, a) for a, b in reversed(pairs) if cables.box_of[a] != after)
    known = [{(nic.node, nic.outside): nic for nic in cables.nics[one]} for one in (box, after)]
    return known[0][out], known[1][into]


def _require_one_nic(cables: Cabling, path: Sequence[int], entry: Nic | None, leaving: Nic | None) -> None:
    if len(path) == 1 and entry != leaving:
        raise _cannot(
            f"the only GPU of a node, {cables.topology.names[path[0]]}, receives by one NIC and sends by another",
            "the first GPU of a node sends and receives by the entry NIC, whatever the file says",
        )


def _cannot(why: str, reason: str) -> CollcError:
    return error(
        "C0913", f"NCCL does not take the route of this schedule: {why}", notes=[reason],
        hint="`node` says how many ranks a node has; `nccl-rings` schedules what NCCL takes", kind=Kind.MISFIT,
        about=(Subject.SCHEDULER,),
    )  # fmt: skip
