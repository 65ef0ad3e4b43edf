"""Charts: curves, staircases and marks over two axes, with bounds and changes as rules across them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import attrs

from .axes import (
    Axis,
    Label,
    Scale,
    draw_across,
    draw_frame,
    draw_up,
    fitted_across,
    fitted_up,
    name_across,
    name_up,
    room_beside,
)  # fmt: skip
from .legend import Key, draw_legend, legend_height, mark
from .lettering import Box, shorten, stack, text_box, width
from .style import BOUND, Look
from .svg import Element, Number, Picture, element, line, path, text

__all__ = ["Chart", "Rule", "Series"]

WIDTH, HEIGHT = 800.0, 400.0
_RIGHT, _HEAD, _ROW, _LINE = 34.0, 54.0, 14.0, 17.0
#: the largest width of labels of upright rules right of the axes
_MOST_RIGHT = 200.0
#: limits of label rows above the axes and of labels beside marks; tips show the others
_MOST_ROWS, _MOST_LABELS = 12, 60


@attrs.frozen
class Series:
    """Points (x, y) of one name: a ``line``, ``steps`` (along, then up or down), or ``marks`` alone.

    ``dots`` marks the points of a line; a single point is always marked. ``tips`` and ``labels`` (beside marks), if
    given, are one per point; so are ``links``, the names of rows below the chart. A series without a name belongs to
    another one and is not in the legend. Points without a place on a logarithmic axis are left out.
    """

    name: str
    points: Sequence[tuple[Number, Number]]
    look: Look
    form: str = "line"
    dots: bool = False
    tips: Sequence[str] = ()
    labels: Sequence[str] = ()
    links: Sequence[str] = ()

    @property
    def key(self) -> Key:
        """The entry in the legend."""
        drawn = self.form != "marks"
        return Key(self.name, self.look, stroke=drawn, mark=self.dots or not drawn)


@attrs.frozen
class Rule:
    """A line right across the axes where one value is ``at``, with a label: a bound, or a change."""

    at: Number
    label: str
    upright: bool = True
    look: Look = BOUND


@attrs.frozen
class Chart:
    """The content of a chart; ``description`` is for screen readers.

    ``rows`` are lines of text below the legend, each with the name by which points link to it.
    """

    title: str
    x: Axis
    y: Axis
    series: Sequence[Series]
    rules: Sequence[Rule] = ()
    subtitle: str = ""
    description: str = ""
    rows: Sequence[tuple[str, str]] = ()

    def picture(self) -> Picture:
        """Return the chart as a page 800 wide and as high as its labels and legend need.

        Raises ValueError and OverflowError for values that are not finite.
        """
        on = self._layout()
        frame, keys = on.frame, [one.key for one in self.series if one.name]
        body = (
            *head(self.title, self.subtitle, WIDTH), *draw_across(on.x, on.across, frame),
            *draw_up(on.y, on.up, frame), draw_frame(frame), name_across(self.x, on.unit_across, frame),
            name_up(self.y, on.unit_up, frame), *_draw(self, on),
            *draw_legend(keys, frame.left, frame.right, frame.bottom + 50),
        )  # fmt: skip
        height = frame.bottom + 62 + legend_height(keys, frame.left, frame.right)
        if self.rows:
            body += tuple(_rows(self.rows, height))
            height += _LINE * len(self.rows) + 8
        return Picture(WIDTH, height, self.title, self.description or self.subtitle, body)

    def _layout(self) -> _Layout:
        """Measure the labels beside and above the axes, and lay out the axes in the remaining room."""
        y = self.y.scale(self._values(1, upright=False), HEIGHT, 0)
        unit_up, up = fitted_up(y)
        x = self.x.scale(self._values(0, upright=True), room_beside(up), WIDTH)
        upright = [rule for rule in self.rules if rule.upright and x.holds(rule.at)]
        x = attrs.evolve(x, end=WIDTH - _room_right(upright, x))
        unit_across, across = fitted_across(x, WIDTH)
        words = _upright_words(upright, x)
        top = _HEAD + _ROW * max((word.row + 1 for word in words), default=0)
        y = attrs.evolve(y, start=top + HEIGHT, end=top)
        return _Layout(x, y, Box(x.start, top, x.end, top + HEIGHT), across, up, unit_across, unit_up, words)

    def _values(self, place: int, upright: bool) -> list[Number]:
        values = [point[place] for one in self.series for point in one.points]
        return values + [rule.at for rule in self.rules if rule.upright == upright]


@attrs.frozen
class _UprightWord:
    """The label of an upright rule, shortened to fit or "": its left end, and its row above the axes."""

    rule: Rule
    words: str
    left: float
    row: int


@attrs.frozen
class _Layout:
    """The layout: scales, the box of the axes, their labels and units, and the labels above them."""

    x: Scale
    y: Scale
    frame: Box
    across: Sequence[Label]
    up: Sequence[Label]
    unit_across: str
    unit_up: str
    words: Sequence[_UprightWord]

    def places(self, one: Series) -> list[tuple[float, float, int]]:
        """Return (x, y, index of the point) of all points with a place."""
        points = [(a, b, i) for i, (a, b) in enumerate(one.points) if self.x.holds(a) and self.y.holds(b)]
        return [(self.x.place(a), self.y.place(b), i) for a, b, i in points]


def head(title: str, subtitle: str, page: float) -> Iterator[Element]:
    """Write a title and a line below it, at the left of a page."""
    for y, words, kind in ((24, title, "title"), (42, subtitle, "")):
        short = shorten(words, page - 40, kind)
        if short:
            yield text(20, y, short, kind, tip=words if short != words else "")


def _draw(chart: Chart, on: _Layout) -> Iterator[Element]:
    """Draw rules below series below labels."""
    level = [rule for rule in chart.rules if not rule.upright and on.y.holds(rule.at)]
    yield from _upright_rules(on)
    yield from _level_lines(level, on)
    for one in chart.series:
        yield from _series(one, on)
    lines, points = list(_upright_boxes(on)), list(_point_boxes(chart, on))
    words = _fitting([[*_level_label(rule, on)] for rule in level], lines, points, on.frame)
    labels = [places for one in chart.series for places in _labels(one, on)]
    words += _fitting(labels, [*lines, *points, *map(_box, words)], [], on.frame)
    yield from (text(x, base, shown, "label", anchor) for x, base, shown, anchor in words)


def _upright_boxes(on: _Layout) -> Iterator[Box]:
    for at in (on.x.place(word.rule.at) for word in on.words):
        yield Box(at - 1, on.frame.top, at + 1, on.frame.bottom)


def _point_boxes(chart: Chart, on: _Layout) -> Iterator[Box]:
    for one in chart.series:
        yield from (Box(a - 7, b - 7, a + 7, b + 7) for a, b, _ in on.places(one))


def _rows(rows: Sequence[tuple[str, str]], top: float) -> Iterator[Element]:
    """Yield the rows below a chart; the one that a link leads to is bold."""
    for number, (name, words) in enumerate(rows):
        y = top + 12 + number * _LINE
        yield element("g", text(20, y, shorten(words, WIDTH - 40, "label"), "label", tip=words), id=name, class_="row")


# ---- series


def _series(one: Series, on: _Layout) -> Iterator[Element]:
    places = on.places(one)
    corners = [(a, b) for a, b, _ in places]
    if one.form == "steps":
        corners = [corner for i, (a, b) in enumerate(corners) for corner in ((a, corners[max(i - 1, 0)][1]), (a, b))]
    if one.form != "marks" and len(places) > 1:
        yield path(corners, f"line {one.look.color}", one.look.dash)
    alone = len(places) == 1 and one.name != ""
    if one.dots or one.form == "marks" or alone:
        size = 5.5 if one.form == "marks" else 3.2
        for a, b, i in places:
            shown = mark(one.look, a, b, size, one.tips[i] if one.tips else "")
            yield element("a", shown, href=f"#{one.links[i]}") if one.links else shown


# ---- rules


def _room_right(rules: Sequence[Rule], x: Scale) -> float:
    """Return how far from the right edge of the page axes end so that labels of upright rules fit right of them.

    ``x`` may end anywhere. A rule at a share s of the axis is at start + s (WIDTH - room - start).
    """
    room, start = _RIGHT, x.start
    for rule in rules:
        share = (x.place(rule.at) - start) / (x.end - start)
        long = width(rule.label, "label") + 9
        room = max(room, WIDTH - start - (WIDTH - start - long) / share if share > 0 else 0.0)
    return min(room, _MOST_RIGHT)


def _upright_words(rules: Sequence[Rule], x: Scale) -> list[_UprightWord]:
    """Put the labels of upright rules right of them, in rows; no label touches another or a rule."""
    ordered = sorted(((x.place(rule.at), rule) for rule in rules), key=lambda each: -each[0])
    words = [(at, rule, shorten(rule.label, WIDTH - 8 - at, "label")) for at, rule in ordered]
    rows = stack((at, at + 4 + width(each, "label")) for at, _, each in words)
    return [
        _UprightWord(rule, each, at + 4, row) if row < _MOST_ROWS else _UprightWord(rule, "", at, 0)
        for (at, rule, each), row in zip(words, rows, strict=True)
    ]


def _upright_rules(on: _Layout) -> Iterator[Element]:
    """Draw each rule from its label down."""
    for word in on.words:
        rule, at, base = word.rule, on.x.place(word.rule.at), on.frame.top - 4 - _ROW * word.row
        top = base - 8 if word.words else on.frame.top
        yield line(at, top, at, on.frame.bottom, f"thin {rule.look.color}", rule.look.dash, rule.label)
        if word.words:
            yield text(word.left, base, word.words, "label")


def _level_lines(rules: Sequence[Rule], on: _Layout) -> Iterator[Element]:
    left, right = on.frame.left, on.frame.right
    for rule in rules:
        y = on.y.place(rule.at)
        yield line(left, y, right, y, f"thin {rule.look.color}", rule.look.dash, rule.label)


def _level_label(rule: Rule, on: _Layout) -> Iterator[_Word]:
    """Yield the possible places of a level rule's label: at the right or left end or between, below or above."""
    left, wide, y = on.frame.left, on.frame.right - on.frame.left, on.y.place(rule.at)
    words = shorten(rule.label, wide / 2, "label")
    for base in (y + 13, y - 5):
        yield on.frame.right - 4, base, words, "end"
        yield left + 4, base, words, "start"
        yield from ((left + wide * part / 16, base, words, "middle") for part in range(14, 1, -1))


# ---- placement of labels

#: (x, base line, words, anchor)
_Word = tuple[float, float, str, str]


def _labels(one: Series, on: _Layout) -> Iterator[list[_Word]]:
    """Yield the possible places of each mark's label: on the side with more room, the nearest first."""
    left, right = on.frame.left, on.frame.right
    for x, y, i in on.places(one)[:_MOST_LABELS] if one.labels else ():
        anchor, start, room = ("start", x + 10, right - x) if x < (left + right) / 2 else ("end", x - 10, x - left)
        words = shorten(one.labels[i], room - 12, "label")
        yield [(start, y + away, words, anchor) for away in _AWAY]


#: vertical distances of a label's base line from its mark
_AWAY = [away + sign * 13 * step for step in range(5) for away, sign in ((-8, -1), (17, 1))]


def _box(word: _Word) -> Box:
    x, base, words, anchor = word
    return text_box(x, base, words, "label", anchor)


def _fitting(
    labels: Sequence[Sequence[_Word]], taken: Sequence[Box], avoided: Sequence[Box], frame: Box
) -> list[_Word]:
    """Return the first free place of every label, if possible one that meets nothing ``avoided``.

    Labels without a free place are left out.
    """
    full, found = list(taken), []
    for places in labels:
        boxes = [(word, _box(word)) for word in places if word[2] and frame.holds(_box(word))]
        free = [each for each in boxes if not any(each[1].meets(other) for other in full)]
        clear = (each for each in free if not any(each[1].meets(other) for other in avoided))
        for word, box in list(islice(clear, 1)) or free[:1]:
            full.append(box)
            found.append(word)
    return found
