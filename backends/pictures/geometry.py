"""From the integer places of a layout to places on a page: one panel for a network, or one for each kind of box.

A link runs beside the straight line between its ends, on its right side, so that both directions are visible. In a grid
that wraps, a link around it is drawn as its two ends. A link that would pass other nodes bends around them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil, cos, hypot, pi, sin, sqrt

import attrs
import numpy as np

from collc.ir.topology import Topology

from .layout import Layout
from .lettering import Box

__all__ = ["Course", "Panel", "panels_of"]

Place = tuple[float, float]

_EDGE = 20.0
_MOST_UNIT, _MOST_ASLANT = 90.0, 170.0
#: the most that rows of a drawing take together
_MOST_DOWN = 620.0


@attrs.frozen
class Course:
    """A link on the page: one or two strokes, each from a start over a control place to an end; ``arrow`` is the head
    of its direction."""

    strokes: tuple[tuple[Place, Place, Place], ...]
    arrow: tuple[Place, Place, Place]


@attrs.frozen(eq=False)
class Panel:
    """Nodes with their places; ``unit`` is between neighbors in a row, ``near`` between the nearest.

    ``outlines`` are boxes with their names. ``local`` says whether links around the grid are drawn as ends.
    """

    at: Mapping[int, Place]
    unit: float
    near: float
    height: float
    wraps: bool = False
    grid: bool = False
    outlines: tuple[tuple[str, Box], ...] = ()

    @property
    def radius(self) -> float:
        """The radius of a rank."""
        return max(min(self.unit * 0.26, self.near * 0.36, 15.0), 2.2)

    def course(self, src: int, dst: int, nth: int) -> Course | None:
        """Return the nth parallel link from a node to another; None if neither is on the panel."""
        if src in self.at and dst in self.at:
            return self._between(self.at[src], self.at[dst], nth)
        if src not in self.at and dst not in self.at:
            return None
        return self._leaving(self.at[src if src in self.at else dst], src in self.at, nth)

    def _between(self, start: Place, end: Place, nth: int) -> Course:
        dx, dy = end[0] - start[0], end[1] - start[1]
        length, r = hypot(dx, dy) or 1.0, self.radius
        ux, uy = dx / length, dy / length
        off = min(r * 0.45, 4.0) + nth * min(r, 7.0)
        sx, sy = start[0] + ux * r * 0.8 - uy * off, start[1] + uy * r * 0.8 + ux * off
        ex, ey = end[0] - ux * r * 0.8 - uy * off, end[1] - uy * r * 0.8 + ux * off
        aslant = self.grid and abs(abs(dx) - abs(dy)) < 1
        local = self.near if aslant else self.unit
        aligned = self.grid and (abs(dx) < 1 or abs(dy) < 1 or aslant)
        if aligned and self.wraps and length > local * 2.4:
            return self._ends((sx, sy), (ex, ey), (ux, uy), local)
        bend = min(length * 0.18, local * 0.6) if aligned and length > local * 1.6 else nth * 6.0
        middle = ((sx + ex) / 2 - uy * bend, (sy + ey) / 2 + ux * bend)
        return Course((((sx, sy), middle, (ex, ey)),), _arrow((sx, sy), middle, (ex, ey), r))

    def _ends(self, start: Place, end: Place, along: Place, local: float) -> Course:
        """Return a link around the grid: it leaves the picture on one side, and comes back on the other."""
        (ux, uy), r = along, self.radius * 1.6
        far = r + local * 0.42
        out = ((start[0] - ux * r, start[1] - uy * r), (start[0] - ux * far, start[1] - uy * far))
        back = ((end[0] + ux * far, end[1] + uy * far), (end[0] + ux * r, end[1] + uy * r))
        strokes = tuple((a, ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2), b) for a, b in (out, back))
        return Course(strokes, _arrow(*strokes[1], self.radius))

    def _leaving(self, place: Place, outward: bool, nth: int) -> Course:
        """Return the end of a link between a box on the panel and another one, side by side with others."""
        side = (1 if nth % 2 else -1) * ceil(nth / 2) * 7.0 + (2.0 if outward else -2.0)
        near = (place[0] + side * 0.6, place[1] - self.radius * 0.8)
        far = (place[0] + side * 1.6, place[1] - self.radius - self.unit * 0.55)
        a, b = (near, far) if outward else (far, near)
        middle = ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2)
        return Course(((a, middle, b),), _arrow(a, middle, b, self.radius))


def _arrow(start: Place, middle: Place, end: Place, radius: float) -> tuple[Place, Place, Place]:
    """Return the head of an arrow two thirds along a curve: a wing, the tip, the other wing."""
    t, size = 0.66, max(min(radius * 0.5, 6.0), 2.0)
    u = 1 - t
    x, y = (u * u * start[i] + 2 * u * t * middle[i] + t * t * end[i] for i in (0, 1))
    dx, dy = (u * (middle[i] - start[i]) + t * (end[i] - middle[i]) for i in (0, 1))
    length = hypot(dx, dy) or 1.0
    dx, dy = dx / length * size, dy / length * size
    return (x - dx - dy * 0.7, y - dy + dx * 0.7), (x, y), (x - dx + dy * 0.7, y - dy - dx * 0.7)


# ---- panels


def panels_of(topology: Topology, layout: Layout, page: float) -> list[Panel]:
    """Return the panels of a network on a page of some width: one, or one for each kind of box; none if not drawn."""
    if layout.shape == "none":
        return []
    if layout.shape == "round":
        return [_round(topology, page)]
    if not layout.folded:
        outlines = enumerate(layout.boxes) if len(layout.boxes) > 1 else ()
        names = [(f"box {number}", box) for number, box in outlines]
        return [_placed(layout, list(range(topology.num_nodes)), page, layout.x, names)]
    return [_box_panel(topology, layout, number, page) for number in dict.fromkeys(layout.kind)]


def _round(topology: Topology, page: float) -> Panel:
    count = topology.num_nodes
    radius = min(max(110.0, count * 5.2, 48.0 * topology.num_links / max(count, 1)), (page - 2 * _EDGE) / 2 - 20)
    unit = round(min(2 * radius * sin(pi / max(count, 2)), _MOST_UNIT), 6)
    angles = [2 * pi * node / count - pi / 2 for node in range(count)]
    at = {  # rounded, so that the last digits of sines are the same on every machine
        node: (round(page / 2 + radius * cos(one), 6), round(radius + 2 * _EDGE + radius * sin(one), 6))
        for node, one in enumerate(angles)
    }
    return Panel(at, unit, unit, 2 * radius + 4 * _EDGE)


def _placed(
    layout: Layout, nodes: Sequence[int], page: float, columns: Sequence[float],
    boxes: Sequence[tuple[str, Sequence[int]]],
) -> Panel:  # fmt: skip
    """Return nodes at the columns and rows of a layout, scaled to the page."""
    xs, ys, cell = [columns[node] for node in nodes], [layout.y[node] for node in nodes], layout.cell
    left, top = min(xs), min(ys)
    across, down = (max(xs) - left) / cell, (max(ys) - top) / cell
    unit = min((page - 2 * _EDGE) / (across + 1), _MOST_ASLANT if cell > 1 else _MOST_UNIT)
    shift = (page - across * unit) / 2
    room = 96.0 if layout.shape == "boxes" else unit
    tall = max(min(room, _MOST_DOWN / (down + 1)), min(unit, 44.0))
    lift = _EDGE + (min(tall / 2, 14.0) if layout.shape == "boxes" else tall / 2)
    at = {
        node: (shift + (x - left) / cell * unit, lift + (y - top) / cell * tall)
        for node, x, y in zip(nodes, xs, ys, strict=True)
    }
    unit = min(unit, tall)
    near = unit / cell * sqrt(2) if cell > 1 else unit
    found = Panel(at, unit, near, down * tall + 2 * lift + 10, layout.wraps, layout.shape == "grid")
    return attrs.evolve(found, outlines=tuple(_outlines(found, boxes)))


def _outlines(panel: Panel, boxes: Sequence[tuple[str, Sequence[int]]]) -> Iterator[tuple[str, Box]]:
    pad = panel.radius + 7
    for name, nodes in boxes:
        xs, ys = zip(*(panel.at[node] for node in nodes), strict=True)
        wide = max(panel.radius * 1.7 + 3, pad)
        yield name, Box(min(xs) - wide, min(ys) - pad, max(xs) + wide, max(ys) + pad)


def _box_panel(topology: Topology, layout: Layout, number: int, page: float) -> Panel:
    """Return one box with the shared switches above it."""
    own = list(layout.boxes[number])
    above = _above(topology, layout, own)
    columns = [float(x) for x in layout.x]
    right = max(layout.x[node] for node in own) + 1
    rows: dict[int, list[int]] = {}
    for node in above:
        rows.setdefault(layout.y[node], []).append(node)
    for row in rows.values():
        for place, node in enumerate(row):
            spread = (place + 0.5) * right / len(row) - 0.5
            columns[node] = place - (len(row) - right) / 2 if len(row) > right else spread
    alike = layout.kind.count(layout.kind[number])
    name = f"box {number}, one of {alike} alike" if alike > 1 else f"box {number}, the only one of its kind"
    return _placed(layout, [*above, *own], page, columns, [(name, own)])


def _above(topology: Topology, layout: Layout, box: Sequence[int]) -> list[int]:
    """Return the shared switches that are linked to a box, and those above them."""
    owned = np.zeros(topology.num_nodes, dtype=bool)
    for each in layout.boxes:
        owned[list(each)] = True
    found, fresh = set[int](), set(box)
    ends = list(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))
    while fresh:
        reached = {b for a, b in ends if a in fresh and not owned[b] and layout.y[b] < layout.y[a]}
        fresh = reached - found
        found |= fresh
    return sorted(found)
