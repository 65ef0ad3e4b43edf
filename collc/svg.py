"""Pictures as SVG text: the same input is the same bytes; no script, no font but the viewer's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from xml.sax.saxutils import escape

import attrs

from collc.passes.finder.database import Row

from .finding import Frontier

__all__ = ["pareto_svg"]

_WIDTH, _HEIGHT = 900, 520
_LEFT, _RIGHT, _TOP, _BOTTOM = 80, 30, 56, 64
_STYLE = (
    "text{font-family:sans-serif;font-size:12px;fill:#222}.title{font-size:15px;font-weight:bold}"
    ".axis{stroke:#222;fill:none}.grid{stroke:#ddd}.bound{stroke:#a00;stroke-dasharray:6 4}"
    ".one{fill:#1f5fa8;stroke:#fff}.both{fill:#b8651b;stroke:#fff}.best{fill:none;stroke:#222;stroke-width:2}"
    ".front{stroke:#999;fill:none}.label{font-size:11px}"
)


@attrs.frozen
class _Scale:
    """From values to places on the page along one axis."""

    low: float
    high: float
    start: float
    end: float

    def place(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def pareto_svg(found: Frontier) -> str:
    """Return the frontier as a scatter plot: T_L in steps against T_B in M/B, the bounds as dashed lines.

    Circles are topologies with one-way links, squares those whose every link has its reverse; a ring marks the best.
    """
    across, up = _scales(found)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}"'
        f' viewBox="0 0 {_WIDTH} {_HEIGHT}">',
        f"<style>{_STYLE}</style>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
        *_title(found), *_axes(across, up), *_bounds(found, across, up), *_front(found.frontier, across, up),
        *_marks(found, across, up), *_labels(found.frontier, across, up), *_legend(),
        "</svg>",
    ]  # fmt: skip
    return "\n".join(parts) + "\n"


def _scales(found: Frontier) -> tuple[_Scale, _Scale]:
    steps, bandwidth = found.bound
    most = max([steps + 1, *(row.T_L for row in found.frontier)])
    values = [float(bandwidth), *(float(row.T_B) for row in found.frontier)]
    spread = max(max(values) - min(values), 0.02)
    across = _Scale(max(min([steps, *(row.T_L for row in found.frontier)]) - 1, 0), most + 1, _LEFT, _WIDTH - _RIGHT)
    up = _Scale(min(values) - 0.15 * spread, max(values) + 0.15 * spread, _HEIGHT - _BOTTOM, _TOP)
    return across, up


def _title(found: Frontier) -> Iterator[str]:
    wanted = found.wanted
    kind = "Bidirectional topologies" if wanted.bidirectional else "Topologies"
    yield _text(_LEFT, 24, f"{kind} of {wanted.nodes} nodes and degree {wanted.degree}", "title")
    yield _text(_LEFT, 42, "allgather; B is the total bandwidth out of a node, M the whole vector")


def _axes(across: _Scale, up: _Scale) -> Iterator[str]:
    bottom, left = _HEIGHT - _BOTTOM, _LEFT
    for value in _ticks(across, whole=True):
        x = across.place(value)
        yield _line(x, _TOP, x, bottom, "grid")
        yield _text(x, bottom + 18, f"{value:g}", anchor="middle")
    for value in _ticks(up):
        y = up.place(value)
        yield _line(left, y, _WIDTH - _RIGHT, y, "grid")
        yield _text(left - 8, y + 4, f"{value:.4g}", anchor="end")
    yield f'<path class="axis" d="M{left} {_TOP}V{bottom}H{_WIDTH - _RIGHT}"/>'
    yield _text((left + _WIDTH - _RIGHT) / 2, _HEIGHT - 24, "T_L (steps)", anchor="middle")
    middle = (_TOP + bottom) / 2
    yield f'<text transform="translate(20 {middle:g}) rotate(-90)" text-anchor="middle">T_B (M/B)</text>'


def _ticks(scale: _Scale, whole: bool = False) -> list[float]:
    """Return at most eleven round values within the scale."""
    span = scale.high - scale.low
    steps = (base * 10.0**power for power in range(-6, 6) for base in (1, 2, 5))
    step = next(step for step in steps if span / step <= 10 and (step >= 1 or not whole))
    first = int(-(-scale.low // step))
    return [k * step for k in range(first, int(scale.high // step) + 1)]


def _bounds(found: Frontier, across: _Scale, up: _Scale) -> Iterator[str]:
    steps, bandwidth = found.bound
    x, y = across.place(steps), up.place(float(bandwidth))
    yield _line(x, _TOP, x, _HEIGHT - _BOTTOM, "bound")
    yield _line(_LEFT, y, _WIDTH - _RIGHT, y, "bound")
    yield _text(x + 4, _TOP + 12, f"bound: {steps} steps")
    yield _text(_WIDTH - _RIGHT - 4, y + 14, f"bound: {bandwidth} M/B", anchor="end")


def _front(rows: Sequence[Row], across: _Scale, up: _Scale) -> Iterator[str]:
    """Draw the edge of what is reached: a staircase through the rows."""
    if not rows:
        return
    path = f"M{_xy(rows[0], across, up)}"
    least: Fraction = rows[0].T_B
    for row in rows[1:]:
        least = min(least, row.T_B)
        path += f"H{across.place(row.T_L):.1f}V{up.place(float(least)):.1f}"
    yield f'<path class="front" d="{path}"/>'


def _marks(found: Frontier, across: _Scale, up: _Scale) -> Iterator[str]:
    for row in found.frontier:
        x, y = across.place(row.T_L), up.place(float(row.T_B))
        tip = f"<title>{escape(row.expression)}: {row.T_L} steps, {row.T_B} M/B</title>"
        yield _mark(x, y, row.bidirectional, tip)
        if row is found.best:
            yield f'<circle class="best" cx="{x:.1f}" cy="{y:.1f}" r="10"/>'


def _mark(x: float, y: float, both: bool, tip: str = "") -> str:
    if both:
        return f'<rect class="both" x="{x - 5:.1f}" y="{y - 5:.1f}" width="10" height="10">{tip}</rect>'
    return f'<circle class="one" cx="{x:.1f}" cy="{y:.1f}" r="5.5">{tip}</circle>'


def _labels(rows: Sequence[Row], across: _Scale, up: _Scale) -> Iterator[str]:
    """Write each expression beside its mark, on the side with more room, no two on one line of text."""
    taken: list[float] = []
    for row in rows:
        x, y = across.place(row.T_L), up.place(float(row.T_B)) - 12
        while any(abs(y - other) < 13 for other in taken):
            y -= 13
        taken.append(y)
        right = x < (_LEFT + _WIDTH - _RIGHT) / 2
        text = row.expression if len(row.expression) <= 70 else row.expression[:67] + "..."
        yield _text(x + 10 if right else x - 10, y, text, "label", "start" if right else "end")


def _legend() -> Iterator[str]:
    y = _HEIGHT - 8
    yield _mark(_LEFT + 6, y - 4, False)
    yield _text(_LEFT + 18, y, "links one way")
    yield _mark(_LEFT + 126, y - 4, True)
    yield _text(_LEFT + 138, y, "every link has its reverse")
    yield f'<circle class="best" cx="{_LEFT + 306}" cy="{y - 4}" r="7"/>'
    yield _text(_LEFT + 320, y, "takes the least time")


def _xy(row: Row, across: _Scale, up: _Scale) -> str:
    return f"{across.place(row.T_L):.1f} {up.place(float(row.T_B)):.1f}"


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    name = f' class="{kind}"' if kind else ""
    return f'<text{name} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
