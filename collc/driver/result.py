"""The result of compiling a collective: data, and values that are computed on first use. No code here runs a pass."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import attrs

from collc.ir.diagnostic import CollcError, Diagnostic, error
from collc.ir.frozen import frozen
from collc.ir.program import Program
from collc.ir.shown import clipped, counted, shown
from collc.ir.symmetric_program import AnyProgram

from .plan import Plan, Recipe

if TYPE_CHECKING:
    from fractions import Fraction

    import pandas

    from collc.backends.base import Artifact, Target, Window
    from collc.frontends.coll.faults import Broken, Fault
    from collc.ir.costs.cost import Cost
    from collc.ir.levels import Executable, Scheduled
    from collc.ir.schedule import Forest
    from collc.ir.spec import CollectiveRequest
    from collc.ir.symmetric_forest import SymmetricForest
    from collc.ir.topology import Topology
    from collc.ir.verify import Report
    from collc.passes.synthesis.forest.allreduce_program import AllreduceBound, ReachedBound

    from ..selection import Algorithm, Choice, Memory
    from .later import Deferred
    from .replan import FaultCost
    from .simulated import Simulated
    from .spans import Timing

__all__ = [
    "CollectiveResult",
    "CompiledKey",
    "Costs",
    "Emitted",
    "Kept",
    "Observer",
    "Replan",
    "Settings",
]

#: up to this number of ranks a ``repr`` has the cost, which takes milliseconds
_COSTED_RANKS = 64

Emitted = tuple["Target", "tuple[Artifact, ...]"]


class Observer(Protocol):
    """Watches a compilation, in the thread that compiles. It raises only a BaseException, which ends the run."""

    def planned(self, collective: str, chain: Plan) -> None:
        """Take the passes that are about to run for a collective; called again if the driver changes them."""

    def begins(self, collective: str, step: str) -> None:
        """Take the name of a step before it runs: a pass, ``verify PASS``, ``emit TARGET`` or ``read back TARGET``."""

    def finished(self, collective: str, step: str, ir: Executable) -> None:
        """Take the IR after a pass, before it is verified."""


@frozen
class Settings:
    """The settings of a compilation, for all its collectives. ``verify`` is ``each``, ``full`` or ``off``.

    ``remembers`` is whether results keep what `auto` has measured, for :func:`.sizes.at_size`; ``keeps_last`` whether
    they keep the last IR of every target, for :func:`.relabelling.relabelled_files`. ``hints`` is whether the message
    of a limit names a number that fits, which takes trials.
    """

    recipe: Recipe = attrs.Factory(Recipe)
    verify: str = "each"
    until: type = Program
    remembers: bool = False
    keeps_last: bool = False
    hints: bool = True


class Costs(Protocol):
    """The costs of a schedule, each computed on first use."""

    @property
    def cost(self) -> Cost:
        """Steps and bandwidth time, exact, with the best bounds that collc can prove."""

    @property
    def plain_cost(self) -> Cost:
        """``cost`` with the bounds that need no linear program."""

    @property
    def allreduce_bound(self) -> AllreduceBound | ReachedBound | None:
        """The bound on allreduces by trees; None for other collectives, and if the program for it is too large."""


@frozen(eq=False)
class CollectiveResult:
    """The result of one collective; ``schedule`` is the last schedule, None if compilation began with a program.

    ``made`` is the first target's program; without a target, ``later`` makes and verifies it. ``costs`` are the
    schedule's. ``forest`` is the last forest, in the number of pieces that was sent; None if there was none.
    ``emitted`` holds each target with its files, the main one first. ``reports`` are the findings of the verifier and
    of the targets' readers. ``plans`` are the passes that ran, for each target.

    ``choice`` lists the candidates of `auto`. For a range of sizes, ``algorithms`` are the results of all algorithms
    that are the fastest at some size. This result has the schedule and program of the first, and the files of all.
    ``kept`` is what `auto` has measured, and ``last`` the last IR of every target, if the settings keep them.
    ``replan`` has the plan before faults, if there were.

    A result from a cache has files, reports, warnings, remarks, choice and cost. Other values come from ``again``,
    which compiles the collective when the first of them is used.

    >>> import collc
    >>> grads = collc.compile_source("collective grads = allreduce on torus(3, 3);")["grads"]
    >>> grads.name, grads.cost.T_L, str(grads.cost.T_B), grads.program.num_ranks
    ('grads', 4, '16/9', 9)
    """

    name: str
    request: CollectiveRequest
    settings: Settings
    _schedule: Scheduled | None
    _made: AnyProgram | None
    later: Deferred[AnyProgram | None] | None = None
    costs: Costs | None = None
    emitted: tuple[Emitted, ...] = ()
    reports: tuple[Report, ...] = ()
    timings: tuple[Timing, ...] = ()
    _plans: tuple[Plan, ...] = ()
    _forest: Forest | SymmetricForest | None = None
    choice: Choice | None = None
    window: Window | None = None
    _algorithms: tuple[CollectiveResult, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    remarks: tuple[str, ...] = ()
    selected: tuple[tuple[Target, Executable], ...] = ()
    kept: Kept | None = None
    last: tuple[tuple[Target, Executable], ...] = ()
    replan: Replan | None = None
    again: Deferred[CollectiveResult] | None = None

    @property
    def schedule(self) -> Scheduled | None:
        """The last schedule; None if the compilation began with a program."""
        return self._schedule if self.again is None else self.again.value.schedule

    @property
    def made(self) -> AnyProgram | None:
        """The first target's program; None without such a target."""
        return self._made if self.again is None else self.again.value.made

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The passes that ran, for each target."""
        return self._plans if self.again is None else self.again.value.plans

    @property
    def forest(self) -> Forest | SymmetricForest | None:
        """The last forest, in the number of pieces that was sent; None if there was none."""
        return self._forest if self.again is None else self.again.value.forest

    @property
    def algorithms(self) -> tuple[CollectiveResult, ...]:
        """The results of the algorithms of a range of sizes; empty without a range."""
        return self._algorithms if self.again is None else self.again.value.algorithms

    @property
    def is_kept(self) -> bool:
        """Whether the files come from a cache."""
        return self.again is not None

    @property
    def each(self) -> tuple[CollectiveResult, ...]:
        """The results of all algorithms of a range of sizes; this result alone if there is one algorithm."""
        return self.algorithms or (self,)

    @property
    def artifacts(self) -> tuple[Artifact, ...]:
        """All files, in the order of targets."""
        return tuple(artifact for _, files in self.emitted for artifact in files)

    @property
    def program(self) -> AnyProgram | None:
        """The first target's program, of a large symmetric network of one rank; without a target, made on first use."""
        if self.again is not None:
            return self.again.value.program
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
    def faults(self) -> tuple[Fault, ...]:
        """The faults for which it was compiled again; empty if there are none."""
        return () if self.replan is None else self.replan.network.faults

    @property
    def cost_of_fault(self) -> FaultCost:
        """The times a byte before and after the faults, exact; raises C0019 without faults or without a schedule."""
        if self.replan is None:
            raise error("C0019", f"`{self.name}` was compiled without faults", hint="`collc.replan(result, faults)`")
        from .replan import FaultCost

        return FaultCost.between(self.replan.healthy.plain_cost, self.cost)

    @property
    def allreduce_bound(self) -> AllreduceBound | ReachedBound | None:
        """The bound on allreduces by trees; None for other collectives and if the linear program is too large."""
        return None if self.costs is None else self.costs.allreduce_bound

    def simulate(
        self,
        size: int | str | Iterable[int | str] | None = None,
        *,
        network: Topology | None = None,
        routing: Literal["as-scheduled", "minimal"] = "as-scheduled",
        latency: Literal["links", "swing", "hammingmesh"] = "links",
        alpha: Fraction | str | None = None,
        bandwidth: Fraction | str | None = None,
        run_ahead: bool = False,
        pieces: int | None = None,
    ) -> Simulated:
        """Simulate the schedule on the links; see :func:`collc.driver.simulated.simulated` for the arguments.

        >>> import collc
        >>> sums = collc.compile_source("collective sums = allreduce on biring(4);")["sums"]
        >>> [(point.size, f"{point.time:.3g}") for point in sums.simulate(["1KiB", "1MiB"]).points]
        [(1024, '4.01e-05'), (1048576, '0.000166')]
        """
        from .simulated import simulated

        if self.schedule is None:
            raise error("C0019", f"`{self.name}` was compiled {self._start}, and only schedules are simulated")
        return simulated(
            self.schedule, size, network=network, routing=routing, latency=latency, alpha=alpha, bandwidth=bandwidth,
            run_ahead=run_ahead, pieces=pieces,
        )  # fmt: skip

    @property
    def summary(self) -> str:
        """The collective, its topology and scheduler, and for up to 64 ranks its cost, in one line."""
        problem = self.request.problem
        ranks = problem.collective.num_ranks
        parts = [f"{problem.collective.name} on {clipped(problem.topology.name)}", counted(ranks, "rank")]
        if self.again is not None:
            return ", ".join([*parts, "from the cache"])
        if self._schedule is None:
            return ", ".join([*parts, self._start])
        return ", ".join([*parts, clipped(self._schedule.scheduler), *self._figures(ranks)])

    @property
    def _start(self) -> str:
        """What compilation began with, if that was no problem; otherwise that its targets need no schedule."""
        read = self._made is not None or self.later is not None
        return "from a program" if read else "for targets without a schedule"

    def _figures(self, ranks: int) -> tuple[str, ...]:
        if ranks > _COSTED_RANKS or self.costs is None:
            return ()
        try:
            cost = self.costs.plain_cost
        except CollcError:  # a repr raises nothing
            return ()
        rate = f"time_per_byte {cost.time_per_byte}" if cost.T_B is None else f"T_B {cost.T_B}"
        return f"T_L {cost.T_L}", rate

    def __repr__(self) -> str:
        return shown(self, f"{clipped(self.name)}: {self.summary}")

    def _repr_html_(self) -> str:
        """Return the summary and the files as a table, for notebooks."""
        from collc.ir.html import html_table

        files = [("file", f"{one.filename}, {one.target}, {len(one.content)} characters") for one in self.artifacts]
        return html_table(self.name, (), [("schedule", self.summary), *files])

    @property
    def row(self) -> dict[str, object]:
        """The values of its row of :meth:`collc.results.Result.to_dataframe`; the cost is empty without a schedule."""
        from .frames import row_of

        cost = None if self.costs is None else self.costs.cost
        return row_of(self.name, self.request.problem, [one.filename for one in self.artifacts], cost)

    def to_dataframe(self) -> pandas.DataFrame:
        """Return its row of :meth:`collc.results.Result.to_dataframe`; raise C0028 without pandas."""
        from .frames import frame_of

        return frame_of([self.row])

    @property
    def _costs(self) -> Costs:
        if self.costs is None:
            raise error("C0019", f"`{self.name}` was compiled {self._start}, which has no cost of its own")
        return self.costs


@frozen(eq=False)
class Replan:
    """The plan before faults, and what stayed of it.

    ``how``: ``kept`` (trees that no fault touches, and new ones), ``unchanged`` (a schedule written by hand, whose
    links are all left), ``recompiled`` (by the same scheduler) or ``auto`` (by another, for a ``reason``). ``kept`` and
    ``new`` count trees, of both directions together.
    """

    healthy: CollectiveResult
    network: Broken
    how: Literal["kept", "unchanged", "recompiled", "auto"]
    kept: int = 0
    new: int = 0
    reason: str = ""

    @property
    def ranks(self) -> tuple[int | None, ...]:
        """The number now of every rank before; None for a rank that is gone."""
        return tuple(None if now < 0 else now for now in self.network.rank.tolist())


#: an algorithm, the sizes of its calls, and the size that it was planned for
CompiledKey: TypeAlias = "tuple[Algorithm, Window | None, int | None]"


@attrs.define(eq=False)
class Kept:
    """What compilations of one collective by `auto` for several sizes share: request, measurements and results.

    A key of ``compiled`` has the size if what is compiled may depend on it.
    """

    request: CollectiveRequest
    memory: Memory
    compiled: dict[CompiledKey, CollectiveResult] = attrs.Factory(dict)
