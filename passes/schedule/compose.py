"""Compose an allreduce from two schedules."""

from __future__ import annotations

from math import lcm
from typing import ClassVar

import attrs
import numpy as np

from collc.ir.arrays import Array, Columns
from collc.ir.collective import Collective
from collc.ir.diagnostic import error
from collc.ir.frozen import frozen
from collc.ir.schedule import Forest, Routes, Schedule
from collc.ir.symmetric import AnySchedule, SymmetricSchedule

from ..base import Pass
from .reverse import Reverse

__all__ = ["Compose", "compose", "compose_forests"]


def compose(first: AnySchedule, second: AnySchedule) -> AnySchedule:
    """Return the allreduce that runs a reduce-scatter ``first``, then an allgather ``second``, on the same topology.

    Two templates make a template.
    """
    if (
        isinstance(first, SymmetricSchedule)
        and isinstance(second, SymmetricSchedule)
        and not (first.orbits or second.orbits)
    ):
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
    columns: Columns = {c: np.concatenate([getattr(first, c), getattr(second, c)]) for c in ("action", "shard")}
    for c in ("lo", "hi"):
        a, b = (getattr(s, c).astype(np.int64) * (parts // s.parts) for s in (first, second))
        columns[c] = np.concatenate([a, b])
    step = np.concatenate([first.step.astype(np.int64), second.step.astype(np.int64) + first.num_steps])
    routes, route = _joined_routes(first, second)
    return attrs.evolve(
        second, collective=attrs.evolve(second.collective, kind="allreduce"), parts=parts, step=step, route=route,
        routes=routes, discrete=first.discrete and second.discrete, placement=None, **columns,
    )  # fmt: skip


def _joined_routes(first: Schedule | Forest, second: Schedule | Forest) -> tuple[Routes, Array]:
    """Return the routes of both, and the column ``route`` of the rows of the first, then of the second."""
    routes, shift = first.routes, 0
    if first.routes != second.routes:
        shift = len(first.routes)
        start = np.concatenate([first.routes.start, second.routes.start[1:].astype(np.int64) + first.routes.start[-1]])
        routes = Routes(start, np.concatenate([first.routes.links, second.routes.links]))
    return routes, np.concatenate([first.route.astype(np.int64), second.route.astype(np.int64) + shift])


def compose_forests(first: Forest, second: Forest) -> Forest:
    """Return the allreduce whose trees are those of a reduce-scatter (or reduce) and an allgather (or broadcast).

    Both are for the same topology. Rooted ones have the same root, and their trees carry the whole vector. The result
    has the larger of both numbers of pieces. Raises C0506.
    """
    kinds, roots = (first.collective.kind, second.collective.kind), (first.collective.root, second.collective.root)
    if kinds not in (("reduce-scatter", "allgather"), ("reduce", "broadcast")) or roots[0] != roots[1]:
        at = [f" at rank {root}" if root is not None else "" for root in roots]
        raise error(
            "C0506",
            f"cannot compose `{kinds[0]}`{at[0]} and `{kinds[1]}`{at[1]}: an allreduce is a reduce-scatter followed by "
            "an allgather, or a reduce followed by a broadcast from its root",
        )
    parts = lcm(first.parts, second.parts)
    weight = [f.weight.astype(object) * (parts // f.parts) for f in (first, second)]
    tree = [first.tree.astype(np.int64), second.tree.astype(np.int64) + first.num_trees]
    routes, route = _joined_routes(first, second)
    columns: Columns = {
        c: np.concatenate([getattr(first, c), getattr(second, c)]) for c in ("root", "inward", "parent", "child")
    }
    collective = attrs.evolve(second.collective, kind="allreduce", root=None)
    return attrs.evolve(
        second, collective=collective, parts=parts, weight=np.concatenate(weight), tree=np.concatenate(tree),
        route=route, routes=routes, whole=first.whole, pieces=max(first.pieces, second.pieces), **columns,
    )  # fmt: skip


@frozen
class Compose(Pass):
    """Make an allreduce from an allgather (its reverse first) or from a reduce-scatter (its reverse second).

    A forest becomes a forest. It may also be one of a broadcast or reduce.
    """

    name: ClassVar[str] = "compose"
    summary: ClassVar[str] = "compose an allreduce from an allgather and its reverse"
    takes: ClassVar[type] = Schedule
    gives: ClassVar[type] = Schedule
    takes_templates: ClassVar[bool] = True
    takes_forests: ClassVar[bool] = True

    def turned(self, collective: Collective, found: Collective) -> Collective:
        return attrs.evolve(collective, kind="allreduce", root=None)

    def run(self, ir: AnySchedule | Forest) -> AnySchedule | Forest:
        if ir.collective.weights is not None:
            raise error(
                "C0506", f"compose needs shards of equal size, found `{ir.collective.name}`",
                notes=["an allreduce has no weights"], hint=f"compose a schedule of `{ir.collective.kind}`",
            )  # fmt: skip
        if isinstance(ir, Forest) and ir.collective.kind in ("allgather", "reduce-scatter", "broadcast", "reduce"):
            back = Reverse().run(ir)
            outward = ir.collective.kind in ("allgather", "broadcast")
            return compose_forests(back, ir) if outward else compose_forests(ir, back)
        if isinstance(ir, Forest) or ir.collective.kind not in ("allgather", "reduce-scatter"):
            raise error(
                "C0506",
                f"compose needs a schedule of allgather or reduce-scatter, found `{ir.collective.kind}`",
                hint="run it on one phase: `-p 'bfb{collective=allgather},compose'`",
            )
        other = Reverse().run(ir)
        return compose(other, ir) if ir.collective.kind == "allgather" else compose(ir, other)
