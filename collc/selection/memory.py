"""What `auto` has measured, so that another size of a collective repeats only what depends on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from collc.ir.diagnostic import CollcError

from ..messages.internal import is_fatal

if TYPE_CHECKING:
    from collc.ir.spec import Problem
    from collc.passes.base import Pass

    from .measure import MeasuredForest, Result

__all__ = ["Memory"]


@attrs.define(eq=False)
class Memory:
    """Results of one collective on one network at several sizes.

    A key is a scheduler with its options, and the size if its schedule depends on it. Refusals are remembered too.
    """

    results: dict[tuple[Pass, int | None], Result | CollcError] = attrs.Factory(dict)
    forests: dict[Pass, MeasuredForest] = attrs.Factory(dict)

    def result(self, scheduler: Pass, problem: Problem, make: Callable[[], Result]) -> Result:
        """Return the times and the schedule of a scheduler; raise its error if it does not apply."""
        key = scheduler, size_if_planned(scheduler, problem)
        if key not in self.results:
            try:
                self.results[key] = make()
            except CollcError as mistake:
                if is_fatal(mistake):
                    raise
                self.results[key] = mistake
        found = self.results[key]
        if isinstance(found, CollcError):
            raise found
        return found.of(problem.collective)


def size_if_planned(scheduler: Pass, problem: Problem) -> int | None:
    """Return the size of the problem if the scheduler's schedule may depend on it, else None."""
    return problem.collective.size if scheduler.plans_by_size(problem) else None
