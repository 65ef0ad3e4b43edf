"""Calls ``name(arguments)``: graph families, operators on topologies, groups, functions of numbers.

Arguments are checked against the registry, and sizes against the limits, before anything is built.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from fractions import Fraction
from importlib import import_module
from itertools import combinations
from math import ceil, floor
from types import ModuleType
from typing import TYPE_CHECKING

import attrs

from collc.ir.diagnostic import CollcError, Span, error
from collc.ir.frozen import frozen
from collc.ir.group import Group
from collc.ir.registry import load
from collc.ir.shown import counted
from collc.ir.topology import Origin, Topology

from ..units import BANDWIDTH, UNITS
from . import ast
from .expressions import NUMBER, TOPOLOGY, Needs, integer
from .families import FAMILIES, FUNCTIONS, OPERATORS, Bandwidth, Construction, Parameter
from .families._sizes import DomainError
from .groups import GROUPS, group
from .limits import DEFAULT_NODE_LIMIT, Limits
from .parts import elements, part_text, rank_numbers
from .printer import expression_text
from .unit_hints import other_measure
from .values import (
    Integers,
    Parts,
    Quantity,
    Switch,
    Value,
    bounded,
    compared,
    extent,
    kind_of,
    no_number,
    whole,
)

if TYPE_CHECKING:
    from .guesses import Vocabulary

__all__ = ["Library"]

#: Names of topologies write runs of this many integers, or more, as ranges.
_LONG_RUN = 5
#: The most characters of a topology's name; a few lines of nested operators could give any length.
_LONG_NAME = 1000
_SHORT_NAME = 60  # arguments up to this length are written out even then
#: The most nested operators for which a topology records how it was built.
_MOST_OPERATORS = 64

_CONSTRUCTIONS = {**FAMILIES.own, **OPERATORS}
#: kinds of arguments that may name nodes of the topology before them
_OF_THE_TOPOLOGY = ("ranks", "parts", "order")
_SETS = ("set", *_OF_THE_TOPOLOGY)


@frozen
class Library:
    """The functions of the language, within limits. The same call with numbers is built only once."""

    limits: Limits
    built: dict[tuple[object, ...] | None, Topology] = attrs.field(factory=dict)

    def require(self, node: ast.Call, needs: Needs, vocabulary: Callable[[], Vocabulary]) -> None:
        """Raise C0122 if the function does not exist, C0131 for a set of sizes.

        The hint of C0122 is of a kind that the place ``needs``.
        """
        if (entry := _construction(node.name)) is not None:
            _require_no_set(node, entry)
        if entry is not None or node.name in _FUNCTIONS or node.name in GROUPS:
            return
        hint, what = _function_hint(node, needs, vocabulary())
        raise error("C0122", f"unknown {what} `{node.name}`", span=_name_span(node), hint=hint)

    def families(self) -> Sequence[str]:
        """Return the names of the graph families and operators."""
        return (*_CONSTRUCTIONS, *FAMILIES.brought())

    def names(self) -> Collection[str]:
        """Return the names of all functions, which no function of a file may have."""
        return {*self.families(), *_FUNCTIONS, *GROUPS}

    def needs(self, node: ast.Call) -> Sequence[Needs]:
        """Return what fits as each argument, for hints."""
        entry = _construction(node.name)
        if entry is None:
            known = TOPOLOGY if node.name == "ranks" else NUMBER if node.name in _FUNCTIONS else ()
            return [known] * len(node.arguments)
        if not entry.parameters:
            return [()] * len(node.arguments)
        return [_NEEDS.get(entry.parameter(i).kind, ()) for i in range(len(node.arguments))]

    def bracketed(self, node: ast.Index) -> CollcError | None:
        """Return the error for ``torus[4, 4]``; None if the name is no function."""
        entry = _construction(node.name)
        if entry is None and node.name not in _FUNCTIONS and node.name not in GROUPS:
            return None
        what = "a graph family" if node.name in FAMILIES else "an operator" if entry else "a function"
        hint = f"write `{node.name}({', '.join(map(expression_text, node.indices))})`"
        return error("C0131", f"`{node.name}` is {what}: its arguments stand in `( )`", span=node.span, hint=hint)

    def parts_of(self, node: ast.Call) -> int | None:
        """Return the argument that may name nodes of the topology before it, if the function has one."""
        entry = _construction(node.name)
        kinds = [parameter.kind for parameter in entry.parameters] if entry else []
        return next((place for place, kind in enumerate(kinds) if kind in _OF_THE_TOPOLOGY), None)

    def call(self, node: ast.Call, values: Sequence[Value]) -> Value:
        """Return the value of a call with these arguments."""
        if entry := _construction(node.name):
            return self._construct(node, entry, values)
        if node.name in GROUPS:
            return group(node, values, self.limits.nodes)
        least, most, function = _FUNCTIONS[node.name]
        if len(values) < least or (most is not None and len(values) > most):
            raise _arity(node, len(values), least, most, f"write `{FUNCTIONS[node.name]}`")
        return function(node, values)

    def _construct(self, node: ast.Call, entry: Construction, values: Sequence[Value]) -> Topology:
        if len(values) < entry.least or (entry.most is not None and len(values) > entry.most):
            raise _arity(node, len(values), entry.least, entry.most, _arguments_hint(entry, node, values))
        arguments = _arguments(entry, node, values)
        key = (node.name, *arguments) if all(type(argument) is int for argument in arguments) else None
        if key in self.built:
            found = self.built[key]
            self.limits.claim(f"`{found.name}`", found.num_nodes, found.num_links, node.span)
            return found
        name = _call_text(node.name, [_as_given(entry.parameter(i), value) for i, value in enumerate(values)])
        module = _module(node.name, entry)
        try:
            nodes, links = getattr(module, f"{node.name}_size")(*arguments)
            self.limits.claim(f"`{name}`" if len(name) < 80 else "it", nodes, links, node.span)
            built = getattr(module, node.name)(*arguments)
            gamma, epsilon = _times_of_ranks([built, *arguments])
            topology: Topology = attrs.evolve(
                built, name=name, origin=_origin(node.name, arguments), gamma=gamma, epsilon=epsilon
            )
        except CollcError as failure:
            place = _guilty(entry, node, values, failure)
            placed = [attrs.evolve(d, span=d.span or place) for d in failure.diagnostics]
            raise CollcError(placed) from None
        if key is not None:
            self.built[key] = topology
        return topology


def _guilty(entry: Construction, node: ast.Call, values: Sequence[Value], failure: CollcError) -> Span | None:
    """Return the place of the argument that makes no graph, or of a member of its set; the call's if it is several."""
    at = failure.at if isinstance(failure, DomainError) else None
    places = [i for i in range(len(values)) if entry.parameter(i).name == at]
    if not places or not isinstance(failure, DomainError):
        return node.span
    index = next((i for i in places if _holds(values[i], failure.item)), places[0])
    value, whole = values[index], node.arguments[index].span
    return whole if failure.item is None or not isinstance(value, Integers) else value.place(failure.item, whole)


def _holds(value: Value, item: int | None) -> bool:
    return isinstance(value, Integers) and item in value.items


def _times_of_ranks(arguments: Sequence[object]) -> tuple[Fraction, Fraction]:
    """Return the largest gamma and epsilon of an operator's topologies: its ranks are theirs."""
    bases = [one for one in arguments if isinstance(one, Topology)]
    gamma = max((base.gamma for base in bases), default=Fraction(0))
    return gamma, max((base.epsilon for base in bases), default=Fraction(0))


def _construction(name: str) -> Construction | None:
    """Return the construction of a family or operator; plugins are asked only for names that collc does not have."""
    if name in _CONSTRUCTIONS:
        return _CONSTRUCTIONS[name]
    return None if name in _FUNCTIONS or name in GROUPS else FAMILIES.get(name)


def _module(name: str, entry: Construction) -> ModuleType:
    """Return the module that builds a family; raise C0891 for a plugin's module that cannot."""
    if name in _CONSTRUCTIONS:
        return import_module(f".{entry.module}", f"{__package__}.families")
    what, package = f"the graph family `{name}`", FAMILIES.package(name)
    for attribute in (name, f"{name}_size"):
        load(entry.module, attribute, what, package)
    return import_module(entry.module)


#: kind of a parameter -> what fits, for hints
_NEEDS: dict[str, Needs] = {
    "integer": NUMBER, "name": ("string",), "set": NUMBER, "topology": TOPOLOGY,
    "bandwidth": (BANDWIDTH,),
}  # fmt: skip


def _function_hint(node: ast.Call, needs: Needs, vocabulary: Vocabulary) -> tuple[str | None, str]:
    """Return a hint for an unknown function, and what it should have been, by what its place needs."""
    families, numbers = (*_CONSTRUCTIONS, *FAMILIES.brought()), (*_FUNCTIONS,)
    if "topology" in needs:
        hint = vocabulary.hint(node.name, "topology", families, called=True)
        return _same_arguments(hint, node) or _LISTING, "graph family"
    if node.name == "range" and 1 <= len(node.arguments) <= 2:
        ends = [expression_text(argument) for argument in node.arguments]
        return f"write `{'0' if len(ends) == 1 else ends[0]}..{ends[-1]}`", "function"
    if needs:
        hint = vocabulary.hint(node.name, "function", (*numbers, *GROUPS) if "group" in needs else numbers)
        return hint or f"the functions of numbers are {', '.join(numbers)}", "function"
    hint = vocabulary.hint(node.name, "function", numbers) or vocabulary.hint(
        node.name, "topology", (*families, *GROUPS), called=True
    )
    listing = f"{_LISTING}; the functions of numbers are {', '.join(numbers)}"
    return hint or listing, "graph family or function"


def _same_arguments(hint: str | None, node: ast.Call) -> str | None:
    """Return a hint that names one family with the arguments that were given, where their number fits."""
    match = re.fullmatch(r"write `(\w+)\([^`]*\)`", hint or "")
    entry = _construction(match[1]) if match else None
    if match is None or entry is None or any(parameter.kind != "integer" for parameter in entry.parameters):
        return hint
    if not entry.least <= len(node.arguments) <= (entry.most or len(node.arguments)) or not node.arguments:
        return hint
    return f"write `{match[1]}({', '.join(map(expression_text, node.arguments))})`"


_LISTING = "`collc topologies` lists the graph families"


def _require_no_set(node: ast.Call, entry: Construction) -> None:
    """Raise C0131 if sizes stand in braces, before the set is refused for holding one twice."""
    for i, argument in enumerate(node.arguments):
        if isinstance(argument, ast.SetOf) and entry.parameter(i).kind == "integer" and not _exchanged_set(node, entry):
            plain = [part for one in node.arguments for part in (one.items if isinstance(one, ast.SetOf) else (one,))]
            hint = f"write `{node.name}({', '.join(map(expression_text, plain))})`"
            message = f"found a set, needed an integer as `{entry.parameter(i).name}` of `{node.name}`"
            raise error("C0131", message, span=argument.span, hint=hint)


def _exchanged_set(node: ast.Call, entry: Construction) -> bool:
    """Return whether another parameter takes a set, so that arguments are only in the wrong order."""
    return (
        any(parameter.kind in ("set", "ranks", "parts", "order") for parameter in entry.parameters)
        and len(node.arguments) > 1
    )


def _arguments(entry: Construction, node: ast.Call, values: Sequence[Value]) -> list[object]:
    """Return all arguments as the family takes them; a mistake says so if two are only in each other's place."""
    try:
        return _in_turn(entry, node, values)
    except CollcError as failure:
        if failure.diagnostics[0].code == "C0311" or (order := _other_order(entry, node, values)) is None:
            raise
        first = failure.diagnostics[0]
        hint = f"the arguments are in another order: write `{_call_text(node.name, order)}`"
        raise CollcError(attrs.evolve(first, hint=hint)) from None


def _in_turn(entry: Construction, node: ast.Call, values: Sequence[Value]) -> list[object]:
    arguments: list[object] = []
    whole: Topology | None = None
    for i, value in enumerate(values):
        argument = _argument(entry, node, i, value, whole)
        arguments.append(argument)
        if whole is None and isinstance(argument, Topology):
            whole = argument
    return arguments


def _other_order(entry: Construction, node: ast.Call, values: Sequence[Value]) -> list[Value] | None:
    """Return the values with two of them exchanged so that each fits its parameter; None if no exchange does."""
    wrong = [at for at, value in enumerate(values) if not _suits(entry.parameter(at).kind, value)]
    for i, j in _exchanges(len(values), wrong):
        if _suits(entry.parameter(i).kind, values[j]) and _suits(entry.parameter(j).kind, values[i]):
            order = list(values)
            order[i], order[j] = order[j], order[i]
            return order
    return None


def _exchanges(length: int, wrong: Sequence[int]) -> Iterable[tuple[int, int]]:
    """Return the pairs of places, in order, that hold all wrong ones: of thousands of values, few pairs."""
    if not wrong:
        return combinations(range(length), 2)
    if len(wrong) > 2:
        return ()
    others = wrong[1:] or (at for at in range(length) if at != wrong[0])
    return ((min(wrong[0], at), max(wrong[0], at)) for at in others)


_CLASSES: dict[str, tuple[type, ...]] = {
    "integer": (int,), "set": (Integers, range), "ranks": (Integers, range), "topology": (Topology,), "group": (Group,),
    "name": (str,), "bandwidth": (Quantity, int, Fraction), "parts": (Integers, range, Parts),
    "order": (Integers, range, Parts), "factor": (int, Fraction),
}  # fmt: skip


def _suits(kind: str, value: Value) -> bool:
    return isinstance(value, _CLASSES[kind]) and not isinstance(value, bool)


def _arguments_hint(entry: Construction, node: ast.Call, values: Sequence[Value]) -> str:
    """Return what to write for a wrong number of arguments: offsets that are no set, else the signature."""
    last = len(entry.parameters) - 1
    sets = [i for i, parameter in enumerate(entry.parameters) if parameter.kind in _SETS and i == last]
    rest = values[sets[0] :] if sets else ()
    if sets and len(rest) > 1 and all(type(value) is int for value in rest):
        texts = [_value_text(value) for value in values]
        plain, members = texts[: sets[0]], texts[sets[0] :]
        return f"write `{node.name}({', '.join([*plain, '{' + ', '.join(members) + '}'])})`"
    from .families.examples import EXAMPLES

    shown = f", such as `{EXAMPLES[node.name]}`" if node.name in EXAMPLES else ""
    return f"write `{entry.signature(node.name)}`{shown}"


def _argument(entry: Construction, node: ast.Call, index: int, value: Value, whole: Topology | None) -> object:
    """Return an argument as the family takes it; raise C0131, C0132, C0135 or C0311 if it has another kind.

    ``whole`` is the topology that a set of parts belongs to.
    """
    parameter, span = entry.parameter(index), node.arguments[index].span
    if parameter.kind == "topology":
        if not isinstance(value, Topology):
            raise error(
                "C0131", f"found {kind_of(value)}, needed a topology for `{node.name}`", span=span,
                hint=_topology_hint(node.name, value),
            )  # fmt: skip
        return value
    if parameter.kind == "group":
        if not isinstance(value, Group):
            cyclic = f"write `cyclic({value})` for the cyclic group; " if type(value) is int else ""
            hint = f"{cyclic}groups are {', '.join(GROUPS)}"
            raise _wrong_kind(node.name, parameter, value, "a group", span, hint=hint)
        return value
    if parameter.kind == "name":
        if not isinstance(value, str):
            example = f"`collc topologies {node.name}` lists them"
            raise _wrong_kind(node.name, parameter, value, "a string", span, hint=example)
        return value
    if parameter.kind in _SETS and (type(value) is int or isinstance(value, Switch)):
        raise _no_set(node, parameter, value, node.arguments[index])
    if parameter.kind in ("ranks", "order") and isinstance(value, Parts) and whole is not None:
        value = _named_ranks(node.name, whole, value, span)
    if parameter.kind in ("set", "ranks"):
        return _members(node.name, parameter, value, span)
    if parameter.kind == "order":
        return _ordered(node.name, parameter, value, span)
    if parameter.kind == "parts" and whole is not None:
        return elements(node.name, whole, value, span)
    if parameter.kind == "factor":
        return _factor(node.name, parameter, value, span)
    if parameter.kind == "bandwidth":
        return _bandwidth(node.name, parameter, value, span)
    if isinstance(value, (bool, str, Topology, Integers, range, Quantity, Group)):
        plain = f"write `{value}` without quotes" if isinstance(value, str) else None
        plain = f"write `{int(value)}`" if isinstance(value, bool) else plain
        raise _wrong_kind(node.name, parameter, value, "an integer", span, hint=plain)
    number = integer(value, span, f"an integer `{parameter.name}`")
    if number < parameter.least:
        what = f"`{parameter.name}` of `{node.name}`"
        raise error("C0311", f"found {number}, needed {what} to be at least {parameter.least}", span=span)
    return number


def _no_set(node: ast.Call, parameter: Parameter, value: Value, argument: ast.Expr) -> CollcError:
    what = "a node" if isinstance(argument, ast.Index) else kind_of(value)
    message = f"found {what}, needed a set as `{parameter.name}` of `{node.name}`"
    return error("C0131", message, span=argument.span, hint=f"write `{{{expression_text(argument)}}}`")


def _topology_hint(operator: str, value: Value) -> str:
    if operator == "line" and type(value) is int:
        return f"`line` makes the line graph of a topology, as in `line(torus(3, 3))`; a chain is `mesh({value})`"
    if operator == "product" and type(value) is int:
        return f"write a topology for each factor, such as `complete({value})` or `biring({value})`"
    if isinstance(value, str):
        return "write it without quotes"
    from .families.examples import example

    return f"write a topology, as in `{example(operator)}`"


def _bandwidth(function: str, parameter: Parameter, value: Value, span: Span | None) -> Bandwidth:
    match value:
        case Quantity(amount, measure) if measure == BANDWIDTH:
            found = Bandwidth(amount, "B/s")
        case int() | Fraction() if not isinstance(value, bool):
            found = Bandwidth(Fraction(value))
        case _:
            hint = other_measure(value, (BANDWIDTH,)) if isinstance(value, Quantity) else "write `25 GB/s`, or a number"
            raise _wrong_kind(function, parameter, value, "a bandwidth", span, hint=hint)
    if found.value <= 0:
        message = f"found {'0' if found.value == 0 else 'a negative bandwidth'}, needed `{parameter.name}` above 0"
        raise error("C0311", message, span=span, hint="write the bandwidth of one link")
    return found


def _named_ranks(function: str, whole: Topology, value: Parts, span: Span | None) -> Integers:
    if not whole.node_names and any(isinstance(item, str) for item in value.items):
        raise no_number(value, span)
    return rank_numbers(whole, value, f"`without` takes links and switches; `{function}` takes ranks")


def _members(function: str, parameter: Parameter, value: Value, span: Span | None) -> tuple[int, ...]:
    match value:
        case Integers(items):
            return items
        case range() if extent(value) <= DEFAULT_NODE_LIMIT:
            return tuple(value)
        case range():
            raise error("C0134", f"found a range of more than {DEFAULT_NODE_LIMIT} integers", span=span)
        case Parts():
            raise no_number(value, span)
        case _:
            raise _wrong_kind(function, parameter, value, "a set", span)


def _ordered(function: str, parameter: Parameter, value: Value, span: Span | None) -> tuple[int, ...]:
    """Return the integers of a set in the order in which they were written."""
    members = _members(function, parameter, value, span)
    return value.given if isinstance(value, Integers) else members


def _factor(function: str, parameter: Parameter, value: Value, span: Span | None) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, int | Fraction):
        raise _wrong_kind(function, parameter, value, "a number", span, hint="write a share such as `1/2`")
    if not 0 < value <= 1:
        message = f"found a `{parameter.name}` of {value} for `{function}`, needed more than 0 and at most 1"
        hint = "`without` leaves links out" if value == 0 else "write a share of the bandwidth: `1/2` for half of it"
        raise error("C0311", message, span=span, hint=hint)
    return Fraction(value)


def _wrong_kind(
    function: str, parameter: Parameter, value: Value, need: str, span: Span | None, hint: str | None = None
) -> CollcError:
    message = f"found {kind_of(value)}, needed {need} as `{parameter.name}` of `{function}`"
    return error("C0131", message, span=span, hint=hint)


def _arity(node: ast.Call, found: int, least: int, most: int | None, hint: str) -> CollcError:
    need = f"{least}" if least == most else f"at least {least}" if most is None else f"{least} to {most}"
    message = f"found {counted(found, 'argument')}, needed {need}"
    return error("C0136", message, span=node.span, hint=hint)


def _name_span(node: ast.Call) -> Span | None:
    return None if node.span is None else node.span.first(len(node.name))


def _origin(name: str, arguments: Sequence[object]) -> Origin | None:
    origin = Origin(name, tuple(arguments))
    return origin if origin.depth <= _MOST_OPERATORS else None


def _as_given(parameter: Parameter, value: Value) -> Value:
    """Return the value whose text stands in the topology's name: an order stays as it was written."""
    if parameter.kind == "order" and isinstance(value, Integers):
        return Parts(value.given)
    return value


def _call_text(name: str, values: Sequence[Value]) -> str:
    """Return a call as the language writes it; if that is too long, without the arguments of its arguments."""
    whole = next((value for value in values if isinstance(value, Topology)), None)
    for show in (_value_text, _short_text):
        shown, length = list[str](), len(name) + 2
        for value in values:
            shown.append(_parts_text(value, whole, show is _short_text) if isinstance(value, Parts) else show(value))
            length += len(shown[-1]) + 2
            if length > _LONG_NAME + 2:
                break
        else:
            return f"{name}({', '.join(shown)})"
    return f"{name}(..)"


def _parts_text(value: Parts, whole: Topology | None, short: bool) -> str:
    shown = [part_text(part, whole) for part in value.items[: 1 if short else None]]
    return f"{{{', '.join(shown)}{', ..' if len(shown) < len(value.items) else ''}}}"


def _short_text(value: Value) -> str:
    match value:
        case Topology() | Group():
            text = _value_text(value)
            head, opened, _ = text.partition("(")
            return f"{head}(..)" if opened and len(text) > _SHORT_NAME else text
        case Integers(items) if len(items) >= _LONG_RUN:
            return f"{{{items[0]}, ..}}"
        case _:
            return _value_text(value)


def _value_text(value: Value) -> str:
    match value:
        case Topology():
            return value.name
        case Group():
            return value.shown
        case str():
            return f'"{value}"'
        case Integers(items, ranges):
            return f"{{{', '.join(_runs(items, ranges))}}}"
        case range():
            return f"{value.start}..{value.stop}" + (f" by {value.step}" if value.step > 1 else "")
        case Quantity(amount):
            return value.written or _quantity(amount)
        case _:
            return str(value)


def _runs(items: Sequence[int], ranges: Sequence[range] = ()) -> list[str]:
    """Return ascending integers as the language writes them, with the written ``ranges`` and ranges for long runs.

    >>> _runs((1, 2, 3, 7, *range(9, 20))), _runs((1, 2, 3), [range(2, 4)])
    (['1', '2', '3', '7', '9..20'], ['1', '2..4'])
    """
    texts: list[str] = []
    start = 0
    written = {given.start: given.stop for given in ranges}
    for end in range(1, len(items) + 1):
        if start < end and items[start] in written:
            if end < len(items) and items[end] < written[items[start]]:
                continue
            texts.append(f"{items[start]}..{written[items[start]]}")
            start = end
        elif end == len(items) or items[end] != items[end - 1] + 1 or items[end] in written:
            run = items[start:end]
            texts += [f"{run[0]}..{run[-1] + 1}"] if len(run) >= _LONG_RUN else map(str, run)
            start = end
    return texts


def _quantity(amount: Fraction) -> str:
    """Return a bandwidth in bytes per second as the language writes it.

    >>> _quantity(Fraction(25 * 10**9)), _quantity(Fraction(10**11, 3))
    ('25 GB/s', '100/3 GB/s')
    """
    unit = next((name for name in ("TB/s", "GB/s", "MB/s", "KB/s") if amount >= UNITS[name][1]), "B/s")
    return f"{whole(amount / UNITS[unit][1])} {unit}"


# ---- functions of numbers


def _ranks(node: ast.Call, values: Sequence[Value]) -> int:
    (topology,) = values
    if not isinstance(topology, Topology):
        span = node.arguments[0].span
        raise error("C0131", f"found {kind_of(topology)}, needed a topology", span=span, hint="write `ranks(TOPOLOGY)`")
    return topology.num_ranks


def _extreme(sign: str) -> Callable[[ast.Call, Sequence[Value]], Value]:
    def run(node: ast.Call, values: Sequence[Value]) -> Value:
        best = values[0]
        compared(sign, best, best, node.arguments[0].span)
        for value, argument in zip(values[1:], node.arguments[1:], strict=True):
            if compared(sign, value, best, argument.span):
                best = value
        return best

    return run


def _abs(node: ast.Call, values: Sequence[Value]) -> Value:
    value = _number(values[0], node.arguments[0].span)
    return value if value >= 0 else -value


def _number(value: Value, span: Span | None) -> int | Fraction:
    if isinstance(value, bool) or not isinstance(value, int | Fraction):
        raise error("C0131", f"found {kind_of(value)}, needed a number", span=span)
    return value


def _rounded(function: Callable[[int | Fraction], int]) -> Callable[[ast.Call, Sequence[Value]], Value]:
    return lambda node, values: function(_number(values[0], node.arguments[0].span))


def _pow(node: ast.Call, values: Sequence[Value]) -> Value:
    base = _number(values[0], node.arguments[0].span)
    exponent = integer(values[1], node.arguments[1].span)
    if exponent < 0:
        hint = f"write `1 / pow({expression_text(node.arguments[0])}, {-exponent})`"
        raise error(
            "C0134", f"found the exponent {exponent}, needed at least 0", span=node.arguments[1].span, hint=hint
        )
    result: int | Fraction = 1
    if base in (0, 1, -1):
        return base if exponent % 2 else base * base if exponent else 1
    for _ in range(exponent):  # ends soon: every step doubles at least
        result = bounded(result * base, node.span)
    return whole(Fraction(result))


def _log2(node: ast.Call, values: Sequence[Value]) -> Value:
    span = node.arguments[0].span
    value = integer(values[0], span)
    if value < 1 or value & (value - 1):
        near = (
            f"{1 << value.bit_length() - 1} and {1 << value.bit_length()} are the nearest"
            if value > 0
            else "as 1, 2, 4"
        )
        raise error("C0134", f"found {value}, needed a power of two", span=span, hint=near)
    return value.bit_length() - 1


def _xor(node: ast.Call, values: Sequence[Value]) -> Value:
    one, two = (integer(value, argument.span) for value, argument in zip(values, node.arguments, strict=True))
    if one < 0 or two < 0:
        hint = "`xor` works on the bits of numbers from 0"
        raise error("C0134", f"found {min(one, two)}, needed at least 0", span=node.span, hint=hint)
    return one ^ two


def _count(node: ast.Call, values: Sequence[Value]) -> Value:
    match values[0]:
        case range() as several:
            return extent(several)
        case Integers(items) | Parts(items):
            return len(items)
    message = f"found {kind_of(values[0])}, needed a range or a set"
    raise error("C0131", message, span=node.arguments[0].span)


_Function = Callable[[ast.Call, Sequence[Value]], Value]
_FUNCTIONS: dict[str, tuple[int, int | None, _Function]] = {
    "ranks": (1, 1, _ranks), "min": (1, None, _extreme("<")), "max": (1, None, _extreme(">")), "abs": (1, 1, _abs),
    "floor": (1, 1, _rounded(floor)), "ceil": (1, 1, _rounded(ceil)), "pow": (2, 2, _pow), "log2": (1, 1, _log2),
    "xor": (2, 2, _xor), "count": (1, 1, _count),
}  # fmt: skip
