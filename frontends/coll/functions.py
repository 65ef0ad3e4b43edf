"""Functions of a file: ``function next(r) = (r + 1) mod n;``. None calls itself, so every call ends."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, TypeVar

import attrs

from collc.ir.diagnostic import CollcError, Span, error
from collc.ir.shown import counted

from . import ast
from .scope import Cell, Function, Poison, Poisoned, Scope, earlier, too_early
from .values import Value

if TYPE_CHECKING:
    from .expressions import Compiler, Frame, Thunk

__all__ = ["MOST_LEVELS", "THE_CALL", "Calls", "called", "declare", "parts", "require_count", "unknown"]

#: The most levels of a function or block, with those of the functions or blocks that it calls.
MOST_LEVELS = 64
#: the message of the second place of a mistake in a function or block
THE_CALL = "the call"

T = TypeVar("T", bound=ast.Node)


@attrs.define
class Calls:
    """The calls of functions that a file may still make, of ``limit``."""

    limit: int
    left: int = attrs.field(default=attrs.Factory(lambda self: self.limit, takes_self=True))

    def spend(self, span: Span | None) -> None:
        """Count a call; raise C0142 for the first one beyond the limit, Poisoned for the following."""
        self.left -= 1
        if self.left == -1:
            hint = "check the ranges; `--node-limit` raises the limit"
            raise error("C0142", f"found more than {self.limit} calls of functions", span=span, hint=hint)
        if self.left < 0:
            raise Poisoned


def declare(node: ast.Function, scope: Scope, compiler: Compiler, predefined: Collection[str]) -> None:
    """Bind the name of a function.

    Raises C0121 for a name that is bound or ``predefined``, C0116 for too many levels.
    """
    try:
        _declare(node, scope, compiler, predefined)
    except CollcError:
        scope.suspects.add(node.name.text)
        raise


def _declare(node: ast.Function, scope: Scope, compiler: Compiler, predefined: Collection[str]) -> None:
    name = node.name.text
    if name in predefined:
        message, hint = f"`{name}` is a function of the language", "give this one another name"
        raise error("C0121", message, span=node.name.span, hint=hint)
    inner = Scope(parent=scope, level=2)
    cells = tuple(Cell() for _ in node.parameters)
    for parameter, cell in zip(node.parameters, cells, strict=True):
        inner.declare(parameter.text, cell, parameter.span)
    names = {call.name for call in parts(node.value, ast.Call)}
    found = [scope.find(one) for one in sorted(names)]
    height = node.value.height + max((one.height for one in found if isinstance(one, Function)), default=0)
    if height > MOST_LEVELS:
        message = f"found more than {MOST_LEVELS} levels of functions that call each other"
        raise error("C0116", message, span=node.name.span, hint="compute a part of it with `let`")
    value = compiler.compile(node.value, inner)
    parameters = tuple(one.text for one in node.parameters)
    scope.declare(name, Function(parameters, cells, value, height), node.name.span)


def parts(node: ast.Node, kind: type[T]) -> Iterator[T]:
    """Yield the nodes of a class in a tree."""
    pending: list[object] = [node]
    while pending:
        this = pending.pop()
        if isinstance(this, tuple):
            pending.extend(this)
        elif isinstance(this, ast.Node):
            if isinstance(this, kind):
                yield this
            pending.extend(getattr(this, field.name) for field in attrs.fields(type(this)) if field.name != "span")


def called(node: ast.Call, function: Function, scope: Scope, compiler: Compiler) -> Thunk:
    """Return the value of a call as a function of the frame; raise C0136 for another number of arguments."""
    place = next((one.places.get(node.name) for one in scope.chain() if node.name in one.names), None)
    require_count(node.name, function.parameters, len(node.arguments), node.span, place)
    thunks = [compiler.compile(argument, scope) for argument in node.arguments]
    cells, value, calls, span = function.cells, function.value, compiler.calls, node.span

    def run(frame: Frame) -> Value:
        values = [thunk(frame) for thunk in thunks]
        calls.spend(span)
        for cell, given in zip(cells, values, strict=True):
            if isinstance(given, Poison):
                raise Poisoned
            cell.value = given
        try:
            found: Value = value(frame)
        except CollcError as failure:
            raise _explained(failure, function, span) from None
        return found

    return run


def require_count(name: str, parameters: tuple[str, ...], count: int, span: Span | None, place: Span | None) -> None:
    """Raise C0136 unless a function or block gets one argument for each parameter; ``place`` is its declaration."""
    if count != len(parameters):
        message = f"found {counted(count, 'argument')}, needed {len(parameters)}"
        hint, related = f"write `{name}({', '.join(parameters)})`", earlier(place, "the declaration")
        raise error("C0136", message, span=span, hint=hint, related=related)


def _explained(failure: CollcError, function: Function, call: Span | None) -> CollcError:
    """Return a mistake in a function with the innermost call and its arguments."""
    shown = [
        f"{name} = {cell.value}"
        for name, cell in zip(function.parameters, function.cells, strict=True)
        if type(cell.value) is int
    ]
    notes = (f"with {', '.join(shown)}",) if shown else ()
    return CollcError([
        one if any(other.message == THE_CALL for other in one.related)
        else attrs.evolve(one, notes=(*one.notes, *notes), related=(*one.related, *earlier(call, THE_CALL)))
        for one in failure.diagnostics
    ])  # fmt: skip


def unknown(node: ast.Call, scope: Scope, require: Callable[[], None]) -> None:
    """Raise what ``require`` raises for a function that the language does not have, or what this file explains: C0130
    for a function that is declared later, C0122 with the nearest name that is declared.
    """
    try:
        require()
    except CollcError as failure:
        from .guesses import did_you_mean

        if failure.diagnostics[0].code != "C0122":
            raise
        span = None if node.span is None else node.span.first(len(node.name))
        for around in scope.chain():
            if node.name in around.later:
                raise too_early(node.name, around.later[node.name], span) from None
        own = {name for one in scope.chain() for name, bound in one.names.items() if isinstance(bound, Function)}
        if near := did_you_mean(node.name, own):
            raise error("C0122", f"unknown function `{node.name}`", span=span, hint=near) from None
        raise
