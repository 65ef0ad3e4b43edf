"""Text as people paste it: without terminal codes, quote marks and line numbers, and with places in the original.

A column of a cleaned line maps to a column of the original text, so a caret points at what the user sees.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property

import attrs

from collc.ir.diagnostic import Source, Span
from collc.ir.frozen import frozen

__all__ = ["Line", "Word", "lines"]

#: terminal codes: CSI (colours, underlines), OSC (titles, links), two-letter escapes; other control characters but tab
_CODES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-_]|[\x00-\x08\x0b-\x1f\x7f\u200b]"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u200b]")  # every code begins with one
#: what mail and issue trackers put before lines: `> `, `> > `, `| `
_QUOTES = re.compile(r"[ \t]*(?:>[ \t]?)+")
_FENCE = re.compile(r"[ \t]*(?:```|~~~)[\w-]*[ \t]*")
_WORD = re.compile(r"\S+")


@frozen(eq=False)
class Word:
    """A word of a line, and its columns (from 0, the end exclusive) in the cleaned text."""

    text: str
    line: Line
    start: int
    end: int

    def __str__(self) -> str:
        return self.text

    @property
    def span(self) -> Span:
        """Its place in the original text."""
        return self.line.span(self.start, self.end)


@frozen(eq=False)
class Line:
    """One cleaned line: its text, and the original column (from 0) of every character."""

    source: Source
    number: int
    text: str
    columns: Sequence[int] = attrs.field(repr=False)

    def span(self, start: int = 0, end: int | None = None) -> Span:
        """Return the original place of the characters from ``start`` to ``end`` (exclusive), or of the whole line."""
        stop = len(self.text.rstrip()) if end is None else end
        first = self._column(start)
        last = self._column(stop - 1) + 1 if stop > start else first + 1
        return Span(self.source, self.number, first + 1, self.number, last + 1)

    def _column(self, at: int) -> int:
        if at < len(self.columns):
            return self.columns[at]
        return self.columns[-1] + 1 if self.columns else 0

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """The words between blanks."""
        return tuple(Word(found[0], self, *found.span()) for found in _WORD.finditer(self.text))

    def cells(self) -> tuple[Word, ...]:
        """Return the cells between tabs, or between two or more blanks if there is no tab; blanks around go."""
        found = re.finditer(r"[^\t]+" if "\t" in self.text.strip() else r"\S+(?: \S+)*", self.text)
        return tuple(cell for match in found if (cell := self._trimmed(match)).text)

    def _trimmed(self, match: re.Match[str]) -> Word:
        text = match[0].strip()
        start = match.start() + len(match[0]) - len(match[0].lstrip())
        return Word(text, self, start, start + len(text))

    def part(self, match: re.Match[str], group: int | str = 0) -> Word:
        """Return a group of a match in this line's text as a word."""
        return Word(match[group], self, *match.span(group))


def lines(source: Source) -> Iterator[Line]:
    """Yield the cleaned lines of a text, blank ones too; fences of Markdown become blank lines.

    If most lines begin with ``>``, these marks go. Lines end in LF or CR LF.

    >>> [line.text for line in lines(Source("x", "> \\x1b[4mGPU0\\x1b[0m\\n> X\\n"))]
    ['GPU0', 'X', '']
    """
    texts = source.text.split("\n")
    marked = sum(_is_marked(text) for text in texts)
    quoted = 2 * marked > sum(bool(text.strip()) for text in texts)
    for number, text in enumerate(texts, start=1):
        yield _cleaned(source, number, text, quoted)


def _is_marked(text: str) -> bool:
    return bool(_QUOTES.match(_CODES.sub("", text) if _CONTROL.search(text) else text))


def _cleaned(source: Source, number: int, text: str, quoted: bool) -> Line:
    if not (quoted or _CONTROL.search(text) or text.lstrip().startswith(("```", "~~~"))):
        return Line(source, number, text, range(len(text)))
    kept = list[int]()
    position = 0
    for code in _CODES.finditer(text):
        kept += range(position, code.start())
        position = code.end()
    kept += range(position, len(text))
    cleaned = "".join(text[i] for i in kept)
    if quoted and (mark := _QUOTES.match(cleaned)):
        kept, cleaned = kept[mark.end() :], cleaned[mark.end() :]
    if _FENCE.fullmatch(cleaned):
        kept, cleaned = [], ""
    return Line(source, number, cleaned, kept)
