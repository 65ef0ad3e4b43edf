"""What schedulers have that divide their data into pieces, without a common base."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collc.ir.schedule import Forest
    from collc.ir.spec import Problem

__all__ = ["ChoosesPieces", "GrowsForest"]


@runtime_checkable
class ChoosesPieces(Protocol):
    """A scheduler with an option ``pipeline``, the number of pieces of its data."""

    def pieces(self, ir: Problem) -> int:
        """Return the number of pieces that it chooses."""
        raise NotImplementedError


@runtime_checkable
class GrowsForest(Protocol):
    """A scheduler whose trees are the same for any number of pieces."""

    def grow(self, problem: Problem) -> Forest:
        """Return the trees."""
        raise NotImplementedError
