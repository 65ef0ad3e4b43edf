"""Calls ``name(arguments)``: graph families, operators on topologies, groups, functions of numbers.

Arguments are checked against the registry, and sizes against the limits, before anything is built.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from importlib import import_module
from math import ceil, floor
from types import ModuleType

import attrs

from collc.ir.diagnostic import CollcError, Span, error, nearest
from collc.ir.frozen import frozen
from collc.ir.group import Group
from collc.ir.registry import load
from collc.ir.topology import Origin, Topology

from . import ast
from .expressions import integer
from .families import FAMILIES, FUNCTIONS, LATER, OPERATORS, Bandwidth, Construction, Parameter
from .groups import GROUPS, group
from .units import BANDWIDTH, UNITS
from .values import Integers, Quantity, Value, bounded, compared, kind_of, whole

__all__ = ["DEFAULT_NODE_LIMIT", "Library", "Limits"]

DEFAULT_NODE_LIMIT = 20_000
#: Links allowed for each node of the node limit: complete(1024) has a million, and 1,280,000 are allowed by default.
_LINKS_PER_NODE = 64
#: All topologies of a file together may be this many times as large as one may be.
_TOPOLOGIES = 8
#: Statements that one body may execute for each node of the node limit: 4,000,000 by default.
_STATEMENTS_PER_NODE = 200

#: Names of topologies write runs of this many integers, or more, as ranges.
_LONG_RUN = 5
#: The most characters of a topology's name; a few lines of nested operators could give any length.
_LONG_NAME = 1000
_SHORT_NAME = 60  # arguments up to this length are written out even then
#: The most nested operators for which a topology records how it was built.
_MOST_OPERATORS = 64

_CONSTRUCTIONS = {**FAMILIES.own, **OPERATORS}


@attrs.define
class Limits:
    """The limits of a file; ``--node-limit`` sets ``nodes``, and the others are multiples of it."""

    nodes: int = DEFAULT_NODE_LIMIT
    used_nodes: int = 0
    used_links: int = 0

    @property
    def links(self) -> int:
        """The most links that topologies may have."""
        return self.nodes * _LINKS_PER_NODE

    @property
    def statements(self) -> int:
        """The most statements that one body may execute."""
        return self.nodes * _STATEMENTS_PER_NODE

    def claim(self, what: str, nodes: int, links: int, span: Span | None) -> None:
        """Count a topology's size; raise C0310 if it, or all topologies together, are too large."""
        for count, noun, limit in ((nodes, "nodes", self.nodes), (links, "links", self.links)):
            if count > limit:
                raise _too_large(f"{what} has {_count(count)} {noun}, the limit is {limit}", span)
        self.used_nodes, self.used_links = self.used_nodes + nodes, self.used_links + links
        if self.used_nodes > _TOPOLOGIES * self.nodes or self.used_links > _TOPOLOGIES * self.links:
            total = f"{self.used_nodes} nodes and {self.used_links} links"
            most = f"{_TOPOLOGIES * self.nodes} and {_TOPOLOGIES * self.links}"
            raise _too_large(f"the topologies up to here have {total}, the limits are {most}", span)


def _too_large(message: str, span: Span | None) -> CollcError:
    return error("C0310", message, span=span, hint="`--node-limit` raises the limit")


def _count(number: int) -> str:
    return f"{number}" if number <= 10**12 else "more than 10^12"


@frozen
class Library:
    """The functions of the language, within limits. The same call with numbers is built only once."""

    limits: Limits
    built: dict[tuple[object, ...] | None, Topology] = attrs.field(factory=dict)

    def require(self, node: ast.Call) -> None:
        """Raise C0122 if the function does not exist, C0313 if this version cannot build it."""
        if node.name in _FUNCTIONS or node.name in GROUPS or _construction(node.name) is not None:
            return
        if node.name in LATER:
            message = f"the graph family `{node.name}` is not available in this version"
            raise error("C0313", message, span=node.span, hint="`collc topologies` lists those that are")
        hint = nearest(node.name, (*_CONSTRUCTIONS, *FAMILIES.brought(), *GROUPS, *_FUNCTIONS, *LATER))
        raise error("C0122", f"unknown graph family or function `{node.name}`", span=_name_span(node), hint=hint)

    def names_ranks(self, node: ast.Call) -> bool:
        """Return whether the function's last argument may name nodes of the topology before it."""
        entry = _construction(node.name)
        return entry is not None and any(parameter.kind == "ranks" for parameter in entry.parameters)

    def call(self, node: ast.Call, values: Sequence[Value]) -> Value:
        """Return the value of a call with these arguments."""
        if entry := _construction(node.name):
            return self._construct(node, entry, values)
        if node.name in GROUPS:
            return group(node, values, self.limits.nodes)
        least, most, function = _FUNCTIONS[node.name]
        if len(values) < least or (most is not None and len(values) > most):
            raise _arity(node, len(values), least, most, FUNCTIONS[node.name])
        return function(node, values)

    def _construct(self, node: ast.Call, entry: Construction, values: Sequence[Value]) -> Topology:
        if len(values) < entry.least or (entry.most is not None and len(values) > entry.most):
            raise _arity(node, len(values), entry.least, entry.most, entry.signature(node.name))
        arguments = [_argument(entry, node, i, value) for i, value in enumerate(values)]
        key = (node.name, *arguments) if all(type(argument) is int for argument in arguments) else None
        if key in self.built:
            found = self.built[key]
            self.limits.claim(f"`{found.name}`", found.num_nodes, found.num_links, node.span)
            return found
        name = _call_text(node.name, values)
        module = _module(node.name, entry)
        try:
            nodes, links = getattr(module, f"{node.name}_size")(*arguments)
            self.limits.claim(f"`{name}`" if len(name) < 80 else "it", nodes, links, node.span)
            built = getattr(module, node.name)(*arguments)
            topology: Topology = attrs.evolve(built, name=name, origin=_origin(node.name, arguments))
        except CollcError as failure:
            placed = [attrs.evolve(d, span=d.span or node.span) for d in failure.diagnostics]
            raise CollcError(placed) from None
        if key is not None:
            self.built[key] = topology
        return topology


def _construction(name: str) -> Construction | None:
    """Return the construction of a family or operator; plugins are asked only for names that collc does not have."""
    if name in _CONSTRUCTIONS:
        return _CONSTRUCTIONS[name]
    return None if name in _FUNCTIONS or name in GROUPS or name in LATER else FAMILIES.get(name)


def _module(name: str, entry: Construction) -> ModuleType:
    """Return the module that builds a family; raise C0891 for a plugin's module that cannot."""
    if name in _CONSTRUCTIONS:
        return import_module(f".{entry.module}", f"{__package__}.families")
    what, package = f"the graph family `{name}`", FAMILIES.package(name)
    for attribute in (name, f"{name}_size"):
        load(entry.module, attribute, what, package)
    return import_module(entry.module)


def _argument(entry: Construction, node: ast.Call, index: int, value: Value) -> object:
    """Return an argument as the family takes it; raise C0131, C0132 or C0311 if it has another kind."""
    parameter, span = entry.parameter(index), node.arguments[index].span
    if parameter.kind == "topology":
        if not isinstance(value, Topology):
            raise error("C0131", f"found {kind_of(value)}, needed a topology for `{node.name}`", span=span)
        return value
    if parameter.kind == "group":
        if not isinstance(value, Group):
            hint = f"groups are {', '.join(GROUPS)}"
            raise _wrong_kind(node.name, parameter, value, "a group", span, hint=hint)
        return value
    if parameter.kind == "name":
        if not isinstance(value, str):
            example = f"`collc topologies {node.name}` lists them"
            raise _wrong_kind(node.name, parameter, value, "a string", span, hint=example)
        return value
    if parameter.kind in ("set", "ranks"):
        return _members(node.name, parameter, value, span)
    if parameter.kind == "bandwidth":
        return _bandwidth(node.name, parameter, value, span)
    if isinstance(value, (bool, str, Topology, Integers, range, Quantity, Group)):
        raise _wrong_kind(node.name, parameter, value, "an integer", span)
    number = integer(value, span, f"an integer `{parameter.name}`")
    if number < parameter.least:
        what = f"`{parameter.name}` of `{node.name}`"
        raise error("C0311", f"found {number}, needed {what} to be at least {parameter.least}", span=span)
    return number


def _bandwidth(function: str, parameter: Parameter, value: Value, span: Span | None) -> Bandwidth:
    match value:
        case Quantity(amount, measure) if measure == BANDWIDTH:
            found = Bandwidth(amount, "B/s")
        case int() | Fraction() if not isinstance(value, bool):
            found = Bandwidth(Fraction(value))
        case _:
            raise _wrong_kind(function, parameter, value, "a bandwidth", span, hint="write `25 GB/s`, or a number")
    if found.value <= 0:
        message = f"found a `{parameter.name}` of `{function}` that is not positive"
        raise error("C0311", message, span=span, hint="leave out links that carry nothing")
    return found


def _members(function: str, parameter: Parameter, value: Value, span: Span | None) -> tuple[int, ...]:
    match value:
        case Integers(items):
            return items
        case range() if max(value.stop - value.start, 0) <= DEFAULT_NODE_LIMIT:
            return tuple(value)
        case range():
            raise error("C0134", f"found a range of more than {DEFAULT_NODE_LIMIT} integers", span=span)
        case int():
            raise _wrong_kind(function, parameter, value, "a set", span, hint=f"write `{{{value}}}`")
        case _:
            raise _wrong_kind(function, parameter, value, "a set", span)


def _wrong_kind(
    function: str, parameter: Parameter, value: Value, need: str, span: Span | None, hint: str | None = None
) -> CollcError:
    message = f"found {kind_of(value)}, needed {need} as `{parameter.name}` of `{function}`"
    return error("C0131", message, span=span, hint=hint)


def _arity(node: ast.Call, found: int, least: int, most: int | None, signature: str) -> CollcError:
    need = f"{least}" if least == most else f"at least {least}" if most is None else f"{least} to {most}"
    message = f"found {found} argument{'' if found == 1 else 's'}, needed {need}"
    return error("C0136", message, span=node.span, hint=f"write `{signature}`")


def _name_span(node: ast.Call) -> Span | None:
    if node.span is None:
        return None
    return attrs.evolve(node.span, end_line=node.span.line, end_column=node.span.column + len(node.name))


def _origin(name: str, arguments: Sequence[object]) -> Origin | None:
    origin = Origin(name, tuple(arguments))
    return origin if origin.depth <= _MOST_OPERATORS else None


def _call_text(name: str, values: Sequence[Value]) -> str:
    """Return a call as the language writes it; if that is too long, without the arguments of its arguments."""
    for show in (_value_text, _short_text):
        shown, length = list[str](), len(name) + 2
        for value in values:
            shown.append(show(value))
            length += len(shown[-1]) + 2
            if length > _LONG_NAME + 2:
                break
        else:
            return f"{name}({', '.join(shown)})"
    return f"{name}(..)"


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
            return f"{value.start}..{value.stop}"
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
        raise error("C0134", f"found the exponent {exponent}, needed at least 0", span=node.arguments[1].span)
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
        raise error("C0134", f"found {value}, needed a power of two", span=span)
    return value.bit_length() - 1


def _xor(node: ast.Call, values: Sequence[Value]) -> Value:
    one, two = (integer(value, argument.span) for value, argument in zip(values, node.arguments, strict=True))
    if one < 0 or two < 0:
        raise error("C0134", f"found {min(one, two)}, needed at least 0", span=node.span)
    return one ^ two


_Function = Callable[[ast.Call, Sequence[Value]], Value]
_FUNCTIONS: dict[str, tuple[int, int | None, _Function]] = {
    "ranks": (1, 1, _ranks), "min": (1, None, _extreme("<")), "max": (1, None, _extreme(">")), "abs": (1, 1, _abs),
    "floor": (1, 1, _rounded(floor)), "ceil": (1, 1, _rounded(ceil)), "pow": (2, 2, _pow), "log2": (1, 1, _log2),
    "xor": (2, 2, _xor),
}  # fmt: skip
