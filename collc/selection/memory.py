"""What `auto` has measured, so that another size of a collective repeats only what depends on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import attrs

from collc.ir.diagnostic import CollcError

from ..messages.internal import is_fatal

if TYPE_CHECKING:
    from collc.ir.spec import Problem
    from collc.passes.base import Pass
    from collc.passes.synthesis.forest.front import Number

    from .measure import MeasuredForest, Result

__all__ = ["Memory"]

K = TypeVar("K")
T = TypeVar("T")


@attrs.define(eq=False)
class Memory:
    """Results of one collective on one network at several sizes, and on the network of its members without relays.

    A key is a scheduler with its options, and the size if its schedule depends on it. Refusals are remembered too.
    """

    results: dict[tuple[Pass, int | None], Result | CollcError] = attrs.Factory(dict)
    templates: dict[tuple[Pass, int | None], bool | CollcError] = attrs.Factory(dict)
    forests: dict[Pass, MeasuredForest | CollcError] = attrs.Factory(dict)
    numbers: dict[Pass, tuple[Number, ...]] = attrs.Factory(dict)
    beyond: dict[Pass, int] = attrs.Factory(dict)  # steps of work that are too few for trees
    _apart: Memory | None = None

    @property
    def apart(self) -> Memory:
        """The results on the network without relays."""
        if self._apart is None:
            self._apart = Memory()
        return self._apart

    def result(self, scheduler: Pass, problem: Problem, make: Callable[[], Result]) -> Result:
        """Return the times and the schedule of a scheduler; raise its error if it does not apply."""
        key = scheduler, size_if_planned(scheduler, problem)
        return _remembered(self.results, key, make).of(problem.collective)

    def gives_template(self, scheduler: Pass, problem: Problem) -> bool:
        """Return whether a scheduler with known messages gives a template; raise its error if it does not apply."""
        key = scheduler, size_if_planned(scheduler, problem)
        return _remembered(self.templates, key, lambda: scheduler.gives_template(problem))

    def forest(self, scheduler: Pass, make: Callable[[], MeasuredForest]) -> MeasuredForest:
        """Return the trees of a scheduler, for any size; raise its error if it does not apply."""
        return _remembered(self.forests, scheduler, make)

    def forest_within(
        self, scheduler: Pass, most: int, make: Callable[[], MeasuredForest | None]
    ) -> MeasuredForest | None:
        """Return the trees of a scheduler, or None if they take more than ``most`` steps of work."""
        known = self.forests.get(scheduler)
        if known is None and most > self.beyond.get(scheduler, -1):
            known = make()
            if known is None:
                self.beyond[scheduler] = most
            else:
                self.forests[scheduler] = known
        assert not isinstance(known, CollcError), "further numbers of trees raise nothing that is kept"
        return known if known is not None and known.work <= most else None

    def numbers_of(self, scheduler: Pass, make: Callable[[], tuple[Number, ...]]) -> tuple[Number, ...]:
        """Return the numbers of trees that a scheduler may try."""
        if scheduler not in self.numbers:
            self.numbers[scheduler] = make()
        return self.numbers[scheduler]

    def forget(self, mistake: CollcError) -> None:
        """Forget a refusal, so that the scheduler runs again."""
        _forget(self.results, mistake)
        _forget(self.forests, mistake)


def _forget(kept: dict[K, T | CollcError], mistake: CollcError) -> None:
    for key in [key for key, found in kept.items() if found is mistake]:
        del kept[key]


def _remembered(kept: dict[K, T | CollcError], key: K, make: Callable[[], T]) -> T:
    """Return what is kept for a key, made on first use; raise the error that was kept instead."""
    if key not in kept:
        try:
            kept[key] = make()
        except CollcError as mistake:
            if is_fatal(mistake):
                raise
            kept[key] = mistake
    found = kept[key]
    if isinstance(found, CollcError):
        raise found
    return found


def size_if_planned(scheduler: Pass, problem: Problem) -> int | None:
    """Return the size of the problem if the scheduler's schedule may depend on it, else None."""
    return problem.collective.size if scheduler.plans_by_size(problem) else None
