"""The scheduler ``general``: any collective that copies, by trees of the least time, or in one step.

Two schedules are compared. In one step, every rank that needs a shard gets it straight from the shard's source; ranks
and switches on the way forward. If shards have several targets, trees let ranks pass on what they have received, which
takes less bandwidth and more steps; data in pieces keep all links busy. If every shard has one target, both are the
same: a multi-commodity flow, which no schedule beats. On small networks of ranks, custom collectives are also given to
the integer programs of ``exact``.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar

import attrs
import numpy as np

from collc.ir.collective import CUSTOM
from collc.ir.costs.cost import DEFAULT_ALPHA, unit_seconds
from collc.ir.costs.pieces import USUAL_SIZE
from collc.ir.diagnostic import CollcError, Excess, Subject, error, nearest
from collc.ir.schedule import Schedule
from collc.ir.spec import Problem

from ...applying import not_scheduled
from ...base import Pass, has_collector, remark
from ...knobs import CHUNKS, Knob
from ...ranges import Range
from ...schedule.step_times import time_per_byte
from ...schedulers import SCHEDULERS
from ..exact.scheduler import Exact
from .bound import MOST_SHARDS, general_bound
from .mix import Mix, best_mix, mixed
from .needs import Needs
from .shares import MOST_PARTS, portions
from .steps import height, in_pieces, rows_of

__all__ = ["General"]

_OBJECTIVES = ("time", "latency", "bandwidth")
_PIECES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
_MOST_CHUNKS, _SOME_PIECES = 4096, 16  # of all pieces together, but for a few pieces
_MOST_PIECES = 4096
_CLOSE = Fraction(1, 100)  # fewer pieces are worth so much bandwidth time
_MOST_ROWS = 1 << 20
_MOST_PLACES = 1 << 26  # pairs of a shard and a rank
_SMALL = 8  # ranks, up to which `exact` is tried
_EFFORT, _SIZE_LIMIT = 1, 1500


@attrs.frozen
class General(Pass):
    """Synthesize any collective that copies and does not reduce, also with shards of different sizes.

    ``objective``: ``time`` is the least predicted time at the collective's size (1 MiB without one), ``latency`` the
    fewest steps, ``bandwidth`` the least bandwidth time. The remark states the bound that prices of links prove.

    Raises C0301 (a target that cannot be reached), C0503 (another collective), C0545, C0562 (numbers of pieces and
    chunks), C0547 (another objective), C0548 (too large).
    """

    name: ClassVar[str] = "general"
    summary: ClassVar[str] = (
        "any collective that copies, by its pre- and postcondition, with a bound by prices of links"
    )
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = Schedule
    takes_fewer: ClassVar[bool] = True
    varies: ClassVar[tuple[Knob, ...]] = (CHUNKS,)

    objective: str = attrs.field(default="time", metadata={"help": "minimize: time, latency (steps) or bandwidth"})
    pieces: int | None = attrs.field(
        default=None,
        metadata={
            "help": "pieces that trees send one after another (default: the best by the objective)",
            "range": Range(1, _MOST_PIECES, "C0545", divides="shard"),
        },
    )
    chunks: int | None = attrs.field(
        default=None,
        metadata={
            "help": "maximum chunks per shard (default: the number with the least time)",
            "range": Range(1, MOST_PARTS, "C0562", divides="shard"),
        },
    )

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if self.objective not in _OBJECTIVES:
            allowed = "time, latency or bandwidth"
            message = f"option `objective` of scheduler `general` needs {allowed}, found `{self.objective}`"
            hint = nearest(self.objective, _OBJECTIVES) or "leave it out for the least time"
            raise error("C0547", message, hint=hint, option="objective")

    def with_chunks(self, chunks: int) -> General:
        return attrs.evolve(self, chunks=min(chunks, MOST_PARTS))

    def plans_by_size(self, ir: Problem) -> bool:
        return self.objective == "time" and self.pieces is None

    def require(self, ir: Problem) -> None:
        collective, takes = ir.collective, SCHEDULERS.own[self.name].collectives
        if collective.name not in takes:
            raise not_scheduled("C0503", self.name, ir, takes)
        shards = collective.num_shards
        places = shards * collective.num_ranks
        if collective.kind != "alltoall" and places > _MOST_PLACES:
            raise _too_large(ir, places, "pairs of a shard and a rank", _MOST_PLACES)
        if shards > MOST_SHARDS:
            raise _too_large(ir, shards, "shards", MOST_SHARDS)
        Needs.of(ir.topology, collective).require_routes()

    def run(self, ir: Problem) -> Schedule:
        self.require(ir)
        found = [_Option.of(schedule, ir) for schedule in self._schedules(ir)]
        best = min(found, key=self._rank)
        if best.time and has_collector():
            bound = general_bound(ir.topology, ir.collective)
            how = "the bound" if best.time == bound.value else f"{float(best.time / bound.value):.4f} times the bound"
            least = f"at least {float(bound.value):.6g} by {bound.name}"
            remark(f"general: time per byte {float(best.time):.6g} is {how}: {least}")
        return best.schedule

    def _rank(self, option: _Option) -> tuple[Fraction | int, ...]:
        if self.objective == "latency":
            return option.steps, option.time
        if self.objective == "bandwidth":
            return option.time, option.steps
        return option.seconds, option.steps

    def _schedules(self, ir: Problem) -> Iterator[Schedule]:
        needs = Needs.of(ir.topology, ir.collective)
        if needs.pointed:
            yield self._of_mix(mixed(ir.topology, ir.collective), ir)
            return
        if self.objective != "bandwidth" and self.pieces is None:
            yield self._of_mix(best_mix(needs.one_by_one()), ir)
        if self.objective != "latency" or self.pieces is not None:
            yield self._of_mix(mixed(ir.topology, ir.collective), ir)
            if self.pieces is None:
                yield from self._exact(ir)

    def _of_mix(self, mix: Mix, ir: Problem) -> Schedule:
        most = MOST_PARTS if self.chunks is None else self.chunks
        most = max(1, most // (self.pieces or 1))
        found = portions(mix, most)
        rows = rows_of(mix, found)
        if height(rows) <= 1:
            return in_pieces(mix, found, rows, self.pieces or 1)
        if self.pieces is not None:
            return in_pieces(mix, found, rows, self.pieces)
        few = max(_SOME_PIECES, _MOST_CHUNKS // found.parts)
        limit = few if self.chunks is None else self.chunks // found.parts
        tried = [
            _Option.of(in_pieces(mix, found, rows, pieces), ir)
            for pieces in _PIECES
            if pieces <= max(1, limit) and len(rows.row) * pieces <= _MOST_ROWS
        ]
        if self.objective == "bandwidth":
            least = min(option.time for option in tried)
            return next(option.schedule for option in tried if option.time <= least * (1 + _CLOSE))
        return min(tried or [_Option.of(in_pieces(mix, found, rows, 1), ir)], key=self._rank).schedule

    def _exact(self, ir: Problem) -> Iterator[Schedule]:
        """Yield the schedule of integer programs if the network is small and they end within a small effort."""
        small = ir.topology.is_direct and ir.topology.num_ranks <= _SMALL
        if not small or ir.collective.kind != CUSTOM or ir.collective.weights is not None:
            return
        try:
            found = Exact(
                objective="bandwidth", chunks=self.chunks, effort=_EFFORT, size_limit=_SIZE_LIMIT
            ).run(ir)  # fmt: skip
        except CollcError:  # too large, or undecided: counted limits
            return
        yield attrs.evolve(found, scheduler="general")


@attrs.frozen(eq=False)
class _Option:
    """A schedule, its bandwidth time per byte, and its predicted time at the collective's size."""

    schedule: Schedule
    steps: int
    time: Fraction
    seconds: Fraction

    @classmethod
    def of(cls, schedule: Schedule, ir: Problem) -> _Option:
        per_byte, steps = time_per_byte(schedule), schedule.num_steps
        size = ir.collective.size or USUAL_SIZE
        return cls(schedule, steps, per_byte, _latency(schedule) + per_byte * unit_seconds(ir.topology) * size)


def _latency(schedule: Schedule) -> Fraction:
    """Return the seconds of the slowest routes of all steps, without data."""
    topology, routes = schedule.topology, schedule.routes
    if not any(kind.latency for kind in topology.classes):
        return schedule.num_steps * DEFAULT_ALPHA
    each = [sum((topology.latency(link) for link in routes.links_of(r)), Fraction(0)) for r in range(len(routes))]
    ends = schedule.step_start.tolist()
    return sum(
        (max(each[r] for r in np.unique(schedule.route[a:b]).tolist()) for a, b in pairwise(ends) if a < b),
        Fraction(0),
    )


def _too_large(ir: Problem, found: int, what: str, most: int) -> CollcError:
    return error(
        "C0548", f"{ir.collective.name} on `{ir.topology.name}` has {found} {what}, more than {most}",
        hint="use a smaller topology, or fewer and larger shards", exit_status=3, excess=Excess(what, found, most),
        about=(Subject.TOPOLOGY, Subject.COLLECTIVE),
    )  # fmt: skip
