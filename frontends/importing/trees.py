"""Untrusted XML and JSON as trees with places: no entities, no document types, no other files, no network."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from collc.ir.diagnostic import CollcError, Source, Span, error
from collc.ir.json_places import json_items, json_place, place_at

if TYPE_CHECKING:
    from lxml.etree import _Element

__all__ = ["ElementPlaces", "Json", "element_place", "json_items", "json_place", "parse_json", "parse_xml", "place_at"]

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | Fraction | bool | None"

_DEEPEST = 200
_MOST_DIGITS = 300
_LARGEST_POWER = 300
#: a document type without declarations of its own, as hwloc and GraphML writers print it, is only skipped
_PROLOG = re.compile(r"\s*<\?xml[^>]*\?>|<!DOCTYPE[^\[>]*>", re.IGNORECASE)
_UNSAFE = re.compile(r"<!(?:DOCTYPE|ENTITY)", re.IGNORECASE)
#: what may hold a `<` that begins no element, or the beginning of a start tag, as a group
_TAG = re.compile(r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<(?=([A-Za-z_:\u0080-\U0010ffff]))", re.DOTALL)
_START_TAG = re.compile(r"<(?:[^<>\"']|\"[^\"]*\"|'[^']*')*+>")
_TEXT = re.compile(r"([^<]*)")
#: a string, or as a group what JSON's parser takes for a number
_NUMBERS = re.compile(r'"(?:[^"\\]|\\.)*+"|(-?Infinity|NaN|-?\d[\d.eE+-]*)')


# ---- XML


def parse_xml(source: Source) -> _Element:
    """Return the root of an XML text; raise C0927 if it is none, or if it declares entities.

    A declaration of another encoding is ignored, since the text is decoded already.
    """
    from lxml import etree

    text = _PROLOG.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), source.text)  # the lines keep their numbers
    if unsafe := _UNSAFE.search(text):
        hint = "remove it: it could name other files or grow without limit"
        span = place_at(source, unsafe.start(), len(unsafe[0]))
        raise error("C0927", f"found `{unsafe[0]}`, needed elements", span=span, hint=hint)
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True, remove_pis=True
    )
    try:
        return etree.fromstring(text.encode(), parser)
    except (etree.XMLSyntaxError, ValueError) as failure:
        raise _not_xml(source, failure) from None


def _not_xml(source: Source, failure: Exception) -> CollcError:
    line, column = getattr(failure, "position", None) or (1, 1)
    line, column = max(line or 1, 1), max(column or 1, 1)
    reason = re.sub(r", line \d+, column \d+.*$", "", str(failure).split("\n")[0]) or "it ends too early"
    message = f"found text that is not XML: {reason[:1].lower()}{reason[1:200]}"
    return error("C0927", message, span=Span(source, line, column, line, column + 1))


def element_place(source: Source, element: _Element, attribute: str | None = None) -> Span:
    """Return the place of an element's start tag, or of the value of one of its attributes on the same line."""
    line = element.sourceline or 1
    text = source.line(line)
    name = str(element.tag).rpartition("}")[2]
    found = re.search(rf"<(?:[\w.-]+:)?{re.escape(name)}(?![\w.:-])", text)
    start, end = found.span() if found else (0, max(len(text.rstrip()), 1))
    if attribute is not None:
        value = re.compile(rf"\b{re.escape(attribute)}\s*=\s*(\"[^\"]*\"|'[^']*')").search(text, start)
        start, end = value.span(1) if value else (start, end)
    return Span(source, line, start + 1, line, end + 1)


class ElementPlaces:
    """The places of all elements of a text, exact where several stand on a line; one pass finds them all."""

    def __init__(self, source: Source, root: _Element):
        self.source, self.root = source, root

    @cached_property
    def _offsets(self) -> dict[_Element, int]:
        tags = [found.start() for found in _TAG.finditer(self.source.text) if found[1]]
        elements = list(self.root.iter())
        return dict(zip(elements, tags, strict=True)) if len(tags) == len(elements) else {}

    def of(self, element: _Element, attribute: str | None = None) -> Span:
        """Return the place of an element's start tag, or of the value of one of its attributes."""
        start, tag = self._tag(element)
        if tag is None:
            return element_place(self.source, element, attribute)
        value = _value(attribute).search(tag[0]) if attribute is not None else None
        if value is not None:
            return place_at(self.source, start + value.start(1), _on_line(value[1]))
        name = re.match(r"<[\w:.-]+", tag[0])
        return place_at(self.source, start, len(name[0]) if name else 1)

    def of_text(self, element: _Element) -> Span:
        """Return the place of the text in an element."""
        _, tag = self._tag(element)
        text = _TEXT.match(self.source.text, tag.end()) if tag is not None else None
        if text is None or not text[1].strip():
            return self.of(element)
        blank = len(text[1]) - len(text[1].lstrip())
        return place_at(self.source, text.start() + blank, _on_line(text[1].strip()))

    def _tag(self, element: _Element) -> tuple[int, re.Match[str] | None]:
        start = self._offsets.get(element, -1)
        return start, _START_TAG.match(self.source.text, start) if start >= 0 else None


def _value(attribute: str) -> re.Pattern[str]:
    return re.compile(rf"(?<=\s){re.escape(attribute)}\s*=\s*(\"[^\"]*\"|'[^']*')")


def _on_line(text: str) -> int:
    """Return how many characters of a text are on its first line."""
    return len(text.split("\n", 1)[0])


# ---- JSON


def parse_json(source: Source) -> Json:
    """Return the value of a JSON text, numbers exact; raise C0928 if it is none, too deep, or has huge numbers."""
    _require_shallow(source)
    try:
        value: Json = json.loads(source.text.lstrip("\ufeff"), parse_float=_exact, parse_int=_whole, parse_constant=_no)
    except json.JSONDecodeError as failure:
        span = place_at(source, min(failure.pos, max(len(source.text) - 1, 0)))
        reason = failure.msg.removesuffix(" starting at")
        message = f"found text that is not JSON: {reason[:1].lower()}{reason[1:]}"
        raise error("C0928", message, span=span) from None
    except _Refused as failure:
        raise error("C0928", f"found `{failure.text[:20]}`, {failure}", span=_number_place(source, failure)) from None
    except (ValueError, RecursionError) as failure:
        raise error("C0928", f"found a value that is not allowed in JSON: {failure}") from None
    return value


class _Refused(ValueError):
    """A number that is not read."""

    def __init__(self, text: str, reason: str):
        super().__init__(reason)
        self.text = text


def _number_place(source: Source, refused: _Refused) -> Span | None:
    found = (one for one in _NUMBERS.finditer(source.text) if one[1] == refused.text)
    first = next(found, None)
    return place_at(source, first.start(1), len(refused.text)) if first else None


def _require_shallow(source: Source) -> None:
    depth = 0
    for sign in re.finditer(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', source.text):
        depth += (sign[0] in "[{") - (sign[0] in "]}")
        if depth > _DEEPEST:
            raise error("C0928", f"found more than {_DEEPEST} levels of nesting", span=place_at(source, sign.start()))


def _exact(text: str) -> Fraction:
    power = re.search(r"[eE]([+-]?\d+)$", text)
    if len(text) > _MOST_DIGITS or (power and (len(power[1]) > 5 or abs(int(power[1])) > _LARGEST_POWER)):
        raise _Refused(text, f"needed at most {_MOST_DIGITS} digits")
    return Fraction(text)


def _whole(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise _Refused(text, f"needed at most {_MOST_DIGITS} digits")
    return int(text)


def _no(text: str) -> Json:
    raise _Refused(text, "needed a number")
