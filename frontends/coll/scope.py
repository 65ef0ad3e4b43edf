"""Names and their values while a file is elaborated."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import TypeAlias

import attrs

from collc.ir.diagnostic import CollcError, Diagnostic, Span, error, nearest
from collc.ir.frozen import frozen
from collc.ir.topology import Topology

from .codes import CODES
from .values import Switch, Value

__all__ = [
    "POISON",
    "Binding",
    "Constant",
    "NodeTable",
    "Poison",
    "Poisoned",
    "Problems",
    "Scope",
    "TooManyProblems",
    "Variable",
]


_MAX_PROBLEMS = 100
#: among more names than this no nearest one is searched: it would take longer than everything else
_MANY_NAMES = 5000


class Poisoned(Exception):
    """An expression uses a value whose mistake has been reported already."""


@frozen
class Constant:
    """A name with a value."""

    value: Value


@frozen
class Variable:
    """A variable: its place in the frame of the body it belongs to."""

    index: int


class Poison:
    """A value that could not be computed; its use is not reported again."""


POISON = Poison()

Binding: TypeAlias = Constant | Variable | Poison


class TooManyProblems(Exception):
    """The number of mistakes has reached the limit of one report."""


class Problems:
    """The mistakes found so far; the same mistake at the same place is kept once.

    A mistake in a hidden text keeps its place and code. Its message is the code's title, since other messages quote.
    """

    def __init__(self) -> None:
        self.found: dict[tuple[object, ...], Diagnostic] = {}

    def add(self, *diagnostics: Diagnostic) -> None:
        """Add mistakes; raise Enough where there are too many."""
        for diagnostic in map(_unquoted, diagnostics):
            key = (diagnostic.code, str(diagnostic.span), diagnostic.message if diagnostic.span is None else "")
            self.found.setdefault(key, diagnostic)
        if len(self.found) >= _MAX_PROBLEMS:
            raise TooManyProblems

    def take(self, failure: CollcError, span: Span | None = None, notes: Iterable[str] = ()) -> None:
        """Add the diagnostics of an exception, placed at ``span`` where they have no place of their own."""
        for diagnostic in failure.diagnostics:
            placed = attrs.evolve(diagnostic, span=diagnostic.span or span, notes=(*diagnostic.notes, *notes))
            self.add(placed)


def _unquoted(diagnostic: Diagnostic) -> Diagnostic:
    """Return the diagnostic, without quotations if its text is hidden."""
    if diagnostic.span is None or not diagnostic.span.source.hidden:
        return diagnostic
    title = CODES.get(diagnostic.code, "a mistake").partition("\n")[0]
    note = "its text is not shown: the file is outside of the main file's folder and of those of `-I`"
    return attrs.evolve(diagnostic, message=f"found {title}", notes=(note,), hint="`-I` adds a folder")


@frozen
class NodeTable:
    """The nodes of a topology by name: family -> indices -> rank number or switch."""

    families: dict[str, dict[tuple[int, ...], int | Switch]] = attrs.field(factory=dict)

    @classmethod
    def of(cls, topology: Topology) -> NodeTable:
        """Return the table of a topology whose nodes have names; an empty one where they have none."""
        table = cls()
        for number, name in enumerate(topology.node_names or ()):
            family, _, rest = name.partition("[")
            indices = tuple(int(index) for index in re.findall(r"-?\d+", rest))
            node = number if number < topology.num_ranks else Switch(number - topology.num_ranks)
            table.families.setdefault(family, {})[indices] = node
        return table

    def find(self, name: str, indices: tuple[int, ...], span: Span | None) -> int | Switch:
        """Return the node; raise C0135 where the family has no such index, or needs others."""
        family = self.families[name]
        if (node := family.get(indices)) is not None:
            return node
        shape = _shape(family)
        if len(indices) != len(shape):
            form = f"{name}[{', '.join('ijklmn'[: len(shape)])}]" if shape else name
            noun = "index" if len(indices) == 1 else "indices"
            message = f"found {len(indices)} {noun} of `{name}`, needed {len(shape)}"
            raise error("C0135", message, span=span, hint=f"write `{form}`")
        raise error("C0135", f"found `{_node(name, indices)}`, needed one of {_extent(name, family)}", span=span)


def _node(name: str, indices: Iterable[int]) -> str:
    return f"{name}[{', '.join(str(index) for index in indices)}]"


def _extent(name: str, family: Collection[tuple[int, ...]]) -> str:
    return f"`{_node(name, min(family))}` to `{_node(name, max(family))}`"


def _shape(family: Collection[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(max(axis) + 1 for axis in zip(*family, strict=True))


@attrs.define
class Scope:
    """Names of one body, and those of the text around it.

    ``later`` are names that the same body declares further on, with their declarations; ``suspects`` are names that a
    faulty statement may have declared.
    """

    parent: Scope | None = None
    names: dict[str, Binding] = attrs.field(factory=dict)
    places: dict[str, Span | None] = attrs.field(factory=dict)
    later: dict[str, Span | None] = attrs.field(factory=dict)
    suspects: set[str] = attrs.field(factory=set)
    nodes: NodeTable | None = None
    level: int = 1  # 0 what the language names itself, 1 the file, 2 a body

    def child(self) -> Scope:
        """Return a scope inside this one."""
        return Scope(parent=self, level=self.level)

    def declare(self, name: str, binding: Binding, span: Span | None) -> None:
        """Bind a name; raise C0121 where this text has bound it already.

        What a body declares may hide a name of the file around it, not another name of the body.
        """
        before = self.declaring(name)
        if before is not None:
            raise error("C0121", f"`{name}` is declared twice", span=span, notes=_earlier(before.places[name]))
        self.names[name] = binding
        self.places[name] = span
        self.later.pop(name, None)

    def declaring(self, name: str) -> Scope | None:
        """Return the scope of this body that binds a name, or None."""
        return next((scope for scope in self.chain() if scope.level == self.level and name in scope.names), None)

    def find(self, name: str) -> Binding | None:
        """Return the binding of a name, or None."""
        for scope in self.chain():
            if name in scope.names:
                return scope.names[name]
        return POISON if any(name in scope.suspects for scope in self.chain()) else None

    def find_nodes(self, name: str) -> NodeTable | None:
        """Return the table of nodes that has a family of this name, or None."""
        tables = (scope.nodes for scope in self.chain())
        return next((table for table in tables if table is not None and name in table.families), None)

    def chain(self) -> list[Scope]:
        """Return this scope and those around it, innermost first."""
        scopes: list[Scope] = []
        scope: Scope | None = self
        while scope is not None:
            scopes.append(scope)
            scope = scope.parent
        return scopes

    def undefined(self, name: str, span: Span | None) -> CollcError:
        """Return the error for a name that is not visible here."""
        for scope in self.chain():
            if name in scope.later:
                return _too_early(name, scope.later[name], span)
        known = {known for scope in self.chain() for known in scope.names} | self._families()
        hint = nearest(name, known) if len(known) <= _MANY_NAMES else None
        return error("C0120", f"unknown name `{name}`", span=span, hint=hint)

    def undefined_family(self, name: str, span: Span | None) -> CollcError:
        """Return the error for an indexed name that is not a family of nodes here."""
        for scope in self.chain():
            if name in scope.later and scope.level == 2:
                return _too_early(name, scope.later[name], span)
        hint = nearest(name, self._families())
        if not hint and not self._families():
            hint = "ranks of this topology have numbers only, from 0"
        return error("C0120", f"unknown family of nodes `{name}`", span=span, hint=hint)

    def _families(self) -> set[str]:
        return {family for scope in self.chain() if scope.nodes for family in scope.nodes.families}


def _earlier(span: Span | None) -> tuple[str, ...]:
    return (f"the first declaration is at {span}",) if span else ()


def _too_early(name: str, declared: Span | None, used: Span | None) -> CollcError:
    if declared and used and _within(used, declared):
        return error("C0130", f"`{name}` is used in its own definition", span=used)
    where = f" at {declared}" if declared else ""
    return error("C0130", f"`{name}` is used before its declaration{where}", span=used, hint="move the declaration up")


def _within(inner: Span, outer: Span) -> bool:
    start, end = (outer.line, outer.column), (outer.end_line, outer.end_column)
    return inner.source is outer.source and start <= (inner.line, inner.column) < end
