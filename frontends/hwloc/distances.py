"""Matrices of bandwidths between GPUs: ``NVLinkBandwidth``, ``XGMIBandwidth``, ``XeLinkBandwidth``."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

import attrs

from ..importing.model import Draft
from .objects import Kind, Machine, Node
from .text import Text

if TYPE_CHECKING:
    from lxml.etree import _Element

__all__ = ["Matrix", "matrices"]

#: name -> what the links are called
_BANDWIDTHS = {"NVLinkBandwidth": "NVLink", "XGMIBandwidth": "xGMI", "XeLinkBandwidth": "Xe Link"}
_HOPS = "XGMIHops"
_ENDS = (Kind.GPU, Kind.NVSWITCH, Kind.CPU)
_NUMBER = re.compile(r"[0-9]{1,12}")
_HETERO = re.compile(r"([A-Za-z0-9]{1,20}):([0-9]{1,18})")


@attrs.define(eq=False)
class Matrix:
    """Links between devices in each direction, in bytes per second, and what they are called."""

    label: str
    element: _Element = attrs.field(repr=False)
    links: dict[tuple[Node, Node], Fraction] = attrs.field(factory=dict)


@attrs.define(eq=False)
class _Square:
    """A square of numbers, and the device of each row; None if it is no device of the network."""

    element: _Element
    rows: list[Node | None]
    values: list[int]

    def cells(self) -> Iterator[tuple[Node, Node, int]]:
        """Yield the numbers between different devices."""
        size = len(self.rows)
        for i, a in enumerate(self.rows):
            for j, b in enumerate(self.rows):
                if a is not None and b is not None and a is not b:
                    yield a, b, self.values[i * size + j]


def matrices(text: Text, machine: Machine, draft: Draft) -> list[Matrix]:
    """Return the bandwidths between GPUs that a text lists. Mistakes are added to ``draft``."""
    squares: dict[str, _Square] = {}
    for element in text.root.iterchildren("distances2", "distances2hetero"):
        name = str(element.get("name", ""))
        if name not in (*_BANDWIDTHS, _HOPS):
            continue
        if name in squares:
            draft.warn("C0942", f"ignored another matrix `{name}`", text.span(element))
            continue
        square = _square(text, element, machine, draft)
        if square is not None:
            squares[name] = square
    far = _far(squares.get(_HOPS))
    return [_matrix(label, squares[name], far) for name, label in _BANDWIDTHS.items() if name in squares]


def _matrix(label: str, square: _Square, far: set[tuple[Node, Node]]) -> Matrix:
    links = defaultdict[tuple[Node, Node], Fraction](Fraction)
    for a, b, value in square.cells():
        if value and (a, b) not in far:
            links[a, b] += value * 10**6
    return Matrix(label, square.element, dict(links))


def _far(hops: _Square | None) -> set[tuple[Node, Node]]:
    """Return the pairs without a direct link: more than one hop apart."""
    return {(a, b) for a, b, value in hops.cells() if value > 1} if hops else set()


def _square(text: Text, element: _Element, machine: Machine, draft: Draft) -> _Square | None:
    """Return one matrix; None if it is wrong."""
    indexes, values = _words(element, "indexes"), _words(element, "u64values")
    size = str(element.get("nbobjs", ""))
    if size != str(len(indexes)):
        span = text.span(element, "nbobjs")
        draft.wrong("C0924", f"found {len(indexes)} objects, needed `nbobjs`, which is `{size[:20]}`", span)
    elif len(values) != len(indexes) ** 2:
        message = f"found {len(values)} values, needed {len(indexes)} times {len(indexes)}"
        draft.wrong("C0924", message, text.span(element))
    elif stray := next((word for word in values if not _NUMBER.fullmatch(word)), None):
        draft.wrong("C0924", f"found `{stray[:40]}`, needed a number of MB/s", text.span(element))
    else:
        return _Square(element, _rows(text, element, indexes, machine, draft), [int(word) for word in values])
    return None


def _words(element: _Element, tag: str) -> list[str]:
    """Return the words of all elements of a tag: hwloc writes ten to each."""
    return [word for one in element.iterchildren(tag) for word in (one.text or "").split()]


def _rows(text: Text, element: _Element, indexes: list[str], machine: Machine, draft: Draft) -> list[Node | None]:
    rows = list[Node | None]()
    for word in indexes:
        key = word if _HETERO.fullmatch(word) else f"{element.get('type')}:{word}"
        node = machine.objects.get(key)
        if node is None or node.kind not in _ENDS:
            what = "the file has no such object" if node is None else "it is no GPU, NVSwitch or CPU"
            draft.warn("C0942", f"ignored links of `{key[:40]}`: {what}", text.span(element))
            node = None
        rows.append(node)
    return rows
