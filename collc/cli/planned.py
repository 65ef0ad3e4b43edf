"""What ``collc simulate`` simulates at each size: the schedule that a compilation for this size makes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import attrs

from collc.ir.costs.busbw import bus_factor_of
from collc.ir.costs.cost import Point
from collc.ir.schedule import Forest
from collc.ir.spec import Problem
from collc.passes.synthesis.groups.applied import messages_of

from ..costing.points import Row
from ..driver.result import CollectiveResult
from ..driver.sizes import algorithm_name, at_size, is_planned_by_size, num_pieces, scheduler_of

if TYPE_CHECKING:
    from collc.backends.simulator import Level as Simulable
    from collc.backends.simulator import Simulation, Traffic
    from collc.passes.base import Pass

__all__ = ["Compiled", "Listed", "Planned", "Read", "Sent", "Source"]


@attrs.frozen(eq=False)
class Listed:
    """What is simulated at one size, the number of its pieces, and the algorithm if `auto` chose it."""

    level: Simulable
    pieces: int = 1
    algorithm: str = ""


class Source(Protocol):
    """Where the schedules of a collective come from."""

    @property
    def by_size(self) -> bool:
        """Whether another size may have another schedule."""

    def takes(self, pieces: int) -> bool:
        """Return whether its schedules send the data in pieces, and this number of them can be given."""

    def at(self, size: int | None, pieces: int | None = None) -> Listed:
        """Return what is simulated at a size (None: as declared), in ``pieces`` pieces if given."""


@attrs.frozen(eq=False)
class Read:
    """The traffic of a program, the same at all sizes."""

    level: Simulable
    by_size: bool = False

    def takes(self, pieces: int) -> bool:
        """Return False: a program has the pieces that it has."""
        return False

    def at(self, size: int | None, pieces: int | None = None) -> Listed:
        """Return the traffic."""
        return Listed(self.level)


@attrs.frozen(eq=False)
class Sent:
    """The messages of a scheduler on a network that is too large for a schedule."""

    scheduler: Pass
    problem: Problem
    known: dict[tuple[int | None, int | None], Listed] = attrs.field(factory=dict, repr=False)

    @property
    def by_size(self) -> bool:
        """Whether another size may have other messages."""
        return self.scheduler.plans_by_size(self.problem)

    def takes(self, pieces: int) -> bool:
        """Return whether the number of pieces can be given."""
        return _takes(self.scheduler, pieces)

    def at(self, size: int | None, pieces: int | None = None) -> Listed:
        """Return the messages at a size (None: as declared), in ``pieces`` pieces if given."""
        if (size, pieces) not in self.known:
            self.known[size, pieces] = self._at(size, pieces)
        return self.known[size, pieces]

    def _at(self, size: int | None, pieces: int | None) -> Listed:
        problem = self.problem if size is None else self.problem.sized(size)
        scheduler = self.scheduler if pieces is None else self.scheduler.in_pieces(pieces)
        assert scheduler is not None, "its schedules have pieces"
        sent = messages_of(scheduler, problem)
        assert sent is not None, "such a collective is compiled"
        return Listed(sent, scheduler.num_pieces(problem) or 1)


@attrs.frozen(eq=False)
class Compiled:
    """A collective that was compiled to its schedule."""

    result: CollectiveResult

    @property
    def by_size(self) -> bool:
        """Whether another size may have another schedule."""
        return is_planned_by_size(self.result)

    def takes(self, pieces: int) -> bool:
        """Return whether the number of pieces can be given."""
        scheduler = _pipelined(self.result)
        return isinstance(self.result.schedule, Forest) or (scheduler is not None and _takes(scheduler, pieces))

    def at(self, size: int | None, pieces: int | None = None) -> Listed:
        """Return the schedule at a size (None: as declared), in ``pieces`` pieces if given."""
        from collc.backends.simulator import forest_traffic

        result = self.result if size is None else at_size(self.result, size)
        name, level = algorithm_name(result), result.schedule
        assert level is not None, "a collective without messages of its own was compiled to a schedule"
        if pieces is not None and isinstance(level, Forest):
            return Listed(forest_traffic(level, pieces), pieces, name)
        scheduler = None if pieces is None else _pipelined(result)
        if scheduler is None or pieces is None:
            return Listed(level, num_pieces(result), name)
        return attrs.evolve(Sent(scheduler, result.request.problem).at(None, pieces), algorithm=name)


def _takes(scheduler: Pass, pieces: int) -> bool:
    most = scheduler.most_pieces
    return scheduler.in_pieces(1) is not None and (most is None or pieces <= most)


def _pipelined(result: CollectiveResult) -> Pass | None:
    """Return the scheduler of a result if its schedule is sent in a number of pieces, and no other pass changed it."""
    scheduler = scheduler_of(result)
    alone = scheduler is not None and len(result.plans[0].passes) == 1
    return scheduler if alone and scheduler is not None and scheduler.in_pieces(1) is not None else None


@attrs.frozen(eq=False, slots=False)
class Planned:
    """The simulations of one collective: as declared, and at every one of ``sizes`` as it is planned for this size.

    ``counts`` are numbers of pieces to simulate instead of the planned one; the fastest counts at each size.
    """

    source: Source
    run: Callable[[Simulable], Simulation]
    sizes: tuple[int, ...]
    counts: Sequence[int] | None = None
    known: list[tuple[Simulable, Simulation]] = attrs.field(factory=list, repr=False)

    @cached_property
    def base(self) -> Simulation:
        """The collective as declared, in the number of pieces if one is given."""
        only = self.counts[0] if self.counts and len(self.counts) == 1 else None
        return self._simulated(self.source.at(None, only).level)

    @property
    def by_size(self) -> bool:
        """Whether the sizes have schedules of their own, besides the one as declared."""
        own = self.traffic.collective.size
        return self.source.by_size and self.counts is None and set(self.sizes) != {own}

    @property
    def traffic(self) -> Traffic:
        """What the collective sends, as declared."""
        return self.base.traffic

    @cached_property
    def at(self) -> dict[int, tuple[Simulation, Listed]]:
        """The fastest simulation at every size, and what was simulated."""
        return {size: self._at(size) for size in dict.fromkeys(self.sizes)}

    def _at(self, size: int) -> tuple[Simulation, Listed]:
        planned = size if self.source.by_size else None
        found = [self.source.at(planned, count) for count in (self.counts or (None,))]
        return min(((self._simulated(one.level), one) for one in found), key=lambda pair: pair[0].time(size))

    def _simulated(self, level: Simulable) -> Simulation:
        for other, simulation in self.known:
            if other is level:
                return simulation
        self.known.append((level, self.run(level)))
        return self.known[-1][1]

    def time(self, size: int) -> Fraction:
        """Return the exact seconds at a size; between the sizes those of the fastest schedule planned for any."""
        if size in self.at:
            return self.at[size][0].time(size)
        return min(one.time(size) for one, _ in self.at.values())

    def points(self, sizes: Iterable[int]) -> tuple[Point, ...]:
        """Return time (seconds) and M over time (bytes per second) at each size (bytes)."""
        times = [(size, self.time(size)) for size in sizes]
        return tuple(Point(size, float(time), float(size / time) if time else 0.0) for size, time in times)

    @property
    def rows(self) -> list[Row]:
        """The rows of the table by size."""
        collective = self.traffic.collective
        factor = bus_factor_of(collective)
        found = [(size, *self.at[size]) for size in self.sizes]
        return [
            Row(
                size, one.time(size), one.num_steps, what.pieces, factor, one.traffic.reduced, one.gamma,
                what.algorithm, one.waiting(True).time(size), one.waiting(False).time(size),
            )
            for size, one, what in found
        ]  # fmt: skip
