"""Where the values in a mistake come from: the declarations of the names in the faulty expression, and ``-D``."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import attrs

from collc.ir.diagnostic import CollcError, Diagnostic, Related, Span
from collc.ir.group import Group
from collc.ir.topology import Topology

from . import ast
from .scope import Constant, Scope, Variable
from .values import Quantity, Switch, kind_of

__all__ = ["with_origins"]

#: codes of mistakes that depend on values
_CODES = frozenset({
    "C0129", "C0131", "C0132", "C0133", "C0134", "C0135", "C0142", "C0161", "C0162", "C0203", "C0204", "C0215", "C0216",
    "C0217", "C0310", "C0311", "C0315", "C0316", "C0318", "C0319", "C0320",
})  # fmt: skip
#: codes of mistakes in the kind of a value, for which the declaration of a topology or group explains something too
_KINDS = frozenset({"C0131", "C0132"})
_MOST = 3  # names explained
_LONGEST = 60  # characters of a value


def with_origins(failure: CollcError, node: ast.Node, scope: Scope, frame: list[object]) -> CollcError:
    """Return a mistake in ``node`` with the declarations of the names in the text that it underlines."""
    return CollcError([_explained(one, node, scope, frame) for one in failure.diagnostics], failure.exit_status)


def _explained(found: Diagnostic, node: ast.Node, scope: Scope, frame: list[object]) -> Diagnostic:
    span = found.span or node.span
    if found.code not in _CODES or span is None:
        return found
    names = list(dict.fromkeys(_names(node, span)))
    kinds = found.code in _KINDS
    related = [one for name in names if (one := _origin(name, scope, frame, span, kinds))]
    return attrs.evolve(found, related=(*found.related, *related[:_MOST]))


def _names(node: ast.Node, span: Span) -> Iterator[str]:
    """Yield the names in the part of a tree that lies inside a span, in order."""
    pending: list[object] = [node]
    while pending:
        this = pending.pop()
        if isinstance(this, tuple):
            pending.extend(reversed(this))
        elif isinstance(this, ast.Node) and _overlap(this.span, span):
            if isinstance(this, ast.Name) and _inside(this.span, span):
                yield this.name
            fields = [getattr(this, field.name) for field in attrs.fields(type(this)) if field.name != "span"]
            pending.extend(reversed(fields))


def _overlap(one: Span | None, other: Span) -> bool:
    return (
        one is not None
        and one.source is other.source
        and (one.line, one.column) < (other.end_line, other.end_column)
        and (other.line, other.column) < (one.end_line, one.end_column)
    )


def _inside(one: Span | None, other: Span) -> bool:
    return (
        one is not None
        and (other.line, other.column) <= (one.line, one.column)
        and (one.end_line, one.end_column) <= (other.end_line, other.end_column)
    )


def _origin(name: str, scope: Scope, frame: list[object], mistake: Span, kinds: bool) -> Related | None:
    """Return the declaration of a name with its value; None for a loop's variable, whose value a note tells."""
    for around in scope.chain():
        binding = around.names.get(name)
        if binding is None:
            continue
        place, given = around.places.get(name), around.given.get(name)
        looped = isinstance(binding, Variable) and (around.parent is None or around.parent.level == 2)
        text = None if looped else _text(binding, frame, kinds)
        if text is None or place is None or _inside(place, mistake):
            return None
        if place.source.hidden:
            return Related(f"the declaration of `{name}`", place)
        return Related(f"`-D` sets `{name}` to {text}", given) if given else Related(f"`{name}` is {text}", place)
    return None


def _text(binding: object, frame: list[object], kinds: bool) -> str | None:
    """Return a number, quantity or string, or the kind of another value if ``kinds`` matter; None otherwise."""
    value: object = None
    if isinstance(binding, Constant):
        value = binding.value
    elif isinstance(binding, Variable) and binding.index < len(frame):
        value = frame[binding.index]
    match value:
        case bool():
            return str(value).lower()
        case int() | Fraction():
            text = str(value)
        case Quantity(written=written) if written:
            text = written
        case str():
            text = f'"{value}"'
        case Topology() | Group() | range() | Quantity() | Switch() if kinds:
            text = kind_of(value)
        case _:
            return None
    return text if len(text) <= _LONGEST else None
