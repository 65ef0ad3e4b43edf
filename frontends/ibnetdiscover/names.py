"""Names of hosts, their adapters and switches, from the descriptions of nodes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from collc.ir.frozen import frozen

from .text import Node

__all__ = ["Adapter", "adapter", "is_part_of_switch", "natural", "switch_names"]

#: descriptions of the firmware, and of hosts before they have a name
_UNNAMED = re.compile(
    r"(?:MT[0-9]{4,}|localhost|\(none\)|unknown|Mellanox|Voltaire|QLogic|ConnectX|InfiniHost)(?![\w.-])|.*Technologies",
    re.IGNORECASE,
)
#: descriptions of managed switches: `MF0;NAME:MODEL/U1`, or another unit of a director
_MANAGED = re.compile(r"MF0;(?P<name>[^:;]+):[^/]+/(?P<unit>.+)")


@frozen
class Adapter:
    """The host of a host channel adapter, its own name, and whether the description names them."""

    host: str
    name: str | None
    is_named: bool


def adapter(node: Node) -> Adapter:
    """Return the host and the adapter: the first two words of the description, or the GUID.

    The name is None if the description has none; the port's number is used then.
    """
    words = node.name.split()
    if not words or _UNNAMED.match(node.name):
        return Adapter(node.guid, None, False)
    return Adapter(words[0], words[1] if len(words) > 1 else None, True)


def is_part_of_switch(node: Node) -> bool:
    """Return whether a channel adapter is a part of a switch that reduces (SHARP), and no host."""
    return node.kind == "H" and "aggregation node" in node.name.lower()


def switch_names(nodes: Iterable[Node], taken: Iterable[str]) -> dict[str, str]:
    """Return a name for each switch and router by its GUID: of the description if no other has it, else the GUID.

    >>> from collc.ir.diagnostic import Source, Span
    >>> one = Node("S", "S-01", "MF0;leaf1:MQM8700/U1", None)
    >>> switch_names([one, Node("S", "S-02", "Quantum", None), Node("S", "S-03", "Quantum", None)], [])
    {'S-01': 'leaf1', 'S-02': 'S-02', 'S-03': 'S-03'}
    """
    found = {node.guid: _switch_name(node) for node in nodes}
    counts = Counter([*found.values(), *taken])
    return {guid: name if name and counts[name] == 1 else guid for guid, name in found.items()}


def _switch_name(node: Node) -> str:
    managed = _MANAGED.fullmatch(node.name)
    if managed is None:
        return node.name.replace('"', "")
    unit = managed["unit"]
    return managed["name"] if unit == "U1" else f"{managed['name']}/{unit}"


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Return the key to sort names by, with numbers as numbers.

    >>> sorted(["mlx5_10", "mlx5_2"], key=natural)
    ['mlx5_2', 'mlx5_10']
    """
    parts = re.findall(r"[0-9]{1,18}|[^0-9]+", name)
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts)
