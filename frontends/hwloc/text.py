"""The XML text of hwloc, also as people paste it, with the places of its elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from collc.ir.diagnostic import CollcError, Diagnostic, Source, Span

from ..importing.cleaned import Cleaned
from ..importing.trees import element_place, parse_xml

if TYPE_CHECKING:
    from lxml.etree import _Element

__all__ = ["Text"]


class Text:
    """A text without what pasting adds. ``root`` is its root element."""

    def __init__(self, source: Source):
        self._cleaned = Cleaned(source)
        text = self._cleaned.text
        start = max(text.find("<"), 0)
        text = "".join(c if c == "\n" else " " for c in text[:start]) + text[start:]  # a shell prints its prompt
        self._source = source if text == source.text else Source(source.path, text)
        self._places: dict[tuple[int | None, str, str | None], Span] = {}
        try:
            self.root = parse_xml(self._source)
        except CollcError as failure:
            raise CollcError([self._original(one) for one in failure.diagnostics]) from None

    def span(self, element: _Element, attribute: str | None = None) -> Span:
        """Return the place of an element's start tag, or of the value of an attribute."""
        key = element.sourceline, str(element.tag), attribute  # a line may be as long as the text
        if key not in self._places:
            self._places[key] = self._place(element_place(self._source, element, attribute))
        return self._places[key]

    def _original(self, diagnostic: Diagnostic) -> Diagnostic:
        return attrs.evolve(diagnostic, span=diagnostic.span and self._place(diagnostic.span))

    def _place(self, span: Span) -> Span:
        return self._cleaned.columns(span.line, span.column - 1, span.end_column - 1)
