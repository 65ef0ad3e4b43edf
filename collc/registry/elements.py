"""The text of pipelines and targets: ``bfb,discretize{max-chunks=8},coalesce``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import attrs

from collc.ir.diagnostic import CollcError, Source, Span, error
from collc.ir.frozen import frozen
from collc.ir.spec import Option

from .options import show

if TYPE_CHECKING:
    from collc.backends.base import Target
    from collc.passes.base import Pass

__all__ = ["Element", "element_text", "parse_elements", "pipeline_text"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_FORM = "write `name,name{option=value,option=value}`"
_SPACE = re.compile(r"\s*")


@frozen
class Element:
    """One ``name{option=value,..}``: a pass of a pipeline, or a target. Values are text as written."""

    name: str
    options: tuple[Option, ...] = ()
    span: Span | None = None


def parse_elements(text: str, where: str) -> tuple[Element, ...]:
    """Return the elements of ``text``, none if it is blank; raise C0006 with a caret into it.

    ``where`` names the text in messages.

    >>> [e.name for e in parse_elements("bfb, discretize{max-chunks=8}", "-p")]
    ['bfb', 'discretize']
    """
    return _Reader(Source(f"<{where}>", text)).elements() if text.strip() else ()


def element_text(element: Pass | Target) -> str:
    """Return a pass or target instance as text, with the options that differ from their defaults."""
    given = [
        f"{field.name.replace('_', '-')}={_quoted(getattr(element, field.name))}"
        for field in attrs.fields(type(element))
        if field.init and not field.name.startswith("_") and getattr(element, field.name) != field.default
    ]
    return element.name + ("{" + ",".join(given) + "}" if given else "")


def pipeline_text(elements: Iterable[Pass | Target]) -> str:
    """Return instances as one pipeline that :func:`parse_elements` reads back."""
    return ",".join(element_text(element) for element in elements)


def _quoted(value: object) -> str:
    """Return a value as text, in quotes if the reader would otherwise end it early or drop blanks."""
    text = show(value)
    if not isinstance(value, str) or re.fullmatch(r"[^\s,{}'\"]+", text):
        return text
    return f'"{text}"' if '"' not in text else f"'{text}'"


class _Reader:
    """A cursor over one argument."""

    def __init__(self, source: Source):
        self.source, self.text, self.at = source, source.text, 0

    def elements(self) -> tuple[Element, ...]:
        found = []
        while True:
            found.append(self.element())
            self.space()
            if self.at == len(self.text):
                return tuple(found)
            self.expect(",", "`,` between names", "write `,` between names: `name,name`")

    def element(self) -> Element:
        name, span = self.name("a name")
        options: list[Option] = []
        if self.peek() == "{":
            self.at += 1
            while self.peek() != "}":
                options.append(self.option())
                if self.peek() != "}":
                    self.expect(",", "`,` or `}` after an option")
            self.at += 1
        return Element(name, tuple(options), span)

    def option(self) -> Option:
        name, span = self.name("an option `name=value`")
        if self.peek() not in ("=", ":"):
            return Option(name, True, span)
        self.at += 1
        self.space()
        start = self.at
        value = self.value()
        if self.at == start:
            raise self.problem("a value", start)
        place = self.span(start, self.at)
        return Option(name, value, span.to(place), place)

    def value(self) -> str:
        """Read to the ``,`` or ``}`` that ends the option; quotes and braces protect both."""
        if self.peek() in ("'", '"'):
            end = self.text.find(self.text[self.at], self.at + 1)
            if end < 0:
                raise self.problem("the closing quote", len(self.text))
            value, self.at = self.text[self.at + 1 : end], end + 1
            return value
        start, depth = self.at, 0
        while self.at < len(self.text):
            char = self.text[self.at]
            if depth == 0 and char in ",}":
                break
            depth += (char == "{") - (char == "}")
            self.at += 1
        return self.text[start : self.at].strip()

    def name(self, need: str) -> tuple[str, Span]:
        self.space()
        match = _NAME.match(self.text, self.at)
        if not match:
            raise self.problem(need, self.at)
        self.at = match.end()
        return match[0], self.span(match.start(), match.end())

    def peek(self) -> str:
        self.space()
        return self.text[self.at : self.at + 1]

    def expect(self, char: str, need: str, hint: str = _FORM) -> None:
        if self.peek() != char:
            raise self.problem(need, self.at, hint)
        self.at += 1

    def space(self) -> None:
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def span(self, start: int, end: int) -> Span:
        """Return the span of two offsets; line ends count as in any text."""
        line, column = self.place(start)
        end_line, end_column = self.place(end)
        return Span(self.source, line, column, end_line, end_column)

    def place(self, at: int) -> tuple[int, int]:
        return self.text.count("\n", 0, at) + 1, at - (self.text.rfind("\n", 0, at) + 1) + 1

    def problem(self, need: str, at: int, hint: str = _FORM) -> CollcError:
        found = f"found `{self.text[at]}`" if at < len(self.text) else "found the end"
        return error(
            "C0006",
            f"expected {need}, {found}",
            span=self.span(at, min(at + 1, len(self.text)) if at < len(self.text) else at + 1),
            hint=hint,
            exit_status=2,
        )
