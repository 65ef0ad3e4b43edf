"""One collective after another."""

from __future__ import annotations

from math import lcm
from typing import Any, ClassVar

import attrs
import numpy as np

from collc.ir.diagnostic import error
from collc.ir.schedule import Routes, Schedule
from collc.ir.symmetric import SymmetricSchedule

from .base import Pass
from .reverse import Reverse

__all__ = ["Compose", "compose"]


AnySchedule = Schedule | SymmetricSchedule


def compose(first: AnySchedule, second: AnySchedule) -> AnySchedule:
    """Return the allreduce that runs a reduce-scatter ``first``, then an allgather ``second``, on the same topology.

    Two templates make a template.
    """
    if isinstance(first, SymmetricSchedule) and isinstance(second, SymmetricSchedule):
        return SymmetricSchedule(_compose(first.seed, second.seed))
    first, second = (s.unfold() if isinstance(s, SymmetricSchedule) else s for s in (first, second))
    return _compose(first, second)


def _compose(first: Schedule, second: Schedule) -> Schedule:
    if (first.collective.kind, second.collective.kind) != ("reduce-scatter", "allgather"):
        raise error(
            "C0506",
            f"cannot compose `{first.collective.kind}` and `{second.collective.kind}`: "
            "an allreduce is a reduce-scatter followed by an allgather",
        )
    parts = lcm(first.parts, second.parts)
    columns: dict[str, Any] = {c: np.concatenate([getattr(first, c), getattr(second, c)]) for c in ("action", "shard")}
    for c in ("lo", "hi"):
        a, b = (getattr(s, c).astype(np.int64) * (parts // s.parts) for s in (first, second))
        columns[c] = np.concatenate([a, b])
    step = np.concatenate([first.step.astype(np.int64), second.step.astype(np.int64) + first.num_steps])
    routes, shift = first.routes, 0
    if first.routes != second.routes:
        shift = len(first.routes)
        start = np.concatenate([first.routes.start, second.routes.start[1:].astype(np.int64) + first.routes.start[-1]])
        routes = Routes(start, np.concatenate([first.routes.links, second.routes.links]))
    route = np.concatenate([first.route.astype(np.int64), second.route.astype(np.int64) + shift])
    return attrs.evolve(
        second, collective=attrs.evolve(second.collective, kind="allreduce"), parts=parts, step=step, route=route,
        routes=routes, discrete=first.discrete and second.discrete, **columns,
    )  # fmt: skip


@attrs.frozen
class Compose(Pass):
    """Make an allreduce of an allgather (its reverse first) or of a reduce-scatter (its reverse after)."""

    name: ClassVar[str] = "compose"
    summary: ClassVar[str] = "an allgather preceded by its reverse: an allreduce"
    takes: ClassVar[type] = Schedule
    gives: ClassVar[type] = Schedule
    takes_templates: ClassVar[bool] = True

    def run(self, ir: AnySchedule) -> AnySchedule:
        if ir.collective.kind not in ("allgather", "reduce-scatter"):
            raise error(
                "C0506",
                f"compose needs a schedule of allgather or reduce-scatter, found `{ir.collective.kind}`",
                hint="run it on one phase: `-p 'bfb{collective=allgather},compose'`",
            )
        other = Reverse().run(ir)
        return compose(other, ir) if ir.collective.kind == "allgather" else compose(ir, other)
