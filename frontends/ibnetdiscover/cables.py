"""Cables from what both ends say of them, and what their ends contradict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

import attrs

from collc.ir.shown import counted, some

from ..importing.model import Draft
from ..importing.tiers import tier_name
from .rates import bandwidth
from .text import Fabric, Node, Port

__all__ = ["Cable", "End", "cables", "groups", "heights", "warn_of_missing_blocks"]

#: a port: the GUID of its node as the text has it, and its number
End = tuple[str, int]


@attrs.define(eq=False)
class Cable:
    """A cable between two ports: its rate as printed, its speed in bytes/s, and the port that lists it.

    Rate and speed are None if neither end has a known rate. ``height`` is that of the lower end, ``a``.
    """

    a: End
    b: End
    rate: str | None
    speed: Fraction | None
    port: Port
    height: int = 0

    @property
    def tier(self) -> str:
        """The name of the tier."""
        return tier_name(self.height)


def cables(draft: Draft, fabric: Fabric, nodes: Mapping[str, Node]) -> list[Cable]:
    """Return the cables between some nodes, in the order of the text; faults of their ends are added to the draft.

    A cable that both ends list comes before one that only one end lists, if they share a port.
    """
    used = set[End]()
    found = list[Cable]()
    for mutual in (True, False):
        for end, port in fabric.ports.items():
            peer = (port.peer, port.peer_port)
            if end in used or port.node not in nodes or port.peer not in nodes:
                continue
            back = fabric.ports.get(peer)
            if mutual == (back is not None and (back.peer, back.peer_port) == end):
                if not mutual:
                    _warn_one_sided(draft, fabric, nodes, port, back)
                if peer not in used:
                    used |= {end, peer}
                    found.append(_cable(draft, nodes, port, back if mutual else None))
    order = {end: number for number, end in enumerate(fabric.ports)}
    found.sort(key=lambda cable: order[cable.a])
    _set_heights(nodes, found)
    return found


def _cable(draft: Draft, nodes: Mapping[str, Node], port: Port, back: Port | None) -> Cable:
    """Return the cable of a port; ends with different rates are a fault, and the lower rate counts."""
    rates = {one.rate: speed for one in (port, back) if one and one.rate and (speed := bandwidth(*one.rate))}
    if len(rates) == 2 and back is not None:
        texts = " and ".join("".join(rate) for rate in rates)
        draft.fault(f"the ends of the cable from {_end(nodes, port)} differ: {texts}", port.span)
    rate = min(rates, key=lambda one: rates[one], default=None)
    text = "".join(rate) if rate else None
    return Cable((port.node, port.port), (port.peer, port.peer_port), text, rates[rate] if rate else None, port)


def _warn_one_sided(
    draft: Draft, fabric: Fabric, nodes: Mapping[str, Node], port: Port, back: Port | None
) -> None:  # fmt: skip
    if back is not None:
        other = f"`{nodes[port.peer].name or port.peer}` port {port.peer_port} lists another cable"
        draft.fault(f"{_end(nodes, port)} lists a cable, and {other}", port.span)
    elif port.peer in fabric.nodes:  # a node without a block is reported once, below
        other = f"`{nodes[port.peer].name or port.peer}` does not list its port {port.peer_port}"
        draft.fault(f"only one end lists the cable from {_end(nodes, port)}: {other}", port.span)


def _end(nodes: Mapping[str, Node], port: Port) -> str:
    return f"`{nodes[port.node].name or port.node}` port {port.port}"


def warn_of_missing_blocks(draft: Draft, fabric: Fabric, nodes: Mapping[str, Node]) -> None:
    """Add one fault for the nodes that only others mention."""
    missing = [node for guid, node in nodes.items() if guid not in fabric.nodes]
    if missing:
        names = some([f"`{node.name or node.guid}`" for node in missing])
        message = f"{counted(len(missing), 'node')} without a block of their own: {names}"
        draft.fault(message, missing[0].span, hint="is the file complete? their cables are those that others list")


# ---- tiers


def heights(nodes: Mapping[str, Node], found: Sequence[Cable]) -> dict[str, int]:
    """Return how far above the hosts each node is: 0 for an adapter, 1 for a switch with hosts."""
    neighbours = dict[str, list[str]]()
    for cable in found:
        neighbours.setdefault(cable.a[0], []).append(cable.b[0])
        neighbours.setdefault(cable.b[0], []).append(cable.a[0])
    height = {guid: 0 for guid, node in nodes.items() if node.kind == "H"}
    queue = list(height)
    for guid in queue:
        for other in neighbours.get(guid, ()):
            if other not in height:
                height[other] = height[guid] + 1
                queue.append(other)
    return {guid: height.get(guid, 1) for guid in nodes}


def _set_heights(nodes: Mapping[str, Node], found: list[Cable]) -> None:
    """Set the heights of cables, and let each begin at its lower end."""
    height = heights(nodes, found)
    for cable in found:
        if height[cable.a[0]] > height[cable.b[0]]:
            cable.a, cable.b = cable.b, cable.a
        cable.height = height[cable.a[0]]


def groups(cable: Cable, height: Mapping[str, int], host: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """Yield the groups of ports of the same kind that the ends of a cable are in: of a host, or of a switch."""
    for (guid, _), (other, _) in ((cable.a, cable.b), (cable.b, cable.a)):
        direction = "up" if height[other] > height[guid] else "down"
        yield (host.get(guid, guid), cable.tier, direction)
