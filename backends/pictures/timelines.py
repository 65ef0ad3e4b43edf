"""Timelines: rows of bars over one axis, such as the activity of every rank, or the time of every algorithm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from .axes import Axis, Scale, draw_across, draw_frame, fitted_across, name_across
from .charts import head
from .legend import Key, draw_legend, legend_height
from .lettering import Box, shorten, width
from .style import BOUND, Look, look
from .svg import Element, Number, Picture, line, rectangle, text

__all__ = ["Bar", "Lane", "Row", "Timeline"]

WIDTH = 800.0
_HEAD, _LANE, _GAP = 54.0, 15.0, 10.0
#: largest widths of names on the left and notes on the right
_NAMES, _NOTES = 240.0, 200.0


@attrs.frozen
class Bar:
    """From ``start`` to ``end``, colored by its ``key``; ``label`` is inside if it fits, else ``tip`` shows it."""

    start: Number
    end: Number
    key: str
    label: str = ""
    tip: str = ""


@attrs.frozen
class Lane:
    """Bars on one line, with posts across it (a prediction, a deadline) and a note behind the last."""

    bars: Sequence[Bar]
    posts: Sequence[Number] = ()
    note: str = ""

    @property
    def ends(self) -> list[Number]:
        """The ends of bars and the places of posts."""
        return [*(bar.end for bar in self.bars), *self.posts]


@attrs.frozen
class Row:
    """Lanes of one name: a rank and its threadblocks, a network and its algorithms."""

    name: str
    lanes: Sequence[Lane]


@attrs.frozen
class Timeline:
    """The content of a timeline; ``post`` is the legend of the posts."""

    title: str
    axis: Axis
    rows: Sequence[Row]
    post: str = ""
    subtitle: str = ""
    description: str = ""

    def picture(self) -> Picture:
        """Return the timeline as a page 800 wide and as high as its rows.

        Raises ValueError and OverflowError for values that are not finite.
        """
        x = self._scale()
        height = sum(len(row.lanes) * _LANE + _GAP for row in self.rows)
        frame = Box(x.start, _HEAD, x.end, _HEAD + max(height, _LANE))
        unit, labels = fitted_across(x, WIDTH)
        keys = self._keys()
        body = (
            *head(self.title, self.subtitle, WIDTH), *draw_across(x, labels, frame),
            *_rows(self.rows, x, {key.name: key.look for key in keys if key.bar}, frame), draw_frame(frame),
            name_across(self.axis, unit, frame), *draw_legend(keys, 20, WIDTH - 20, frame.bottom + 50),
        )  # fmt: skip
        end = frame.bottom + 62 + legend_height(keys, 20, WIDTH - 20)
        return Picture(WIDTH, end, self.title, self.description or self.subtitle, body)

    def _scale(self) -> Scale:
        """Return the axis between the names of rows and the notes behind bars."""
        names = max((min(width(row.name), _NAMES) for row in self.rows), default=0.0)
        notes = max((min(width(lane.note, "label"), _NOTES) for lane in self._lanes()), default=0.0)
        return self.axis.scale(self._values(), max(80.0, names + 28), WIDTH - max(34.0, notes + 14))

    def _lanes(self) -> Iterator[Lane]:
        for row in self.rows:
            yield from row.lanes

    def _values(self) -> Iterator[Number]:
        for lane in self._lanes():
            yield from (bar.start for bar in lane.bars)
            yield from lane.ends

    def _keys(self) -> list[Key]:
        names = dict.fromkeys(bar.key for lane in self._lanes() for bar in lane.bars)
        keys = [Key(name, look(i), bar=True) for i, name in enumerate(names)]
        return [*keys, *[Key(self.post, BOUND, post=True)] * bool(self.post)]


def _rows(rows: Sequence[Row], x: Scale, looks: dict[str, Look], frame: Box) -> Iterator[Element]:
    y = frame.top + _GAP / 2
    for row in rows:
        middle = y + len(row.lanes) * _LANE / 2 + 4
        name = shorten(row.name, _NAMES)
        if name and row.lanes:
            yield text(frame.left - 8, middle, name, anchor="end", tip=row.name if name != row.name else "")
        for lane in row.lanes:
            yield from _lane(lane, x, y, looks)
            y += _LANE
        y += _GAP


def _lane(lane: Lane, x: Scale, y: float, looks: dict[str, Look]) -> Iterator[Element]:
    for bar in lane.bars:
        yield from _bar(bar, x.place(bar.start), x.place(bar.end), y, looks[bar.key])
    for post in lane.posts:
        at = x.place(post)
        yield line(at, y - 1, at, y + _LANE - 1, f"line {BOUND.color}")
    note = shorten(lane.note, _NOTES, "label")
    if note:
        end = max((x.place(end) for end in lane.ends), default=x.start)
        yield text(end + 6, y + _LANE - 4, note, "label", tip=lane.note if note != lane.note else "")


def _bar(bar: Bar, start: float, end: float, y: float, shown: Look) -> Iterator[Element]:
    """Draw a bar as wide as its time, but never too narrow to be visible."""
    wide = max(end - start, 0.5)
    yield rectangle(start, y, wide, _LANE - 2, f"fill {shown.color}", bar.tip)
    if bar.label and width(bar.label, "inside") + 8 <= wide:
        yield text(start + 4, y + _LANE - 5, bar.label, "inside")
