"""Node-link JSON -> graph: an object with ``nodes`` and ``edges`` (``links`` in older files), and flags for the kind.

Ids may be any JSON values. As networkx does, a node without an id is called by its number; a graph without the keys
``directed`` and ``multigraph`` is undirected, with parallel edges.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, cast

from collc.ir.diagnostic import CollcError, Source, Span, error
from collc.ir.shown import clipped

from ..importing.graphs import Edge, Graph, Vertex, network_of
from ..importing.trees import Json, json_items, json_place, parse_json

if TYPE_CHECKING:
    from ..importing.figures import Figures
    from ..importing.model import Imported

__all__ = ["graph_in"]

_MOST_MISTAKES = 20


def graph_in(source: Source, figures: Figures) -> Imported:
    """Return the network of one text."""
    root = parse_json(source)
    if not isinstance(root, dict):
        raise error("C0924", "found no object, needed one with `nodes` and `edges`", span=json_place(source))
    return network_of(_Reader(source, root, figures).graph(), figures)


class _Reader:
    """The parts of one text."""

    def __init__(self, source: Source, root: Mapping[str, Json], figures: Figures):
        self.source, self.root, self.figures = source, root, figures
        self.offsets: dict[str, list[int]] = {}
        self.mistakes: list[CollcError] = []

    def graph(self) -> Graph:
        """Return the graph, with its mistakes."""
        edges_key = self._edges_key()
        nodes, edges = self._array("nodes"), self._array(edges_key)
        self.figures.require_within(len(nodes), len(edges))
        about = self.root.get("graph")
        attributes = _pairs(about)
        if attributes is None:
            self._wrong("found no object, needed the attributes of the graph", "graph")
        vertices = [self._vertex(number, node) for number, node in enumerate(nodes)]
        directed = self._flag("directed", False)
        found = [self._edge(edges_key, number, edge, directed) for number, edge in enumerate(edges)]
        known = _distinct([vertex for vertex in vertices if vertex])
        links = _by_number(known, [edge for edge in found if edge])
        if self._flag("multigraph", True):
            links = _in_order_of_keys(links)
        return Graph("nodelink", self._place, attributes or {}, known, links, mistakes=self.mistakes)

    # ---- the parts

    def _edges_key(self) -> str:
        given = [key for key in ("edges", "links") if key in self.root]
        filled = [key for key in given if self.root[key] != []]
        if len(filled) > 1:
            self._wrong("found `links` beside `edges`, needed one of them", "links")
        return (filled or given or ["edges"])[0]

    def _array(self, key: str) -> list[Json]:
        value = self.root.get(key)
        if isinstance(value, list):
            return value
        if key not in self.root:
            self._wrong(f"found an object without `{key}`, needed the array of {key}")
        else:
            self._wrong(f"found no array, needed the array of {key}", key)
        return []

    def _flag(self, key: str, default: bool) -> bool:
        value = self.root.get(key, default)
        if not isinstance(value, bool):
            self._wrong(f"found no true or false as `{key}`", key)
            return default
        return value

    def _vertex(self, number: int, node: Json) -> Vertex | None:
        if not isinstance(node, dict):
            hint = 'write `{"id": "gpu0"}`'
            self._wrong("found no object, needed a node", "nodes", number, hint=hint)
            return None
        value = node.get("id", number)
        return Vertex(_key(value), _id_text(value), node, ("nodes", number))

    def _edge(self, edges_key: str, number: int, edge: Json, directed: bool) -> Edge | None:
        if not isinstance(edge, dict):
            hint = 'write `{"source": "gpu0", "target": "gpu1"}`'
            self._wrong("found no object, needed an edge", edges_key, number, hint=hint)
            return None
        for end in ("source", "target"):
            if end not in edge:
                self._wrong(f"found an edge without `{end}`", edges_key, number)
        attributes = cast("Mapping[str, object]", edge)
        a, b = _key(edge.get("source")), _key(edge.get("target"))
        return Edge(a, b, attributes, directed, (edges_key, number))

    # ---- places

    def _wrong(self, message: str, *path: str | int, hint: str | None = None) -> None:
        if len(self.mistakes) < _MOST_MISTAKES:
            span = self._span(*path) if path else json_place(self.source)
            self.mistakes.append(error("C0924", message, span=span, hint=hint))

    def _place(self, at: object, attribute: str | None) -> Span | None:
        if at is None:
            return json_place(self.source, "graph", *([attribute] if attribute else []))
        key, number = cast("tuple[str, int]", at)
        found = self._span(key, number, attribute) if attribute else None
        return found or self._span(key, number)

    def _span(self, key: str | int, number: str | int | None = None, *attributes: str | int) -> Span | None:
        if not isinstance(number, int) or not isinstance(key, str):
            return json_place(self.source, key)
        if key not in self.offsets:  # one pass over the text, not one for each mistake
            self.offsets[key] = json_items(self.source, key)
        items = self.offsets[key]
        return json_place(self.source, *attributes, start=items[number]) if number < len(items) else None


def _distinct(vertices: list[Vertex]) -> list[Vertex]:
    """Return the nodes with texts that differ: of ids such as 7 and "7" the string is shown in quotes."""
    keys = dict[str, Hashable]()
    shared = {v.text for v in vertices if keys.setdefault(v.text, v.key) != v.key}
    return [
        v._replace(text=f"'{v.text}'") if v.text in shared and v.key == ("str", v.text) else v for v in vertices
    ]  # fmt: skip


def _pairs(value: Json) -> Mapping[str, object] | None:
    """Return the attributes of the graph: an object, or the pairs that older releases of networkx write."""
    if value is None or value == []:
        return {}
    if isinstance(value, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in value):
        return {str(pair[0]): pair[1] for pair in cast("list[list[Json]]", value)}
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else None


def _key(value: Json) -> Hashable:
    """Return an id as a key: numbers are equal by value, other types differ."""
    if isinstance(value, list):
        return tuple(_key(item) for item in value)
    if isinstance(value, dict):
        return "object", tuple((name, _key(item)) for name, item in value.items())
    if isinstance(value, int | Fraction) and not isinstance(value, bool):
        return "number", Fraction(value)
    return type(value).__name__, value


def _id_text(value: Json) -> str:
    """Return an id as networkx shows it.

    >>> _id_text([0, "a"]), _id_text(Fraction(3, 2)), _id_text(None)
    ("(0, 'a')", '1.5', 'None')
    """
    return value if isinstance(value, str) else repr(_shown(value))


def _shown(value: Json) -> object:
    match value:
        case list():
            return tuple(map(_shown, value))
        case dict():
            return {name: _shown(item) for name, item in value.items()}
        case Fraction():
            return float(value) if abs(value) < 10**300 else clipped(str(value))
        case _:
            return value


def _by_number(vertices: list[Vertex], edges: list[Edge]) -> list[Edge]:
    """Return the edges by ids, if none of them names an id but all name nodes by number, as d3 does."""
    keys = {vertex.key for vertex in vertices}
    ends = {end for edge in edges for end in (edge.a, edge.b)}
    numbers = {_key(number): vertex.key for number, vertex in enumerate(vertices)}
    if not ends or ends & keys or not ends <= numbers.keys():
        return edges
    return [edge._replace(a=numbers[edge.a], b=numbers[edge.b]) for edge in edges]


def _in_order_of_keys(edges: list[Edge]) -> list[Edge]:
    """Return the edges in the order of their keys if these number all of them, as collc writes them."""
    keys = [edge.attributes.get("key") for edge in edges]
    if not all(type(key) is int for key in keys) or sorted(cast("list[int]", keys)) != list(range(len(keys))):
        return edges
    return sorted(edges, key=lambda edge: cast("int", edge.attributes["key"]))
