"""How many trees the ranks of a cluster with odd boxes have."""

from __future__ import annotations

import attrs

from .odd_boxes import OddBoxes

__all__ = ["Supply"]


@attrs.frozen
class Supply:
    """The trees of every rank of an alike box, and of every odd rank; ``both`` if they are used in both directions.

    Then a link and its reverse carry no more together than one of them holds.
    """

    alike: int
    odd: tuple[int, ...]
    both: bool = False

    def entering(self, odd: OddBoxes) -> int:
        """Return the trees that enter an odd part from the ranks of one alike box."""
        return self.alike * odd.alike.num_ranks

    def total(self, odd: OddBoxes) -> int:
        """Return the trees of all ranks."""
        return self.entering(odd) * odd.alike.count + sum(self.odd)
