"""The levels of the IR, from the problem to the program."""

from __future__ import annotations

from typing import TypeAlias

from .program import Program
from .schedule import Forest, Schedule
from .spec import Problem
from .symmetric import SymmetricSchedule

__all__ = ["Executable", "Level", "Scheduled"]

#: schedules: as rows, as the rows of shard 0 and a group, or as trees
Scheduled: TypeAlias = Schedule | SymmetricSchedule | Forest
#: levels that the verifier executes and a file can contain
Executable: TypeAlias = Scheduled | Program
#: levels that a pass takes and gives; synthesis begins with a problem
Level: TypeAlias = Problem | Executable
