"""Places of mistakes in a textual IR, and their errors."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from ..diagnostic import CollcError, Source, Span, error

__all__ = ["Text", "shown"]


@attrs.frozen
class Text:
    """A textual IR. Places are offsets into it."""

    source: Source

    @property
    def text(self) -> str:
        """The whole text."""
        return self.source.text

    def span(self, start: int, end: int) -> Span:
        """Return the span of ``text[start:end]``, which does not leave its line."""
        line = self.text.count("\n", 0, start) + 1
        column = start - self.text.rfind("\n", 0, start)
        return Span(self.source, line, column, line, column + max(end - start, 1))

    def fail(
        self,
        code: str,
        message: str,
        start: int,
        end: int,
        *,
        notes: Iterable[str] = (),
        hint: str | None = None,
    ) -> CollcError:
        """Return the error for ``text[start:end]``."""
        return error(code, message, span=self.span(start, end), notes=notes, hint=hint)

    def line_end(self, start: int) -> int:
        """Return the end of the line of ``start``, without its newline."""
        end = self.text.find("\n", start)
        return len(self.text) if end < 0 else end


def shown(found: str) -> str:
    """Return a text in the form that messages show: short, on one line, without hidden characters.

    >>> shown("a" * 100), shown("")
    ('`aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...`', 'the end of the line')
    """
    if not found:
        return "the end of the line"
    short = found if len(found) <= 40 else found[:40] + "..."
    return f"`{short}`" if short.isascii() and short.isprintable() else f"`{ascii(short)[1:-1]}`"
