"""Files of numbers, CSV or JSON: the weights of shards."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from fractions import Fraction
from typing import TypeAlias

import attrs

from collc.ir.diagnostic import Source, Span, error

from ..source import read
from . import ast
from .files import Files

__all__ = ["Counts", "Number", "Place", "span_of"]

#: The longest file of numbers.
_MOST_BYTES = 64 << 20
#: The most numbers in a file: an alltoallv of 2048 ranks has as many.
_MOST_NUMBERS = 1 << 22
#: The longest number in characters, and the largest exponent.
_LONGEST, _LARGEST_EXPONENT = 40, 30

_NUMBER = re.compile(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:[eE]([+-]?[0-9]{1,4}))?\Z")
_FIELD = re.compile(r"[^\s,;]+")
_SIGN = re.compile(r'[\[\],]|"(?:[^"\\\n]|\\.)*"|[^\s\[\],"]+|"')


#: where a number stands: a place in the text, or in a file its line, start and end, since files have millions
Place: TypeAlias = Span | tuple[Source, int, int, int] | None
#: a number with its place
Number: TypeAlias = tuple[int | Fraction, Place]


def span_of(place: Place) -> Span | None:
    """Return the span of a place."""
    return _span(*place) if isinstance(place, tuple) else place


@attrs.define
class Counts:
    """Reads files of numbers, each once; all files that were read are added to ``sources``."""

    files: Files
    sources: list[Source]
    _read: dict[str, list[list[Number]]] = attrs.field(factory=dict)

    def table(self, path: ast.String) -> list[list[Number]]:
        """Return the rows of a file with the place of each number; rows of one number each for a list in JSON.

        A CSV file has a row on each line, of numbers between commas, semicolons or blanks; `#` begins a comment. A JSON
        file has a list of numbers or of lists. Raises C0150 for a file that cannot be read, C0138 for other contents.
        """
        found = self.files.found(path)
        real = os.path.realpath(found)
        if real not in self._read:
            hidden = not self.files.is_inside(real)
            source = read(found, span=path.span, regular=True, hidden=hidden, most=_MOST_BYTES, hint=_FILE)
            self.sources.append(source)
            is_json = found.endswith(".json") or source.text.lstrip()[:1] == "["
            rows = _json(source) if is_json else [row for row in _lines(source) if row]
            if not rows:
                raise error("C0138", f"found no numbers in `{path.value}`", span=path.span, hint=_FORM)
            self._read[real] = rows
        return self._read[real]


_FILE = "name a CSV or JSON file"
_FORM = "a file of weights has a line of numbers for each rank, such as `0, 5, 1`, or a list in JSON"


def _lines(source: Source) -> Iterator[list[Number]]:
    """Yield the numbers of each line of a CSV file."""
    left = _MOST_NUMBERS
    for number, line in enumerate(source.text.split("\n"), 1):
        text = line.partition("#")[0]
        row = [_placed(field, source, number) for field in _FIELD.finditer(text)]
        _require_no_gaps(source, number, text)
        left -= len(row)
        if left < 0:
            raise error("C0138", f"found more than {_MOST_NUMBERS} numbers", span=_span(source, number, 0, len(line)))
        yield row


def _placed(field: re.Match[str], source: Source, line: int) -> Number:
    text, place = field.group(), (source, line, field.start(), field.end())
    return int(text) if text.isdecimal() and text.isascii() and len(text) <= _LONGEST else _number(
        text, _span(*place)
    ), place


_GAP = re.compile(r"(?:\A|[,;])\s*(?=[,;])")


def _require_no_gaps(source: Source, number: int, text: str) -> None:
    """Raise C0138 for a field without a number: a missing one is not taken for 0."""
    if gap := _GAP.search(text):
        span = _span(source, number, gap.end(), gap.end() + 1)
        raise error("C0138", "found an empty field, needed a number", span=span, hint="write 0 for nothing")


def _span(source: Source, line: int, start: int, end: int) -> Span:
    return Span(source, line, start + 1, line, end + 1)


def _number(text: str, span: Span) -> Fraction:
    match = _NUMBER.match(text)
    if match is None:
        found = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}.."
        hint = "leave the line of names out, or begin it with `#`" if re.match(r'["A-Za-z]', text) else None
        if _NUMBER.match(text.strip('"')):
            hint = f"write {text.strip(chr(34))} without quotes"
        raise error("C0138", f"found `{found}`, needed a number", span=span, hint=hint or _FORM)
    if len(match[1]) > _LONGEST or abs(int(match[2] or 0)) > _LARGEST_EXPONENT:
        message = f"found a number of more than {_LONGEST} digits"
        raise error("C0138", message, span=span, hint="round it: only the ratios of weights matter")
    return Fraction(match[1]) * Fraction(10) ** int(match[2] or 0)


# ---- JSON


def _json(source: Source) -> list[list[Number]]:
    """Return the rows of a list of lists; of a list of numbers, one row."""
    signs = _Signs(source)
    signs.take("[", "a list")
    rows: list[list[Number]] = []
    flat: list[Number] = []
    while True:
        if signs.found == "[" and not flat:
            rows.append(signs.numbers())
        elif not rows:
            flat.append(signs.number())
        else:
            raise signs.wrong("a list, as the rows before")
        if not signs.more():
            break
    if signs.found:
        raise signs.wrong("the end of the file")
    return rows or [flat]


class _Signs:
    """The brackets, commas and numbers of a JSON text, one after the other."""

    def __init__(self, source: Source):
        self.source = source
        self.signs = self._all()
        self.left = _MOST_NUMBERS
        self.found, self.span = next(self.signs)

    def _all(self) -> Iterator[tuple[str, Span]]:
        number = 1
        for number, line in enumerate(self.source.text.split("\n"), 1):
            for match in _SIGN.finditer(line):
                yield match.group(), _span(self.source, number, match.start(), match.end())
        while True:
            yield "", _span(self.source, number, 0, 1)

    def next(self) -> None:
        self.found, self.span = next(self.signs)

    def take(self, sign: str, need: str) -> None:
        if self.found != sign:
            raise self.wrong(need)
        self.next()

    def more(self) -> bool:
        """Go past a comma, and return True; past the end of a list, and return False."""
        if self.found not in (",", "]"):
            raise self.wrong("`,` or `]`")
        comma = self.found == ","
        self.next()
        return comma

    def number(self) -> Number:
        if self.found in ("", ",", "[", "]"):
            raise self.wrong("a number")
        self.left -= 1
        if self.left < 0:
            raise error("C0138", f"found more than {_MOST_NUMBERS} numbers", span=self.span)
        found = _number(self.found, self.span), self.span
        self.next()
        return found

    def numbers(self) -> list[Number]:
        self.next()
        row = [self.number()]
        while self.more():
            row.append(self.number())
        return row

    def wrong(self, need: str) -> Exception:
        what = f"`{self.found}`" if self.found else "the end of the file"
        return error("C0138", f"found {what}, needed {need}", span=self.span, hint=_FORM)
