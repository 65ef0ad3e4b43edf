"""Places in a text as editors count them: lines from 0, and characters of a line in UTF-16 units from 0."""

from __future__ import annotations

import re
from typing import NamedTuple

from collc.ir.diagnostic import Source, Span

__all__ = ["Place", "Range", "end_of", "offset_of", "range_of", "word_at"]

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+)*")


class Place(NamedTuple):
    """A place between two characters."""

    line: int
    character: int


class Range(NamedTuple):
    """The text between two places."""

    start: Place
    end: Place


def _units(text: str) -> int:
    """Return the length of a text in UTF-16 units."""
    return len(text) + sum(ord(char) > 0xFFFF for char in text)


def range_of(span: Span) -> Range:
    """Return the range of a span. A place past the end of its line is at the end of the line.

    >>> source = Source("a.coll", "a = b;")
    >>> range_of(Span(source, 1, 5, 1, 6))
    Range(start=Place(line=0, character=4), end=Place(line=0, character=5))
    """
    return Range(_place(span.source, span.line, span.column), _place(span.source, span.end_line, span.end_column))


def _place(source: Source, line: int, column: int) -> Place:
    return Place(line - 1, _units(source.line(line)[: column - 1]))


def offset_of(text: str, place: Place) -> int:
    """Return the offset of a place in a text; the end of the line, or of the text, if it is past that.

    >>> offset_of("ab\\ncd", Place(1, 1)), offset_of("ab\\ncd", Place(0, 9)), offset_of("ab", Place(5, 0))
    (4, 2, 2)
    """
    start = 0
    for _ in range(place.line):
        end = text.find("\n", start)
        if end < 0:
            return len(text)
        start = end + 1
    units = place.character
    while units > 0 and start < len(text) and text[start] not in "\r\n":
        units -= _units(text[start])
        start += 1
    return start


def end_of(text: str) -> Place:
    """Return the place after the last character."""
    return Place(text.count("\n"), _units(text.rpartition("\n")[2]))


def word_at(text: str, offset: int) -> tuple[int, int] | None:
    """Return the ends of the word at an offset, also directly behind it; None if there is none.

    A word with hyphens is one if the cursor is in its last part too: ``recursive-doubling``, but also ``n-m``.
    """
    start = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", offset)
    for match in _WORD.finditer(text, start, len(text) if end < 0 else end):
        if match.start() <= offset <= match.end():
            return match.span()
    return None
