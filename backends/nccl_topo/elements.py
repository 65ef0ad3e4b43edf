"""The XML that NCCL reads: elements with attributes, one a line; NCCL has a reader of its own, which takes no more.

No declaration, no tabs, one space before each attribute, double quotes, LF. Limits are those of NCCL 2.30
(``src/graph/xml.h``, ``topo.h``): texts of less than 255 bytes, 16 attributes, and 256 elements of a topology file.
Older versions take 32 children of an element (up to 2.20) or 128 (up to 2.29).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from collc.ir.diagnostic import error
from collc.ir.frozen import frozen
from collc.ir.shown import clipped

__all__ = ["MOST_ELEMENTS", "Element", "element", "read_elements", "require_limits", "text_of"]

MOST_ELEMENTS = 256
_MOST_BYTES = 254
_MOST_ATTRIBUTES = 16
_MOST_CHILDREN = 32

_PAIR = r' ([A-Za-z_][\w]*)="([^"<>\n\r\t]*)"'
_TAG = re.compile(rf"<(/?)([A-Za-z_]\w*)((?:{_PAIR})*)(/?)>")
_BLANK = re.compile(r"(?:[ \n\r]|<!--.*?-->)*", re.DOTALL)


@frozen
class Element:
    """One element with its attributes, in order, and its children."""

    name: str
    attributes: tuple[tuple[str, str], ...] = ()
    children: tuple[Element, ...] = ()

    def get(self, name: str) -> str | None:
        """Return the value of an attribute; None if the element has none of that name."""
        return next((value for key, value in self.attributes if key == name), None)

    def walk(self) -> Iterator[Element]:
        """Yield this element and all inside it."""
        yield self
        for child in self.children:
            yield from child.walk()


def element(name: str, attributes: Mapping[str, object], children: Sequence[Element] = ()) -> Element:
    """Return an element; attributes whose value is None are left out.

    >>> print(text_of(element("cpu", {"numaid": 0, "affinity": None})), end="")
    <cpu numaid="0"/>
    """
    given = tuple((key, str(value)) for key, value in attributes.items() if value is not None)
    return Element(name, given, tuple(children))


def text_of(root: Element, comment: str = "") -> str:
    """Return the text of a file; ``comment`` is its first line."""
    head = [f"<!-- {comment} -->"] if comment else []
    return "\n".join([*head, *_lines(root, ""), ""])


def _lines(one: Element, indent: str) -> Iterator[str]:
    inside = "".join(f' {name}="{value}"' for name, value in one.attributes)
    if not one.children:
        yield f"{indent}<{one.name}{inside}/>"
        return
    yield f"{indent}<{one.name}{inside}>"
    for child in one.children:
        yield from _lines(child, indent + "  ")
    yield f"{indent}</{one.name}>"


def require_limits(root: Element) -> None:
    """Raise C0781 for a file that NCCL would refuse or read otherwise."""
    found = list(root.walk())
    if len(found) > MOST_ELEMENTS:
        raise _over(f"{len(found)} elements, NCCL reads {MOST_ELEMENTS}")
    for one in found:
        if len(one.attributes) > _MOST_ATTRIBUTES:
            raise _over(f"`{one.name}` has {len(one.attributes)} attributes, NCCL reads {_MOST_ATTRIBUTES}")
        if len(one.children) > _MOST_CHILDREN:
            message = f"`{one.name}` has {len(one.children)} children, NCCL before 2.22 reads {_MOST_CHILDREN}"
            raise _over(message)
        for name, value in one.attributes:
            _require_value(name, value)


def _require_value(name: str, value: str) -> None:
    if len(value.encode("utf-8", "surrogatepass")) > _MOST_BYTES:
        raise _over(f"`{name}` has {len(value.encode())} bytes, NCCL reads {_MOST_BYTES}")
    if not re.fullmatch(_PAIR, f' {name}="{value}"') or not value.isprintable():
        raise _over(f"`{name}` is {clipped(repr(value))}, which has a character that NCCL's reader does not take")


def _over(found: str) -> Exception:
    return error("C0781", f"the topology file breaks a limit of NCCL: {found}")


# ---- reading


class _Tag(NamedTuple):
    closes: bool
    name: str
    attributes: tuple[tuple[str, str], ...]
    ends: bool


def read_elements(text: str) -> Element | None:
    """Return the root element of a text in NCCL's dialect; None for a text that NCCL does not read so.

    >>> read_elements('<system version="1"><cpu numaid="0"/></system>').children[0].get("numaid")
    '0'
    """
    reading = _Reading()
    for tag in _tags(text):
        if tag is None or not reading.take(tag):
            return None
    return reading.root if not reading.opened else None


class _Reading:
    """The elements that are open, outermost first, each with its children so far, and the root once it is closed."""

    def __init__(self) -> None:
        self.opened: list[tuple[_Tag, list[Element]]] = []
        self.root: Element | None = None

    def take(self, tag: _Tag) -> bool:
        """Take the next tag; return whether it may stand there."""
        if self.root is not None:
            return False
        if tag.closes:
            return self._close(tag)
        if tag.ends:
            self._add(Element(tag.name, tag.attributes))
        else:
            self.opened.append((tag, []))
        return True

    def _close(self, tag: _Tag) -> bool:
        if not self.opened or tag.attributes or tag.ends or self.opened[-1][0].name != tag.name:
            return False
        opened, children = self.opened.pop()
        self._add(Element(opened.name, opened.attributes, tuple(children)))
        return True

    def _add(self, one: Element) -> None:
        if self.opened:
            self.opened[-1][1].append(one)
        else:
            self.root = one


def _tags(text: str) -> Iterator[_Tag | None]:
    """Yield the tags of a text, and None at the first place that is no tag."""
    at = _end_of_blank(text, 0)
    while at < len(text):
        found = _TAG.match(text, at)
        if found is None:
            yield None
            return
        pairs = tuple((m[1], m[2]) for m in re.finditer(_PAIR, found[3]))
        yield _Tag(bool(found[1]), found[2], pairs, bool(found[len(found.groups())]))
        at = _end_of_blank(text, found.end())


def _end_of_blank(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    assert blank is not None
    return blank.end()
