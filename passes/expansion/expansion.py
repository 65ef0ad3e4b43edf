"""The scheduler `expansion`: schedule the base of a topology, and expand the schedule by the topology's operators."""

from __future__ import annotations

from typing import ClassVar

import attrs

from collc.ir.collective import Collective
from collc.ir.diagnostic import error, nearest
from collc.ir.schedule import Forest, Routes, Schedule
from collc.ir.spec import Problem
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.symmetric_forest import SymmetricForest
from collc.ir.topology import Topology

from .. import PASSES, SCHEDULERS
from ..applying import not_scheduled, require_direct
from ..base import Pass
from ..schedule.compose import compose
from ..schedule.reverse import Reverse, reverse
from ..synthesis.operations import require_commutative
from .bidirectional import bidirectional
from .degree import degree
from .isomorphic import mapped, reverse_symmetry
from .line import line, line_graph
from .power import power
from .rows import levels, links_of, placed

__all__ = ["Expansion"]

_KINDS = ("allgather", "reduce-scatter", "allreduce")
#: effort of the search for an isomorphism from a base to its transpose
_ISOMORPHISM_EFFORT = 10_000_000


@attrs.frozen
class Expansion(Pass):
    """Expand the schedule of a base topology by the operators that built the topology.

    ``line``, ``degree``, ``power``, ``bidirectional`` and ``transpose`` expand a schedule. `bfb` schedules a
    ``product`` of several topologies (Theorem 13), and the scheduler ``base`` all other topologies. A reduce-scatter is
    an allgather expanded on the transpose and reversed (Corollary 1.2); an allreduce is a reduce-scatter, then an
    allgather.

    Raises C0520 (another collective), C0521 (links that the operator does not give), C0522 (not a base scheduler),
    C0301 (not strongly connected), and the errors of the base scheduler.
    """

    name: ClassVar[str] = "expansion"
    summary: ClassVar[str] = "the base topology's schedule, expanded by the operators that built the topology"
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = Schedule

    base: str = attrs.field(default="bfb", metadata={"help": "scheduler of the base topology"})
    objective: str | None = attrs.field(
        default=None,
        metadata={"help": "objective of the base's scheduler, if it has this option: latency or bandwidth"},
    )

    def run(self, ir: Problem) -> Schedule:
        self.require(ir)
        topology, kind = ir.topology, ir.collective.kind
        tree = _Tree(self._base())
        halves = list[Schedule]()
        if kind != "allgather":
            halves.append(_backwards(tree, topology))
        if kind != "reduce-scatter":
            halves.append(tree.allgather(topology))
        whole = compose(*halves) if len(halves) == 2 else halves[0]
        assert isinstance(whole, Schedule)
        return attrs.evolve(whole, collective=ir.collective, scheduler=self.name)

    def require(self, ir: Problem) -> None:
        if ir.collective.kind not in _KINDS:
            raise not_scheduled("C0520", self.name, ir, _KINDS)
        require_commutative(self.name, ir.collective)
        require_direct("C0501", self.name, ir)
        ir.topology.require_connected(ir.collective.kind)
        self._base()

    def _base(self) -> Pass:
        found = _scheduler(self.base)
        if found is None or self.base in (self.name, "steps"):
            known = [name for name in SCHEDULERS if name not in (self.name, "steps", "auto")]
            raise error(
                "C0522",
                f"`{self.base}` is not a scheduler for a base",
                hint=nearest(self.base, known) or f"use one of {', '.join(known)}",
                option="base",
            )
        if self.objective is None:
            return found
        if not any(field.name == "objective" for field in attrs.fields(type(found))):
            message = f"expansion was given the objective `{self.objective}`, but its base `{self.base}` has none"
            hint = "add `base: exact`, which has one, or leave `objective` out"
            raise error("C0522", message, hint=hint, option="objective")
        return type(found)(objective=self.objective)  # type: ignore[call-arg]  # it has such a field


def _backwards(tree: _Tree, topology: Topology) -> Schedule:
    """Return the reduce-scatter: the reverse of an allgather, of the transpose if links go one way."""
    if topology.reverse_links is not None:
        reversed_ = Reverse().run(tree.allgather(topology))
    else:
        reversed_ = reverse(tree.allgather(topology, flip=True))
    assert isinstance(reversed_, Schedule)
    return attrs.evolve(reversed_, topology=topology)


@attrs.frozen
class _Tree:
    """Allgathers of topologies by their operators; ``flip`` is for the transpose with the same link numbers.

    All expansions commute with transposing, so only bases are transposed.
    """

    base: Pass
    known: dict[tuple[int, bool], Schedule] = attrs.Factory(dict)

    def allgather(self, topology: Topology, flip: bool = False) -> Schedule:
        """Return the allgather of a topology, or of its transpose."""
        key = (id(topology), flip)
        if key not in self.known:
            expanded = self._expanded(topology, flip)
            target = topology.transpose() if flip else topology
            self.known[key] = attrs.evolve(expanded, topology=target, scheduler="expansion")
        return self.known[key]

    def _expanded(self, topology: Topology, flip: bool) -> Schedule:
        target = topology.transpose() if flip else topology
        origin = topology.origin
        match (origin.name, *origin.arguments) if origin else ("",):
            case "line", Topology() as base:
                return self._line(base, 1, target, flip)
            case "line", Topology() as base, int(n):
                return self._line(base, n, target, flip)
            case "degree", Topology() as base, int(n):
                return degree(self.allgather(base, flip), target, n)
            case "power", Topology() as base, int(n):
                return power(self.allgather(base, flip), target, n)
            case "bidirectional", Topology() as base:
                return bidirectional(self.allgather(base, flip), self.allgather(base, not flip), target)
            case "transpose", Topology() as base:
                return _same_ranks(self.allgather(base, not flip), target)
            case "product", Topology() as base:
                return _same_ranks(self.allgather(base, flip), target)
            case "product", *_:
                return _scheduled(_scheduler("bfb"), target)
            case _:
                return self._base_schedule(topology, target, flip)

    def _line(self, base: Topology, n: int, target: Topology, flip: bool) -> Schedule:
        """Expand n times. The transpose comes after a line graph is built, because its ranks are links by number."""
        schedule, between = self.allgather(base, flip), base
        for _ in range(n - 1):
            between = line_graph(between)
            schedule = line(schedule, between.transpose() if flip else between)
        return line(schedule, target)

    def _base_schedule(self, topology: Topology, target: Topology, flip: bool) -> Schedule:
        """Schedule a base. If its transpose is isomorphic, map the base's schedule to the transpose (Theorem 2)."""
        if flip:
            nodes = reverse_symmetry(topology, _ISOMORPHISM_EFFORT).nodes
            if nodes is not None:
                return mapped(self.allgather(topology), target, nodes)
        return _scheduled(self.base, target)


def _scheduler(name: str) -> Pass | None:
    """Return the scheduler of that name with default options; None if the name is not a scheduler's."""
    if name not in PASSES:
        return None
    found = PASSES.load(name)
    scheduler: Pass | None = found() if found.takes is Problem else None
    return scheduler


def _scheduled(scheduler: Pass | None, topology: Topology) -> Schedule:
    """Return the allgather of a scheduler, as rows."""
    assert scheduler is not None
    result = scheduler.run(Problem(topology, Collective("allgather", topology.num_ranks)))
    if isinstance(result, (SymmetricSchedule, SymmetricForest)):
        result = result.unfold()
    if isinstance(result, Forest):
        result = result.to_steps()
    assert isinstance(result, Schedule)
    return attrs.evolve(result, discrete=False)


def _same_ranks(schedule: Schedule, topology: Topology) -> Schedule:
    """Return the schedule on a topology of the same ranks and links, whose numbers may differ."""
    base = schedule.topology
    links = placed(topology, base.src, base.dst, levels(base))
    return attrs.evolve(
        schedule, topology=topology, route=links[links_of(schedule)], routes=Routes.direct(topology.num_links)
    )
