"""Curves as SVG text: the same points give the same bytes, and nothing but this file is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import ceil, floor, log2, log10
from xml.sax.saxutils import escape

import attrs

__all__ = ["Curve", "plot"]

_WIDTH, _HEIGHT = 880, 500
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 210, 46, 56
_COLOURS = ("#1f5fa8", "#b8651b", "#2e7d4f", "#8a3d8f", "#a02c2c", "#5b5b5b")
_STYLE = (
    "text{font-family:sans-serif;font-size:12px;fill:#222}.title{font-size:15px;font-weight:bold}"
    ".axis{stroke:#222;fill:none}.grid{stroke:#ddd}.curve{fill:none;stroke-width:1.6}"
)


@attrs.frozen
class Curve:
    """A named line through points (x, y), x rising; ``dots`` marks each of them, ``dashed`` is for bounds."""

    name: str
    points: tuple[tuple[float, float], ...]
    dots: bool = False
    dashed: bool = False


@attrs.frozen
class _Axis:
    """From values to places on the page; ``log`` counts doublings."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def place(self, value: float) -> float:
        low, high, at = (log2(v) if self.log else v for v in (self.low, self.high, value))
        return self.start + (at - low) / (high - low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Powers of 2 (every other one where there are many), or multiples of 1, 2 or 5 times a power of ten."""
        if self.log:
            powers = range(ceil(log2(self.low) - 1e-9), floor(log2(self.high) + 1e-9) + 1)
            return [2.0**p for p in powers if len(powers) <= 12 or p % 2 == 0]
        rough = (self.high - self.low) / 6
        power = 10.0 ** floor(log10(rough))
        step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * 0.999)
        first = ceil(self.low / step - 1e-9)
        return [k * step for k in range(first, floor(self.high / step + 1e-9) + 1)]


def _number(value: float) -> str:
    return f"{value:.10g}"


def plot(
    title: str, across: str, up: str, curves: Sequence[Curve], log: bool = False, tick: Callable[[float], str] = _number
) -> str:
    """Return an SVG picture of the curves, with labelled axes (``log``: x counts doublings) and a legend.

    ``tick`` writes the numbers below x. Raises ValueError where there is no point at all.
    """
    xs = [x for curve in curves for x, _ in curve.points]
    ys = [y for curve in curves for _, y in curve.points]
    if not xs:
        raise ValueError("there is nothing to draw")
    margin = (max(ys) - min(ys)) * 0.05 or 1.0
    high = max(xs) if max(xs) > min(xs) else min(xs) * 2 + 1
    x = _Axis(min(xs), high, _LEFT, _WIDTH - _RIGHT, log)
    y = _Axis(min(ys) - margin, max(ys) + margin, _HEIGHT - _BOTTOM, _TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" '
        f'viewBox="0 0 {_WIDTH} {_HEIGHT}">',
        f"<style>{_STYLE}</style>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
        f'<text class="title" x="{_LEFT}" y="26">{escape(title)}</text>',
        *_axes(x, y, across, up, tick),
        *(part for k, curve in enumerate(curves) for part in _drawn(curve, _COLOURS[k % len(_COLOURS)], x, y)),
        *(part for k, curve in enumerate(curves) for part in _legend(curve, _COLOURS[k % len(_COLOURS)], k)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _axes(x: _Axis, y: _Axis, across: str, up: str, tick: Callable[[float], str]) -> Iterator[str]:
    for value in y.ticks():
        at = y.place(value)
        yield f'<line class="grid" x1="{x.start:.1f}" y1="{at:.1f}" x2="{x.end:.1f}" y2="{at:.1f}"/>'
        yield f'<text x="{x.start - 8:.1f}" y="{at + 4:.1f}" text-anchor="end">{value:.6g}</text>'
    for value in x.ticks():
        at = x.place(value)
        yield f'<line class="grid" x1="{at:.1f}" y1="{y.start:.1f}" x2="{at:.1f}" y2="{y.end:.1f}"/>'
        yield f'<text x="{at:.1f}" y="{y.start + 18:.1f}" text-anchor="middle">{tick(value)}</text>'
    yield f'<path class="axis" d="M{x.start:.1f} {y.end:.1f}V{y.start:.1f}H{x.end:.1f}"/>'
    yield f'<text x="{(x.start + x.end) / 2:.1f}" y="{_HEIGHT - 16}" text-anchor="middle">{escape(across)}</text>'
    middle = (y.start + y.end) / 2
    yield f'<text transform="translate(18 {middle:.1f}) rotate(-90)" text-anchor="middle">{escape(up)}</text>'


def _drawn(curve: Curve, colour: str, x: _Axis, y: _Axis) -> Iterator[str]:
    places = [f"{x.place(a):.1f} {y.place(b):.1f}" for a, b in curve.points]
    dash = ' stroke-dasharray="6 4"' if curve.dashed else ""
    if places:
        yield f'<path class="curve" stroke="{colour}"{dash} d="M{"L".join(places)}"/>'
    for place in places if curve.dots else ():
        a, b = place.split()
        yield f'<circle cx="{a}" cy="{b}" r="3" fill="{colour}"/>'


def _legend(curve: Curve, colour: str, row: int) -> Iterator[str]:
    x, y = _WIDTH - _RIGHT + 16, _TOP + 14 + row * 20
    dash = ' stroke-dasharray="6 4"' if curve.dashed else ""
    yield f'<line x1="{x}" y1="{y - 4}" x2="{x + 24}" y2="{y - 4}" stroke="{colour}" stroke-width="2"{dash}/>'
    yield f'<text x="{x + 30}" y="{y}">{escape(curve.name)}</text>'
