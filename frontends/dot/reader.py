"""Graphviz's statements -> graph: defaults by scope, chains, subgraphs as ends, strict graphs, labels as names.

An attribute of a node counts from its first mention: later defaults change only later nodes, as in Graphviz.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from collc.ir.diagnostic import CollcError, Source, Span, error
from collc.ir.shown import clipped

from ..importing.choosing import chosen
from ..importing.graphs import Edge, Graph, Vertex, network_of
from ..importing.trees import place_at
from .drawn import DRAWN
from .parser import Id, Items, identifier, items_of, parse

if TYPE_CHECKING:
    from ..importing.figures import Figures
    from ..importing.model import Imported

__all__ = ["graph_in"]

_DEEPEST = 100
_MOST_MISTAKES = 20

#: what a rule has: tokens of lark, and what other rules return
Parts: TypeAlias = "list[Any]"  # Any: lark does not declare their types

#: direction -> whether the edge is directed, and whether it leads back
_DIRECTIONS = {"forward": (True, False), "back": (True, True), "both": (False, False), "none": (False, False)}


class Scope(NamedTuple):
    """The defaults of nodes and edges at a place, and the nodes that are mentioned in a subgraph."""

    nodes: dict[str, Id]
    edges: dict[str, Id]
    members: dict[str, None]

    def inner(self) -> Scope:
        """Return the scope of a subgraph inside this one."""
        return Scope(dict(self.nodes), dict(self.edges), {})


class Known(NamedTuple):
    """A node: its first mention, and its attributes with their places."""

    first: Id
    values: dict[str, Id]


class Joined(NamedTuple):
    """An edge: its ends, its attributes with their places, and the first mention of its tail."""

    a: str
    b: str
    values: Mapping[str, Id]
    first: Id


def graph_in(source: Source, figures: Figures) -> Imported:
    """Return the network of one text."""
    builder = _Builder(source, figures)
    parse(source, builder)
    drafts = builder.drafts
    second = drafts[min(1, len(drafts) - 1)].span
    draft = drafts[chosen([one.title or str(number) for number, one in enumerate(drafts)], figures, second)]
    return network_of(draft.graph(), figures)


class _Builder:
    """What lark calls for each rule of the grammar, in the order of the text."""

    def __init__(self, source: Source, figures: Figures):
        self.source, self.figures = source, figures
        self.drafts: list[_Draft] = []
        self.scopes: list[Scope] = []
        self.known: dict[str, Mapping[str, Id]] = {}
        self.statements = 0

    def head(self, parts: Parts) -> None:
        """Begin a graph."""
        words = [str(word).lower() for word in parts[:-1]]
        title = identifier(parts[-1]).text if parts[-1] is not None else ""
        span = place_at(self.source, parts[0].start_pos, len(parts[0]))
        self.drafts.append(_Draft(self.source, self.figures, "strict" in words, "digraph" in words, title, span))
        self.scopes = []

    def open(self, parts: Parts) -> None:
        """Begin the scope of a graph or a subgraph."""
        if len(self.scopes) > _DEEPEST:
            span = place_at(self.source, parts[0].start_pos)
            raise error("C0924", f"found more than {_DEEPEST} subgraphs inside each other", span=span)
        self.scopes.append(self.scopes[-1].inner() if self.scopes else Scope({}, {}, {}))

    def quoted(self, parts: Parts) -> Id:
        """Return an identifier in quotes."""
        return identifier(parts)

    def node(self, parts: Parts) -> list[Id]:
        """Return the node of an end, which is declared by it; its port is left out."""
        found = identifier(parts[0])
        self.drafts[-1].declare(found, self.scopes[-1])
        return [found]

    port = node

    def cluster(self, parts: Parts) -> tuple[Id, ...]:
        """Return the nodes of a subgraph, and end its scope."""
        members = self.scopes.pop().members
        self.scopes[-1].members.update(members)
        return tuple(self.drafts[-1].nodes[name].first for name in members)

    def chain(self, parts: Parts) -> Parts:
        """Return ends and arrows."""
        return parts

    def chained(self, parts: Parts) -> None:
        """Add the edges of a chain, or the attributes of a node."""
        self._count()
        draft, ends, values = self.drafts[-1], parts[0][::2], self._items(parts[1:])
        for arrow in parts[0][1::2]:
            draft.check_arrow(arrow)
        if len(ends) > 1:
            draft.join(ends, {**self.scopes[-1].edges, **values})
        elif values and isinstance(ends[0], list):  # a node, not a subgraph
            draft.nodes[ends[0][0].text].values.update(values)

    def defaults(self, parts: Parts) -> None:
        """Set what later nodes or edges of the scope have, or the graph."""
        owner, values = str(parts[0]).lower(), self._items(parts[1:])
        if owner == "node":
            self.scopes[-1].nodes.update(values)
        elif owner == "edge":
            self.scopes[-1].edges.update(values)
        elif len(self.scopes) == 1:
            self.drafts[-1].about.update(values)

    def assignment(self, parts: Parts) -> None:
        """Set an attribute of the graph."""
        if len(self.scopes) == 1:
            self.drafts[-1].about[identifier(parts[0]).text] = identifier(parts[1])

    def body(self, parts: Parts) -> None:
        """Forget statements, which have done their work."""

    graph = start = body

    def _items(self, tokens: Parts) -> dict[str, Id]:
        found = dict[str, Id]()
        for token in tokens:
            items: Items = items_of(self.source, token, self.known)
            found.update({name: v._replace(start=v.start + items.start) for name, v in items.values.items()})
        return found

    def _count(self) -> None:
        self.statements += 1
        if self.statements > 2 * self.figures.node_limit + self.figures.link_limit:
            hint = "`--node-limit` raises the limit"
            raise error("C0933", f"found more than {self.statements - 1} statements", hint=hint)


class _Draft:
    """One graph of a text."""

    def __init__(self, source: Source, figures: Figures, strict: bool, directed: bool, title: str, span: Span):
        self.source, self.figures, self.span = source, figures, span
        self.strict, self.directed, self.title = strict, directed, title
        self.about: dict[str, Id] = {}
        self.nodes: dict[str, Known] = {}
        self.edges: dict[object, Joined] = {}
        self.mistakes: list[CollcError] = []

    def graph(self) -> Graph:
        """Return the graph, with its mistakes."""
        vertices = [Vertex(name, name, self._of_node(name, node), node) for name, node in self.nodes.items()]
        edges = [self._edge(joined) for joined in self.edges.values()]
        about = {name: value.text for name, value in self.about.items() if name != "label"}
        return Graph("dot", self._place, about, vertices, edges, self.title, DRAWN, self.mistakes)

    def _wrong(self, message: str, start: int, length: int, hint: str | None = None) -> None:
        if len(self.mistakes) < _MOST_MISTAKES:
            span = place_at(self.source, start, length)
            self.mistakes.append(error("C0924", message, span=span, hint=hint))

    def _at(self, ids: Sequence[Id]) -> Span:
        return place_at(self.source, ids[0].start, ids[0].length)

    # ---- statements

    def declare(self, found: Id, scope: Scope) -> None:
        """Add a node at its first mention, with the defaults there."""
        if found.text not in self.nodes:
            if len(self.nodes) >= 2 * self.figures.node_limit:
                self.figures.require_within(len(self.nodes) + 1, 0, self._at([found]))
            self.nodes[found.text] = Known(found, dict(scope.nodes))
        scope.members[found.text] = None

    def check_arrow(self, arrow: Any) -> None:  # Any: a token of lark
        """Add a mistake for the arrow of the other kind of graph."""
        fitting = "->" if self.directed else "--"
        if arrow != fitting:
            kind = "a directed" if self.directed else "an undirected"
            self._wrong(f"found `{arrow}` in {kind} graph, needed `{fitting}`", arrow.start_pos, 2)

    def join(self, ends: Sequence[Sequence[Id]], values: Mapping[str, Id]) -> None:
        """Add the edges between each two ends that follow one another."""
        for tails, heads in pairwise(ends):
            number = len(self.edges) + len(tails) * len(heads)
            if len(tails) * len(heads) > 1 or number > 2 * self.figures.link_limit:
                self.figures.require_within(0, number, self._at(heads or tails) if heads or tails else None)
            for tail in tails:
                for head in heads:
                    self._join(tail, head, values)

    def _join(self, tail: Id, head: Id, values: Mapping[str, Id]) -> None:
        key: object = len(self.edges)
        if self.strict:
            key = (tail.text, head.text) if self.directed else frozenset((tail.text, head.text))
            if key in self.edges:
                old = self.edges[key]
                self.edges[key] = old._replace(values={**old.values, **values})
                return
        self.edges[key] = Joined(tail.text, head.text, values, tail)

    # ---- meaning

    def _of_node(self, name: str, node: Known) -> dict[str, object]:
        found: dict[str, object] = {key: value.text for key, value in node.values.items()}
        label = node.values.get("label")
        if label is not None:
            found["label"] = self._label(name, label, str(found.get("shape", "")))
        return found

    def _label(self, name: str, label: Id, shape: str) -> str:
        r"""Return a label with its escapes done (`\N` is the node's name); "" for HTML and records."""
        if label.html or shape.lower() in ("record", "mrecord"):
            return ""
        escapes = {"N": name, "G": self.title, "n": "\n", "l": "\n", "r": "\n"}
        return re.sub(r"\\(.)", lambda found: escapes.get(found[1], found[1]), label.text, flags=re.DOTALL)

    def _edge(self, joined: Joined) -> Edge:
        direction = joined.values.get("dir")
        directed, back = self.directed, False
        if direction is not None and direction.text not in _DIRECTIONS:
            self._wrong(f"found the direction `{clipped(direction.text)}`, needed {', '.join(_DIRECTIONS)}",
                        direction.start, direction.length)  # fmt: skip
        elif direction is not None:
            directed, back = _DIRECTIONS[direction.text]
        a, b = (joined.b, joined.a) if back else (joined.a, joined.b)
        return Edge(a, b, {name: value.text for name, value in joined.values.items()}, directed, joined)

    # ---- places

    def _place(self, at: object, attribute: str | None) -> Span | None:
        values: Iterator[tuple[Mapping[str, Id], Id | None]] = iter([(self.about, None)])
        if isinstance(at, Known | Joined):
            values = iter([(at.values, at.first)])
        known, first = next(values)
        found = known.get(attribute or "") or first
        return place_at(self.source, found.start, found.length) if found else self.span
