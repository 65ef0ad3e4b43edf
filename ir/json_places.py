"""The places of values in a JSON text, for messages: by a path of keys and indices."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]  # documented nowhere, there since Python 2.6

from .diagnostic import Source, Span

__all__ = ["json_items", "json_place", "place_at", "repeated_key"]

#: brackets, and strings; of a key the groups are the string with its colon, and the string
_TOKENS = re.compile(r'[\[\]{}]|(("(?:[^"\\]|\\.)*+")[ \t\r\n]*+:)|"(?:[^"\\]|\\.)*+"')
_BLANKS = re.compile(r"[ \t\r\n]*")


def place_at(source: Source, start: int, length: int = 1) -> Span:
    """Return the place of ``length`` characters from an offset of a text."""
    line = source.line_at(start)
    column = start - source.start_of(line) + 1
    return Span(source, line, column, line, column + max(length, 1))


def json_items(source: Source, *path: str | int) -> list[int]:
    """Return the offsets of the items of an array, for :func:`json_place`; none if the text has no such array."""
    try:
        start = _value_at(source.text, 0, path)
        return [at for _, at in _members(source.text, start)]
    except (StopIteration, ValueError, IndexError, RecursionError):
        return []


def json_place(source: Source, *path: str | int, start: int = 0) -> Span | None:
    """Return the place of the value at a path of keys and indices; None if the text has no such value.

    The path begins at the value that stands at the offset ``start``.

    >>> json_place(Source("x", '{"a": [1, 20]}'), "a", 1).column
    11
    """
    try:
        start = _value_at(source.text, start, path)
        end = json.JSONDecoder(parse_int=str, parse_float=str).raw_decode(source.text, start)[1]
    except (StopIteration, ValueError, IndexError, RecursionError):
        return None
    line_end = source.text.find("\n", start)
    stop = end if line_end < 0 else min(end, line_end)
    return place_at(source, start, stop - start)


def repeated_key(source: Source) -> tuple[str, Span, Span] | None:
    """Return the first key that an object of a text has twice, with both places; None without one.

    The text is JSON. Of several such keys it is the one whose repetition comes first.

    >>> key, first, again = repeated_key(Source("x", '{"a": {"b": 1}, "a": 2}'))
    >>> key, first.column, again.column
    ('a', 2, 17)
    """
    text, at, place = source.text, 0, dict[int, dict[str, int]]()  # of the keys of each open object, by its depth
    depth = 0
    for token in _TOKENS.finditer(text):
        sign, at = token[0], token.start()
        if sign in "{[":
            depth += 1
            place[depth] = {}
        elif sign in "}]":
            depth -= 1
        elif token[1] is not None:
            key = scanstring(text, at + 1)[0]
            if key in place[depth]:
                return key, place_at(source, place[depth][key], len(token[2])), place_at(source, at, len(token[2]))
            place[depth][key] = at
    return None


def _value_at(text: str, start: int, path: Sequence[str | int]) -> int:
    """Return where the value at a path begins; raise StopIteration if there is none."""
    start = _after(text, start)
    for step in path:
        start = next(at for key, at in _members(text, start) if key == step)
    return start


def _members(text: str, start: int) -> Iterator[tuple[str | int, int]]:
    """Yield the keys of an object or the indices of an array that begins at ``start``, and where each value begins."""
    decoder = json.JSONDecoder(parse_int=str, parse_float=str)
    at, index, closing = _after(text, start + 1), 0, {"{": "}", "[": "]"}.get(text[start])
    while closing and text[at] != closing:
        key: str | int = index
        if closing == "}":
            key, at = scanstring(text, at + 1)
            at = _after(text, _after(text, at) + 1)
        yield key, at
        at, index = _after(text, decoder.raw_decode(text, at)[1]), index + 1
        if text[at] == ",":
            at = _after(text, at + 1)


def _after(text: str, at: int) -> int:
    return _BLANKS.match(text, at).end()  # type: ignore[union-attr]  # it matches the empty text
