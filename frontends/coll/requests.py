"""The options of schedulers and targets, and the defaults of links."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fractions import Fraction

import attrs

from collc.ir.diagnostic import CollcError, Span, error
from collc.ir.spec import Option, OptionValue
from collc.ir.topology import Topology

from ..units import BANDWIDTH, SIZE, TIME, UNITS
from . import ast
from .expressions import Compiler, Needs
from .kinds import DEFAULTS
from .network import Defaults, attributes_of
from .origins import with_origins
from .printer import expression_text
from .scope import Constant, Poisoned, Scope, earlier
from .unit_hints import other_measure
from .values import Integers, Parts, Quantity, Value, extent, kind_of, no_number

__all__ = ["defaults", "distinct_options", "known", "options", "text_of", "word_of"]

_MAX_LIST = 10_000


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
        case ast.Range(low, high, None):
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
        case range() if extent(value) <= _MAX_LIST:
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
            known(item.name, (*DEFAULTS, *more), "C0127", "default", compiler)
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
