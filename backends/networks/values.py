"""Exact numbers and names as other programs read them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING

from collc.ir.diagnostic import CollcError, error
from collc.ir.shown import clipped

if TYPE_CHECKING:
    from collc.ir.topology import Topology

__all__ = ["decimal_text", "plain", "powers", "refused", "require_printable"]

#: integers up to here are the same number in every program that reads JSON
_MOST_WHOLE = 2**53

#: characters that XML 1.0 cannot hold, and those that readers change
_UNWRITABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def refused(form: str, reason: str, hint: str | None = None) -> CollcError:
    """Return the error for a topology that a form cannot hold."""
    return error("C0780", f"{form} cannot hold this topology: {reason}", hint=hint)


def plain(value: Fraction) -> int | str:
    """Return a number exactly: a small integer, else a text.

    >>> plain(Fraction(25 * 10**9)), plain(Fraction(1, 3))
    (25000000000, '1/3')
    """
    whole = value.denominator == 1 and abs(value) < _MOST_WHOLE
    return int(value) if whole else str(value)


def powers(topology: Topology, node: int) -> dict[str, str]:
    """Return what a switch does besides forwarding, as attributes of a node."""
    return {name: "true" for name in ("multicast", "reduces") if node in getattr(topology, name)}


def decimal_text(value: Fraction) -> str | None:
    """Return a number of at least 0 as a finite decimal; None if it has none.

    >>> decimal_text(Fraction(25, 2)), decimal_text(Fraction(3)), decimal_text(Fraction(1, 3))
    ('12.5', '3', None)
    """
    places, rest = 0, value.denominator
    while rest % 10 == 0 or rest % 2 == 0 or rest % 5 == 0:
        rest = rest // 10 if rest % 10 == 0 else rest // 2 if rest % 2 == 0 else rest // 5
        places += 1
    if rest != 1:
        return None
    digits = str(value.numerator * 10**places // value.denominator).rjust(places + 1, "0")
    cut = len(digits) - places
    return f"{digits[:cut]}.{digits[cut:]}".rstrip("0").rstrip(".") if places else digits


def require_printable(names: Iterable[str], form: str) -> None:
    """Raise C0780 for a name with a control character."""
    for name in names:
        if _UNWRITABLE.search(name):
            shown = clipped(repr(name))
            raise refused(form, f"the name {shown} has a control character", "give the node another name")
