"""Collectives, and the options of collectives, schedulers and targets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from fractions import Fraction
from typing import Any

import attrs

from collc.ir.collective import KINDS, OPERATIONS, ROOTED, Collective
from collc.ir.diagnostic import CollcError, error, nearest
from collc.ir.spec import Option, OptionValue
from collc.ir.topology import Topology

from . import ast
from .expressions import Compiler, integer
from .network import Defaults, attributes_of
from .printer import expression_text
from .scope import Constant, NodeTable, Poisoned, Scope
from .units import SIZE
from .values import Integers, Quantity, Switch, Value, kind_of

__all__ = ["DTYPES", "OPERATIONS", "collective", "defaults", "known", "options"]

DTYPES = (
    "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
    "float16", "bfloat16", "float32", "float64",
)  # fmt: skip
_ROOTED = tuple(kind for kind in KINDS if kind in ROOTED)
_MAX_LIST = 10_000

#: sizes are counted in signed 64-bit numbers
_MOST_BYTES = 2**63 - 1


def known(word: ast.Word, names: Collection[str] | None, code: str, what: str) -> None:
    """Raise ``code`` unless a word is one of the names, if those are given."""
    if names is not None and word.text not in names:
        hint = nearest(word.text, names)
        listed = sorted(names) if isinstance(names, set | frozenset) else names
        notes = () if hint else (f"there are {', '.join(listed)}",)
        raise error(code, f"unknown {what} `{word.text}`", span=word.span, hint=hint, notes=notes)


# ---- options


def options(node: ast.Options | None, scope: Scope, compiler: Compiler) -> tuple[Option, ...]:
    """Return the options of a scheduler or target; mistakes in values go to the compiler's problems."""
    found: dict[str, Option] = {}
    for item in _distinct(node, compiler):
        try:
            found[item.name.text] = Option(item.name.text, _option_value(item.value, scope, compiler), item.span)
        except CollcError as failure:
            compiler.problems.take(failure, item.span)
        except Poisoned:
            pass
    return tuple(found.values())


def _distinct(node: ast.Options | None, compiler: Compiler) -> list[ast.Option]:
    """Return the options with different names; report repeated ones."""
    first: dict[str, ast.Option] = {}
    for item in node.items if node else ():
        if item.name.text in first:
            message = f"found option `{item.name.text}` twice"
            compiler.problems.take(error("C0128", message, span=item.name.span))
        first.setdefault(item.name.text, item)
    return list(first.values())


def _option_value(node: ast.Expr | ast.Word, scope: Scope, compiler: Compiler) -> OptionValue:
    """Return a value; a word that does not name a number is itself the value."""
    match node:
        case ast.Word(text):
            return text
        case ast.Name(name) if name not in scope.later:
            binding = scope.find(name)
            if binding is None or (isinstance(binding, Constant) and isinstance(binding.value, Topology)):
                return name
        case ast.Range(low, high):
            ends = [compiler.evaluate(end, scope) for end in (low, high)]
            if all(isinstance(end, Quantity) and end.measure == SIZE for end in ends):
                return "..".join(str(end.value) for end in ends if isinstance(end, Quantity))  # bytes
    value = compiler.evaluate(node, scope)
    match value:
        case Quantity(amount):
            return amount
        case Integers(items):
            return items
        case range() if max(value.stop - value.start, 0) <= _MAX_LIST:
            return tuple(value)
        case range():
            raise error("C0134", f"found a range of more than {_MAX_LIST} integers", span=node.span)
        case bool() | int() | Fraction() | str():
            return value
    raise error("C0131", f"found {kind_of(value)}, needed a number, a word or a set", span=node.span)


# ---- with { bandwidth, latency }


def defaults(node: ast.Options | None, scope: Scope, compiler: Compiler) -> Defaults:
    """Return the defaults of ``with { .. }``; raises CollcError or Poisoned."""
    result = Defaults()
    for item in _distinct(node, compiler):
        known(item.name, ("bandwidth", "latency"), "C0127", "default")
        if isinstance(item.value, ast.Word):
            raise error("C0131", f"found the word `{item.value.text}`, needed a quantity", span=item.value.span)
        span = item.value.span
        found = attributes_of([compiler.evaluate(item.value, scope)], [span])
        if (found.latency is None) == (item.name.text == "latency"):
            other = "a bandwidth" if found.latency is None else "a latency"
            raise error("C0131", f"found {other}, needed a {item.name.text}", span=span)
        if found.unit is not None:
            result = attrs.evolve(result, bandwidth=found.bandwidth, unit=found.unit)
        else:
            result = attrs.evolve(result, latency=found.latency)
    return result


# ---- collectives


def collective(node: ast.Collective, topology: Topology, scope: Scope, compiler: Compiler) -> Collective:
    """Return the collective of a declaration; raises CollcError or Poisoned."""
    given: dict[str, Any] = {}  # Any: named arguments of Collective
    wrong = False
    for item in _distinct(node.options, compiler):
        try:
            known(item.name, tuple(_READERS), "C0127", "option")
            given[item.name.text] = _READERS[item.name.text](item.value, topology, scope, compiler)
        except CollcError as failure:
            compiler.problems.take(failure, item.span)
            wrong = True
    known(node.kind, KINDS, "C0201", "collective")
    _check_root(node, given)
    if wrong:
        raise Poisoned
    return Collective(node.kind.text, topology.num_ranks, **given)


def _check_root(node: ast.Collective, given: dict[str, object]) -> None:
    kind = node.kind.text
    option = next((item for item in node.options.items if item.name.text == "root"), None) if node.options else None
    if kind in ROOTED and option is None:
        raise error("C0203", f"collective `{kind}` needs a root", span=node.kind.span, hint="write `{ root: 0 }`")
    if kind not in ROOTED and "root" in given and option is not None:
        raise error(
            "C0203", f"collective `{kind}` has no root", span=option.span, hint=f"{', '.join(_ROOTED)} have one"
        )


def _size(value: ast.Expr | ast.Word, topology: Topology, scope: Scope, compiler: Compiler) -> int:
    amount = _evaluated(value, scope, compiler)
    if not isinstance(amount, Quantity) or amount.measure != SIZE:
        hint = f"write `{amount} B`" if type(amount) is int else None
        raise error("C0129", f"found {kind_of(amount)}, needed a size such as `64 MiB`", span=value.span, hint=hint)
    if amount.value < 0 or amount.value.denominator != 1:
        raise error("C0129", f"found {float(amount.value):g} B, needed a whole number of bytes", span=value.span)
    if amount.value > _MOST_BYTES:
        raise error("C0129", f"found {float(amount.value):g} B, needed at most {_MOST_BYTES}", span=value.span)
    return amount.value.numerator


def _root(value: ast.Expr | ast.Word, topology: Topology, scope: Scope, compiler: Compiler) -> int:
    inner = scope.child()
    inner.nodes = NodeTable.of(topology)
    root = _evaluated(value, inner, compiler)
    if isinstance(root, Switch):
        name = topology.names[topology.num_ranks + root.number]
        message = f"found `{name}`, a switch of `{topology.name}`, needed a rank as root"
        raise error("C0129", message, span=value.span, hint="only ranks have data; switches pass them on")
    rank = integer(root, value.span, "a rank")
    if not 0 <= rank < topology.num_ranks:
        message = f"found rank {rank}: ranks of `{topology.name}` are 0 to {topology.num_ranks - 1}"
        raise error("C0204", message, span=value.span)
    return rank


def _word(names: Sequence[str], what: str) -> Callable[..., str]:
    def read(value: ast.Expr | ast.Word, topology: Topology, scope: Scope, compiler: Compiler) -> str:
        match value:
            case ast.Name(text) | ast.Word(text) | ast.String(text):
                known(ast.Word(text, span=value.span), names, "C0129", what)
                return text
        found = f"found `{expression_text(value)}`, needed an {what}"
        raise error("C0129", found, span=value.span, notes=(f"there are {', '.join(names)}",))

    return read


def _evaluated(value: ast.Expr | ast.Word, scope: Scope, compiler: Compiler) -> Value:
    if isinstance(value, ast.Word):
        raise error("C0129", f"found the word `{value.text}`, needed a number", span=value.span)
    return compiler.evaluate(value, scope)


_READERS: dict[str, Callable[..., object]] = {
    "size": _size, "op": _word(OPERATIONS, "operation"), "dtype": _word(DTYPES, "element type"), "root": _root,
}  # fmt: skip
