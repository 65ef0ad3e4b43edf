"""GraphML in the form that networkx writes: typed keys, one element a line, edges numbered by their links."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from .values import powers, refused, require_printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collc.ir.topology import Topology

__all__ = ["write"]

_HEAD = (
    "<?xml version='1.0' encoding='utf-8'?>",
    '<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
    'xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns '
    'http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">',
)

#: key -> the element it belongs to and its name; values are exact as texts
_KEYS = {
    "d0": ("edge", "bandwidth"), "d1": ("edge", "latency"), "d2": ("node", "name"), "d3": ("node", "kind"),
    "d4": ("graph", "name"), "d5": ("graph", "unit"), "d6": ("graph", "gamma"), "d7": ("graph", "epsilon"),
    "d8": ("node", "multicast"), "d9": ("node", "reduces"),
}  # fmt: skip

_POWERS = {"multicast": "d8", "reduces": "d9"}


def write(topology: Topology) -> str:
    """Return the GraphML; raise C0780 for empty names and names with control characters.

    ``networkx.read_graphml(path, edge_key_type=int, force_multigraph=True)`` and ``Topology.from_networkx`` read the
    same topology from it.
    """
    require_printable((topology.name, *topology.names), "GraphML")
    if "" in topology.names:
        raise refused("GraphML", f"node {topology.names.index('')} has an empty name", "give the node a name")
    lines = [*_HEAD, *_keys(topology), '  <graph edgedefault="directed">', *_about(topology)]
    return "\n".join([*lines, *_nodes(topology), *_edges(topology), "  </graph>", "</graphml>", ""])


def _keys(topology: Topology) -> Iterator[str]:
    unused = {name for name in ("gamma", "epsilon", "multicast", "reduces") if not getattr(topology, name)}
    for key, (owner, name) in _KEYS.items():
        if name not in unused:
            yield f'  <key id="{key}" for="{owner}" attr.name="{name}" attr.type="string" />'


def _data(key: str, value: object) -> str:
    return f'<data key="{key}">{escape(str(value))}</data>'


def _about(topology: Topology) -> Iterator[str]:
    values = {"d4": topology.name, "d5": topology.unit, "d6": topology.gamma, "d7": topology.epsilon}
    for key, value in values.items():
        if value:
            yield f"    {_data(key, value)}"


def _nodes(topology: Topology) -> Iterator[str]:
    for node, name in enumerate(topology.names):
        kind = "rank" if node < topology.num_ranks else "switch"
        more = "".join(_data(_POWERS[power], value) for power, value in powers(topology, node).items())
        yield f'    <node id="{node}">{_data("d2", name)}{_data("d3", kind)}{more}</node>'


def _edges(topology: Topology) -> Iterator[str]:
    kinds = [f"{_data('d0', kind.bandwidth)}{_data('d1', kind.latency)}" for kind in topology.classes]
    ends = zip(topology.src.tolist(), topology.dst.tolist(), topology.link_class.tolist(), strict=True)
    for link, (src, dst, number) in enumerate(ends):
        yield f'    <edge source="{src}" target="{dst}" id="{link}">{kinds[number]}</edge>'
