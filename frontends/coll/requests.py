"""Collectives, and the options of collectives, schedulers and targets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from fractions import Fraction
from math import ceil
from typing import Any

import attrs

from collc.ir.collective import KINDS, OPERATIONS, ROOTED, Collective
from collc.ir.diagnostic import CollcError, Span, error
from collc.ir.spec import Option, OptionValue
from collc.ir.topology import Topology

from ..units import BANDWIDTH, SIZE, TIME, UNITS
from . import ast
from .expressions import NODE, Compiler, Needs, integer
from .network import Defaults, attributes_of
from .origins import with_origins
from .printer import expression_text
from .scope import Constant, NodeTable, Poisoned, Scope, earlier
from .unit_hints import other_measure
from .values import Integers, Parts, Quantity, Switch, Value, kind_of, no_number

__all__ = [
    "DTYPES",
    "OPERATIONS",
    "collective",
    "defaults",
    "distinct_options",
    "known",
    "options",
    "text_of",
    "word_of",
]

DTYPES = (
    "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
    "float16", "bfloat16", "float32", "float64",
)  # fmt: skip
_ROOTED = tuple(kind for kind in KINDS if kind in ROOTED)
_MAX_LIST = 10_000

#: sizes are counted in signed 64-bit numbers
_MOST_BYTES = 2**63 - 1


def known(word: ast.Word, names: Collection[str] | None, code: str, what: str, compiler: Compiler) -> None:
    """Raise ``code`` unless a word is one of the names of the kind ``what``, if those are given."""
    if names is not None and word.text not in names:
        hint = compiler.vocabulary().hint(word.text, what, names)
        listed = sorted(names) if isinstance(names, set | frozenset) else names
        sure = hint is not None and hint.startswith("did you mean")
        notes = () if sure else (f"there are {', '.join(listed)}",)
        raise error(code, f"unknown {what} `{word.text}`", span=word.span, hint=hint, notes=notes)


# ---- options


def options(node: ast.Options | None, scope: Scope, compiler: Compiler) -> tuple[Option, ...]:
    """Return the options of a scheduler or target; mistakes in values go to the compiler's problems."""
    found: dict[str, Option] = {}
    for item in distinct_options(node, compiler):
        try:
            needs: Needs = (SIZE,) if any(word in item.name.text for word in ("size", "bytes")) else ()
            value = _option_value(item.value, scope, compiler, needs)
            found[item.name.text] = Option(item.name.text, value, item.span, item.value.span)
        except CollcError as failure:
            compiler.problems.take(with_origins(failure, item, scope, []), item.span)
        except Poisoned:
            pass
    return tuple(found.values())


def word_of(value: ast.Expr | ast.Word, scope: Scope) -> str | None:
    """Return the text of a word or string; a name of a string is that string, any other name is itself the word."""
    match value:
        case ast.Name(name):
            binding = scope.find(name)
            named = binding.value if isinstance(binding, Constant) else None
            return named if isinstance(named, str) else name
        case ast.Word(text) | ast.String(text):
            return text
    return None


def text_of(node: ast.Expr | ast.Word) -> str:
    """Return an expression as it was written, or its canonical text if it has several lines."""
    span = node.span
    if span is None or span.line != span.end_line:
        return expression_text(node)
    return span.source.line(span.line)[span.column - 1 : span.end_column - 1]


def distinct_options(node: ast.Options | None, compiler: Compiler) -> list[ast.Option]:
    """Return the options with different names; report repeated ones."""
    first: dict[str, ast.Option] = {}
    for item in node.items if node else ():
        if item.name.text in first:
            message, first_span = f"found option `{item.name.text}` twice", first[item.name.text].span
            related = earlier(first_span, "the first one")
            compiler.problems.take(
                error("C0128", message, span=item.name.span, hint="remove one of them", related=related)
            )
        first.setdefault(item.name.text, item)
    return list(first.values())


def _words(items: Sequence[ast.Expr | ast.Arrow], scope: Scope) -> list[str]:
    """Return the members of a set that are words such as `two-level`; none if one is another expression."""
    texts = [_hyphenated(item, scope) for item in items]
    return [text for text in texts if text] if all(texts) else []


def _hyphenated(item: ast.Expr | ast.Arrow, scope: Scope) -> str:
    match item:
        case ast.Name(name) if scope.find(name) is None:
            return name
        case ast.Binary("-", left, right):
            ends = [_hyphenated(end, scope) for end in (left, right)]
            return "-".join(ends) if all(ends) else ""
    return ""


def _option_value(node: ast.Expr | ast.Word, scope: Scope, compiler: Compiler, needs: Needs) -> OptionValue:
    """Return a value; a word that does not name a number is itself the value."""
    match node:
        case ast.Word(text):
            return text
        case ast.Name(name) if name not in scope.later:
            binding = scope.find(name)
            if binding is None or (isinstance(binding, Constant) and isinstance(binding.value, Topology)):
                return name
        case ast.SetOf(members) if words := _words(members, scope):
            message, hint = "found a set of names, needed words in quotes", f'write `"{", ".join(words)}"`'
            raise error("C0131", message, span=node.span, hint=hint)
        case ast.Range(low, high):
            ends = [compiler.evaluate(end, scope, needs) for end in (low, high)]
            if all(isinstance(end, Quantity) and end.measure == SIZE for end in ends):
                return "..".join(str(end.value) for end in ends if isinstance(end, Quantity))  # bytes
    value = compiler.evaluate(node, scope, needs)
    match value:
        case Quantity(amount):
            return amount
        case Integers(items):
            return items
        case Parts():
            raise no_number(value, node.span)
        case range() if max(value.stop - value.start, 0) <= _MAX_LIST:
            return tuple(value)
        case range():
            raise error("C0134", f"found a range of more than {_MAX_LIST} integers", span=node.span)
        case bool() | int() | Fraction() | str():
            return value
    raise error("C0131", f"found {kind_of(value)}, needed a number, a word or a set", span=node.span)


# ---- with { bandwidth, latency }


def defaults(
    node: ast.Options | None, scope: Scope, compiler: Compiler, others: Collection[str] = (), more: Sequence[str] = ()
) -> Defaults:
    """Return the defaults of ``with { .. }``; raises CollcError or Poisoned.

    ``others`` are options that are no defaults; ``more`` are names that a message lists besides the defaults.
    """
    result, wrong = Defaults(), False
    items = [item for item in distinct_options(node, compiler) if item.name.text not in others]
    _require_not_exchanged(items)
    for item in items:
        try:
            known(item.name, (*_DEFAULTS, *more), "C0127", "default", compiler)
            result = _with_default(result, item, scope, compiler)
        except CollcError as failure:
            compiler.problems.take(with_origins(failure, item, scope, []), item.span)
            wrong = True
        except Poisoned:
            wrong = True
    if wrong:
        raise Poisoned
    return result


def _with_default(result: Defaults, item: ast.Option, scope: Scope, compiler: Compiler) -> Defaults:
    if isinstance(item.value, ast.Word):
        raise error("C0131", f"found the word `{item.value.text}`, needed a quantity", span=item.value.span)
    span, need = item.value.span, BANDWIDTH if item.name.text in ("bandwidth", "reduction") else TIME
    value = compiler.evaluate(item.value, scope, (need,))
    if item.name.text == "reduction":
        return attrs.evolve(result, reduction=_of_ranks("reduction", value, span))
    if item.name.text == "launch":
        return attrs.evolve(result, launch=_of_ranks("launch", value, span))
    measure = value.measure if isinstance(value, Quantity) else BANDWIDTH if kind_of(value) == "a number" else ""
    if measure != need or (need == TIME and not isinstance(value, Quantity)):
        raise error(
            "C0131", f"found {kind_of(value)}, needed a {item.name.text}", span=span, hint=_default_hint(value, need)
        )
    found = attributes_of([value], [span])
    if found.unit is not None:
        return attrs.evolve(result, bandwidth=found.bandwidth, unit=found.unit)
    return attrs.evolve(result, latency=found.latency)


def _default_hint(value: Value, need: str) -> str:
    if isinstance(value, Quantity):
        return other_measure(value, (need,))
    if need == TIME and isinstance(value, int | Fraction) and not isinstance(value, bool):
        return f"write the unit: `{value} us`"
    return "write `25 Gbps`" if need == BANDWIDTH else "write `10 us`"


def _require_not_exchanged(items: Sequence[ast.Option]) -> None:
    """Raise C0131 if the bandwidth is written as a time and the latency as a bandwidth."""
    found = {item.name.text: item for item in items if isinstance(item.value, ast.Quantity)}
    rate, delay = found.get("bandwidth"), found.get("latency")
    if rate is None or delay is None or _measure(rate) != TIME or _measure(delay) != BANDWIDTH:
        return
    hint = f"write `bandwidth: {expression_text(delay.value)}, latency: {expression_text(rate.value)}`"
    related = earlier(delay.value.span, "the bandwidth")
    raise error("C0131", "found bandwidth and latency exchanged", span=rate.value.span, hint=hint, related=related)


def _measure(item: ast.Option) -> str | None:
    return UNITS[item.value.unit][0] if isinstance(item.value, ast.Quantity) and item.value.unit in UNITS else None


_DEFAULTS = ("bandwidth", "latency", "reduction", "launch")


def _of_ranks(name: str, value: Value, span: Span | None) -> Fraction:
    """Return the bytes per second of ``reduction``, more than 0, or the seconds of ``launch``."""
    measure, need, example = (
        (BANDWIDTH, "the bytes per second that a rank adds", "reduction: 500 GB/s")
        if name == "reduction"
        else (TIME, "the time of a call besides its steps", "launch: 20 us")
    )
    if not isinstance(value, Quantity) or value.measure != measure:
        raise error("C0131", f"found {kind_of(value)}, needed {need}", span=span, hint=f"write `{example}`")
    if value.value < 0 or (name == "reduction" and value.value == 0):
        found = f"a {name} that is {'not positive' if name == 'reduction' else 'negative'}"
        raise error("C0315", f"found {found}", span=span, hint=f"write `{example}`, or leave it out for none")
    return value.value


# ---- collectives


def collective(node: ast.Collective, topology: Topology, scope: Scope, compiler: Compiler) -> Collective:
    """Return the collective of a declaration; raises CollcError or Poisoned."""
    given: dict[str, Any] = {}  # Any: named arguments of Collective
    wrong = False
    for item in distinct_options(node.options, compiler):
        try:
            _require_option(item, node, compiler)
            given[item.name.text] = _READERS[item.name.text](item.value, topology, scope, compiler)
        except Poisoned:
            wrong = True
        except CollcError as failure:
            compiler.problems.take(with_origins(failure, item, scope, []), item.span)
            wrong = True
    known(node.kind, KINDS, "C0201", "collective", compiler)
    _check_root(node, given)
    if wrong:
        raise Poisoned
    return Collective(node.kind.text, topology.num_ranks, **given)


def _require_option(item: ast.Option, node: ast.Collective, compiler: Compiler) -> None:
    """Raise C0127 for an option that a collective does not have; the hint says what has it."""
    name = item.name.text
    if name in _READERS:
        return
    value = expression_text(item.value)
    if name in ("bandwidth", "latency"):
        hint = f"links have it: `topology pod = torus(4, 4) with {{ {name}: {value} }};`"
    elif name in ("using", "scheduler", "schedule", "algorithm"):
        hint = f"a schedule is a declaration: `schedule {node.name.text} using {value};`"
    elif name in ("target", "emit", "as", "format"):
        hint = f"an output is a declaration: `emit {node.name.text} as {value};`"
    elif owner := compiler.vocabulary().options(name):
        hint = f"`{name}` is an option of {owner}"
    else:
        known(item.name, tuple(_READERS), "C0127", "option", compiler)
        return
    raise error(
        "C0127", f"a collective has no option `{name}`", span=item.name.span, hint=hint,
        notes=(f"its options are {', '.join(_READERS)}",),
    )  # fmt: skip


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
    if isinstance(value, ast.Range):
        hint = "write one size; `schedule NAME using auto { sizes: 1 KiB..1 GiB };` chooses for all sizes of a range"
        raise error("C0129", "found a range, needed a size such as `64 MiB`", span=value.span, hint=hint)
    amount = _evaluated(value, scope, compiler, (SIZE,))
    if not isinstance(amount, Quantity) or amount.measure != SIZE:
        message = f"found {kind_of(amount)}, needed a size such as `64 MiB`"
        raise error("C0129", message, span=value.span, hint=_size_hint(amount))
    if amount.value <= 0:
        found = "0 B" if amount.value == 0 else "a negative size"
        hint = "leave `size` out if it is not known"
        raise error("C0129", f"found {found}, needed at least 1 B", span=value.span, hint=hint)
    if amount.value.denominator != 1:
        found, hint = f"{float(amount.value):g} B", f"write `{ceil(amount.value)} B`"
        raise error("C0129", f"found {found}, needed a whole number of bytes", span=value.span, hint=hint)
    if amount.value > _MOST_BYTES:
        message = f"found {float(amount.value):g} B, needed at most {_MOST_BYTES} B (8 EiB)"
        raise error("C0129", message, span=value.span, hint="write the bytes of one call")
    return amount.value.numerator


def _size_hint(found: Value) -> str | None:
    if isinstance(found, Quantity):
        return other_measure(found, (SIZE,))
    if type(found) is int:
        return f"write `{found} B`, or `{found} MiB`"
    return f"write `{found}` without quotes" if isinstance(found, str) else None


def _root(value: ast.Expr | ast.Word, topology: Topology, scope: Scope, compiler: Compiler) -> int:
    inner = scope.child()
    inner.nodes = NodeTable.of(topology)
    root = _evaluated(value, inner, compiler, NODE)
    if isinstance(root, str) and topology.node_names:
        root = inner.node_named(root, value.span)
    if isinstance(root, Switch):
        name = topology.names[topology.num_ranks + root.number]
        message = f"found `{name}`, a switch of `{topology.name}`, needed a rank as root"
        hint = f"only ranks have data; write a rank, such as `{topology.names[0]}`"
        raise error("C0129", message, span=value.span, hint=hint)
    rank = integer(root, value.span, "a rank")
    if not 0 <= rank < topology.num_ranks:
        message = f"found rank {rank}: ranks of `{topology.name}` are 0 to {topology.num_ranks - 1}"
        hint = f"ranks count from 0: the last is {topology.num_ranks - 1}"
        raise error("C0204", message, span=value.span, hint=hint)
    return rank


def _word(names: Sequence[str], what: str) -> Callable[..., str]:
    def read(value: ast.Expr | ast.Word, topology: Topology, scope: Scope, compiler: Compiler) -> str:
        match value:
            case ast.Name(text) | ast.Word(text) | ast.String(text):
                known(ast.Word(text, span=value.span), names, "C0129", what, compiler)
                return text
        found = f"found `{expression_text(value)}`, needed an {what}"
        raise error("C0129", found, span=value.span, notes=(f"there are {', '.join(names)}",))

    return read


def _evaluated(value: ast.Expr | ast.Word, scope: Scope, compiler: Compiler, needs: Needs) -> Value:
    if isinstance(value, ast.Word):
        raise error("C0129", f"found the word `{value.text}`, needed a number", span=value.span)
    return compiler.evaluate(value, scope, needs)


_READERS: dict[str, Callable[..., object]] = {
    "size": _size, "op": _word(OPERATIONS, "operation"), "dtype": _word(DTYPES, "element type"), "root": _root,
}  # fmt: skip
