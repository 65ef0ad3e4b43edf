"""Elements and attributes of NCCL's topology files, with the place of each.

NCCL reads these files character by character, so people write what an XML parser refuses: hyphens in comments, ``&``
and ``<`` in values, tabs, single quotes. This module reads all of it, as people paste it. Declarations of entities and
document types are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs

from collc.ir.diagnostic import CollcError, Source, Span, error

from ..importing.cleaned import Cleaned

__all__ = ["Element", "elements"]

_DEEPEST = 1000
_MOST_ELEMENTS = 200_000
#: more than NCCL accepts (255), so that a lost quote is found near its place
_LONGEST = 4096
_NAME = r"[A-Za-z_][\w.:-]*"
_OPEN = re.compile(rf"<\s*({_NAME})")
_CLOSE = re.compile(rf"</\s*({_NAME})\s*>")
_ATTRIBUTE = re.compile(rf"\s*({_NAME})\s*=\s*(?:\"([^\"]{{0,{_LONGEST}}})\"|'([^']{{0,{_LONGEST}}})')")
_END = re.compile(r"\s*(/?)\s*>")
_WORD = re.compile(r"\s*(\S[^\s<>]*)")


@attrs.define(eq=False)
class Element:
    """An element: its tag, the first value of each attribute, its children, and where they stand."""

    tag: str
    text: Cleaned = attrs.field(repr=False)
    start: int
    end: int
    parent: Element | None = attrs.field(default=None, repr=False)
    children: list[Element] = attrs.field(factory=list, repr=False)
    _values: dict[str, tuple[str, int, int]] = attrs.field(factory=dict, alias="values")

    def get(self, name: str) -> str | None:
        """Return the value of an attribute with single blanks; None if it is absent."""
        found = self._values.get(name)
        return None if found is None else " ".join(found[0].split())

    def span(self, name: str | None = None) -> Span:
        """Return the place of an attribute's value with its quotes, or of the tag."""
        _, start, end = self._values.get(name or "", ("", self.start, self.end))
        return self.text.span(start, end)

    def below(self, tag: str) -> Iterator[Element]:
        """Yield the children with this tag."""
        return (child for child in self.children if child.tag == tag)


def elements(source: Source) -> tuple[list[Element], list[Span]]:
    """Return the elements at the top of a text, and the places of the text around them that was passed over.

    Raises CollcError C0927 at the first place that is no element: text inside an element, an attribute without quotes,
    an element that is not closed or nested too deep, a declaration. C0933 if there are too many elements.
    """
    return _Scan(Cleaned(source)).run()


class _Scan:
    def __init__(self, text: Cleaned):
        self.text, self.content = text, text.text
        self.top = list[Element]()
        self.opened = list[Element]()
        self.count = 0
        self.around = list[Span]()

    def run(self) -> tuple[list[Element], list[Span]]:
        at = 0
        while (tag := self.content.find("<", at)) >= 0:
            self._between(at, tag)
            at = self._markup(tag)
        self._between(at, len(self.content))
        if self.opened:
            last = self.opened[-1]
            message = f"found the end of the text, needed `</{last.tag}>` for this element"
            raise self._wrong(message, last.start, last.end, "is the file complete?")
        return self.top, self.around

    def _between(self, start: int, end: int) -> None:
        """Pass over blanks; text around the top elements is remembered, as a shell prints its prompt."""
        word = _WORD.match(self.content, start, end)
        if word is None:
            return
        if self.opened:
            raise self._wrong(f"found `{word[1][:40]}`, needed an element", word.start(1), word.end(1))
        self.around.append(self.text.span(word.start(1), end))

    def _markup(self, at: int) -> int:
        """Read what begins with ``<`` and return where it ends."""
        if self.content.startswith("<!--", at):
            return self._until("-->", at, "comment")
        if self.content.startswith("<?", at):
            return self._until("?>", at, "declaration")
        if self.content.startswith("<!", at):
            word = _WORD.match(self.content, at + 1)
            end = word.end() if word else at + 2
            message = f"found `{self.content[at:end][:40]}`, needed elements"
            raise self._wrong(message, at, end, "remove it: it could name other files or grow without limit")
        return self._close(at) if self.content.startswith("</", at) else self._open(at)

    def _until(self, sign: str, at: int, what: str) -> int:
        end = self.content.find(sign, at + 2)
        if end < 0:
            raise self._wrong(f"found a {what} without `{sign}`", at, at + 4)
        return end + len(sign)

    def _wrong(self, message: str, start: int, end: int, hint: str | None = None) -> CollcError:
        return error("C0927", message, span=self.text.span(start, end), hint=hint)

    def _open(self, at: int) -> int:
        tag = _OPEN.match(self.content, at)
        if tag is None:
            raise self._wrong("found `<`, needed an element", at, at + 1)
        above = self.opened[-1] if self.opened else None
        element = Element(tag[1], self.text, at, tag.end(), above)
        end = _END.match(self.content, at := self._attributes(element, tag.end()))
        if end is None:
            raise self._no_attribute(element, at)
        (above.children if above else self.top).append(element)
        self.count += 1
        if self.count > _MOST_ELEMENTS:
            raise error("C0933", f"found more than {_MOST_ELEMENTS} elements", span=element.span())
        if not end[1]:
            self.opened.append(element)
            if len(self.opened) > _DEEPEST:
                raise self._wrong(f"found more than {_DEEPEST} levels of nesting", element.start, element.end)
        return end.end()

    def _attributes(self, element: Element, at: int) -> int:
        while found := _ATTRIBUTE.match(self.content, at):
            group = 2 if found[2] is not None else 3
            element._values.setdefault(found[1], (found[group], found.start(group) - 1, found.end(group) + 1))
            at = found.end()
        return at

    def _no_attribute(self, element: Element, at: int) -> CollcError:
        word = _WORD.match(self.content, at)
        if word is None or self.content.find(">", at) < 0:
            message = f"found the end of the text in `<{element.tag}`, needed `>`"
            return self._wrong(message, element.start, element.end, "is the file complete?")
        hint = 'write `name="value"`, with both quotes'
        return self._wrong(f"found `{word[1][:40]}`, needed an attribute or `>`", word.start(1), word.end(1), hint)

    def _close(self, at: int) -> int:
        tag = _CLOSE.match(self.content, at)
        opened = self.opened[-1] if self.opened else None
        if tag is None or opened is None or opened.tag != tag[1]:
            found = self.content[at : tag.end() if tag else at + 2]
            needed = f"`</{opened.tag}>`" if opened else "an element"
            raise self._wrong(f"found `{found[:40]}`, needed {needed}", at, at + len(found))
        self.opened.pop()
        return tag.end()
