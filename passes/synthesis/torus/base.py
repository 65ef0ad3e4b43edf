"""The base class of this folder's algorithms: the logical torus, the collectives and the operations they support."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.costs.messages import Messages
from collc.ir.schedule import Schedule
from collc.ir.spec import Problem
from collc.ir.symmetric import MOST_LISTED, SymmetricSchedule

from ...applying import not_scheduled
from ...base import Pass, remark
from ..operations import require_commutative, require_routes
from .build import Plan, num_rows, to_messages, to_schedule
from .chunks import ExchangedPart, ExchangeStep, ScatteredPart, interleaved_stages
from .lines import Line
from .peers import folded
from .routing import Router, router
from .shape import logical_shape
from .template import group_of, template_of

__all__ = ["TEMPLATE", "Script", "TorusPass", "exchange", "scattered"]

#: substeps of one dimension in which whole vectors are sent: (senders, receivers)
Script = list[tuple[Array, Array]]


#: what the option ``template`` says
TEMPLATE = {"help": "on a torus, keep one shard's transfers and a group (default: above 16,384 transfers)"}


@attrs.frozen
class TorusPass(Pass):
    """Base of passes that exchange along the dimensions of a logical torus."""

    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = Schedule
    kinds: ClassVar[tuple[str, ...]] = ("allreduce", "reduce-scatter", "allgather")
    #: variant -> its collectives; other variants support all
    variants: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    #: whether it takes the ranks as one dimension, so that no group moves it on a torus of several
    in_line: ClassVar[bool] = False

    def run(self, ir: Problem) -> Schedule | SymmetricSchedule:
        plan = self.plan(ir)
        return self._template(plan) or to_schedule(plan)

    def _template(self, plan: Plan) -> SymmetricSchedule | None:
        """Return the template of a plan, if it is asked for and a group moves the plan."""
        if not self._asks_for_template(plan):
            return None
        found = template_of(plan)
        if getattr(self, "template", False) and found is None:
            remark(f"{self.name}: no template, because collc knows no group that moves this schedule")
        return found

    def gives_template(self, ir: Problem) -> bool:
        """Return whether :meth:`run` gives a template."""
        if not hasattr(self, "template") or (self.in_line and len(logical_shape(ir.topology)) > 1):
            return False
        plan = self.plan(ir)
        return self._asks_for_template(plan) and group_of(plan) is not None

    def _asks_for_template(self, plan: Plan) -> bool:
        """Return whether the option ``template`` asks for one, by default if all ranks have many rows."""
        given: bool | None = getattr(self, "template", False)
        return num_rows(plan) > MOST_LISTED if given is None else given

    def messages(self, ir: Problem) -> Messages | None:
        """Return the messages of the schedule of ``run``, without their data: 16,384 ranks are feasible.

        None if shards differ in size.
        """
        return to_messages(self.plan(ir)) if ir.collective.weights is None else None

    def num_transfers(self, ir: Problem, most: int) -> int:
        ranks, phases = ir.topology.num_ranks, 2 if ir.collective.kind == "allreduce" else 1
        least = ranks * ranks * phases
        if least > most:
            return least
        return sum(
            ranks * ranks * (p.num_steps if isinstance(p, ExchangedPart) else phases) for p in self.plan(ir).parts
        )

    def plan(self, ir: Problem) -> Plan:
        """Return the plan of the schedule; raise C0301 if ranks cannot reach each other."""
        self.require(ir)
        if ir.topology.num_ranks == 1:
            return Plan(ir, Router(ir.topology), 1, (), self.name)
        return self._plan(ir)

    def require(self, ir: Problem) -> None:
        kind, variant = ir.collective.kind, getattr(self, "variant", "")
        if kind not in self.kinds:
            raise not_scheduled("C0591", self.name, ir, self.kinds)
        if kind not in self.variants.get(variant, self.kinds):
            raise not_scheduled("C0591", self.name, ir, self.variants[variant], variant)
        require_commutative(self.name, ir.collective)
        if ir.topology.num_ranks == 1:
            return
        require_routes(ir.topology, ir.collective)
        given: str | None = getattr(self, "shape", None)
        if given is not None:
            logical_shape(ir.topology, given)
        self._require(ir)

    def _require(self, ir: Problem) -> None:  # most algorithms take every shape
        """Raise CollcError unless the algorithm takes the network of a supported collective, on at least 2 ranks."""

    @abstractmethod
    def _plan(self, ir: Problem) -> Plan:
        """Return the plan for a supported collective on at least 2 ranks."""

    def _router(self, ir: Problem) -> Router:
        given: str | None = getattr(self, "shape", None)
        shapes = [logical_shape(ir.topology)] + ([logical_shape(ir.topology, given)] if given else [])
        return router(ir.topology, *shapes)


# ---- parts


def scattered(
    shape: tuple[int, ...], lines: Sequence[Line], start: int, index: int, *, direction: int = 0, num_parts: int = 1
) -> ScatteredPart:
    """Return a part that takes the dimensions in turn, beginning with ``start``.

    It is parts ``index`` to ``index + num_parts - 1`` of every shard.
    """
    stages = tuple(interleaved_stages([line.substeps for line in lines], start))
    return ScatteredPart(shape, index, index + num_parts, direction, lines=tuple(lines), stages=stages)


def exchange(
    shape: tuple[int, ...], scripts: Sequence[Script], folds: Sequence[bool], start: int, index: int,
    direction: int = 0, *, backwards: bool = False,
) -> ExchangedPart:  # fmt: skip
    """Return part ``index`` of every shard, exchanged whole; ``backwards`` reverses the order of substeps.

    Where ``folds``, a dimension's script is for the largest power of two below its size: guests send all their data
    first, and receive the result at the end.
    """
    everyone = [np.arange(size) for size in shape]
    core = [folded(size)[0] if fold else at for size, fold, at in zip(shape, folds, everyone, strict=True)]
    dims = [*range(start, len(shape)), *range(start)]
    before, after, inside = [], [], list(everyone)
    for dim in (i for i in dims if folds[i]):
        _, guests, hosts = folded(shape[dim])
        before.append(ExchangeStep(dim, guests, hosts, tuple(inside)))
        after.append(ExchangeStep(dim, hosts, guests, tuple(inside), copies=True))
        inside[dim] = core[dim]
    middle = []
    stages = interleaved_stages([len(script) for script in scripts], start)
    # Reverse all stages, not each script alone: then parts are in their longest dimensions at the same time.
    for stage in reversed(stages) if backwards else stages:
        sender, receiver = scripts[stage.dim][stage.first]
        middle.append(ExchangeStep(stage.dim, core[stage.dim][sender], core[stage.dim][receiver], tuple(inside)))
    return ExchangedPart(shape, index, index + 1, direction, exchanges=(*before, *middle, *reversed(after)))
