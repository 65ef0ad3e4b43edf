"""Pictures with matplotlib, on axes that the caller gives or on a figure of their own. matplotlib is imported on use.

Series differ in color, dashes and marks; any 16 differ without colors. Colors are those of
:mod:`collc.backends.pictures.style`. No figure is registered anywhere, and no setting of matplotlib changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING

import attrs

from collc.backends.pictures.style import COLORS
from collc.ir.frames import optional_package
from collc.ir.shown import clipped

from ..messages.quantities import show_bandwidth, show_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Line", "Style", "axes_of", "bars", "edge", "goodput", "legend", "marks", "rule", "style_of"]

_MARKS = ("o", "s", "^", "D")
_DASHES: tuple[tuple[float, ...], ...] = ((), (7, 4), (2, 3), (9, 3, 2, 3))
_QUIET, _BOUND = "#888888", "#aa0000"
_BOUND_DASHES = ((6, 4), (2, 2), (9, 3, 2, 3), (1, 3))
_LONGEST = 80  # characters of a label


@attrs.frozen
class Style:
    """How a series looks: color, dashes (lengths of strokes and gaps; none: solid) and mark, as matplotlib has them."""

    color: str
    dashes: tuple[float, ...]
    mark: str


@attrs.frozen(eq=False)
class Line:
    """A curve: ``points`` of size (bytes) and goodput (bytes per second); a bound is dashed and without marks."""

    label: str
    points: Sequence[tuple[int, float]]
    is_bound: bool = False


def style_of(index: int) -> Style:
    """Return the look of a series; the first 32 all differ, the first 16 also without colors.

    >>> style_of(5)
    Style(color='#00707d', dashes=(7, 4), mark='s')
    """
    color, _ = COLORS[index % len(COLORS)]
    turn = index // len(_MARKS) + index // (len(_MARKS) * len(_DASHES))
    return Style(color, _DASHES[turn % len(_DASHES)], _MARKS[index % len(_MARKS)])


def axes_of(given: Axes | None, title: str) -> Axes:
    """Return the axes to draw on: those of the caller, or new ones of a figure that notebooks show."""
    optional_package("matplotlib", "a picture", "plot")
    axes = _figure().subplots() if given is None else given
    axes.set_title(_label(title), wrap=True)
    axes.grid(True, color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    return axes


def _figure() -> Figure:
    """Return a figure without a window, that a notebook shows without settings."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    class Picture(Figure):
        def _repr_png_(self) -> bytes:
            stream = BytesIO()
            self.savefig(stream, format="png", metadata={"Software": None})
            return stream.getvalue()

    figure = Picture(figsize=(7.2, 4.4), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def goodput(axes: Axes, lines: Sequence[Line]) -> None:
    """Draw goodput against size; both axes are logarithmic, sizes to the base 2."""
    place = bounds = 0
    for line in lines:
        sizes, values = [size for size, _ in line.points], [value for _, value in line.points]
        if line.is_bound:
            dashes = _BOUND_DASHES[bounds % len(_BOUND_DASHES)]
            axes.plot(sizes, values, color=_BOUND, dashes=dashes, linewidth=1.2, label=_label(line.label))
            bounds += 1
            continue
        style = style_of(place)
        [drawn] = axes.plot(
            sizes, values, color=style.color, marker=style.mark, markersize=4, linewidth=1.6, label=_label(line.label)
        )
        if style.dashes:
            drawn.set_dashes(style.dashes)
        place += 1
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: show_size(int(value)) if value >= 1 else "")
    axes.yaxis.set_major_formatter(lambda value, _: show_bandwidth(value))
    axes.yaxis.set_minor_formatter(lambda value, _: "")
    axes.set_xlabel("size of the vector")
    axes.set_ylabel("goodput: size over time")
    legend(axes)


def marks(
    axes: Axes, label: str, points: Sequence[tuple[float, float]], index: int, texts: Sequence[str] = (),
    ring: bool = False,
) -> None:  # fmt: skip
    """Draw separate points; a ring goes around points that are drawn already."""
    style, size = style_of(index), 130 if ring else 40
    faces = "none" if ring else style.color
    axes.scatter(
        [x for x, _ in points], [y for _, y in points], s=size, marker="o" if ring else style.mark, facecolors=faces,
        edgecolors="#222222" if ring else style.color, linewidths=1.6, label=_label(label), zorder=3,
    )  # fmt: skip
    for (x, y), text in zip(points, texts, strict=False):
        axes.annotate(_label(text), (x, y), textcoords="offset points", xytext=(6, 6), fontsize="small")


def edge(axes: Axes, points: Sequence[tuple[float, float]]) -> None:
    """Draw the staircase of a frontier."""
    axes.step([x for x, _ in points], [y for _, y in points], where="post", color=_QUIET, linewidth=1)


def rule(axes: Axes, value: float, label: str, upright: bool) -> None:
    """Draw a bound across the picture."""
    draw = axes.axvline if upright else axes.axhline
    draw(value, color=_BOUND, dashes=_BOUND_DASHES[not upright], linewidth=1.2, label=_label(label))


def bars(axes: Axes, groups: Mapping[str, Sequence[float]]) -> None:
    """Draw values of links as bars, one group after the other, each from the largest value to the smallest."""
    start = 0
    for index, (label, values) in enumerate(groups.items()):
        places = range(start, start + len(values))
        hatch = ("", "////", "....", "xxxx")[index % 4]
        color = style_of(index).color
        if len(values) <= 256:
            axes.bar(places, values, width=0.8, color=color, hatch=hatch, edgecolor="#ffffff", label=_label(label))
        else:  # bars narrower than a pixel
            axes.fill_between(places, values, step="mid", color=color, hatch=hatch, label=_label(label))
        start += len(values)
    axes.set_ylim(bottom=0)
    legend(axes)


def legend(axes: Axes) -> None:
    """Explain the series, if there are several."""
    if len(axes.get_legend_handles_labels()[1]) > 1:
        axes.legend(fontsize="small")


def _label(text: str) -> str:
    """Return a name as plain text: matplotlib takes `$` for mathematics, and hides labels that begin with `_`."""
    plain = clipped(text, _LONGEST).replace("$", r"\$")
    return f" {plain}" if plain.startswith("_") else plain
