"""Functions that take the root: one plan for each orbit of roots, and the tables that move it to the other roots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs
import numpy as np

from collc.ir.arrays import Array, Columns
from collc.ir.ranges import runs
from collc.ir.roots import Roots

from .cursor import Unreadable

__all__ = [
    "NONE", "TABLES", "TITLE", "Rooted", "in_file", "offsets", "read_roots", "root_columns", "root_differences",
    "shown_roots",
]  # fmt: skip

#: the comment before the tables, and their names
TITLE = (
    "Roots, one row a rank of each function that takes the root: the root whose plan is moved to it (itself: it has\n"
    " * a plan, or none), whether it is served, and the last move; the inverse of each move; where moves take ranks."
)
TABLES = ("root_from", "root_served", "root_move", "move_back", "move_image")

#: the columns of a plan of one root
NONE = (-1, 0, 0)

#: the most runs of ranks in a description
_MOST_RUNS = 8


@attrs.frozen
class Rooted:
    """The roots that a function of a file serves, of which some may have no plan in it; ``head`` names the function.

    Each of ``orbits`` plans is of one root; the function of the first of them, at ``place`` 0, has the name.
    """

    roots: Roots
    place: int
    orbits: int

    @property
    def is_head(self) -> bool:
        """Whether the C function is declared with this plan."""
        return self.place == 0


def in_file(plans: Sequence[tuple[Roots | None, int | None]]) -> list[Rooted | None]:
    """Return for each plan of a file, given its roots and its own root, the roots that its function serves.

    Plans of one function follow each other, each for another root.
    """
    families: list[tuple[Roots | None, list[int]]] = []
    for roots, own in plans:
        before, of = families[-1] if families else (None, [])
        if roots is not None and own is not None and before == roots and own not in of:
            of.append(own)
        else:
            families.append((roots, [] if own is None else [own]))
    found: list[Rooted | None] = []
    for roots, of in families:
        served = None if roots is None else roots.only(of)
        found += [None if served is None else Rooted(served, place, len(of)) for place in range(max(len(of), 1))]
    return found


def shown_roots(listed: Sequence[int]) -> str:
    """Return the roots for a description.

    >>> shown_roots([0, 1, 2, 3, 6]), shown_roots(range(0, 40, 2))
    ('ranks 0..4, 6', '20 ranks')
    """
    found = runs(listed)
    return f"ranks {', '.join(found)}" if len(found) <= _MOST_RUNS else f"{len(listed)} ranks"


def offsets(functions: Iterable[Rooted | None]) -> list[tuple[int, int, int]]:
    """Return for each plan the first row of its roots, its first move, and the first image; ``NONE`` for one root."""
    found, roots, moves, images = [], 0, 0, 0
    before = NONE
    for one in functions:
        if one is None:
            found.append(NONE)
            continue
        if one.is_head:
            before = (roots, moves, images)
            roots, moves = roots + one.roots.num_ranks, moves + len(one.roots.moves)
            images += one.roots.moves.size
        found.append(before)
    return found


def root_columns(functions: Iterable[Rooted | None]) -> Columns:
    """Return the tables of all functions that take the root; empty if there are none."""
    heads = [one.roots for one in functions if one is not None and one.is_head]
    if not heads:
        return {}
    served = []
    for roots in heads:
        column = np.zeros(roots.num_ranks, dtype=np.int64)
        column[list(roots.listed)] = 1
        served.append(column)
    columns = (
        [roots.source for roots in heads], served, [roots.move for roots in heads], [roots.back for roots in heads],
        [roots.moves.ravel() for roots in heads],
    )  # fmt: skip
    return {name: np.concatenate(parts) for name, parts in zip(TABLES, columns, strict=True)}


def read_roots(
    numbers: Mapping[str, Array], plans: Sequence[tuple[int, int, tuple[int, int, int]]], orbits: Mapping[int, int]
) -> dict[int, Roots]:
    """Return the roots of each function that takes the root, by its first plan, from the tables of a file.

    ``plans`` has for each plan its ranks, its root and its three columns; ``orbits`` the number of plans of each
    function, by the first. Raises Unreadable unless the tables have the sizes that the plans say.
    """
    rows = moves = images = 0
    found = dict[int, Roots]()
    heads = sorted(orbits)
    for n, head in enumerate(heads):
        ranks, _, columns = plans[head]
        of = plans[head : head + orbits[head]]
        if columns != (rows, moves, images) or any(one[2] != columns or one[0] != ranks for one in of):
            raise Unreadable(f"the plans from {head} on have other roots than their function")
        following = plans[heads[n + 1]][2] if n + 1 < len(heads) else None
        end = len(numbers["move_back"]) if following is None else following[1]
        if n + 1 == len(heads) and end == 1 and len(numbers["move_image"]) == 1:
            end = 0  # an empty table has one 0
        count = end - moves
        if count < 0:
            raise Unreadable("the moves of roots do not ascend")
        found[head] = _roots(numbers, ranks, of, (rows, moves, images), count)
        rows, moves, images = rows + ranks, moves + count, images + count * ranks
    for name, size in (("root_from", rows), ("root_served", rows), ("root_move", rows), ("move_back", moves),
                       ("move_image", images)):  # fmt: skip
        column = numbers[name]
        if len(column) != max(size, 1) or (size == 0 and column[0] != 0):
            raise Unreadable(f"`{name}` has {len(column)} numbers, needed {size}")
    return found


def _roots(
    numbers: Mapping[str, Array], ranks: int, plans: Sequence[tuple[int, int, tuple[int, int, int]]],
    first: tuple[int, int, int], count: int,
) -> Roots:  # fmt: skip
    rows, moves, images = first
    source, served, move = (numbers[name][rows : rows + ranks] for name in ("root_from", "root_served", "root_move"))
    image = numbers["move_image"][images : images + count * ranks]
    if len(source) != ranks or len(image) != count * ranks or not np.isin(served, (0, 1)).all():
        raise Unreadable("the tables of roots have other sizes than their plans, or serve a root neither 0 nor 1 times")
    listed = tuple(np.flatnonzero(served).tolist())
    planned = tuple(root for _, root, _ in plans)
    back = numbers["move_back"][moves : moves + count]
    return Roots("", listed, planned, source, move, image.reshape(count, ranks), back)


def root_differences(found: Roots, emitted: Roots) -> Iterator[str]:
    """Yield what is wrong with the roots that were read from a file, in themselves and against those emitted."""
    for flaw in found.flaws():
        yield flaw
        return
    for name in ("listed", "planned"):
        if getattr(found, name) != getattr(emitted, name):
            yield f"{name} roots are {getattr(found, name)}, not {getattr(emitted, name)}"
            return
    for root in found.listed:
        if not np.array_equal(found.images(root), emitted.images(root)):
            yield f"calls of root {root} move ranks otherwise"
            return
