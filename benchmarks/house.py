"""The rooms of the package (its folders of modules), floor by floor: which room imports which.

    python benchmarks/house.py [TREE] [-o house.svg]

A room stands one floor above the highest room that it imports; rooms that import each other in a circle share a floor.
TREE is a source tree, this one unless given: `git worktree add /tmp/before COMMIT` makes one of another commit, so
that two can be compared. ``-o`` draws the rooms; a line says that the upper room imports the lower one. Imports that
follow from others are not drawn, but all are printed and counted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from collc.backends.pictures.lettering import width
from collc.backends.pictures.svg import Element, Picture, line, rectangle, text

_TREE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(_TREE / "tests" / "support"))

from module_graph import TOPS, Graph, circles, floors, modules_of, reached_by, room_graph  # noqa: E402

_STOREY, _BOX, _GAP, _EDGE, _HEAD = 62, 20, 12, 16, 44
_FONT = "label"
_TITLE = "A line joins a room to a lower one that it imports"


def listing(rooms: Graph) -> Iterator[str]:
    """Yield the lines that the script prints: floors from the top, each room with what it imports, then the sums."""
    floor = floors(rooms)
    for number in range(max(floor.values()), -1, -1):
        yield f"floor {number}"
        yield from (f"  {name} <- {', '.join(sorted(rooms[name])) or 'nothing'}" for name in _on(floor, number))
    round_ = circles(rooms)
    yield from (f"circle: {', '.join(circle)}" for circle in round_)
    arrows = sum(map(len, rooms.values()))
    circled = f"{len(round_)} circle{'s' * (len(round_) != 1)}"
    yield f"{len(rooms)} rooms on {max(floor.values()) + 1} floors, {arrows} arrows, {circled}"


def _on(floor: dict[str, int], number: int) -> list[str]:
    return sorted(name for name in floor if floor[name] == number)


def drawn(rooms: Graph) -> list[tuple[str, str]]:
    """Return the imports (importer, imported) that do not follow from others; rooms in a circle keep all of theirs."""
    reached = {name: reached_by(rooms, name) for name in rooms}
    return sorted(
        (name, other)
        for name, others in rooms.items()
        for other in others
        if not any(other in reached[via] and name not in reached[via] and via not in reached[other] for via in others)
    )


def _places(rooms: Graph, floor: dict[str, int]) -> dict[str, float]:
    """Return the left edge of every room's box; a floor's rooms are in the order of what they rest on."""
    rows = [_on(floor, number) for number in range(max(floor.values()) + 1)]
    most = max(sum(_wide(name) + _GAP for name in row) - _GAP for row in rows)
    left: dict[str, float] = {}
    lines = drawn(rooms)
    for row in rows:
        ends = {name: [left[b] + _wide(b) / 2 for a, b in lines if a == name and b in left] for name in row}
        row.sort(key=lambda name: (sum(ends[name]) / len(ends[name]) if ends[name] else 0.0, name))
        spare = (most - sum(map(_wide, row))) / (len(row) + 1)
        x = _EDGE + spare
        for name in row:
            left[name] = x
            x += _wide(name) + spare
    return left


def _wide(name: str) -> float:
    return width(name, _FONT) + 10


def picture(rooms: Graph) -> str:
    """Return an SVG file: a row of boxes for every floor, and a line from each room to those below that it needs."""
    floor = floors(rooms)
    left, highest = _places(rooms, floor), max(floor.values())
    top = {name: _HEAD + (highest - floor[name]) * _STOREY for name in rooms}
    body = [text(_EDGE, 20, _TITLE, "title"), *_lines(rooms, left, top), *_boxes(left, top)]
    right = max(max(left[name] + _wide(name) for name in rooms), _EDGE + width(_TITLE, "title"))
    description = f"{len(rooms)} rooms on {highest + 1} floors. Imports that follow from others are not drawn."
    return Picture(right + _EDGE, max(top.values()) + _BOX + _EDGE, "Rooms of collc", description, tuple(body)).file()


def _lines(rooms: Graph, left: Mapping[str, float], top: Mapping[str, int]) -> Iterator[Element]:
    middle = {name: left[name] + _wide(name) / 2 for name in rooms}
    for a, b in drawn(rooms):
        if top[a] < top[b]:
            yield line(middle[a], top[a] + _BOX, middle[b], top[b], _look(a), tip=f"{a} imports {b}")
    for circle in circles(rooms):
        for a, b in pairwise(circle):
            y = top[a] + _BOX / 2
            yield line(middle[a], y, middle[b], y, "thin bound", "3 2", f"{a} and {b} are in a circle")


def _boxes(left: Mapping[str, float], top: Mapping[str, int]) -> Iterator[Element]:
    for name in sorted(left):
        yield rectangle(left[name], top[name], _wide(name), _BOX, f"paper {_look(name)}")
        yield text(left[name] + _wide(name) / 2, top[name] + 14, name, _FONT, "middle")


def _look(name: str) -> str:
    return f"thin c{list(TOPS).index(name.split('/')[0])}"


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", metavar="TREE", nargs="?", type=Path, default=_TREE)
    parser.add_argument("-o", dest="output", metavar="FILE", type=Path, help="draw the rooms")
    options = parser.parse_args(given)
    rooms = room_graph(modules_of(options.tree))
    print("\n".join(listing(rooms)))
    if options.output:
        options.output.write_text(picture(rooms))


if __name__ == "__main__":
    main()
