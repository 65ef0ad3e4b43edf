"""What the algorithms of this folder have in common: a logical torus, the collectives they do, operations they take."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import attrs
import numpy as np

from collc.ir.diagnostic import error
from collc.ir.messages import Messages
from collc.ir.schedule import Schedule
from collc.ir.spec import Problem

from ...base import Pass
from ..operations import require_commutative
from .build import Plan, to_messages, to_schedule
from .chunks import Chunk, Exchange, Slot, queue
from .lines import Line
from .peers import folded
from .routing import Router, router
from .shape import logical_shape

__all__ = ["Script", "TorusPass", "exchange", "scattered"]

Array = np.ndarray[Any, np.dtype[Any]]

#: substeps of one dimension in which everything is sent: (senders, receivers)
Script = list[tuple[Array, Array]]


@attrs.frozen
class TorusPass(Pass):
    """Base of passes that exchange along the dimensions of a logical torus."""

    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = Schedule
    kinds: ClassVar[tuple[str, ...]] = ("allreduce", "reduce-scatter", "allgather")
    #: the collectives that a variant is for, where it is not for all
    variants: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    def run(self, ir: Problem) -> Schedule:
        return to_schedule(self.plan(ir))

    def messages(self, ir: Problem) -> Messages:
        """Return the messages of the schedule that ``run`` makes, without their data: 16,384 ranks are no trouble."""
        return to_messages(self.plan(ir))

    def plan(self, ir: Problem) -> Plan:
        """Return how the data go; raise C0301 where ranks cannot reach each other."""
        kind = ir.collective.kind
        if kind not in self.kinds:
            raise error(
                "C0591",
                f"{self.name} cannot schedule `{kind}`",
                notes=[f"it schedules {', '.join(self.kinds)}"],
                hint="leave the scheduler out: `auto` takes one that can",
                exit_status=3,
            )
        variant = getattr(self, "variant", "")
        if kind not in self.variants.get(variant, self.kinds):
            raise error(
                "C0591",
                f"the {variant} variant of {self.name} cannot schedule `{kind}`",
                notes=[f"it schedules {', '.join(self.variants[variant])}"],
                hint="leave `variant` out",
                exit_status=3,
            )
        require_commutative(self.name, ir.collective)
        if ir.topology.num_ranks == 1:
            return Plan(ir, Router(ir.topology), 1, (), self.name)
        if ir.collective.root is None:
            ir.topology.require_connected(self.name)
        return self._plan(ir)

    @abstractmethod
    def _plan(self, ir: Problem) -> Plan:
        """Return the plan for a kind of collective that is known, on at least 2 ranks."""

    def _router(self, ir: Problem) -> Router:
        given: str | None = getattr(self, "shape", None)
        shapes = [logical_shape(ir.topology)] + ([logical_shape(ir.topology, given)] if given else [])
        return router(ir.topology, *shapes)


# ---- chunks


def scattered(
    shape: tuple[int, ...], lines: Sequence[Line], start: int, part: int, *, way: int = 0, parts: int = 1
) -> Chunk:
    """Return the chunk of parts ``part`` .. that takes the dimensions in turn, beginning with ``start``."""
    turns = tuple(queue([line.substeps for line in lines], start))
    return Chunk(shape, part, part + parts, way, lines=tuple(lines), turns=turns)


def exchange(
    shape: tuple[int, ...], scripts: Sequence[Script], folds: Sequence[bool], start: int, part: int, way: int = 0,
    *, backwards: bool = False,
) -> Exchange:  # fmt: skip
    """Return the chunk, a part of every shard, that is exchanged whole; ``backwards``, last substeps come first.

    Where ``folds``, a dimension's script is of the largest power of two below its size: guests hand over all they have
    first, and get the result at the end.
    """
    everyone = [np.arange(size) for size in shape]
    core = [folded(size)[0] if fold else at for size, fold, at in zip(shape, folds, everyone, strict=True)]
    dims = [*range(start, len(shape)), *range(start)]
    before, after, inside = [], [], list(everyone)
    for dim in (i for i in dims if folds[i]):
        _, guests, hosts = folded(shape[dim])
        before.append(Slot(dim, guests, hosts, tuple(inside)))
        after.append(Slot(dim, hosts, guests, tuple(inside), copies=True))
        inside[dim] = core[dim]
    middle = []
    turns = queue([len(script) for script in scripts], start)
    # All turns, not each script alone: so chunks are in their longest dimensions at the same time.
    for turn in reversed(turns) if backwards else turns:
        sender, receiver = scripts[turn.dim][turn.first]
        middle.append(Slot(turn.dim, core[turn.dim][sender], core[turn.dim][receiver], tuple(inside)))
    return Exchange(shape, part, part + 1, way, slots=(*before, *middle, *reversed(after)))
