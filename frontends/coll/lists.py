"""Lists in braces, in the order in which they are written: numbers may repeat, and elements may be lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from collc.ir.diagnostic import Span, error
from collc.ir.frozen import frozen

from . import ast
from .expressions import Compiler, Needs
from .scope import Listing, Poison, Poisoned, Scope
from .values import Arrow, Integers, Parts, Value, extent, kind_of

__all__ = ["MOST_ITEMS", "Item", "flat", "listed"]

#: The most elements of a list together with those of its lists: an alltoallv of 1024 ranks has a million.
MOST_ITEMS = 1 << 22

_Thunk: TypeAlias = Callable[[], "list[Item]"]


@frozen(eq=False)
class Item:
    """An element of a list, a value or a list, with its place."""

    value: Value | tuple[Item, ...]
    span: Span | None


def listed(node: ast.Expr, scope: Scope, compiler: Compiler, needs: Needs, what: str) -> tuple[Item, ...]:
    """Return the elements of a list, a range or a set; raise C0131 for another value, which is no ``what``."""
    items = tuple(_Lists(compiler, needs, what).compiled(node, scope)())
    count = sum(len(item.value) if isinstance(item.value, tuple) else 1 for item in items)
    if count > MOST_ITEMS:
        raise error("C0134", f"found a list of {count} elements, needed at most {MOST_ITEMS}", span=node.span)
    return items


def flat(items: Sequence[Item], what: str, hint: str | None = None) -> list[tuple[Value, Span | None]]:
    """Return the values and their places; raise C0131 for a list where ``what`` is needed."""
    found: list[tuple[Value, Span | None]] = []
    for item in items:
        if isinstance(item.value, tuple):
            raise error("C0131", f"found a list, needed {what}", span=item.span, hint=hint)
        found.append((item.value, item.span))
    return found


@frozen(eq=False)
class _Lists:
    """Compiles lists, so that the element of a comprehension is compiled once."""

    compiler: Compiler
    needs: Needs
    what: str

    def compiled(self, node: ast.Expr, scope: Scope) -> _Thunk:
        match node:
            case ast.SetOf(nodes):
                parts = [self._element(one, scope) for one in nodes]
                return lambda: [item for part in parts for item in part()]
            case ast.Name(name) if isinstance(listing := scope.find(name), Listing):
                listing.used = True
                return self.compiled(listing.node, listing.scope)
            case ast.Comprehension(element):
                rounds = self.compiler.rounds(node, scope)
                one = self._element(element, rounds.scope)
                return lambda: rounds.collect([], one)
        thunk = self.compiler.compile(node, scope, self.needs)
        return lambda: self._spread(thunk([]), node.span)

    def _element(self, node: ast.Expr | ast.Arrow, scope: Scope) -> _Thunk:
        match node:
            case ast.Arrow():
                raise error("C0131", f"found a link, needed {self.what}", span=node.span)
            case ast.Name(name) if isinstance(scope.find(name), Listing):
                inner = self.compiled(node, scope)
                return lambda: [Item(tuple(inner()), node.span)]
            case ast.SetOf() | ast.Comprehension():
                inner = self.compiled(node, scope)
                return lambda: [Item(tuple(inner()), node.span)]
        thunk = self.compiler.compile(node, scope, self.needs)
        return lambda: _elements(thunk([]), node.span)

    def _spread(self, value: Value | Poison, span: Span | None) -> list[Item]:
        """Return the elements of a value that stands for the whole list."""
        match value:
            case Integers(items, given=given):
                return [Item(one, span) for one in given or items]
            case Parts(parts) if not any(isinstance(one, Arrow) for one in parts):
                return [Item(one, span) for one in parts if not isinstance(one, Arrow)]
            case range():
                return _elements(value, span)
            case Poison():
                raise Poisoned
        raise error("C0131", f"found {kind_of(value)}, needed {self.what}", span=span, hint="lists stand in `{ }`")


def _elements(value: Value | Poison, span: Span | None) -> list[Item]:
    match value:
        case Poison():
            raise Poisoned
        case range():
            if extent(value) > MOST_ITEMS:
                raise error("C0134", f"found a range of more than {MOST_ITEMS} integers", span=span)
            return [Item(one, span) for one in value]
        case Integers(items, given=given):
            return [Item(tuple(Item(one, span) for one in given or items), span)]
        case Parts(parts) if not any(isinstance(one, Arrow) for one in parts):
            return [Item(tuple(Item(one, span) for one in parts if not isinstance(one, Arrow)), span)]
    return [Item(value, span)]
