"""Reverse a schedule: run it backwards."""

from __future__ import annotations

from typing import ClassVar, overload

import attrs
import numpy as np

from collc.ir.collective import Collective
from collc.ir.diagnostic import error
from collc.ir.frozen import frozen
from collc.ir.levels import Scheduled
from collc.ir.ragged import ranges
from collc.ir.schedule import Action, Forest, Routes, Schedule
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.symmetric_forest import SymmetricForest

from ..base import Pass

__all__ = ["Reverse", "reverse", "reverse_forest"]


def reverse(schedule: Schedule) -> Schedule:
    """Return the reverse schedule, for the transpose topology (Definition 5, Theorem 1 of the direct-connect paper).

    Row ((v, C), (u, w), t) becomes ((v, C), (w, u), t_max - t + 1). Copies become reductions and vice versa. So an
    allgather becomes a reduce-scatter, a broadcast a reduce, an allreduce an allreduce. Link numbers do not change.
    """
    # Rows of one step keep their order, so that reversing twice gives the same rows back.
    start = schedule.step_start.astype(np.int64)
    sizes = np.diff(start)[::-1]
    rows = ranges(start[:-1][::-1], sizes)
    last = schedule.num_steps - 1
    return attrs.evolve(
        schedule,
        topology=schedule.topology.transpose(),
        collective=schedule.collective.reversed(),
        step=last - schedule.step[rows].astype(np.int64),
        action=Action.REDUCE - schedule.action[rows],
        placement=None,
        routes=_reverse_routes(schedule.routes),
        **{c: getattr(schedule, c)[rows] for c in ("shard", "lo", "hi", "route")},
    )


def reverse_forest(forest: Forest) -> Forest:
    """Return the reverse forest, for the transpose topology: every tree reversed, with the same share.

    An allgather becomes a reduce-scatter and so on, as with :func:`reverse`. Link numbers do not change.
    """
    return attrs.evolve(
        forest, topology=forest.topology.transpose(), collective=forest.collective.reversed(),
        inward=1 - forest.inward.astype(np.int64), routes=_reverse_routes(forest.routes),
    )  # fmt: skip


def _reverse_routes(routes: Routes) -> Routes:
    if routes.is_direct:
        return routes
    start = routes.start.astype(np.int64)
    place = np.repeat(start[1:] + start[:-1] - 1, routes.lengths) - np.arange(len(routes.links))
    return Routes(start, routes.links[place])


@frozen
class Reverse(Pass):
    """Replace a schedule or forest by its reverse, on the same network, which must equal its transpose.

    The opposite link respects a symmetry (parallel links pair in order), so a template's reverse is its seed's.

    Raises C0505 if some link has no link of the same kind in the opposite direction.
    """

    name: ClassVar[str] = "reverse"
    summary: ClassVar[str] = "run a schedule backwards: allgather <-> reduce-scatter"
    takes: ClassVar[type] = Schedule
    gives: ClassVar[type] = Schedule
    takes_templates: ClassVar[bool] = True
    takes_forests: ClassVar[bool] = True

    def turned(self, collective: Collective, found: Collective) -> Collective:
        return collective.reversed()

    @overload
    def run(self, ir: Schedule) -> Schedule: ...
    @overload
    def run(self, ir: SymmetricSchedule) -> SymmetricSchedule: ...
    @overload
    def run(self, ir: Forest) -> Forest: ...
    def run(self, ir: Scheduled) -> Scheduled:
        if isinstance(ir, SymmetricSchedule):
            return attrs.evolve(ir, seed=self._rows(ir.seed))
        return self._rows(ir.unfold() if isinstance(ir, SymmetricForest) else ir)

    @overload
    def _rows(self, ir: Schedule) -> Schedule: ...
    @overload
    def _rows(self, ir: Forest) -> Forest: ...
    def _rows(self, ir: Schedule | Forest) -> Schedule | Forest:
        partner = ir.topology.reverse_links
        if partner is None:
            raise error(
                "C0505",
                f"topology `{ir.topology.name}` has one-way links, so its schedules cannot be run backwards on it",
                hint="schedule the other collective directly: `bfb` does so on the transpose",
            )
        back = reverse_forest(ir) if isinstance(ir, Forest) else reverse(ir)
        routes = back.routes
        if routes.is_direct:
            return attrs.evolve(back, topology=ir.topology, route=partner[back.route])
        return attrs.evolve(back, topology=ir.topology, routes=Routes(routes.start, partner[routes.links]))
