"""Legends: the meaning of colors, dashes and marks, in lines below the axes; and the marks themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from .lettering import shorten, width
from .style import Look
from .svg import Element, circle, group, line, path, rectangle, text

__all__ = ["Key", "draw_legend", "legend_height", "mark"]

_SAMPLE, _BETWEEN, _LINE = 34, 22, 18


@attrs.frozen
class Key:
    """An entry: a name, a look, and its parts: a ``stroke``, a ``mark``, a ``bar``, an upright ``post``."""

    name: str
    look: Look
    stroke: bool = False
    mark: bool = False
    bar: bool = False
    post: bool = False


def draw_legend(keys: Sequence[Key], left: float, right: float, top: float) -> Iterator[Element]:
    """Draw the entries one after the other from left to right, in as many lines as they need."""
    for key, (x, row) in zip(keys, _places(keys, left, right), strict=True):
        y = top + 13 + row * _LINE
        words = shorten(key.name, right - left - _SAMPLE)
        yield group(
            *_sample(key, x, y - 4), text(x + _SAMPLE, y, words, tip=key.name if words != key.name else "")
        )  # fmt: skip


def legend_height(keys: Sequence[Key], left: float, right: float) -> float:
    """Return the size of the entries on the page."""
    return _LINE * max((row + 1 for _, row in _places(keys, left, right)), default=0)


def _places(keys: Sequence[Key], left: float, right: float) -> list[tuple[float, int]]:
    places, x, row = [], left, 0
    for key in keys:
        long = _SAMPLE + min(width(key.name), right - left - _SAMPLE)
        if x > left and x + long > right:
            x, row = left, row + 1
        places.append((x, row))
        x += long + _BETWEEN
    return places


def _sample(key: Key, x: float, y: float) -> Iterator[Element]:
    middle = x + _SAMPLE / 2 - 3
    if key.stroke:
        yield line(x, y, x + _SAMPLE - 6, y, f"line {key.look.color}", key.look.dash)
    if key.mark:
        yield mark(key.look, middle, y, 3.5 if key.stroke else 5)
    if key.bar:
        yield rectangle(x + 8, y - 5, _SAMPLE - 14, 10, f"fill {key.look.color}")
    if key.post:
        yield line(middle, y - 7, middle, y + 7, f"line {key.look.color}")


def mark(look: Look, x: float, y: float, size: float, tip: str = "") -> Element:
    """Return a mark of half the width ``size`` around a place."""
    kind = f"fill {look.color}"
    if look.mark == "ring":
        return circle(x, y, size * 1.6, f"ring {look.color}", tip)
    if look.mark == "circle":
        return circle(x, y, size, kind, tip)
    if look.mark == "square":
        return rectangle(x - size, y - size, 2 * size, 2 * size, kind, tip)
    corners = {
        "triangle": [(x, y - size), (x + size, y + size), (x - size, y + size)],
        "diamond": [(x, y - size * 1.3), (x + size * 1.3, y), (x, y + size * 1.3), (x - size * 1.3, y)],
    }  # fmt: skip
    return path(corners[look.mark], kind, tip=tip, close=True)
