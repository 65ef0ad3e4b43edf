"""Elements of a text that is no XML and that the runtimes read all the same.

Their tokeniser knows nothing of entities, of attributes that must differ, or of hyphens in comments. What it gets
through it hands on, so what an XML parser refuses may still run: this module reads such texts as the runtimes do.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from .tokens import MAX_ATTRIBUTES, Node, check_tokens, nodes

__all__ = ["Element", "parse"]


#: how deep elements may stand inside each other; an algorithm's are four deep
MAX_DEPTH = 256


@attrs.define
class Element:
    """One element: as much of an lxml element as the reader uses."""

    tag: str
    attributes: dict[str, str]
    sourceline: int
    children: list[Element] = attrs.Factory(list)
    comments: list[str] = attrs.Factory(list)

    def get(self, name: str) -> str | None:
        """Return the value of an attribute, or nothing where it is not there."""
        return self.attributes.get(name)

    def __len__(self) -> int:
        return len(self.children)

    def __iter__(self) -> Iterator[Element]:
        return iter(self.children)

    def iterchildren(self, tag: str) -> Iterator[Element]:
        """Yield the children with this tag, in document order."""
        return (child for child in self.children if child.tag == tag)


def parse(text: str) -> Element | None:
    """Return the first element that is not inside another, with all comments; nothing where the runtimes would stop."""
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
            element = Element(node.name, _first(node), line)
            opened[-1].children.append(element)
            if node.kind == "open":
                opened.append(element)
            if len(opened) > MAX_DEPTH:
                return None
    if len(opened) > 1 or not top.children:
        return None
    top.children[0].comments = comments
    return top.children[0]


def _first(node: Node) -> dict[str, str]:
    """Return the attributes that are looked at; of two of one name the first."""
    found: dict[str, str] = {}
    for name, value in node.attributes[:MAX_ATTRIBUTES]:
        found.setdefault(name, value)
    return found
