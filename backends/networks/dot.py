"""Graphviz: nodes with their kinds as shapes, links with exact attributes, duplex links as one edge where they may be.

A link and the next one become one edge with ``dir=both`` if the next one is its reverse, of the same class. A reader
that makes two links of such an edge, the one along it first, gets all links in their order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .values import powers, require_printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from fractions import Fraction

    from collc.ir.topology import LinkClass, Topology

__all__ = ["quoted", "write"]


def write(topology: Topology, drawn: Sequence[Mapping[str, str]] = ()) -> str:
    """Return the digraph; raise C0780 for names with control characters.

    Nodes are numbers, in order, with their names as labels. Graph attributes are ``unit``, and ``gamma`` and
    ``epsilon`` if they are not 0. ``drawn`` are further attributes of every link, for Graphviz.
    """
    require_printable((topology.name, *topology.names), "Graphviz")
    times = {"gamma": topology.gamma, "epsilon": topology.epsilon}
    about = {"unit": topology.unit, **{name: str(time) for name, time in times.items() if time}}
    lines = [f"digraph {quoted(topology.name)} {{", f"  graph [{_listed(about)}];"]
    return "\n".join([*lines, *_nodes(topology), *_edges(topology, drawn), "}", ""])


def quoted(text: str) -> str:
    """Return a text in quotes; Graphviz shows a label's escapes, so a backslash is doubled."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _listed(attributes: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={quoted(value)}" for name, value in attributes.items())


def _nodes(topology: Topology) -> Iterator[str]:
    for node, name in enumerate(topology.names):
        rank = node < topology.num_ranks
        kind, shape = ("rank", "box") if rank else ("switch", "ellipse")
        yield f"  {node} [{_listed({'label': name, 'kind': kind, 'shape': shape, **powers(topology, node)})}];"


def _edges(topology: Topology, drawn: Sequence[Mapping[str, str]]) -> Iterator[str]:
    kinds = [_attributes(kind, topology.unit) for kind in topology.classes]
    links = list(zip(topology.src.tolist(), topology.dst.tolist(), topology.link_class.tolist(), strict=True))
    at = 0
    while at < len(links):
        src, dst, kind = links[at]
        duplex = src != dst and at + 1 < len(links) and links[at + 1] == (dst, src, kind)
        duplex = duplex and (not drawn or drawn[at] == drawn[at + 1])
        more = f", {_listed(drawn[at])}" if drawn else ""
        yield f"  {src} -> {dst} [{kinds[kind]}{more}{', dir=both' if duplex else ''}];"
        at += 1 + duplex


def _attributes(kind: LinkClass, unit: str) -> str:
    return _listed(
        {"bandwidth": str(kind.bandwidth), "latency": str(kind.latency), "label": _label(kind.bandwidth, unit)}
    )


def _label(bandwidth: Fraction, unit: str) -> str:
    return f"{float(bandwidth / 10**9):g} GB/s" if unit == "B/s" else f"{float(bandwidth):g}"
