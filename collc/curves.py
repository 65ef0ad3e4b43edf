"""Goodput against size, as SVG text: a curve for every schedule, marks where another becomes the fastest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log2
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

import attrs

from .quantities import show_size, show_time
from .svg import _BOTTOM, _HEIGHT, _LEFT, _RIGHT, _STYLE, _TOP, _WIDTH, _line, _Scale, _text, _ticks

if TYPE_CHECKING:
    from collc.backends.simulator import Simulation

__all__ = ["Curve", "about", "goodput_svg"]

#: Curves differ in color, dashes and marks, so that none of them is needed alone.
_COLORS = ("#1f5fa8", "#b8651b", "#2e7d32", "#8e24aa", "#a00", "#00838f", "#5d4037", "#555")
_DASHES = ("", "7 4", "2 3", "9 3 2 3")
_OWN = ".curve{fill:none;stroke-width:2}.change{stroke:#222;stroke-dasharray:2 4}"


@attrs.frozen(eq=False)
class Curve:
    """A line of the picture: a collective's name, its scheduler, and its simulation."""

    name: str
    scheduler: str
    simulation: Simulation

    @property
    def label(self) -> str:
        return f"{self.name} ({self.scheduler})"


def goodput_svg(curves: Sequence[Curve], sizes: Sequence[int]) -> str:
    """Return goodput in Gb/s against M in bytes, on an axis of powers of two, at ``sizes``: two or more besides 0.

    A dashed line stands where another curve becomes the highest (:func:`collc.backends.simulator.crossovers`).
    """
    shown = sorted({size for size in sizes if size > 0})
    points = [[(p.size, p.bandwidth * 8 / 1e9, p.time) for p in c.simulation.points(shown)] for c in curves]
    most = max(y for line in points for _, y, _ in line) or 1.0
    across = _Scale(log2(shown[0]), log2(shown[-1]), _LEFT, _WIDTH - _RIGHT)
    up = _Scale(0.0, most * 1.1, _HEIGHT - _BOTTOM, _TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}"'
        f' viewBox="0 0 {_WIDTH} {_HEIGHT}">',
        f"<style>{_STYLE}{_OWN}</style>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
        *_title(curves), *_axes(across, up), *_changes(curves, shown, across),
        *(part for i, line in enumerate(points) for part in _curve(i, line, across, up)), *_legend(curves),
        "</svg>",
    ]  # fmt: skip
    return "\n".join(parts) + "\n"


def _title(curves: Sequence[Curve]) -> Iterator[str]:
    kinds = dict.fromkeys(c.simulation.traffic.collective.kind for c in curves)
    places = dict.fromkeys(f"{c.simulation.topology.name} of {c.simulation.topology.num_ranks} ranks" for c in curves)
    yield _text(_LEFT, 24, f"Goodput of {', '.join(kinds)} on {', '.join(places)}", "title")
    yield _text(_LEFT, 42, "simulated on the links: the whole vector over the time it takes")


def _axes(across: _Scale, up: _Scale) -> Iterator[str]:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    powers = range(-int(-across.low // 1), int(across.high) + 1)
    for power in powers[:: max(1, -(-len(powers) // 14))]:
        x = across.place(power)
        yield _line(x, _TOP, x, bottom, "grid")
        yield _text(x, bottom + 18, show_size(1 << power), anchor="middle")
    for value in _ticks(up):
        y = up.place(value)
        yield _line(_LEFT, y, right, y, "grid")
        yield _text(_LEFT - 8, y + 4, f"{value:g}", anchor="end")
    yield f'<path class="axis" d="M{_LEFT} {_TOP}V{bottom}H{right}"/>'
    yield _text((_LEFT + right) / 2, _HEIGHT - 24, "size of the vector", anchor="middle")
    middle = (_TOP + bottom) / 2
    yield f'<text transform="translate(20 {middle:g}) rotate(-90)" text-anchor="middle">goodput (Gb/s)</text>'


def _changes(curves: Sequence[Curve], sizes: Sequence[int], across: _Scale) -> Iterator[str]:
    from collc.backends.simulator import crossovers

    for number, change in enumerate(crossovers([c.simulation for c in curves], sizes)):
        x = across.place(log2(change.size))
        yield _line(x, _TOP, x, _HEIGHT - _BOTTOM, "change")
        text = f"{curves[change.to].name} from {about(change.size)}"
        anchor = "start" if x < (_LEFT + _WIDTH - _RIGHT) / 2 else "end"
        yield _text(x + (4 if anchor == "start" else -4), _TOP + 12 + 14 * (number % 4), text, "label", anchor)


def about(size: int) -> str:
    """Return bytes in three digits of a binary unit.

    >>> about(98266), about(500)
    ('96 KiB', '500 B')
    """
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >= 1 << power:
            return f"{size / (1 << power):.3g} {unit}"
    return f"{size} B"


def _curve(number: int, line: Sequence[tuple[int, float, float]], across: _Scale, up: _Scale) -> Iterator[str]:
    color, dash = _look(number)
    at = [(across.place(log2(size)), up.place(value)) for size, value, _ in line]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in at)
    yield f'<path class="curve" stroke="{color}"{dash} d="M{path}"/>'
    for (x, y), (size, value, time) in zip(at, line, strict=True):
        tip = escape(f"{show_size(size)}: {value:.4g} Gb/s, {show_time(time)}")
        yield _mark(number, x, y, color, f"<title>{tip}</title>")


def _look(number: int) -> tuple[str, str]:
    dash = _DASHES[(number + number // len(_COLORS)) % len(_DASHES)]  # colors that come again have other dashes
    return _COLORS[number % len(_COLORS)], f' stroke-dasharray="{dash}"' if dash else ""


def _mark(number: int, x: float, y: float, color: str, inside: str = "") -> str:
    if number % 2:
        return f'<rect x="{x - 3:.1f}" y="{y - 3:.1f}" width="6" height="6" fill="{color}">{inside}</rect>'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.2" fill="{color}">{inside}</circle>'


def _legend(curves: Sequence[Curve]) -> Iterator[str]:
    """Name the curves below the title, inside the axes, where goodput is still low."""
    for number, curve in enumerate(curves):
        color, dash = _look(number)
        y = _TOP + 78 + 16 * number
        yield f'<path class="curve" stroke="{color}"{dash} d="M{_LEFT + 12} {y}H{_LEFT + 44}"/>'
        yield _mark(number, _LEFT + 28, y, color)
        yield _text(_LEFT + 50, y + 4, curve.label)
