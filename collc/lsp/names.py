"""The names that a file declares, and their places."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

import attrs

from collc.frontends.coll import ast
from collc.ir.diagnostic import Source, Span
from collc.ir.frozen import frozen

from .documents import tree_of

__all__ = ["Declared", "Kind", "declared", "nearest"]

Kind: TypeAlias = Literal["topology", "collective", "kind", "value", "function", "block", "nodes", "variable"]

#: statement -> the kind of what it declares
_STATEMENTS: dict[type, Kind] = {
    ast.Define: "value", ast.Function: "function", ast.Procedure: "block", ast.Imported: "topology",
    ast.TopologyIs: "topology", ast.TopologyOf: "topology", ast.Cluster: "topology", ast.Collective: "collective",
    ast.Kind: "kind", ast.NodeFamily: "nodes", ast.Loop: "variable",
}  # fmt: skip
#: Nodes whose names are known only inside them.
_SCOPES = (ast.TopologyOf, ast.Block, ast.For, ast.Comprehension, ast.Procedure, ast.Function)
#: A declaration in a statement that the parser has skipped.
_SKIPPED = re.compile(r"\b(topology|cluster|collective|param|let|function|define|rank|switch)[ \t]+([A-Za-z_]\w*)")
_KEYWORDS: dict[str, Kind] = {
    "topology": "topology", "cluster": "topology", "collective": "collective", "param": "value", "let": "value",
    "function": "function", "define": "block", "rank": "nodes", "switch": "nodes",
}  # fmt: skip


@frozen(eq=False)
class Declared:
    """A name, its kind and place; ``scope`` is where it is known, None: in the whole file."""

    name: str
    kind: Kind
    span: Span
    scope: Span | None = None


def declared(source: Source) -> list[Declared]:
    """Return the declarations of a text, in order; also those in statements with errors.

    >>> [(one.name, one.kind) for one in declared(Source("a.coll", "topology t { rank r[2]; } let x = ;"))]
    [('t', 'topology'), ('r', 'nodes'), ('x', 'value')]
    """
    found = list(_declared(tree_of(source), None))
    places = {(one.span.line, one.span.column) for one in found}
    for number, line in enumerate(source.text.split("\n"), start=1):
        for match in _SKIPPED.finditer(line.partition("#")[0]):
            span = Span(source, number, match.start(2) + 1, number, match.end(2) + 1)
            if (span.line, span.column) not in places:
                found.append(Declared(match[2], _KEYWORDS[match[1]], span))
    return found


def _declared(node: ast.Node, scope: Span | None) -> Iterator[Declared]:
    """Yield the declarations in a node and below it; ``scope`` is the innermost node around it with own names."""
    kind = _STATEMENTS.get(type(node))
    name = getattr(node, "name", None)
    if kind and isinstance(name, ast.Word) and name.span:
        yield Declared(name.text, kind, name.span, scope)
    inner = node.span if isinstance(node, _SCOPES) else scope
    for parameter in node.parameters if isinstance(node, ast.Function | ast.Procedure) else ():
        if parameter.span:
            yield Declared(parameter.text, "variable", parameter.span, inner)
    for below in _below(node):
        yield from _declared(below, inner)


def _below(node: ast.Node) -> Iterator[ast.Node]:
    """Yield the nodes directly below one, in the order of the text."""
    pending: list[object] = [getattr(node, field.name) for field in attrs.fields(type(node)) if field.name != "span"]
    while pending:
        value = pending.pop(0)
        if isinstance(value, ast.Node):
            yield value
        elif isinstance(value, tuple):
            pending[:0] = value


def nearest(
    found: Sequence[Declared], name: str, line: int, column: int, kinds: Sequence[Kind] = ()
) -> Declared | None:
    """Return the declaration that a name at a place means: of the innermost scope, then of the file, then any.

    Declarations of ``kinds`` come first; of several in one scope, the last one above the place.
    """
    here = (line, column)

    def order(one: Declared) -> tuple[bool, bool, tuple[int, int], bool, tuple[int, int]]:
        start = (one.span.line, one.span.column)
        outer = one.scope is None or _holds(one.scope, here)
        inside = (one.scope.line, one.scope.column) if one.scope and outer else (0, 0)
        above = start <= here
        return one.kind in kinds, outer, inside, above, start if above else (-start[0], -start[1])

    return max((one for one in found if one.name == name), key=order, default=None)


def _holds(span: Span, here: tuple[int, int]) -> bool:
    return (span.line, span.column) <= here <= (span.end_line, span.end_column)
