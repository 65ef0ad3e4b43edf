"""Bars of measured times with marks where the prediction is, as SVG text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log10
from xml.sax.saxutils import escape

__all__ = ["picture"]

Bar = tuple[str, str, float, float]
"""(group, algorithm, measured seconds, predicted seconds)."""

_WIDTH, _LEFT, _RIGHT, _TOP = 880, 150, 130, 64
_BAR, _GAP, _BOTTOM = 13, 12, 50
_COLOURS = {"bfb": "#1f5fa8", "ring": "#b8651b", "builtin": "#8a8a8a"}
_STYLE = (
    "text{font-family:sans-serif;font-size:12px;fill:#222}.title{font-size:15px;font-weight:bold}"
    ".axis{stroke:#222;fill:none}.grid{stroke:#ddd}.mark{stroke:#a00;stroke-width:2}.small{font-size:11px}"
)


def picture(title: str, bars: Sequence[Bar]) -> str:
    """Return horizontal bars by group, time on a logarithmic axis from a power of ten on."""
    groups = list(dict.fromkeys(group for group, *_ in bars))
    names = list(dict.fromkeys(name for _, name, *_ in bars))
    height = _TOP + len(bars) * _BAR + len(groups) * _GAP + _BOTTOM
    values = [value for *_, measured, predicted in bars for value in (measured, predicted)]
    low, high = log10(min(values)) // 1, log10(max(values) * 1.1)

    def across(value: float) -> float:
        return _LEFT + (log10(value) - low) / (high - low) * (_WIDTH - _LEFT - _RIGHT)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}">',
        f"<style>{_STYLE}</style>", f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>',
        f'<text class="title" x="20" y="24">{escape(title)}</text>', *_legend(names),
    ]  # fmt: skip
    for ten in range(int(low), int(high) + 1):
        for digit in (1, 2, 5):
            value = digit * 10.0**ten
            if value <= 10**high:
                x = across(value)
                parts.append(f'<line class="grid" x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{height - _BOTTOM}"/>')
                parts.append(f'<text x="{x:.1f}" y="{height - 32}" text-anchor="middle">{value * 1e3:g}</text>')
    parts.append(f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2}" y="{height - 12}" text-anchor="middle">ms</text>')
    y = float(_TOP)
    for group in groups:
        rows = [bar for bar in bars if bar[0] == group]
        middle = y + len(rows) * _BAR / 2 + 4
        parts.append(f'<text x="{_LEFT - 8}" y="{middle:.1f}" text-anchor="end">{escape(group)}</text>')
        for _, name, measured, predicted in rows:
            parts += _bar(name, y, _LEFT, across(measured), across(predicted), measured, predicted)
            y += _BAR
        y += _GAP
    parts.append(f'<path class="axis" d="M{_LEFT} {_TOP}V{height - _BOTTOM}H{_WIDTH - _RIGHT}"/>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _bar(name: str, y: float, left: float, end: float, mark: float, measured: float, predicted: float) -> Iterator[str]:
    colour = _COLOURS.get(name, "#555")
    label = f"{measured * 1e3:.0f}, {(measured / predicted - 1) * 100:+.1f} %"
    yield f'<rect x="{left}" y="{y:.1f}" width="{end - left:.1f}" height="{_BAR - 2}" fill="{colour}"/>'
    yield f'<line class="mark" x1="{mark:.1f}" y1="{y - 1:.1f}" x2="{mark:.1f}" y2="{y + _BAR - 1:.1f}"/>'
    yield f'<text class="small" x="{max(end, mark) + 6:.1f}" y="{y + _BAR - 3:.1f}">{label}</text>'


def _legend(names: Sequence[str]) -> Iterator[str]:
    x = 20
    for name in names:
        yield f'<rect x="{x}" y="38" width="14" height="10" fill="{_COLOURS.get(name, "#555")}"/>'
        yield f'<text x="{x + 20}" y="47">{escape(name)}</text>'
        x += 40 + 8 * len(name)
    yield f'<line class="mark" x1="{x + 6}" y1="36" x2="{x + 6}" y2="50"/>'
    yield f'<text x="{x + 14}" y="47">predicted; beside each bar: ms, and how much more than predicted</text>'
