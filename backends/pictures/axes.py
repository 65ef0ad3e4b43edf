"""Axes: their options, the scale from values to places, their ticks, names and grid."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import attrs

from .lettering import Box, shorten, text_box, width
from .svg import Element, Number, line, path, text
from .ticks import linear_ticks, log, log_ticks
from .units import NUMBERS, Units, decimal

__all__ = [
    "Axis", "Label", "Scale", "draw_across", "draw_frame", "draw_up", "fitted_across", "fitted_up", "name_across",
    "name_up", "room_beside",
]  # fmt: skip

#: (value, its label)
Label = tuple[Fraction, str]
#: smallest distance of neighbors on an axis, as a share of the larger one
_NEAR = Fraction(1, 10**9)
_APART, _LINE = 8, 16
_LEAST_ROOM = 80.0


@attrs.frozen
class Axis:
    """The options of an axis: its name, ``base`` 0 for a linear one, 2 or 10 for a logarithmic one, and its units.

    ``zero`` begins it at 0, ``whole`` keeps its ticks to integers, ``margin`` leaves this share of the span free on
    both sides (with ``zero`` on the far side).
    """

    name: str
    base: int = 0
    units: Units = NUMBERS
    zero: bool = False
    whole: bool = False
    margin: Fraction = Fraction(0)

    def scale(self, values: Iterable[Number], start: float, end: float) -> Scale:
        """Return the scale that holds all values (of a logarithmic axis those above 0) from start to end of the page.

        Raises ValueError and OverflowError for values that are not finite.
        """
        known = [Fraction(value) for value in values]
        low, high = _log_span(known, self.base) if self.base else self._span(known)
        return Scale(self, low, high, start, end)

    def _span(self, values: Sequence[Fraction]) -> tuple[Fraction, Fraction]:
        shown = [*values, Fraction(0)] if self.zero or not values else values
        low, high = min(shown), max(shown)
        missing = self._least(low, high) - (high - low)
        if missing > 0:
            low, high = (low, high + missing) if self.zero and low == 0 else (low - missing / 2, high + missing / 2)
        margin = (high - low) * self.margin
        return (low if self.zero and low == 0 else low - margin), high + margin

    def _least(self, low: Fraction, high: Fraction) -> Fraction:
        """Return the least span: a fifth of the value if all are equal."""
        largest = max(-low, high)
        if self.whole or not largest:
            return max(Fraction(1), largest * _NEAR)
        return largest / 5 if low == high else largest * _NEAR


def _log_span(values: Sequence[Fraction], base: int) -> tuple[Fraction, Fraction]:
    shown = [value for value in values if value > 0] or [Fraction(1)]
    low, high = min(shown), max(shown)
    if low == high:
        return low / base, high * base
    return low, max(high, low * (1 + _NEAR))


@attrs.frozen
class Scale:
    """From values to places along one axis: low is at start, high at end."""

    axis: Axis
    low: Fraction
    high: Fraction
    start: float
    end: float

    def holds(self, value: Number) -> bool:
        """Whether the value has a place: a logarithmic axis has none for 0 and less."""
        return not self.axis.base or value > 0

    def place(self, value: Number) -> float:
        """Return the place of a value, or the nearer end for a value outside."""
        at = Fraction(value)
        share = min(max(self._share(min(max(at, self.low), self.high)), 0.0), 1.0)
        return self.start + share * (self.end - self.start)

    def _share(self, value: Fraction) -> float:
        if self.axis.base:
            low, high = self._logs
            return (log(value, self.axis.base) - low) / (high - low)
        return float((value - self.low) / self._span)

    @cached_property
    def _logs(self) -> tuple[float, float]:
        return log(self.low, self.axis.base), log(self.high, self.axis.base)

    @cached_property
    def _span(self) -> Fraction:
        return self.high - self.low

    def labels(self, fits: Callable[[Sequence[Label]], bool]) -> tuple[str, list[Label]]:
        """Return the unit of all labels ("" if each has its own) and the largest set of labels that fits."""
        found: list[Label] = []
        for ticks in self._ticks():
            unit, found = self._written(ticks)
            if fits(found):
                return unit, found
        return "", []

    def _ticks(self) -> Iterator[list[Fraction]]:
        if self.axis.base:
            return log_ticks(self.low, self.high, self.axis.base)
        _, unit = self._unit
        choices = linear_ticks(self.low / unit, self.high / unit, self.axis.whole)
        return ([tick * unit for tick in ticks] for ticks in choices)

    @property
    def _unit(self) -> tuple[str, Fraction]:
        """The unit of a linear axis, chosen for its far end."""
        return self.axis.units.of(max(-self.low, self.high))

    def _written(self, ticks: Sequence[Fraction]) -> tuple[str, list[Label]]:
        units, steps = self.axis.units, _steps(ticks)
        if self.axis.base:
            return "", [(tick, units.show(tick, step)) for tick, step in zip(ticks, steps, strict=True)]
        name, unit = self._unit
        return name, [(tick, decimal(tick / unit, step / unit)) for tick, step in zip(ticks, steps, strict=True)]


def _steps(ticks: Sequence[Fraction]) -> list[Fraction]:
    """Return how far each tick is from the nearest other; 0 for a single tick."""
    between = [b - a for a, b in pairwise(ticks)]
    return [min(between[max(i - 1, 0) : i + 1], default=Fraction(0)) for i in range(len(ticks))]


# ---- on the page


def fitted_across(scale: Scale, page: float) -> tuple[str, list[Label]]:
    """Return the unit and labels below an axis that do not touch each other or leave the page."""

    def fits(labels: Sequence[Label]) -> bool:
        boxes = [text_box(scale.place(value), 0, words, "", "middle") for value, words in labels]
        inside = all(box.left >= 2 and box.right <= page - 2 for box in boxes)
        return inside and all(a.right + _APART <= b.left for a, b in pairwise(boxes))

    return scale.labels(fits)


def fitted_up(scale: Scale) -> tuple[str, list[Label]]:
    """Return the unit and labels beside an axis that do not touch each other."""
    return scale.labels(lambda labels: len(labels) * _LINE <= abs(scale.end - scale.start))


def room_beside(labels: Sequence[Label]) -> float:
    """Return the distance from the edge of the page of an axis with these labels and a name."""
    return max(_LEAST_ROOM, 34 + max((width(words) for _, words in labels), default=0.0))


def draw_across(scale: Scale, labels: Sequence[Label], frame: Box) -> Iterator[Element]:
    """Draw the grid of an axis that runs from left to right, and its labels below."""
    for value, words in labels:
        x = scale.place(value)
        yield line(x, frame.top, x, frame.bottom, "grid")
        yield text(x, frame.bottom + 19, words, anchor="middle")


def draw_up(scale: Scale, labels: Sequence[Label], frame: Box) -> Iterator[Element]:
    """Draw the grid of an axis that runs upwards, and its labels on the left."""
    for value, words in labels:
        y = scale.place(value)
        yield line(frame.left, y, frame.right, y, "grid")
        yield text(frame.left - 8, y + 4, words, anchor="end")


def draw_frame(frame: Box) -> Element:
    """Draw the axes themselves."""
    return path([(frame.left, frame.top), (frame.left, frame.bottom), (frame.right, frame.bottom)], "axis")


def name_across(axis: Axis, unit: str, frame: Box) -> Element:
    """Write the name of an axis and its unit below its labels."""
    words = _named(axis, unit)
    room = frame.right - frame.left
    return text((frame.left + frame.right) / 2, frame.bottom + 38, shorten(words, room), anchor="middle")


def name_up(axis: Axis, unit: str, frame: Box) -> Element:
    """Write the name of an axis and its unit along it."""
    words = shorten(_named(axis, unit), frame.bottom - frame.top)
    return text(18, (frame.top + frame.bottom) / 2, words, anchor="middle", upward=True)


def _named(axis: Axis, unit: str) -> str:
    return f"{axis.name} ({unit})" if unit else axis.name
