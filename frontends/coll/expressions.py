"""Compiles expressions to closures over a frame of variables, because a body's loops run them a million times.

Names are resolved when an expression is compiled, so that an unknown one is reported even if it is never evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from operator import itemgetter
from typing import Any, Protocol, TypeAlias

from collc.ir.diagnostic import CollcError, Span, error
from collc.ir.frozen import frozen
from collc.ir.topology import Topology

from . import ast
from .printer import expression_text
from .scope import POISON, Constant, NodeTable, Poison, Poisoned, Problems, Scope, Variable
from .units import UNITS, unit_hint
from .values import Integers, Quantity, Value, arithmetic, bounded, compared, kind_of, whole

__all__ = ["Compiler", "Frame", "Functions", "Thunk", "integer"]

#: Larger sets are refused before they are built.
MAX_SET = 100_000

Frame: TypeAlias = list[Any]  # Any: values, and what a body keeps between its statements
Thunk: TypeAlias = Callable[[Frame], Any]  # Any: a value or POISON; who computes with it asks which


class Functions(Protocol):
    """What ``name(arguments)`` may stand for."""

    def require(self, node: ast.Call) -> None:
        """Raise C0122 unless the function exists."""

    def names_ranks(self, node: ast.Call) -> bool:
        """Return whether the function's last argument may name nodes of the topology before it."""

    def call(self, node: ast.Call, values: Sequence[Value]) -> Value:
        """Return the function's value; raise CollcError where the arguments do not fit."""


def integer(value: Value | Poison, span: Span | None, what: str = "an integer") -> int:
    """Return the value; raise C0132 where it is no integer."""
    if type(value) is int:
        return value
    if isinstance(value, Poison):
        raise Poisoned
    found = f"found {value}" if isinstance(value, Fraction) else f"found {kind_of(value)}"
    hint = "`floor(x)` and `ceil(x)` round" if isinstance(value, Fraction) else None
    raise error("C0132", f"{found}, needed {what}", span=span, hint=hint)


@frozen
class Compiler:
    """Compiles expressions; mistakes found while compiling go to ``problems``, and the thunk then raises Poisoned."""

    functions: Functions
    problems: Problems

    def evaluate(self, node: ast.Expr, scope: Scope) -> Value:
        """Return the value of an expression without variables; raises CollcError or Poisoned."""
        value: Value = self.compile(node, scope)([])
        return value

    def compile(self, node: ast.Expr, scope: Scope) -> Thunk:
        """Return an expression as a function of the frame."""
        try:
            return self._compile(node, scope)
        except CollcError as failure:
            self.problems.take(failure, node.span)
            return _poisoned

    def _compile(self, node: ast.Expr, scope: Scope) -> Thunk:
        match node:
            case ast.Number(value):
                return _constant(whole(value))
            case ast.Quantity(value, unit):
                return _constant(_quantity(value, unit, node.span))
            case ast.String(text):
                return _constant(text)
            case ast.Name(name):
                return _name(name, scope, node.span)
            case ast.Index(name, items):
                return self._index(node, name, items, scope)
            case ast.Call(_, arguments):
                return self._call(node, arguments, scope)
            case ast.Unary(sign, operand):
                thunk = self.compile(operand, scope)
                return _not(thunk, operand.span) if sign == "not" else _negative(thunk, node.span)
            case ast.Binary():
                return self._binary(node, scope)
            case ast.Range(low, high):
                return _range(self.compile(low, scope), self.compile(high, scope), node)
            case ast.SetOf(items):
                return _set([self.compile(item, scope) for item in items], node)
            case ast.Import(_, format):
                hint = "write the topology out, or build it from graph families"
                message = f"importing `{format.text}` is not available in this version"
                raise error("C0151", message, span=node.span, hint=hint)

    def _index(self, node: ast.Index, name: str, items: Sequence[ast.Expr], scope: Scope) -> Thunk:
        table = scope.find_nodes(name)
        if table is None:
            if scope.find(name) is POISON:
                return _poisoned
            if scope.find(name) is not None:
                raise error("C0131", f"`{name}` is no family of nodes and has no indices", span=node.span)
            raise scope.undefined_family(name, node.span)
        thunks = [self.compile(item, scope) for item in items]
        family = table.families[name]

        def missing(indices: tuple[int, ...]) -> Value:
            for index, item in zip(indices, items, strict=True):
                integer(index, item.span)
            return table.find(name, indices, node.span)

        return _lookup(thunks, family, missing)

    def _call(self, node: ast.Call, arguments: Sequence[ast.Expr], scope: Scope) -> Thunk:
        named = self.functions.names_ranks(node) and len(arguments) > 1
        thunks = [self.compile(argument, scope) for argument in arguments[: -1 if named else None]]
        self.functions.require(node)

        def run(frame: Frame) -> Value:
            return self.functions.call(node, [_sound(thunk(frame)) for thunk in thunks])

        def run_with_names(frame: Frame) -> Value:
            values = [_sound(thunk(frame)) for thunk in thunks]
            if not isinstance(values[-1], Topology):  # which is a mistake, whatever the ranks
                return self.functions.call(node, [*values, Integers(())])
            inner = scope.child()
            inner.nodes = NodeTable.of(values[-1])
            return self.functions.call(node, [*values, _sound(self.compile(arguments[-1], inner)(frame))])

        return run_with_names if named else run

    def _binary(self, node: ast.Binary, scope: Scope) -> Thunk:
        left, right = self.compile(node.left, scope), self.compile(node.right, scope)
        if node.operator in ("and", "or"):
            return _logical(left, right, node)
        return _FAST.get(node.operator, _comparison)(left, right, node)


def _lookup(thunks: list[Thunk], family: Mapping[tuple[int, ...], Value], missing: Callable[..., Value]) -> Thunk:
    """Return the function that finds a node by its indices, with a fast case for one index."""
    if len(thunks) == 1:
        (one,) = thunks

        def single(frame: Frame) -> Value:
            key = (one(frame),)
            return family[key] if key in family else missing(key)

        return single

    def several(frame: Frame) -> Value:
        key = tuple([thunk(frame) for thunk in thunks])
        return family[key] if key in family else missing(key)

    return several


# ---- leaves


def _poisoned(frame: Frame) -> Value:
    raise Poisoned


def _sound(value: Value | Poison) -> Value:
    if isinstance(value, Poison):
        raise Poisoned
    return value


def _constant(value: Value) -> Thunk:
    return lambda frame: value


def _quantity(value: Fraction, unit: str, span: Span | None) -> Quantity:
    if unit not in UNITS:
        raise error("C0123", f"unknown unit `{unit}`", span=span, hint=unit_hint(unit))
    measure, scale = UNITS[unit]
    return Quantity(value * scale, measure, expression_text(ast.Quantity(value, unit)))


def _name(name: str, scope: Scope, span: Span | None) -> Thunk:
    match scope.find(name):
        case Constant(value):
            return _constant(value)
        case Variable(index):
            return itemgetter(index)
        case None:
            table = scope.find_nodes(name)
            if table is None:
                raise scope.undefined(name, span)
            return _constant(table.find(name, (), span))
        case _:
            return _poisoned


def _range(low: Thunk, high: Thunk, node: ast.Range) -> Thunk:
    return lambda frame: range(integer(low(frame), node.low.span), integer(high(frame), node.high.span))


def _set(thunks: Sequence[Thunk], node: ast.SetOf) -> Thunk:
    def run(frame: Frame) -> Value:
        items: list[int] = []
        ranges: list[range] = []
        for thunk, item in zip(thunks, node.items, strict=True):
            value = thunk(frame)
            if isinstance(value, range):
                if max(value.stop - value.start, 0) > MAX_SET - len(items):
                    raise error("C0134", f"found a set of more than {MAX_SET} integers", span=item.span)
                items.extend(value)
                ranges.append(value)
            else:
                items.append(integer(value, item.span))
        ordered = sorted(items)
        twice = next((a for a, b in pairwise(ordered) if a == b), None)
        if twice is not None:
            raise error("C0137", f"found {twice} twice in a set", span=node.span)
        return Integers(tuple(ordered), tuple(ranges))

    return run


# ---- operators: a fast case for integers, everything else by arithmetic()


def _add(left: Thunk, right: Thunk, node: ast.Binary) -> Thunk:
    def run(frame: Frame) -> Value:
        a, b = left(frame), right(frame)
        return a + b if type(a) is int and type(b) is int else arithmetic("+", _sound(a), _sound(b), node.span)

    return run


def _subtract(left: Thunk, right: Thunk, node: ast.Binary) -> Thunk:
    def run(frame: Frame) -> Value:
        a, b = left(frame), right(frame)
        return a - b if type(a) is int and type(b) is int else arithmetic("-", _sound(a), _sound(b), node.span)

    return run


def _modulo(left: Thunk, right: Thunk, node: ast.Binary) -> Thunk:
    def run(frame: Frame) -> Value:
        a, b = left(frame), right(frame)
        if type(a) is int and type(b) is int and b > 0:
            return a % b
        return arithmetic("mod", _sound(a), _sound(b), node.span)

    return run


def _multiply(left: Thunk, right: Thunk, node: ast.Binary) -> Thunk:
    def run(frame: Frame) -> Value:
        a, b = left(frame), right(frame)
        if type(a) is int and type(b) is int:
            return bounded(a * b, node.span)
        return arithmetic("*", _sound(a), _sound(b), node.span)

    return run


def _divide(left: Thunk, right: Thunk, node: ast.Binary) -> Thunk:
    return lambda frame: arithmetic("/", _sound(left(frame)), _sound(right(frame)), node.span)


def _comparison(left: Thunk, right: Thunk, node: ast.Binary) -> Thunk:
    return lambda frame: compared(node.operator, _sound(left(frame)), _sound(right(frame)), node.span)


_FAST: dict[str, Callable[[Thunk, Thunk, ast.Binary], Thunk]] = {
    "+": _add, "-": _subtract, "mod": _modulo, "*": _multiply, "/": _divide,
}  # fmt: skip


def _negative(operand: Thunk, span: Span | None) -> Thunk:
    def run(frame: Frame) -> Value:
        value = operand(frame)
        return -value if type(value) is int else arithmetic("*", -1, _sound(value), span)

    return run


def _truth(value: Value | Poison, span: Span | None) -> bool:
    value = _sound(value)
    if not isinstance(value, bool):
        raise error(
            "C0131", f"found {kind_of(value)}, needed a truth value", span=span, hint="compare it with something"
        )
    return value


def _not(operand: Thunk, span: Span | None) -> Thunk:
    return lambda frame: not _truth(operand(frame), span)


def _logical(left: Thunk, right: Thunk, node: ast.Binary) -> Thunk:
    if node.operator == "and":
        return lambda frame: _truth(left(frame), node.left.span) and _truth(right(frame), node.right.span)
    return lambda frame: _truth(left(frame), node.left.span) or _truth(right(frame), node.right.span)
