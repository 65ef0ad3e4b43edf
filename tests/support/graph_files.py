"""Graphs as files of other programs, for the readers of graphs: one description, three formats, some dialects."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple
from xml.sax.saxutils import quoteattr

__all__ = ["FORMATS", "MANGLINGS", "Drawn", "box", "dot", "graphml", "nodelink", "pair", "ring"]

#: a node: its id and its attributes; an edge: both ids and the attributes
Node = tuple[object, Mapping[str, object]]
Edge = tuple[object, object, Mapping[str, object]]


class Drawn(NamedTuple):
    """A graph: nodes, edges, and attributes of the whole."""

    nodes: Sequence[Node]
    edges: Sequence[Edge]
    directed: bool = False
    about: Mapping[str, object] = {}


def pair(**attributes: object) -> Drawn:
    """Return two GPUs with one link that has these attributes."""
    return Drawn([("a", {}), ("b", {})], [("a", "b", attributes)])


def ring(ranks: int = 4, directed: bool = False, **attributes: object) -> Drawn:
    """Return a ring of ranks, each edge with these attributes."""
    return Drawn(
        [(f"n{k}", {}) for k in range(ranks)], [(f"n{k}", f"n{(k + 1) % ranks}", attributes) for k in range(ranks)],
        directed,
    )  # fmt: skip


def box(gpus: int = 4, **about: object) -> Drawn:
    """Return GPUs on a switch with 25 GB/s and 2 us each, and a ring of direct links of 10 GB/s."""
    nodes: list[Node] = [(f"gpu{k}", {"kind": "gpu"}) for k in range(gpus)]
    nodes.append(("sw", {"kind": "switch"}))
    edges: list[Edge] = [(f"gpu{k}", "sw", {"bw": 25, "lat": 2}) for k in range(gpus)]
    edges += [(f"gpu{k}", f"gpu{(k + 1) % gpus}", {"bw": 10}) for k in range(gpus)]
    return Drawn(nodes, edges, about=about)


# ---- formats


def nodelink(graph: Drawn, key: str = "edges", indent: int | None = 1, multigraph: bool = True) -> str:
    """Return node-link JSON."""
    value = {
        "directed": graph.directed, "multigraph": multigraph, "graph": dict(graph.about),
        "nodes": [{**attributes, "id": name} for name, attributes in graph.nodes],
        key: [{**attributes, "source": a, "target": b} for a, b, attributes in graph.edges],
    }  # fmt: skip
    return json.dumps(value, indent=indent)


def graphml(graph: Drawn, prefix: str = "", defaults: Mapping[str, object] | None = None) -> str:
    """Return GraphML, one element a line; ``defaults`` are declared for edges."""
    p, given = (f"{prefix}:" if prefix else ""), defaults or {}
    xmlns = f"xmlns:{prefix}" if prefix else "xmlns"
    of_edges = dict.fromkeys([*given, *(name for *_, attributes in graph.edges for name in attributes)])
    of_nodes = dict.fromkeys(name for _, attributes in graph.nodes for name in attributes)
    lines = ["<?xml version='1.0' encoding='utf-8'?>", f'<{p}graphml {xmlns}="http://graphml.graphdrawing.org/xmlns">']
    for owner, names in (("edge", of_edges), ("node", of_nodes), ("graph", graph.about)):
        for name in names:
            default = f"<{p}default>{given[name]}</{p}default>" if owner == "edge" and name in given else ""
            lines.append(
                f'<{p}key id="{owner}-{name}" for="{owner}" attr.name="{name}" attr.type="string">{default}</{p}key>'
            )
    lines.append(f'<{p}graph edgedefault="{"directed" if graph.directed else "undirected"}">')

    def data(owner: str, attributes: Mapping[str, object]) -> str:
        return "".join(f'<{p}data key="{owner}-{name}">{value}</{p}data>' for name, value in attributes.items())

    lines.append(data("graph", graph.about))
    lines += [f"<{p}node id={quoteattr(str(n))}>{data('node', a)}</{p}node>" for n, a in graph.nodes]
    lines += [
        f"<{p}edge source={quoteattr(str(a))} target={quoteattr(str(b))}>{data('edge', attributes)}</{p}edge>"
        for a, b, attributes in graph.edges
    ]
    return "\n".join([*lines, f"</{p}graph>", f"</{p}graphml>", ""])


def dot(graph: Drawn, name: str = "") -> str:
    """Return a text in Graphviz's language, one statement a line."""

    def shown(value: object) -> str:
        return f'"{value}"'

    def listed(attributes: Mapping[str, object]) -> str:
        return f" [{', '.join(f'{key}={shown(value)}' for key, value in attributes.items())}]" if attributes else ""

    arrow = "->" if graph.directed else "--"
    lines = [f"{'digraph' if graph.directed else 'graph'} {name} {{"]
    lines += [f"  {key}={shown(value)};" for key, value in graph.about.items()]
    lines += [f"  {shown(n)}{listed(attributes)};" for n, attributes in graph.nodes]
    lines += [f"  {shown(a)} {arrow} {shown(b)}{listed(attributes)};" for a, b, attributes in graph.edges]
    return "\n".join([*lines, "}", ""])


FORMATS: dict[str, Callable[[Drawn], str]] = {"nodelink": nodelink, "graphml": graphml, "dot": dot}

#: how editors and trackers change a text that stays of the same format
MANGLINGS: dict[str, Callable[[str], str]] = {
    "tabs": lambda text: text.replace("\n ", "\n\t"),
    "CR LF": lambda text: text.replace("\n", "\r\n"),
    "byte order mark": lambda text: f"\ufeff{text}",
    "blank lines": lambda text: text.replace("\n", "\n\n"),
    "trailing blanks": lambda text: text.replace("\n", "  \n"),
}
