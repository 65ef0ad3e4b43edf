"""The levels of the IR, from the problem to the program."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from .program import Program
from .schedule import Forest, Schedule
from .spec import Problem
from .symmetric import SymmetricSchedule
from .symmetric_forest import SymmetricForest
from .symmetric_program import SymmetricProgram

if TYPE_CHECKING:
    from .one_sided.program import OneSided

__all__ = ["Executable", "Level", "Scheduled", "depth", "rows"]

#: schedules: as rows, as the rows of shard 0 and a group, as trees, or as the trees of some roots and a group
Scheduled: TypeAlias = Schedule | SymmetricSchedule | Forest | SymmetricForest
#: levels that the verifier executes and a file can contain
Executable: TypeAlias = "Scheduled | Program | SymmetricProgram | OneSided"
#: levels that a pass takes and gives; synthesis begins with a problem
Level: TypeAlias = "Problem | Executable"

#: the levels in the order of the pipeline; by name, because few runs need the last one
_DEPTHS = {
    "Problem": 0, "Schedule": 1, "SymmetricSchedule": 1, "Forest": 1, "SymmetricForest": 1, "Program": 2,
    "SymmetricProgram": 2, "OneSided": 3,
}  # fmt: skip


def depth(level: type) -> int:
    """Return where a level is in the pipeline: 0 problem, 1 schedules, 2 programs, 3 one-sided programs."""
    return _DEPTHS[level.__name__]


def rows(level: Executable) -> int:
    """Return the number of rows that an IR holds: transfers, edges of trees, instructions or operations.

    A template has its own rows, not those for which they stand.
    """
    if isinstance(level, Forest):
        return len(level.tree)
    if isinstance(level, SymmetricForest):
        return len(level.seed.tree)
    if isinstance(level, SymmetricSchedule):
        return len(level.seed)
    if isinstance(level, SymmetricProgram):
        return level.seed.num_instructions
    if isinstance(level, Schedule):
        return len(level)
    return len(getattr(level, "opcode", ()))  # a pass may have returned no IR; the check of its result says so
