"""The levels of the IR, from the problem to the program."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from .program import Program
from .schedule import Forest, Schedule
from .spec import Problem
from .symmetric import SymmetricSchedule

if TYPE_CHECKING:
    from .one_sided.program import OneSided

__all__ = ["Executable", "Level", "Scheduled", "depth"]

#: schedules: as rows, as the rows of shard 0 and a group, or as trees
Scheduled: TypeAlias = Schedule | SymmetricSchedule | Forest
#: levels that the verifier executes and a file can contain
Executable: TypeAlias = "Scheduled | Program | OneSided"
#: levels that a pass takes and gives; synthesis begins with a problem
Level: TypeAlias = "Problem | Executable"

#: the levels in the order of the pipeline; by name, because few runs need the last one
_DEPTHS = {"Problem": 0, "Schedule": 1, "SymmetricSchedule": 1, "Forest": 1, "Program": 2, "OneSided": 3}


def depth(level: type) -> int:
    """Return where a level is in the pipeline: 0 problem, 1 schedules, 2 programs, 3 one-sided programs."""
    return _DEPTHS[level.__name__]
