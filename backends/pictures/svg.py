"""Elements of SVG and the document around them: the only module that knows the notation.

The same elements are the same bytes. Nothing is fetched, no script runs, and fonts are the viewer's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TypeAlias
from xml.sax.saxutils import escape, quoteattr

import attrs

from .style import STYLE

__all__ = [
    "NAMESPACE",
    "Element",
    "Number",
    "Picture",
    "circle",
    "element",
    "group",
    "line",
    "number",
    "path",
    "rectangle",
    "text",
]

Number: TypeAlias = int | float | Fraction
Child: TypeAlias = "Element | str"

#: characters that are illegal in XML, and halves of surrogates, which are illegal in UTF-8
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ON_LINES = ("svg", "g")
#: of all elements of a file
NAMESPACE = "http://www.w3.org/2000/svg"


@attrs.frozen
class Element:
    """An element with its attributes in order, and its children: elements, or text that is not yet escaped."""

    tag: str
    attributes: tuple[tuple[str, str], ...] = ()
    children: tuple[Child, ...] = ()

    def __str__(self) -> str:
        return "".join(self._parts())

    def _parts(self) -> Iterator[str]:
        head = self.tag + "".join(f" {name}={quoteattr(_clean(value))}" for name, value in self.attributes)
        if not self.children:
            yield f"<{head}/>"
            return
        between = "\n" if self.tag in _ON_LINES else ""
        yield f"<{head}>{between}"
        for child in self.children:
            yield (escape(_clean(child)) if isinstance(child, str) else str(child)) + between
        yield f"</{self.tag}>"


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)


def number(value: Number) -> str:
    """Return a place on the page to a tenth.

    >>> number(12.04), number(-0.01), number(3.25)
    ('12', '0', '3.2')
    """
    shown = f"{float(value):.1f}".removesuffix(".0")
    if shown.strip("-").isalpha():
        raise ValueError(f"{value} is no place on a page")
    return "0" if shown == "-0" else shown


def element(tag: str, *children: Child, **attributes: Number | str | None) -> Element:
    """Return an element; ``class_`` is ``class``, other underscores are hyphens; None and empty texts are left out.

    >>> str(element("text", "a < b", text_anchor="end", x=1.5, class_=""))
    '<text text-anchor="end" x="1.5">a &lt; b</text>'
    """
    given = (
        (name.rstrip("_").replace("_", "-"), value if isinstance(value, str) else number(value))
        for name, value in attributes.items()
        if value is not None and value != ""
    )
    return Element(tag, tuple(given), tuple(child for child in children if child != ""))


def text(
    x: Number, y: Number, words: str, kind: str = "", anchor: str = "start", *, tip: str = "", upward: bool = False
) -> Element:
    """Return a line of text of a kind (:data:`.style.FONTS`) whose base line begins, or with ``anchor`` ends, at x, y.

    ``tip`` appears under the pointer; ``upward`` rotates the text, to be read from below to above.
    """
    place: dict[str, Number | str] = {"x": x, "y": y}
    if upward:
        place = {"transform": f"translate({number(x)} {number(y)}) rotate(-90)"}
    shown = None if anchor == "start" else anchor
    return element("text", *_tip(tip), words, class_=kind, **place, text_anchor=shown)


def line(x1: Number, y1: Number, x2: Number, y2: Number, kind: str, dash: str = "", tip: str = "") -> Element:
    """Return a straight line."""
    return element("line", *_tip(tip), class_=kind, x1=x1, y1=y1, x2=x2, y2=y2, stroke_dasharray=dash)


def rectangle(x: Number, y: Number, width: Number, height: Number, kind: str, tip: str = "") -> Element:
    """Return a rectangle by its upper left corner and size."""
    return element("rect", *_tip(tip), class_=kind, x=x, y=y, width=width, height=height)


def circle(x: Number, y: Number, radius: Number, kind: str, tip: str = "") -> Element:
    """Return a circle by its center."""
    return element("circle", *_tip(tip), class_=kind, cx=x, cy=y, r=radius)


def path(
    points: Sequence[tuple[Number, Number]], kind: str, dash: str = "", tip: str = "", close: bool = False
) -> Element:
    """Return straight lines from each point to the next, and with ``close`` back to the first."""
    drawn = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points) + "Z" * close
    return element("path", *_tip(tip), class_=kind, d=drawn, stroke_dasharray=dash)


def group(*children: Element, kind: str = "", tip: str = "") -> Element:
    """Return elements as one, with a tip of their own, if given."""
    return element("g", *_tip(tip), *children, class_=kind)


def _tip(tip: str) -> tuple[Element, ...]:
    return (element("title", tip),) if tip else ()


@attrs.frozen
class Picture:
    """A page of ``width`` by ``height`` with its elements; screen readers read its title and description.

    ``style`` has rules of its own, beside those of all pictures. With ``focus`` it can be reached by the keyboard.
    """

    width: Number
    height: Number
    title: str
    description: str
    body: tuple[Element, ...]
    style: str = ""
    focus: bool = False

    def inline(self) -> str:
        """Return the picture for a page that has :data:`.style.STYLE` itself, once for all its pictures."""
        return str(self._element())

    def file(self) -> str:
        """Return the text of an SVG file."""
        return f"{self._element(element('style', STYLE + self.style))}\n"

    def _element(self, *first: Element) -> Element:
        size = {"width": self.width, "height": self.height}
        return element(
            "svg", element("title", self.title), element("desc", self.description), *first,
            rectangle(0, 0, self.width, self.height, "paper"), *self.body,
            xmlns=NAMESPACE, class_="picture", **size,
            viewBox=f"0 0 {number(self.width)} {number(self.height)}", role="img",
            tabindex="0" if self.focus else None,
        )  # fmt: skip
