"""The result of compiling a collective: data, and values that are computed on first use. No code here runs a pass."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import attrs

from collc.ir.costs.cost import Cost
from collc.ir.diagnostic import Diagnostic, error
from collc.ir.frozen import frozen
from collc.ir.levels import Executable, Scheduled
from collc.ir.program import Program
from collc.ir.schedule import Forest
from collc.ir.spec import CollectiveRequest
from collc.ir.verify import Report

from .plan import Plan, Recipe

if TYPE_CHECKING:
    from collc.backends.base import Artifact, Target, Window
    from collc.passes.synthesis.forest.allreduce_program import AllreduceBound

    from ..selection import Choice

__all__ = ["CollectiveResult", "Costs", "Deferred", "Emitted", "Observer", "Settings", "Timing"]

T = TypeVar("T")
Emitted = tuple["Target", "tuple[Artifact, ...]"]


class Observer(Protocol):
    """Watches a compilation, in the thread that compiles. It raises nothing, but for a BaseException to end the run."""

    def planned(self, collective: str, chain: Plan) -> None:
        """Take the passes that are about to run for a collective; called again if the driver changes them."""

    def begins(self, collective: str, step: str) -> None:
        """Take the name of a step before it runs: a pass, ``verify PASS``, ``emit TARGET`` or ``read back TARGET``."""

    def made(self, collective: str, step: str, ir: Executable) -> None:
        """Take the IR that a pass left, before it is verified."""


@frozen
class Settings:
    """The settings of a compilation, for all its collectives. ``verify`` is ``each``, ``full`` or ``off``."""

    recipe: Recipe = attrs.Factory(Recipe)
    verify: str = "each"
    until: type = Program


@frozen
class Timing:
    """Seconds that one step took: a pass, a verification, an emission."""

    collective: str
    step: str
    seconds: float


@frozen(eq=False)
class Deferred(Generic[T]):
    """A value that ``make`` returns; the first use calls it, later ones do not."""

    make: Callable[[], T]

    @cached_property
    def value(self) -> T:
        """The value; raises what ``make`` raises."""
        return self.make()


class Costs(Protocol):
    """The costs of a schedule, each computed on first use."""

    @property
    def cost(self) -> Cost:
        """Steps and bandwidth time, exact, with the best bounds that collc can prove."""

    @property
    def plain_cost(self) -> Cost:
        """``cost`` with the bounds that need no linear program."""

    @property
    def allreduce_bound(self) -> AllreduceBound | None:
        """The bound on allreduces by trees; None for other collectives and where the program for it is too large."""


@frozen(eq=False)
class CollectiveResult:
    """The result of one collective; ``schedule`` is the last schedule, None if compilation began with a program.

    ``made`` is the first target's program; without a target, ``later`` makes and verifies it. ``costs`` are the
    schedule's. ``forest`` is the last forest, in the number of pieces that was sent; None if there was none.
    ``emitted`` holds each target with its files, the main one first; ``reports`` the findings of the verifier and of
    the targets' readers; ``plans`` the passes that ran, for each target.

    ``choice`` says what `auto` compared. For a range of sizes, ``algorithms`` are the results of all algorithms that
    are the fastest at some size; this result has the schedule and program of the first, and the files of all.
    """

    name: str
    request: CollectiveRequest
    settings: Settings
    schedule: Scheduled | None
    made: Program | None
    later: Deferred[Program | None] | None = None
    costs: Costs | None = None
    emitted: tuple[Emitted, ...] = ()
    reports: tuple[Report, ...] = ()
    timings: tuple[Timing, ...] = ()
    plans: tuple[Plan, ...] = ()
    forest: Forest | None = None
    choice: Choice | None = None
    window: Window | None = None
    algorithms: tuple[CollectiveResult, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    remarks: tuple[str, ...] = ()
    selected: tuple[tuple[Target, Executable], ...] = ()

    @property
    def each(self) -> tuple[CollectiveResult, ...]:
        """The results of all algorithms of a range of sizes; this result alone if there is one algorithm."""
        return self.algorithms or (self,)

    @property
    def artifacts(self) -> tuple[Artifact, ...]:
        """All files, in the order of targets."""
        return tuple(artifact for _, files in self.emitted for artifact in files)

    @property
    def program(self) -> Program | None:
        """The first target's program; without a target, it is made and verified on first use."""
        return self.made if self.made is not None or self.later is None else self.later.value

    @property
    def cost(self) -> Cost:
        """T_L, T_B, their bounds and the rest, exact; raises C0019 if there is no schedule.

        A schedule that came from a forest has the forest's values too.
        """
        return self._costs.cost

    @property
    def plain_cost(self) -> Cost:
        """``cost`` with the bounds that need no linear program."""
        return self._costs.plain_cost

    @property
    def allreduce_bound(self) -> AllreduceBound | None:
        """The bound on allreduces by trees; None for other collectives and if the linear program is too large."""
        return None if self.costs is None else self.costs.allreduce_bound

    @property
    def _costs(self) -> Costs:
        if self.costs is None:
            raise error("C0019", f"`{self.name}` was compiled from a program, which has no cost of its own")
        return self.costs
