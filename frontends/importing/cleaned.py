"""XML text without what pasting adds, as one string, with the original places of its characters."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate

from collc.ir.diagnostic import Source, Span, error

from .pasted import Line, lines

__all__ = ["Cleaned"]

_MOST_LINES = 300_000
_NARROWEST = 40  # columns of a terminal


class Cleaned:
    """A cleaned text. Tags that a terminal broke at its last column are joined.

    Raises C0933 for too many lines.
    """

    def __init__(self, source: Source):
        if source.text.count("\n") > _MOST_LINES:
            raise error("C0933", f"`{source.path}` has more than {_MOST_LINES} lines")
        self._lines = list(lines(source))
        broken = _broken(self._lines)
        pieces = ["" if i in broken or not i else "\n" for i in range(len(self._lines))]
        self.text = "".join(end + line.text for end, line in zip(pieces, self._lines, strict=True))
        sizes = (len(end) + len(line.text) for end, line in zip(pieces, self._lines, strict=True))
        ends = list(accumulate(sizes))
        self._starts = [end - len(line.text) for end, line in zip(ends, self._lines, strict=True)]

    def span(self, start: int, end: int) -> Span:
        """Return the original place of the characters from ``start`` to ``end``, up to the end of the first line."""
        number = max(bisect_right(self._starts, start) - 1, 0)
        line, first = self._lines[number], self._starts[number]
        column = min(max(start - first, 0), len(line.text))
        return line.span(column, max(min(end - first, len(line.text)), column + 1))

    def columns(self, line: int, start: int, end: int) -> Span:
        """Return the original place of columns (from 0, the end exclusive) of a line of ``text`` (from 1)."""
        first = self._text_starts[min(max(line, 1), len(self._text_starts)) - 1]
        return self.span(first + start, first + end)

    @cached_property
    def _text_starts(self) -> list[int]:
        return list(accumulate((len(line) + 1 for line in self.text.split("\n")), initial=0))[:-1]


def _broken(found: Sequence[Line]) -> set[int]:
    """Return the lines that continue what a terminal broke: all lines before a continued tag have its full width."""
    rest = set[int]()
    inside = False
    for number, line in enumerate(found):
        if inside and line.text.strip():
            rest.add(number)
        inside = _is_inside(line.text, inside)
    widths = {len(found[number - 1].text) for number in rest}
    full = max((len(line.text) for line in found), default=0)
    if len(rest) < 2 or widths != {full} or full < _NARROWEST:
        return set()
    texts = (number for number in range(1, len(found)) if len(found[number - 1].text) == full)
    return rest.union(number for number in texts if found[number].text.lstrip()[:1] not in ("<", ""))


def _is_inside(text: str, before: bool) -> bool:
    """Return whether a tag is open at the end of a line; comments are not looked into."""
    opened, closed = text.rfind("<"), text.rfind(">")
    if opened < 0 and closed < 0:
        return before
    return opened > closed and not text.startswith("<!--", opened)
