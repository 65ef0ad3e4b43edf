"""The state of one compilation of a collective: request, timings, reports, remarks; and how a pass is applied."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import attrs

from collc.backends.base import Window
from collc.ir.diagnostic import Diagnostic, Subject, error
from collc.ir.levels import Executable, Level, Scheduled
from collc.ir.program import Program
from collc.ir.progress import progress
from collc.ir.schedule import Forest, Schedule
from collc.ir.spec import CollectiveRequest, Problem
from collc.ir.symmetric_program import SymmetricProgram
from collc.ir.topology import Topology
from collc.ir.verify import Report
from collc.passes.applying import require_listed
from collc.passes.base import Pass, solving
from collc.passes.synthesis.groups.applied import scheduled

from .placing import Places
from .resolving import solver_of, unfolded_for
from .result import Observer, Settings
from .spans import Span, Timing, measured, noted, span

__all__ = ["Session"]

T = TypeVar("T")


@attrs.define(eq=False)
class Session:
    """One compilation: the request, its timings and its reports.

    Without ``start``, an IR that was read, the result must be the requested collective. ``ready`` are schedules that
    `auto` made already, by the pass that makes them; if it is given, the user set none of the scheduler's options. With
    a ``window``, files are for calls of these sizes.
    """

    request: CollectiveRequest
    settings: Settings
    observer: Observer | None = None
    start: Executable | None = None
    ready: Mapping[Pass, Scheduled] | None = None
    window: Window | None = None
    warnings: list[Diagnostic] = attrs.Factory(list)
    remarks: list[str] = attrs.Factory(list)  # of passes about their choices
    reports: list[Report] = attrs.Factory(list)
    timings: list[Timing] = attrs.Factory(list)

    def trial(self) -> Session:
        """Return a session without observer and verification, for trying whether a plan works; its times count too."""
        settings = attrs.evolve(self.settings, verify="off")
        return Session(self.request, settings, None, self.start, self.ready, timings=self.timings)

    @property
    def first(self) -> Level:
        """The IR that compilation begins with."""
        return self.request.problem if self.start is None else self.start

    @property
    def network(self) -> Topology | None:
        """The requested network; None for a program that was read, which has none."""
        return self.first.topology if isinstance(self.first, (Problem, Scheduled)) else None

    @property
    def unset_options(self) -> frozenset[str]:
        """The scheduler's options that the user did not write, by the names of their fields."""
        given = self.request.schedule.options if self.ready is not None else ()
        return frozenset(option.name.replace("-", "_") for option in given)

    def timed(
        self, step: str, work: Callable[[], T], rows: Callable[[T], int] | None = None, kind: str = "check"
    ) -> T:  # fmt: skip
        """Return what a step returns, and note its time; ``rows`` returns the size of the IR that a pass leaves."""
        if self.observer:
            self.observer.begins(self.request.name, step)
        else:
            progress(f"trying {step}")
        # The span of a pass, with its checks inside, is the runner's.
        spent: Span | None = None
        try:
            with span(step, kind) if rows is None else measured(step, "pass") as spent:
                result = work()
            spent.rows = None if rows is None else rows(result)
        finally:
            # The step in which a run ends by an exception has a row too, the last.
            if spent is not None:
                self.timings.append(noted(self.request.name, spent))
        return result

    @property
    def places(self) -> Places:
        """The places of mistakes."""
        return Places(self.request, self.settings.recipe.elements or ())

    def apply(self, passes: Sequence[Pass], count: int, ir: Level) -> Executable:
        """Run pass number ``count``.

        A schedule written by hand comes from the request. A template is unfolded for passes that take none. A pass that
        may ask for another schedule gets a solver.
        """
        this = passes[count]
        if this.by_hand and isinstance(ir, Problem):
            return self._by_hand()
        if isinstance(ir, Problem) and self.ready and this in self.ready:
            return self.ready[this]
        if isinstance(ir, Problem):
            require_listed(this.name, ir)
        with solving(solver_of(passes[:count], self.request.problem) if this.resolves else None):
            after = scheduled(this, ir) if isinstance(ir, Problem) else this.run(unfolded_for(this, ir))
        # Passes know no names of collectives; files need them.
        if isinstance(after, SymmetricProgram | Program):
            return after.renamed(self.request.name)
        if type(after).__name__ == "OneSided":
            return attrs.evolve(after, name=self.request.name)  # type: ignore[arg-type]  # it has a name
        return after

    def again(self, passes: Sequence[Pass], count: int, ir: Level) -> Executable:
        """Run a pass once more, telling the observer first, which ends the compilation if a signal has arrived."""
        if self.observer:
            self.observer.begins(self.request.name, passes[count].name)
        return self.apply(passes, count, ir)

    def _by_hand(self) -> Schedule | Forest:
        if self.request.schedule.schedule is None:
            raise error(
                "C0014",
                f"`{self.request.name}` has no schedule written by hand",
                hint=f"write `schedule {self.request.name} using steps {{ ... }}`",
                exit_status=2,
                about=(Subject.SCHEDULER, Subject.COLLECTIVE),
            )
        return self.request.schedule.schedule
