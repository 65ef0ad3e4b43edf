"""The ranks that relay in a schedule."""

from __future__ import annotations

from collc.ir.arrays import Array, distinct
from collc.ir.levels import Scheduled
from collc.ir.schedule import Forest
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.symmetric_forest import SymmetricForest

__all__ = ["relays_of"]


def relays_of(level: Scheduled) -> tuple[int, ...]:
    """Return the ranks that send or receive without being members of the collective, ascending."""
    members = set(level.collective.ranks.tolist())
    return tuple(rank for rank in distinct(_active(level)).tolist() if rank not in members)


def _active(level: Scheduled) -> Array:
    if isinstance(level, (SymmetricSchedule, SymmetricForest)):
        return level.collective.ranks
    return level.parent if isinstance(level, Forest) else level.src
