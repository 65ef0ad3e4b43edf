"""Several roots of one collective: plans for one root of each orbit, and automorphisms that move them to the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np

from .arrays import Array

__all__ = ["Roots"]


def _numbers(given: Array | Sequence[int]) -> Array:
    found = np.array(given, dtype=np.int64)
    found.flags.writeable = False
    return found


_EQUAL = attrs.cmp_using(eq=np.array_equal)


@attrs.frozen
class Roots:
    """The roots of a collective that was declared with several.

    ``name`` is that of the declaration, ``listed`` the roots in ascending order, ``planned`` the first of each orbit,
    which has a plan of its own. The plan of root ``source[r]`` becomes that of root r by the automorphism ``move[r]``,
    a row of ``moves`` (images of the ranks); ``source[r] == r`` where no move leads to r, and ``move[r]`` is -1 there.
    ``back[k]`` is the row with the inverse of row k. Moves follow one another: the plan of ``source[r]`` may have been
    moved too.
    """

    name: str
    listed: tuple[int, ...]
    planned: tuple[int, ...]
    source: Array = attrs.field(converter=_numbers, eq=_EQUAL, repr=False)
    move: Array = attrs.field(converter=_numbers, eq=_EQUAL, repr=False)
    moves: Array = attrs.field(converter=_numbers, eq=_EQUAL, repr=False)
    back: Array = attrs.field(converter=_numbers, eq=_EQUAL, repr=False)

    @property
    def num_ranks(self) -> int:
        """Ranks of the network."""
        return len(self.source)

    def planned_for(self, root: int) -> int:
        """Return the root whose plan is moved to ``root``."""
        while self.source[root] != root:
            root = int(self.source[root])
        return root

    def orbit(self, planned: int) -> tuple[int, ...]:
        """Return the listed roots that the plan of one root serves, itself included."""
        return tuple(root for root in self.listed if self.planned_for(root) == planned)

    def only(self, planned: Sequence[int]) -> Roots:
        """Return the roots that the plans of some of the planned roots serve."""
        chosen = tuple(root for root in self.planned if root in planned)
        listed = tuple(root for root in self.listed if self.planned_for(root) in chosen)
        return attrs.evolve(self, listed=listed, planned=chosen)

    def images(self, root: int) -> Array:
        """Return for each rank of the plan the rank that takes its part in calls of ``root``: shape (ranks,)."""
        path = []
        while self.source[root] != root:
            path.append(int(self.move[root]))
            root = int(self.source[root])
        found = np.arange(self.num_ranks)
        for move in reversed(path):
            found = self.moves[move].astype(np.int64)[found]
        return found

    def flaws(self) -> Iterator[str]:
        """Yield what is wrong with the tables: a move that is no permutation, or leads to another root."""
        ranks, rows = self.num_ranks, len(self.moves)
        for column, low, high in ((self.source, 0, ranks), (self.move, -1, rows), (self.back, 0, rows)):
            if len(column) and not low <= int(column.min()) <= int(column.max()) < high:
                yield "the tables of roots have a number out of range"
                return
        if len(self.move) != ranks or len(self.back) != rows or (rows and self.moves.shape != (rows, ranks)):
            yield "the tables of roots differ in size"
            return
        everyone = np.arange(ranks)
        for k, image in enumerate(self.moves):
            if not np.array_equal(np.sort(image), everyone):
                yield f"move {k} is no permutation of the ranks"
                return
            if not np.array_equal(self.moves[self.back[k]][image], everyone):
                yield f"move {self.back[k]} does not take back move {k}"
        yield from self._wrong_paths()

    def _wrong_paths(self) -> Iterator[str]:
        for root in range(self.num_ranks):
            before, move = int(self.source[root]), int(self.move[root])
            if (move < 0) != (before == root):
                yield f"root {root} has a source, or a move, but not both"
                return
            if move >= 0 and self.moves[move][before] != root:
                yield f"the move of root {root} takes root {before} to {self.moves[move][before]}"
                return
        for root in self.listed:
            seen, at = 0, root
            while self.source[at] != at and seen <= self.num_ranks:
                seen, at = seen + 1, int(self.source[at])
            if at not in self.planned:
                yield f"the moves of root {root} lead back to {at}, which has no plan"
                return
