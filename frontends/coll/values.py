"""Values of expressions, and exact arithmetic on them.

Values are ``bool``, ``int``, ``Fraction`` (never a whole number), ``str``, ``range``, :class:`Quantity`,
:class:`Integers`, :class:`Switch`, :class:`collc.ir.group.Group` and :class:`collc.ir.topology.Topology`. A rank is its
number, and so is an element of a group.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

import attrs

from collc.ir.diagnostic import Span, error
from collc.ir.frozen import frozen
from collc.ir.group import Group
from collc.ir.topology import Topology

from .units import BANDWIDTH, SIZE, TIME

__all__ = [
    "MAX_BITS",
    "Integers",
    "Quantity",
    "Switch",
    "Value",
    "arithmetic",
    "bounded",
    "compared",
    "kind_of",
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
    """A set of integers, ascending; ``ranges`` are those that were written ``a..b`` in it."""

    items: tuple[int, ...]
    ranges: tuple[range, ...] = attrs.field(default=(), eq=False)


@frozen
class Switch:
    """Switch ``number`` of a topology, counted from 0."""

    number: int


Value: TypeAlias = bool | int | Fraction | str | range | Quantity | Integers | Switch | Group | Topology

_MEASURES = {SIZE: "a size", BANDWIDTH: "a bandwidth", TIME: "a time"}
_KINDS = {
    bool: "a truth value", int: "a number", Fraction: "a number", str: "a string", range: "a range", Integers: "a set",
    Switch: "a switch", Topology: "a topology",
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
        raise error("C0134", f"found a number of {size} bits, needed at most {MAX_BITS}", span=span)
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
        )
    if sign == "mod":
        return _modulo(left, right, span)
    if sign == "/" and b == 0:
        raise error("C0133", "found a division by zero", span=span)
    result = bounded(_OPERATIONS[sign](Fraction(a), Fraction(b)), span)
    return whole(Fraction(result)) if measure is None else Quantity(Fraction(result), measure)


_CLASH = "clash"


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


def _modulo(left: Value, right: Value, span: Span | None) -> int:
    if type(left) is not int or type(right) is not int:
        raise error("C0132", "found `mod` of a fraction, needed integers", span=span)
    if right == 0:
        raise error("C0133", "found `mod 0`, a division by zero", span=span)
    if right < 0:
        raise error("C0134", f"found `mod {right}`, needed a positive number", span=span)
    return left % right


def compared(sign: str, left: Value, right: Value, span: Span | None) -> bool:
    """Return ``left sign right`` for two values of one kind; only numbers and quantities have an order."""
    ordered = _amount(left) is not None and _amount(right) is not None
    if kind_of(left) != kind_of(right) or not (ordered or sign in ("==", "!=")):
        raise error("C0131", f"found {kind_of(left)} {sign} {kind_of(right)}, needed two numbers", span=span)
    if ordered:
        return _COMPARISONS[sign](_amount(left), _amount(right))
    return _COMPARISONS[sign](left, right)
