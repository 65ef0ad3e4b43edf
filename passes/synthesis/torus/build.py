"""From parts and their plan to a schedule, or to messages, of any supported collective."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TypeAlias

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.collective import Collective
from collc.ir.costs.messages import Messages, with_reduced
from collc.ir.diagnostic import Excess, Subject, error
from collc.ir.frozen import frozen
from collc.ir.progress import counting
from collc.ir.ragged import owners
from collc.ir.schedule import Action, Routes, Schedule
from collc.ir.spec import Problem

from .chunks import ExchangedPart, ScatteredPart, Stage
from .routing import Router

__all__ = ["Plan", "num_rows", "to_messages", "to_schedule"]

_MOST_ROWS = 1 << 26
_FORWARD = ("reduce-scatter", "allreduce", "reduce", "gather")
_BACKWARD = ("allgather", "allreduce", "broadcast", "scatter")


@frozen(eq=False)
class Plan:
    """The plan of a collective: ``parts`` together cover ``num_parts`` parts of every shard."""

    problem: Problem
    router: Router
    num_parts: int
    parts: Sequence[ScatteredPart | ExchangedPart]
    scheduler: str

    @property
    def phase(self) -> int:
        """Steps of a reduce-scatter, or of an exchange."""
        return max((part.num_steps for part in self.parts), default=0)


# ---- transfers


def to_schedule(plan: Plan, only: int | None = None) -> Schedule:
    """Return the schedule, one row per transfer; raise C0594 if there are more than 2^26.

    If ``only`` is given, the schedule has the transfers of this shard. The collective then has no root.
    """
    if only is None:
        _require_few_rows(plan)
    pieces: list[tuple[Array, ...]] = []
    for part in counting(plan.parts, "parts of the data"):
        for step, verb, shard, src, dst in _transfers(plan, part, only):
            key = plan.router.keys(src, dst, part.direction, part.lane)
            pieces.append(tuple(np.broadcast_to(x, key.shape) for x in (
                np.int32(step), np.uint8(verb), shard.astype(np.int32), np.int32(part.lo), np.int32(part.hi), key
            )))  # fmt: skip
    pieces.sort(key=lambda piece: int(piece[0][0]) if len(piece[0]) else 0)
    columns = [np.concatenate([p[i] for p in pieces]) if pieces else np.zeros(0, dtype=np.int64) for i in range(6)]
    known, route = np.unique(columns[5], return_inverse=True)
    _, action, shard, lo, hi = columns[:5]
    steps = np.unique(columns[0], return_inverse=True)[1]  # the tree of one root may leave steps empty
    return Schedule(
        plan.problem.topology, plan.problem.collective, plan.num_parts, step=steps, action=action, shard=shard, lo=lo,
        hi=hi, route=route, routes=plan.router.routes(known), scheduler=plan.scheduler,
    )  # fmt: skip


def num_rows(plan: Plan) -> int:
    """Return about how many rows a plan's schedule has."""
    n, kind = plan.problem.collective.num_ranks, plan.problem.collective.kind
    rows = 0
    for part in plan.parts:
        rows += n * n * (part.num_steps if isinstance(part, ExchangedPart) else 2 if kind == "allreduce" else 1)
    return rows


def _require_few_rows(plan: Plan) -> None:
    n, rows = plan.problem.collective.num_ranks, num_rows(plan)
    if rows > _MOST_ROWS:
        raise error(
            "C0594",
            f"{plan.scheduler} on {n} ranks makes about {rows} transfers",
            notes=[f"a schedule may have {_MOST_ROWS} transfers, about 1,500 to 4,000 ranks"],
            hint="`collc simulate` works: it needs no transfers, only messages",
            exit_status=3,
            excess=Excess("transfers", rows, _MOST_ROWS),
            about=(Subject.SCHEDULER, Subject.TOPOLOGY),
        )


def _transfers(
    plan: Plan, part: ScatteredPart | ExchangedPart, only: int | None = None
) -> Iterator[tuple[int, int, Array, Array, Array]]:
    """Yield (step, action, shard, source, target) of a part, a step at a time: of all shards, or ``only`` of one."""
    collective = plan.problem.collective
    n, kind, phase = collective.num_ranks, collective.kind, plan.phase
    if isinstance(part, ExchangedPart):
        for step, src, dst, copies in part.sends():
            moved = _all_shards(n, src, dst) if only is None else (np.full(len(src), only), src, dst)
            yield step, Action.COPY if copies else Action.REDUCE, *moved
        return
    sends: Iterator[tuple[int, Array, Array, Array]]
    if only is not None:
        sends = ((step, src, dst, shard) for step, (src, dst, shard) in part.sends(only))
    else:
        sends = _gathered(part, collective) if kind in ("gather", "scatter") else _scattered(part, collective)
    for step, src, dst, shard in sends:
        if kind in _FORWARD and part.forwards:
            yield step, Action.COPY if kind == "gather" else Action.REDUCE, shard, src, dst
        if kind in _BACKWARD and part.backwards:
            offset = phase if kind == "allreduce" else 0
            yield offset + phase - 1 - step, Action.COPY, shard, dst, src


def _all_shards(n: int, src: Array, dst: Array) -> tuple[Array, Array, Array]:
    return np.tile(np.arange(n), len(src)), np.repeat(src, n), np.repeat(dst, n)


def _scattered(part: ScatteredPart, collective: Collective) -> Iterator[tuple[int, Array, Array, Array]]:
    for step, (src, dst, shard) in part.sends(collective.root):
        if collective.root is not None:
            shard, src, dst = _all_shards(collective.num_ranks, src, dst)
        yield step, src, dst, shard


def _gathered(part: ScatteredPart, collective: Collective) -> Iterator[tuple[int, Array, Array, Array]]:
    """Yield the transfers up the root's tree when every shard begins at its own rank."""
    at = np.arange(collective.num_ranks)
    above = np.full(collective.num_ranks, -1)
    for step, (src, dst, _) in sorted(part.sends(collective.root), key=lambda item: item[0]):
        above[:] = -1
        above[src] = dst
        shard = np.flatnonzero(above[at] >= 0)
        yield step, at[shard], above[at[shard]], shard
        at[shard] = above[at[shard]]


# ---- messages


def to_messages(plan: Plan) -> Messages:
    """Return the messages without their shards; equal steps are stored once."""
    kind, flows = plan.problem.collective.kind, _Flows(plan)
    cuts = sorted(
        {0, plan.phase, *(x for part in plan.parts for stage in _stages(part) for x in (stage.step, stage.end))}
    )
    width: list[dict[Key, int]] = [{} for _ in cuts[1:]]
    for part in plan.parts:
        for stage in _stages(part):
            alike = flows.add(part, stage)
            for i in range(bisect_left(cuts, stage.step), bisect_left(cuts, stage.end)):
                width[i][alike] = width[i].get(alike, 0) + part.hi - part.lo
    times, steps, repeats = np.diff(cuts).tolist(), list[list[tuple[Array, Array]]](), list[int]()
    exchanges = any(isinstance(part, ExchangedPart) for part in plan.parts)
    if exchanges or kind in _FORWARD:
        steps += [flows.messages(alike, backwards=False) for alike in width]
        repeats += times
    if not exchanges and kind in _BACKWARD:
        steps += [flows.messages(alike, backwards=True) for alike in reversed(width)]
        repeats += times[::-1]
    sent = _gathered_messages(plan, steps, repeats)
    if exchanges:
        return attrs.evolve(sent, reduced=_exchanged_sums(plan))
    adding = sum(any(len(keys) for keys, _ in step) for step in steps[: len(width)]) if kind in _FORWARD else 0
    return with_reduced(sent, (sent.step < adding) & (kind != "gather"))


def _exchanged_sums(plan: Plan) -> Fraction:
    """Return the sum over steps of the most that a rank adds, as a share of M: the vectors of its peers."""
    sums = np.zeros((plan.phase, plan.problem.collective.num_ranks), dtype=np.int64)
    for part in plan.parts:
        if isinstance(part, ExchangedPart):
            for step, _, dst, copies in part.sends():
                if not copies:
                    np.add.at(sums[step], dst, part.hi - part.lo)
    return Fraction(int(sums.max(axis=1, initial=0).sum()), plan.num_parts)


def _stages(part: ScatteredPart | ExchangedPart) -> Sequence[Stage]:
    return (
        part.stages
        if isinstance(part, ScatteredPart)
        else [Stage(i, exchange.dim, i) for i, exchange in enumerate(part.exchanges)]
    )


#: identifies stages with the same traffic
Key: TypeAlias = tuple[object, ...]


class _Flows:
    """The traffic of stages, computed once for all that differ only in their parts."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self.n, self.root = plan.problem.collective.num_ranks, plan.problem.collective.root
        self.traffic: dict[Key, tuple[ScatteredPart | ExchangedPart, Array, Array, Array]] = {}
        self.gathered: dict[int, dict[int, tuple[Array, Array, Array]]] = {}

    def add(self, part: ScatteredPart | ExchangedPart, stage: Stage) -> Key:
        """Return the key of a stage's traffic."""
        lines = part.alike(stage) if isinstance(part, ScatteredPart) else (id(part), stage.first)
        key = (part.shape, part.direction, part.lane, id(part.place), part.forwards, part.backwards, lines)
        if key not in self.traffic:
            self.traffic[key] = (part, *self._traffic(part, stage))
        return key

    def messages(self, width: dict[Key, int], backwards: bool) -> list[tuple[Array, Array]]:
        """Return (route keys, amounts) of simultaneous stages."""
        found = []
        for key, num_parts in width.items():
            part, src, dst, amount = self.traffic[key]
            if part.backwards if backwards else part.forwards:
                ends = (dst, src) if backwards else (src, dst)
                found.append((self.plan.router.keys(*ends, part.direction, part.lane), amount * num_parts))
        return found

    def _traffic(self, part: ScatteredPart | ExchangedPart, stage: Stage) -> tuple[Array, Array, Array]:
        """Return (source, target, shards) of any step of a stage."""
        kind = self.plan.problem.collective.kind
        if isinstance(part, ExchangedPart):
            src, dst, _ = part.ends(part.exchanges[stage.first])
            return src, dst, np.full(len(src), self.n)
        if kind in ("gather", "scatter"):
            if id(part) not in self.gathered:
                self.gathered[id(part)] = {
                    step: (a, b, c) for step, a, b, c in _gathered(part, self.plan.problem.collective)
                }
            src, dst, _ = self.gathered[id(part)][stage.step]
            pair, shards = np.unique(src * self.n + dst, return_counts=True)
            return pair // self.n, pair % self.n, shards
        src, dst, amount = part.traffic(stage, self.root)
        return src, dst, amount if self.root is None else amount * self.n


def _gathered_messages(plan: Plan, steps: list[list[tuple[Array, Array]]], repeats: list[int]) -> Messages:
    collective = plan.problem.collective
    none = np.zeros(0, dtype=np.int64)
    repeats = [times for times, step in zip(repeats, steps, strict=True) if any(len(k) for k, _ in step)]
    steps = [step for step in steps if any(len(k) for k, _ in step)]
    keys = [np.concatenate([k for k, _ in step]) if step else none for step in steps]
    amounts = [np.concatenate([a for _, a in step]) if step else none for step in steps]
    known, route = np.unique(np.concatenate(keys) if keys else none, return_inverse=True)
    routes = plan.router.routes(known) if len(known) else Routes([0], [])
    return Messages(
        plan.problem.topology, collective, plan.num_parts * collective.num_ranks,
        step=owners([len(k) for k in keys]), route=route,
        amount=np.concatenate(amounts) if amounts else none, times=np.array(repeats, dtype=np.int64), routes=routes,
        scheduler=plan.scheduler,
    )  # fmt: skip
