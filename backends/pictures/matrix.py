"""The load of links as a matrix: rows send, columns receive. A square is as large and as dark as its load.

Large networks are folded: a row is a box, or a run of consecutive nodes. A cell then has the load of its busiest link.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import ceil, sqrt

import attrs
import numpy as np

from collc.ir.shown import counted
from collc.ir.topology import Topology

from .charts import WIDTH, head
from .layout import layout_of
from .lettering import shorten, width
from .networks import LEVELS, LinkLoads, level_of, title_of
from .svg import Element, Picture, element, group, line, rectangle, text

__all__ = ["Cell", "LoadMatrix", "load_picture"]

#: more nodes are folded
_MOST_ROWS = 64
_HEAD, _NAMES, _SIDE, _MOST_CELL = 76.0, 110.0, 24.0, 44.0


@attrs.frozen
class Cell:
    """The links from one group of nodes to another: their number, the largest load, and the longest time."""

    row: int
    column: int
    links: int
    share: Fraction
    busy: Fraction


@attrs.frozen(eq=False)
class LoadMatrix:
    """Groups of nodes with their names, and a cell for each two that are linked."""

    names: tuple[str, ...]
    members: tuple[tuple[int, ...], ...]
    cells: tuple[Cell, ...]

    @classmethod
    def of(cls, topology: Topology, loads: LinkLoads) -> LoadMatrix:
        """Return the matrix of a network; each node alone if they are few."""
        groups = _groups(topology)
        place = np.zeros(topology.num_nodes, dtype=np.int64)
        for number, (_, nodes) in enumerate(groups):
            place[list(nodes)] = number
        found: dict[tuple[int, int], Cell] = {}
        ends = zip(place[topology.src].tolist(), place[topology.dst].tolist(), strict=True)
        for link, key in enumerate(ends):
            before = found.get(key, Cell(*key, 0, Fraction(0), Fraction(0)))
            share, busy = max(before.share, loads.share[link]), max(before.busy, loads.busy[link])
            found[key] = Cell(*key, before.links + 1, share, busy)
        cells = tuple(found[key] for key in sorted(found))
        return cls(tuple(name for name, _ in groups), tuple(nodes for _, nodes in groups), cells)

    @property
    def folded(self) -> bool:
        """Whether a row stands for several nodes."""
        return any(len(nodes) > 1 for nodes in self.members)


def _groups(topology: Topology) -> list[tuple[str, tuple[int, ...]]]:
    """Return nodes alone, or boxes and the switches between them, or runs of nodes: at most ``_MOST_ROWS``."""
    names = topology.names
    if topology.num_nodes <= _MOST_ROWS:
        return [(names[node], (node,)) for node in range(topology.num_nodes)]
    layout = layout_of(topology)
    owned = {node for box in layout.boxes for node in box}
    others = [node for node in range(topology.num_nodes) if node not in owned]
    if layout.boxes and len(layout.boxes) + len(others) <= _MOST_ROWS:
        boxes = [(f"box {number}", tuple(box)) for number, box in enumerate(layout.boxes)]
        return boxes + [(names[node], (node,)) for node in others]
    size = ceil(topology.num_nodes / _MOST_ROWS)
    runs = [tuple(range(at, min(at + size, topology.num_nodes))) for at in range(0, topology.num_nodes, size)]
    return [(f"{names[run[0]]} .. {names[run[-1]]}", run) for run in runs]


def load_picture(
    topology: Topology, loads: LinkLoads, parts: Sequence[Sequence[int]] = (), cut: str = "", subtitle: str = ""
) -> Picture:
    """Return the matrix as a picture; ``parts`` are the nodes on one side of a cut, whose cells are outlined."""
    matrix = LoadMatrix.of(topology, loads)
    count = len(matrix.names)
    cell = min((WIDTH - _NAMES - _SIDE) / max(count, 1), _MOST_CELL)
    side = {node: place for place, part in enumerate(parts, 1) for node in part}
    folded = f" Rows are {'boxes' if matrix.names[0].startswith('box') else 'runs of nodes'}." if matrix.folded else ""
    words = f"{subtitle}{folded}"
    title = f"Load of the links of {title_of(topology)}"
    legend = _HEAD + _column_room(matrix, cell) + count * cell + 8
    body = (
        *head(title, words, WIDTH), *_axes(matrix, cell), *_cells(matrix, cell, loads, side),
        *_key(legend, cut if side else ""),
    )  # fmt: skip
    return Picture(WIDTH, legend + 48, title, f"{words} {_words(matrix)}", body, _STYLE)


_STYLE = (
    ".m{stroke:none}.m1{fill:#7fb2e0}.m2{fill:#4f93d2}.m3{fill:#2a72b8}.m4{fill:#17508c}.m5{fill:#0a2f5c}"
    ".idle{fill:none;stroke:#8a9098;stroke-dasharray:1 2}.edge{fill:none;stroke:#a00;stroke-width:2;stroke-dasharray:"
    "5 3}.picture text.over{fill:#fff}"
    "@media screen and (prefers-color-scheme:dark){.m1{fill:#2f5f92}.m2{fill:#3f7fbd}.m3{fill:#5d9fdc}.m4{fill:#8cc0f0}"
    ".m5{fill:#d0e6fb}.edge{stroke:#ff7b72}.picture text.over{fill:#16181c}}"
)


def _column_room(matrix: LoadMatrix, cell: float) -> float:
    """Return the height of the names of columns, which are upright unless they fit."""
    longest = max((width(name, "label") for name in matrix.names), default=0.0)
    if cell < 12:
        return 0.0
    return 16.0 if longest + 4 <= cell else min(longest, 100.0) + 8


def _axes(matrix: LoadMatrix, cell: float) -> Iterator[Element]:
    """Yield the names of rows and columns, and the grid; names that do not fit are left to the tips."""
    room, count = _column_room(matrix, cell), len(matrix.names)
    left, top, end = _NAMES, _HEAD + room, count * cell
    yield text(left, _HEAD - 14, "from the node of a row to the node of a column", "label")
    each = max(1, ceil(13 / cell)) if cell < 12 else 1
    for number, name in enumerate(matrix.names):
        at = number * cell + cell / 2
        if number % each == 0:
            yield text(left - 6, top + at + 4, shorten(name, _NAMES - 16, "label"), "label", "end", tip=name)
        if room:
            upright = room > 16
            short = shorten(name, 100.0, "label") if upright else name
            x = left + at + (4 if upright else 0)
            yield text(x, top - 6, short, "label", "start" if upright else "middle", tip=name, upward=upright)
    for number in range(count + 1):
        yield line(left, top + number * cell, left + end, top + number * cell, "grid")
        yield line(left + number * cell, top, left + number * cell, top + end, "grid")


def _cells(matrix: LoadMatrix, cell: float, loads: LinkLoads, side: dict[int, int]) -> Iterator[Element]:
    top = _HEAD + _column_room(matrix, cell)
    sides = [{side.get(node, 0) for node in nodes} for nodes in matrix.members]
    for one in matrix.cells:
        x, y = _NAMES + one.column * cell, top + one.row * cell
        yield _cell(one, matrix, x, y, cell, loads)
        a, b = sides[one.row], sides[one.column]
        if len(a) == len(b) == 1 and a != b:
            yield rectangle(x + 1, y + 1, cell - 2, cell - 2, "edge")


def _cell(one: Cell, matrix: LoadMatrix, x: float, y: float, cell: float, loads: LinkLoads) -> Element:
    level = level_of(one.busy, loads.most)
    part = one.busy / loads.most if loads.most else Fraction(0)
    size = max(cell * sqrt(part) * 0.92, 2.0)
    at = (x + (cell - size) / 2, y + (cell - size) / 2)
    shown = _shown(one, size - 4) if level and cell >= 24 else ""
    tip = (
        f"{matrix.names[one.row]} to {matrix.names[one.column]}: {counted(one.links, 'link')}, "
        f"{'the busiest carries' if one.links > 1 else 'carries'} {float(100 * one.share):.4g} % of the vector"
    )
    words = (text(x + cell / 2, y + cell / 2 + 4, shown, "label over", "middle"),) if shown else ()
    box = element(
        "rect", class_=f"m m{level}" if level else "idle", x=at[0], y=at[1], width=size, height=size,
        data_row=str(one.row), data_column=str(one.column), data_links=str(one.links), data_load=str(one.share),
    )  # fmt: skip
    return group(box, *words, tip=tip)


def _shown(one: Cell, room: float) -> str:
    """Return the percents of a cell in as many of three digits as fit; "" if none does."""
    written = (f"{float(100 * one.share):.{digits}g}" for digits in (3, 2, 1))
    return next((text for text in written if "e" not in text and width(text, "label") <= room), "")


def _key(top: float, cut: str) -> Iterator[Element]:
    x = 20.0
    for level in range(LEVELS + 1):
        size = 15 * sqrt(level / LEVELS) if level else 6.0
        yield rectangle(x + (15 - size) / 2, top + (15 - size) / 2, size, size, f"m m{level}" if level else "idle")
        words = f"{20 * level} %" if level else "nothing"
        yield text(x + 20, top + 12, words)
        x += 20 + width(words) + 14
    yield text(x, top + 12, "of the longest time; numbers are % of the vector")
    if cut:
        yield rectangle(20, top + 20, 15, 15, "edge")
        yield text(41, top + 32, shorten(f"crosses the cut of the bound: {cut}", WIDTH - 70))


def _words(matrix: LoadMatrix) -> str:
    """Return the busiest cells in words, for screen readers."""
    busiest = sorted(matrix.cells, key=lambda one: (-one.busy, one.row, one.column))[:5]
    found = [f"{matrix.names[one.row]} to {matrix.names[one.column]} {float(100 * one.share):.3g} %" for one in busiest]
    return f"The busiest: {'; '.join(found)}." if found else "No links."
