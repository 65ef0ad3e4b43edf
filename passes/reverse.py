"""Running a schedule backwards."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

import attrs
import numpy as np

from collc.ir.collective import Collective
from collc.ir.diagnostic import error
from collc.ir.schedule import Action, Forest, Routes, Schedule
from collc.ir.symmetric import SymmetricSchedule

from .base import Pass

__all__ = ["Reverse", "reverse", "reverse_forest"]


#: what is reversed stays what it is: a schedule, a template or a forest
Level = TypeVar("Level", bound=Schedule | SymmetricSchedule | Forest)


def reverse(schedule: Schedule) -> Schedule:
    """Return the reverse schedule, for the transpose topology (Definition 5, Theorem 1 of the direct-connect paper).

    Row ((v, C), (u, w), t) becomes ((v, C), (w, u), t_max - t + 1); copies become reductions and the other way
    round, so an allgather becomes a reduce-scatter, a broadcast a reduce, an allreduce an allreduce. Link numbers stay.
    """
    rows = np.arange(len(schedule))[::-1]
    # Rows of one step keep their order, so that reversing twice gives the same rows back.
    start = schedule.step_start.astype(np.int64)
    sizes = np.diff(start)[::-1]
    rows = np.repeat(start[:-1][::-1], sizes) + _count_up(sizes)
    last = schedule.num_steps - 1
    return attrs.evolve(
        schedule,
        topology=schedule.topology.transpose(),
        collective=schedule.collective.reversed(),
        step=last - schedule.step[rows].astype(np.int64),
        action=Action.REDUCE - schedule.action[rows],
        routes=_reverse_routes(schedule.routes),
        **{c: getattr(schedule, c)[rows] for c in ("shard", "lo", "hi", "route")},
    )


def reverse_forest(forest: Forest) -> Forest:
    """Return the reverse forest, for the transpose topology: every tree turned round, carrying what it did.

    An allgather becomes a reduce-scatter and so on, as with :func:`reverse`. Link numbers stay.
    """
    return attrs.evolve(
        forest, topology=forest.topology.transpose(), collective=forest.collective.reversed(),
        inward=1 - forest.inward.astype(np.int64), routes=_reverse_routes(forest.routes),
    )  # fmt: skip


def _count_up(sizes: np.ndarray) -> np.ndarray:
    """Return 0, 1, .., n-1 for every n of ``sizes``, one after the other."""
    ends = np.cumsum(sizes)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - sizes, sizes)


def _reverse_routes(routes: Routes) -> Routes:
    if routes.is_direct:
        return routes
    start = routes.start.astype(np.int64)
    place = np.repeat(start[1:] + start[:-1] - 1, np.diff(start)) - np.arange(len(routes.links))
    return Routes(start, routes.links[place])


@attrs.frozen
class Reverse(Pass):
    """Replace a schedule or forest by its reverse, on the same network where that equals its transpose.

    Partners respect a symmetry (parallel links pair up in order), so a template's reverse is its seed's.

    Raises C0505 where some link has no partner of the opposite direction.
    """

    name: ClassVar[str] = "reverse"
    summary: ClassVar[str] = "run a schedule backwards: allgather <-> reduce-scatter"
    takes: ClassVar[type] = Schedule
    gives: ClassVar[type] = Schedule
    takes_templates: ClassVar[bool] = True
    takes_forests: ClassVar[bool] = True

    def turned(self, collective: Collective, found: Collective) -> Collective:
        return collective.reversed()

    def run(self, ir: Level) -> Level:
        found: Any = SymmetricSchedule(self._rows(ir.seed)) if isinstance(ir, SymmetricSchedule) else self._rows(ir)
        return found

    def _rows(self, ir: Schedule | Forest) -> Any:
        partner = ir.topology.reverse_links
        if partner is None:
            raise error(
                "C0505",
                f"topology `{ir.topology.name}` has one-way links, so its schedules cannot be run backwards on it",
                hint="synthesize the other collective directly: bfb schedules it on the transpose",
            )
        back = reverse_forest(ir) if isinstance(ir, Forest) else reverse(ir)
        routes = back.routes
        if routes.is_direct:
            return attrs.evolve(back, topology=ir.topology, route=partner[back.route])
        return attrs.evolve(back, topology=ir.topology, routes=Routes(routes.start, partner[routes.links]))
