"""The schedule written by hand."""

from __future__ import annotations

from typing import ClassVar

import attrs

from collc.ir.schedule import Schedule
from collc.ir.spec import Problem

from ..base import Pass

__all__ = ["Steps"]


@attrs.frozen
class Steps(Pass):
    """Represent the schedule that the specification writes out; the driver puts it in this pass's place.

    A problem does not hold that schedule, so ``run`` raises NotImplementedError.
    """

    name: ClassVar[str] = "steps"
    summary: ClassVar[str] = "the schedule written by hand in the specification"
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = Schedule
    by_hand: ClassVar[bool] = True

    def run(self, ir: Problem) -> Schedule:
        raise NotImplementedError("a schedule written by hand comes with its request")
