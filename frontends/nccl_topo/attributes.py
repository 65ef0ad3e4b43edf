"""Numbers in attributes. What is no number is a mistake at its place."""

from __future__ import annotations

import re
from fractions import Fraction

from ..importing.model import Draft
from .markup import Element

__all__ = ["decimal", "integer", "quantity"]

_INTEGER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]{1,16}|[0-9]{1,18})")
_DECIMAL = re.compile(r"([+-]?[0-9]{1,18}(?:\.[0-9]{0,18})?)(?:[eE]([+-]?[0-9]{1,2}))?")


def integer(draft: Draft, element: Element, name: str, default: int | None = None) -> int | None:
    """Return an attribute as an integer, ``default`` if it is absent or empty. Adds C0924 for any other text, and for
    its absence if there is no default.
    """
    text = element.get(name)
    if not text:
        if default is None:
            draft.wrong("C0924", f"found `{element.tag}` without `{name}`", element.span())
        return default
    if not _INTEGER.fullmatch(text):
        draft.wrong("C0924", f"found `{text[:40]}`, needed an integer", element.span(name))
        return default
    return int(text, 16 if "x" in text.lower() else 10)


def quantity(draft: Draft, element: Element, name: str, most: int, default: int | None = None) -> int:
    """Return an attribute as an integer from 0 to ``most``. Adds C0924 for any other."""
    number = integer(draft, element, name, default)
    if number is not None and not 0 <= number <= most:
        draft.wrong("C0924", f"found {number}, needed 0 to {most}", element.span(name))
    return min(max(number or 0, 0), most)


def decimal(draft: Draft, element: Element, name: str, default: Fraction) -> Fraction:
    """Return an attribute as an exact number, ``default`` if it is absent or empty. Adds C0924 for any other text."""
    text = element.get(name)
    if not text:
        return default
    match = _DECIMAL.fullmatch(text)
    if match is None:
        draft.wrong("C0924", f"found `{text[:40]}`, needed a number", element.span(name))
        return default
    return Fraction(match[1]) * Fraction(10) ** int(match[2] or 0)
