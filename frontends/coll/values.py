"""Values of expressions, and exact arithmetic on them.

Values are ``bool``, ``int``, ``Fraction`` (never a whole number), ``str``, ``range``, :class:`Quantity`,
:class:`Integers`, :class:`Parts`, :class:`Switch`, :class:`collc.ir.group.Group` and
:class:`collc.ir.topology.Topology`. A rank is its number, and so is an element of a group.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

import attrs

from collc.ir.diagnostic import CollcError, Span, error
from collc.ir.frozen import frozen
from collc.ir.group import Group
from collc.ir.topology import Topology

from ..units import BANDWIDTH, SIZE, TIME

__all__ = [
    "MAX_BITS",
    "Arrow",
    "Integers",
    "Parts",
    "Quantity",
    "Switch",
    "Value",
    "arithmetic",
    "bounded",
    "compared",
    "extent",
    "kind_of",
    "no_number",
    "whole",
]

#: The most bits of a number: no network needs more, and repeated squaring would fill the memory.
MAX_BITS = 256


@frozen
class Quantity:
    """A size in bytes, a bandwidth in bytes per second or a time in seconds; ``written`` is its text in the file."""

    value: Fraction
    measure: str
    written: str = attrs.field(default="", eq=False)


@frozen
class Integers:
    """A set of integers, ascending; ``given`` is the order in which they were written, ``ranges`` what was ``a..b``.

    ``spans`` are the places of the ``given``.
    """

    items: tuple[int, ...]
    ranges: tuple[range, ...] = attrs.field(default=(), eq=False)
    given: tuple[int, ...] = attrs.field(default=(), eq=False)
    spans: tuple[Span | None, ...] = attrs.field(default=(), eq=False)

    def place(self, item: int, whole: Span | None) -> Span | None:
        """Return the place of an integer of the set; that of the ``whole`` set if it is not known."""
        return next((span for one, span in zip(self.given, self.spans, strict=False) if one == item), whole)


@frozen
class Switch:
    """Switch ``number`` of a topology, counted from 0."""

    number: int


@frozen
class Arrow:
    """A link by its ends, or one of each direction; an end is a rank, a switch or a node's name."""

    tail: int | Switch | str
    head: int | Switch | str
    duplex: bool


@frozen
class Parts:
    """A set with switches, links or names of nodes in it: parts of a topology, as written, and where."""

    items: tuple[int | Switch | Arrow | str, ...]
    spans: tuple[Span | None, ...] = attrs.field(default=(), eq=False)


Value: TypeAlias = bool | int | Fraction | str | range | Quantity | Integers | Parts | Switch | Group | Topology

_MEASURES = {SIZE: "a size", BANDWIDTH: "a bandwidth", TIME: "a time"}
_KINDS = {
    bool: "a truth value", int: "a number", Fraction: "a number", str: "a string", range: "a range", Integers: "a set",
    Parts: "a set of nodes or links", Switch: "a switch", Topology: "a topology",
}  # fmt: skip
_OPERATIONS: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip
# Any: operators compare whatever is given
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def kind_of(value: Value) -> str:
    """Return the kind of a value, for messages.

    >>> kind_of(3), kind_of(Quantity(Fraction(1), "time"))
    ('a number', 'a time')
    """
    if isinstance(value, Quantity):
        return _MEASURES[value.measure]
    return "a group" if isinstance(value, Group) else _KINDS[type(value)]


def extent(value: range) -> int:
    """Return how many integers a range has, which may be more than ``len`` can count."""
    return max(-(-(value.stop - value.start) // value.step), 0)


def no_number(value: Parts, span: Span | None) -> CollcError:
    """Return the error for a set that needs integers and has something else in it."""
    for item, place in zip(value.items, value.spans, strict=False):
        if isinstance(item, str):
            return error(
                "C0132", "found a string, needed an integer", span=place, hint=f"write `{item}` without quotes"
            )
        if not isinstance(item, int):
            what = "a link" if isinstance(item, Arrow) else "a switch"
            return error("C0131", f"found {what}, needed a rank or an integer", span=place)
    return error("C0131", "found a set of nodes or links, needed integers", span=span)


def whole(value: Fraction) -> int | Fraction:
    """Return a rational, as an ``int`` if it is whole."""
    return value.numerator if value.denominator == 1 else value


def bounded(value: int | Fraction, span: Span | None) -> int | Fraction:
    """Return the value; raise C0134 if it is beyond 2^256 or finer than 2^-256."""
    size = (
        value.bit_length()
        if isinstance(value, int)
        else max(value.numerator.bit_length(), value.denominator.bit_length())
    )
    if size > MAX_BITS:
        hint = "use smaller numbers, or a larger unit"
        raise error("C0134", f"found a number of {size} bits, needed at most {MAX_BITS}", span=span, hint=hint)
    return value


def arithmetic(sign: str, left: Value, right: Value, span: Span | None) -> Value:
    """Return ``left sign right`` for numbers and quantities; raise C0131 for other kinds, C0133 for division by zero.

    Quantities of one kind add; a quantity may be scaled; the ratio of two of one kind is a number.
    """
    a, b = _amount(left), _amount(right)
    unit_left = left.measure if isinstance(left, Quantity) else None
    unit_right = right.measure if isinstance(right, Quantity) else None
    if a is None or b is None or (measure := _measure(sign, unit_left, unit_right)) is _CLASH:
        raise error(
            "C0131",
            f"found {kind_of(left)} {sign} {kind_of(right)}, needed numbers or quantities of one kind",
            span=span,
            hint=_clash_hint(sign, left, right),
        )
    if sign == "mod":
        return _modulo(left, right, span)
    if sign == "/" and b == 0:
        raise error("C0133", "found a division by zero", span=span, hint=_ZERO)
    result = bounded(_OPERATIONS[sign](Fraction(a), Fraction(b)), span)
    return whole(Fraction(result)) if measure is None else Quantity(Fraction(result), measure)


_CLASH = "clash"


def _clash_hint(sign: str, left: Value, right: Value) -> str | None:
    """Return what to do about two values that do not go together."""
    if isinstance(left, Topology) and sign == "-":
        return "leave parts out by `without`, as in `without(t, {3, 0 <-> 1})`"
    if isinstance(left, Topology) or isinstance(right, Topology):
        return "topologies are combined by operators, such as `product(a, b)`"
    if isinstance(left, str) or isinstance(right, str):
        return "write the number without quotes"
    if isinstance(left, Quantity) and isinstance(right, Quantity):
        return "sums and differences are of one kind; `/` of two of one kind is a number"
    if isinstance(left, Quantity) != isinstance(right, Quantity) and sign in "+-":
        return "write both with a unit"
    return None


def _measure(sign: str, left: str | None, right: str | None) -> str | None:
    """Return the measure of ``left sign right``, None for a number, or ``clash``."""
    if sign in "+-":
        return left if left == right else _CLASH
    if sign == "*":
        return left or right if not (left and right) else _CLASH
    if sign == "/":
        return left if right is None else None if left == right else _CLASH
    return None if left is None and right is None else _CLASH


def _amount(value: Value) -> int | Fraction | None:
    if isinstance(value, Quantity):
        return value.value
    return value if isinstance(value, int | Fraction) and not isinstance(value, bool) else None


_ZERO = "leave 0 out: begin the range at 1, or write `if n > 0 { .. }`"


def _modulo(left: Value, right: Value, span: Span | None) -> int:
    if type(left) is not int or type(right) is not int:
        hint = "round the fraction with `floor(x)` or `ceil(x)`"
        raise error("C0132", "found `mod` of a fraction, needed integers", span=span, hint=hint)
    if right == 0:
        raise error("C0133", "found `mod 0`, a division by zero", span=span, hint=_ZERO)
    if right < 0:
        raise error("C0134", f"found `mod {right}`, needed a positive number", span=span, hint=f"write `mod {-right}`")
    return left % right


def compared(sign: str, left: Value, right: Value, span: Span | None) -> bool:
    """Return ``left sign right`` for two values of one kind; only numbers and quantities have an order."""
    ordered = _amount(left) is not None and _amount(right) is not None
    if kind_of(left) != kind_of(right) or not (ordered or sign in ("==", "!=")):
        raise error("C0131", f"found {kind_of(left)} {sign} {kind_of(right)}, needed two numbers", span=span)
    if ordered:
        return _COMPARISONS[sign](_amount(left), _amount(right))
    return _COMPARISONS[sign](left, right)
