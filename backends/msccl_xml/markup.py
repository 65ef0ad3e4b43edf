"""Elements of a text that is not XML but that the runtimes read.

Their tokeniser has no rules for entities, for repeated attributes, or for hyphens in comments. So a text that an XML
parser refuses can still run. This module reads such texts as the runtimes do.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from .tokens import MAX_ATTRIBUTES, Node, check_tokens, nodes

__all__ = ["Element", "parse"]


#: the deepest nesting of elements; an algorithm has four levels
MAX_DEPTH = 256


@attrs.define
class Element:
    """One element, with the part of lxml's interface that the reader uses."""

    tag: str
    attributes: dict[str, str]
    sourceline: int
    children: list[Element] = attrs.Factory(list)
    comments: list[str] = attrs.Factory(list)

    def get(self, name: str) -> str | None:
        """Return the value of an attribute, or None if it is absent."""
        return self.attributes.get(name)

    def __len__(self) -> int:
        return len(self.children)

    def __iter__(self) -> Iterator[Element]:
        return iter(self.children)

    def iterchildren(self, tag: str) -> Iterator[Element]:
        """Yield the children with this tag, in document order."""
        return (child for child in self.children if child.tag == tag)


def parse(text: str) -> Element | None:
    """Return the first top-level element, with all comments; None if the runtimes would stop in the text."""
    if check_tokens(text):
        return None
    top = Element("", {}, 0)
    opened, comments = [top], list[str]()
    line, seen = 1, 0
    for node in nodes(text):
        line, seen = line + text.count("\n", seen, node.position), node.position
        if node.kind == "comment":
            comments.append(node.name)
        elif node.kind == "close":
            if len(opened) == 1 or opened.pop().tag != node.name:
                return None
        else:
            element = Element(node.name, _attributes(node), line)
            opened[-1].children.append(element)
            if node.kind == "open":
                opened.append(element)
            if len(opened) > MAX_DEPTH:
                return None
    if len(opened) > 1 or not top.children:
        return None
    top.children[0].comments = comments
    return top.children[0]


def _attributes(node: Node) -> dict[str, str]:
    """Return the attributes that the runtimes look at; of two with the same name the first."""
    found: dict[str, str] = {}
    for name, value in node.attributes[:MAX_ATTRIBUTES]:
        found.setdefault(name, value)
    return found
