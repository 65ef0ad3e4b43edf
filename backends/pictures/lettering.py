"""Sizes of texts, and places without overlaps.

A viewer chooses the font. Widths are those of DejaVu Sans, rounded up: the widest of the usual ones.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

import attrs

from .style import FONTS

__all__ = ["Box", "shorten", "stack", "text_box", "width"]

#: width in shares of the font's size -> characters
_WIDTHS = {
    0.3: "'ijlIJ", 0.42: " ,./:;\\|f-()[]t!r", 0.56: '"*_`sz?cL', 0.64: "FkvxyPTYoaeEhnuSbdgpq$0123456789{}",
    0.7: "KAVXZBRC", 0.79: "UNHDG&OQ", 0.84: "w#+<=>^~", 1.0: "M%mW@",
}  # fmt: skip
_OF = {character: share for share, characters in _WIDTHS.items() for character in characters}
_OTHER = 1.1
_BOLD = 1.25
_ETC = "..."


@attrs.frozen
class Box:
    """A rectangle of the page; y grows downwards."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        """Whether the two share more than an edge."""
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )

    def holds(self, other: Box) -> bool:
        """Whether the other is within this one."""
        return (
            self.left <= other.left and other.right <= self.right
            and self.top <= other.top and other.bottom <= self.bottom
        )  # fmt: skip


def width(text: str, kind: str = "") -> float:
    """Return an upper estimate of the width of a text of a kind (:data:`.style.FONTS`)."""
    size, bold = FONTS[kind]
    return size * (_BOLD if bold else 1) * sum(_share(character) for character in text)


def _share(character: str) -> float:
    known = _OF.get(character)
    return (0.0 if unicodedata.combining(character) else _OTHER) if known is None else known


def shorten(text: str, room: float, kind: str = "") -> str:
    """Return the text, or as much of its beginning as fits before dots; "" if not even dots fit.

    >>> shorten("circulant(16, {3, 4})", 60)
    'circula...'
    """
    if width(text, kind) <= room:
        return text
    left, end = room - width(_ETC, kind), 0
    while end < len(text) and left >= width(text[end], kind):
        left -= width(text[end], kind)
        end += 1
    return text[:end].rstrip() + _ETC if end or left >= 0 else ""


def text_box(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> Box:
    """Return the room of a text whose base line is at y."""
    long, size = width(text, kind), FONTS[kind][0]
    left = x - {"start": 0.0, "middle": long / 2, "end": long}[anchor]
    return Box(left, y - size, left + long, y + size / 4)


def stack(spans: Iterable[tuple[float, float]], gap: float = 10.0) -> list[int]:
    """Return a row for each (left, right): the lowest above all earlier ones that it overlaps.

    >>> stack([(60, 90), (40, 70), (0, 30), (20, 45)])
    [0, 1, 0, 2]
    """
    placed: list[tuple[float, float, int]] = []
    for left, right in spans:
        row = max((r + 1 for a, b, r in placed if a < right + gap and left < b + gap), default=0)
        placed.append((left, right, row))
    return [row for *_, row in placed]
