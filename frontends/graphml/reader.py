"""GraphML -> graph: keys with defaults, any prefix of the namespace, the labels and arrows that yEd draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, cast

from collc.ir.diagnostic import CollcError, Source, Span, error

from ..importing.choosing import chosen
from ..importing.graphs import Edge, Graph, Vertex, network_of
from ..importing.trees import ElementPlaces, element_place, parse_xml

if TYPE_CHECKING:
    from lxml.etree import _Element

    from ..importing.figures import Figures
    from ..importing.model import Imported

__all__ = ["graph_in"]

_MOST_MISTAKES = 20

#: element -> why it has no place in a network
_REFUSED = {
    "hyperedge": "an edge joins two nodes: write a switch, and an edge from it to each of them",
    "port": "write ports as nodes of the kind `nic`",
}

#: what yEd draws
_DRAWN = frozenset({"nodegraphics", "edgegraphics", "graphicslabel"})

_NESTED = "write the nodes of all graphs in one `graph`"


class Key(NamedTuple):
    """A declared attribute: its name, and its default or None."""

    name: str
    default: str | None


def graph_in(source: Source, figures: Figures) -> Imported:
    """Return the network of one text."""
    root = parse_xml(source)
    if _name(root) != "graphml":
        raise error("C0924", f"found `<{_name(root)}>`, needed `<graphml>`", span=element_place(source, root))
    graphs = [child for child in root if _name(child) == "graph"]
    names = [str(graph.get("id") or number) for number, graph in enumerate(graphs)]
    if not graphs:
        raise error("C0924", "found no `<graph>` in the file", span=element_place(source, root))
    graph = graphs[chosen(names, figures, element_place(source, graphs[min(1, len(graphs) - 1)]))]
    return network_of(_Reader(source, root, figures).graph(graph), figures)


class _Reader:
    """The elements of one text."""

    def __init__(self, source: Source, root: _Element, figures: Figures):
        self.figures, self.places = figures, ElementPlaces(source, root)
        self.mistakes: list[CollcError] = []
        self.keys: dict[str, dict[str, Key]] = {"node": {}, "edge": {}, "graph": {}}
        for child in root:
            if _name(child) == "key":
                self._declare(child)

    def _wrong(self, message: str, element: _Element, attribute: str | None = None, hint: str | None = None) -> None:
        if len(self.mistakes) < _MOST_MISTAKES:
            span = self.places.of(element, attribute)
            self.mistakes.append(error("C0924", message, span=span, hint=hint))

    def _declare(self, element: _Element) -> None:
        identity, owner = str(element.get("id", "")), str(element.get("for", "all"))
        name = str(element.get("attr.name") or element.get("yfiles.type") or identity)
        default = next((_text(child) for child in element if _name(child) == "default"), None)
        for owned in self.keys if owner in ("all", "") else [owner]:
            if owned in self.keys:
                self.keys[owned][identity] = Key(name, default)

    # ---- the graph

    def graph(self, graph: _Element) -> Graph:
        """Return the graph of an element, with its mistakes."""
        nodes = [child for child in graph if _name(child) == "node"]
        edges = [child for child in graph if _name(child) == "edge"]
        self.figures.require_within(len(nodes), len(edges), self.places.of(graph))
        directed = self._default(graph)
        attributes = self._data(graph, "graph")
        vertices = [vertex for node in nodes if (vertex := self._vertex(node))]
        links = [edge for element in edges if (edge := self._edge(element, directed))]
        for child in graph:
            if _name(child) in _REFUSED:
                self._wrong(f"found `<{_name(child)}>`, needed nodes and edges", child, hint=_REFUSED[_name(child)])
        self._graph = graph
        return Graph("graphml", self._place, attributes, vertices, _in_order_of_ids(links),
                     drawn=_DRAWN, mistakes=self.mistakes)  # fmt: skip

    def _default(self, graph: _Element) -> bool:
        default = graph.get("edgedefault", "undirected")
        if default not in ("directed", "undirected"):
            hint = 'write `edgedefault="undirected"`'
            self._wrong(f"found the edge default `{default}`", graph, "edgedefault", hint)
        return bool(default == "directed")

    def _vertex(self, node: _Element) -> Vertex | None:
        identity = node.get("id")
        if identity is None:
            self._wrong("found a node without `id`", node)
            return None
        for child in node:
            if _name(child) == "graph":
                self._wrong("found a graph inside a node", child, hint=_NESTED)
            elif _name(child) in _REFUSED:
                self._wrong(f"found `<{_name(child)}>` in a node", child, hint=_REFUSED[_name(child)])
        attributes = self._data(node, "node")
        if "label" not in attributes and (label := _drawn(node, "NodeLabel")):
            attributes["label"] = label
        return Vertex(str(identity), str(identity), attributes, node)

    def _edge(self, element: _Element, directed: bool) -> Edge | None:
        ends = [element.get(end) for end in ("source", "target")]
        for name, end in zip(("source", "target"), ends, strict=True):
            if end is None:
                self._wrong(f"found an edge without `{name}`", element)
                return None
        for name in ("sourceport", "targetport"):
            if element.get(name) is not None:
                self._wrong("found an edge between ports", element, name, _REFUSED["port"])
        own = element.get("directed")
        if own not in (None, "true", "false"):
            self._wrong(f"found `{own}`, needed `true` or `false`", element, "directed")
        if own is not None:
            directed = own == "true"
        attributes = self._data(element, "edge")
        if element.get("id") is not None:
            attributes.setdefault("id", str(element.get("id")))
        a, b = map(str, ends)
        for child in element:
            if _name(child) == "graph":
                self._wrong("found a graph inside an edge", child, hint=_NESTED)
        arrows = _arrows(element)
        if directed and arrows in (("none", "none"), ("some", "some")):
            directed = False
        elif directed and arrows == ("some", "none"):
            a, b = b, a
        return Edge(a, b, attributes, directed, element)

    def _data(self, element: _Element, owner: str) -> dict[str, object]:
        keys = self.keys[owner]
        found: dict[str, object] = {key.name: key.default for key in keys.values() if key.default is not None}
        for child in element:
            if _name(child) != "data":
                continue
            key = keys.get(str(child.get("key")))
            if key is None:
                hint = f'declare it: `<key id=".." for="{owner}" attr.name=".." attr.type="string"/>`'
                self._wrong(f"found data with the undeclared key `{child.get('key')}`", child, "key", hint)
            elif key.name not in found or not len(child):
                found[key.name] = _text(child)
        return found

    # ---- places

    def _place(self, at: object, attribute: str | None) -> Span | None:
        element = cast("_Element", self._graph if at is None else at)
        if attribute in ("source", "target", "id"):
            return self.places.of(element, attribute)
        owner = {"node": "node", "edge": "edge"}.get(_name(element), "graph")
        for child in element:
            key = self.keys[owner].get(str(child.get("key"))) if _name(child) == "data" else None
            if key and key.name == attribute:
                return self.places.of_text(child)
        return self.places.of(element)


def _name(element: _Element) -> str:
    """Return the name of an element without its namespace."""
    return str(element.tag).rpartition("}")[2]


def _text(element: _Element) -> str:
    return "".join(element.itertext()).strip()


def _drawn(node: _Element, name: str) -> str:
    """Return the first text of yEd's label of a node; "" if it draws none."""
    return next((_own_text(element) for element in _descendants(node) if _name(element) == name), "")


def _own_text(element: _Element) -> str:
    return str(element.text or "").strip()


def _descendants(element: _Element) -> Iterator[_Element]:
    for child in element:
        if _name(child) == "data" and len(child):
            yield from child.iterdescendants()


def _arrows(edge: _Element) -> tuple[str, str] | None:
    """Return whether yEd draws arrows at both ends; None for an edge that it did not draw."""
    found: Mapping[str, str] | None = next((e.attrib for e in _descendants(edge) if _name(e) == "Arrows"), None)
    if found is None:
        return None
    source, target = ("none" if found.get(end, "none") == "none" else "some" for end in ("source", "target"))
    return source, target


def _in_order_of_ids(edges: list[Edge]) -> list[Edge]:
    """Return the edges in the order of their ids if these number all of them, as networkx and collc write them."""
    ids = [str(edge.attributes.get("id", "")) for edge in edges]
    if not all(one.isascii() and one.isdigit() and len(one) < 10 for one in ids):
        return edges
    if sorted(map(int, ids)) != list(range(len(ids))):
        return edges
    return sorted(edges, key=lambda edge: int(str(edge.attributes["id"])))
