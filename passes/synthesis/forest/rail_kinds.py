"""Which boxes and which ranks of a cluster on rails are alike, so that they may send alike.

Boxes are of one kind if they are equal rank by rank: on the same rails, with links that hold as much, and as many trees
to send. Within the kinds, colour refinement joins ranks and rails that no difference is known of. There are few of
either if few parts of a network have failed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import attrs

from .rails import Rails

__all__ = ["Kind", "Kinds", "kinds"]


@attrs.frozen
class Kind:
    """Equal boxes by number; of each of their places (positions of ranks) the class, the rail, and ``ranks`` of the
    first box."""

    boxes: tuple[int, ...]
    ranks: tuple[int, ...]
    classes: tuple[int, ...]
    rails: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.boxes)


@attrs.frozen
class Kinds:
    """The kinds of boxes; ``kind_of`` every class, its first place, and how many places of its kind it has.

    ``on_rail[c][r]`` is how many places of class c are on rail r.
    """

    kinds: tuple[Kind, ...]
    kind_of: tuple[int, ...]
    place: tuple[int, ...]
    count: tuple[int, ...]
    on_rail: tuple[dict[int, int], ...]

    def mates(self, one: int, other: int) -> int:
        """Return how many places of a class are on the rail of a place of another."""
        rail = min(self.on_rail[one], default=-1)
        return self.on_rail[other].get(rail, 0)

    def pairs(self, one: int, other: int) -> int:
        """Return how many pairs of places of two classes are on the same rail."""
        return sum(count * self.on_rail[other].get(rail, 0) for rail, count in self.on_rail[one].items())

    def targets(self, kind: int, other: int) -> int:
        """Return how many boxes of another kind, or further ones of the same, a box sends to."""
        return len(self.kinds[other]) - (kind == other)


def kinds(found: Rails, room: Sequence[int], trees: Sequence[int] | None, alone: int = -1) -> Kinds:
    """Return what is alike; box ``alone`` is of a kind of its own."""
    same = dict[tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...], bool], list[int]]()
    for number, box in enumerate(found.cluster.boxes):
        ends = tuple(
            (found.rail[v], _room(room, found.cluster.up[v]), _room(room, found.cluster.down[v]),
             0 if trees is None else trees[v])
            for v in box.ranks
        )  # fmt: skip
        inside = tuple(tuple(room[link] for link in box.inside[v, u]) for v in box.ranks for u in box.ranks if u != v)
        same.setdefault((ends, inside, number == alone), []).append(number)
    ranks = [found.cluster.boxes[numbers[0]].ranks for numbers in same.values()]
    colours = _colours(found, room, ranks, [list(key[0]) for key in same])
    return _listed(found, list(same.values()), ranks, colours)


def _room(room: Sequence[int], link: int) -> int:
    return room[link] if link >= 0 else -1


def _colours(
    found: Rails, room: Sequence[int], boxes: Sequence[Sequence[int]], ends: Sequence[Sequence[tuple[int, ...]]]
) -> list[list[int]]:
    """Return the colour of every place of every kind, by refinement; if links between two colours hold different
    numbers, every place has a colour of its own."""
    pairs = [_inside(found, room, ranks) for ranks in boxes]
    colours = _numbered([[(kind, one[1:]) for one in row] for kind, row in enumerate(ends)])
    while True:
        rail = dict[int, list[int]]()
        for ranks, row in zip(boxes, colours, strict=True):
            for v, colour in zip(ranks, row, strict=True):
                rail.setdefault(found.rail[v], []).append(colour)
        finer = _numbered([
            [
                (row[i], sorted(rail[found.rail[v]]), sorted((*held[i, j], row[j]) for j in range(len(row)) if j != i))
                for i, v in enumerate(ranks)
            ]
            for ranks, row, held in zip(boxes, colours, pairs, strict=True)
        ])  # fmt: skip
        if max(map(max, finer)) == max(map(max, colours)):
            break
        colours = finer
    known = dict[tuple[int, int], object]()
    for row, held in zip(colours, pairs, strict=True):
        for (i, j), amounts in held.items():
            if known.setdefault((row[i], row[j]), amounts) != amounts:
                return _numbered([[(kind, i) for i in range(len(ranks))] for kind, ranks in enumerate(boxes)])
    return colours


def _inside(found: Rails, room: Sequence[int], ranks: Sequence[int]) -> dict[tuple[int, int], tuple[object, object]]:
    """Return what the routes between two places of a box hold, there and back."""
    inside = next(box.inside for box in found.cluster.boxes if box.ranks == ranks)
    return {
        (i, j): (tuple(room[link] for link in inside[v, u]), tuple(room[link] for link in inside[u, v]))
        for i, v in enumerate(ranks) for j, u in enumerate(ranks) if u != v
    }  # fmt: skip


def _numbered(rows: Sequence[Sequence[object]]) -> list[list[int]]:
    """Return numbers for keys, in order of first use."""
    number = dict[str, int]()
    return [[number.setdefault(repr(key), len(number)) for key in row] for row in rows]


def _listed(
    found: Rails, boxes: Sequence[Sequence[int]], ranks: Sequence[tuple[int, ...]], colours: Sequence[Sequence[int]]
) -> Kinds:
    every = tuple(
        Kind(tuple(numbers), first, tuple(row), tuple(found.rail[v] for v in first))
        for numbers, first, row in zip(boxes, ranks, colours, strict=True)
    )
    head, count = dict[int, tuple[int, int]](), Counter[int]()
    on_rail: dict[int, dict[int, int]] = {}
    for number, kind in enumerate(every):
        for place, (one, rail) in enumerate(zip(kind.classes, kind.rails, strict=True)):
            head.setdefault(one, (number, place))
            count[one] += 1
            rails_of = on_rail.setdefault(one, {})
            if rail >= 0:
                rails_of[rail] = rails_of.get(rail, 0) + 1
    classes = range(len(head))
    return Kinds(
        every, tuple(head[one][0] for one in classes), tuple(head[one][1] for one in classes),
        tuple(count[one] for one in classes), tuple(on_rail[one] for one in classes),
    )  # fmt: skip
