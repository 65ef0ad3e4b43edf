"""From chunks and the ways they go to a schedule, or to messages, of any collective they serve."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import numpy as np

from collc.ir.collective import Collective
from collc.ir.diagnostic import error
from collc.ir.messages import Messages
from collc.ir.schedule import Action, Routes, Schedule
from collc.ir.spec import Problem

from .chunks import Chunk, Exchange, Turn
from .routing import Router

__all__ = ["Plan", "to_messages", "to_schedule"]

Array = np.ndarray[Any, np.dtype[Any]]

_MOST_ROWS = 1 << 26
_FORWARD = ("reduce-scatter", "allreduce", "reduce", "gather")
_BACKWARD = ("allgather", "allreduce", "broadcast", "scatter")


@attrs.frozen(eq=False)
class Plan:
    """How a collective's data go: all chunks together cover ``parts`` parts of every shard."""

    problem: Problem
    router: Router
    parts: int
    chunks: Sequence[Chunk | Exchange]
    scheduler: str

    @property
    def phase(self) -> int:
        """Steps of a reduce-scatter, or of an exchange."""
        return max((chunk.num_steps for chunk in self.chunks), default=0)


# ---- transfers


def to_schedule(plan: Plan) -> Schedule:
    """Return the schedule, one row a transfer; raise C0594 where there are more than 2^26."""
    _few_enough(plan)
    pieces: list[tuple[Array, ...]] = []
    for chunk in plan.chunks:
        for step, verb, shard, src, dst in _transfers(plan, chunk):
            key = plan.router.keys(src, dst, chunk.way, chunk.lane)
            pieces.append(tuple(np.broadcast_to(x, key.shape) for x in (
                np.int32(step), np.uint8(verb), shard.astype(np.int32), np.int32(chunk.lo), np.int32(chunk.hi), key
            )))  # fmt: skip
    pieces.sort(key=lambda piece: int(piece[0][0]) if len(piece[0]) else 0)
    columns = [np.concatenate([p[i] for p in pieces]) if pieces else np.zeros(0, dtype=np.int64) for i in range(6)]
    known, route = np.unique(columns[5], return_inverse=True)
    _, action, shard, lo, hi = columns[:5]
    steps = np.unique(columns[0], return_inverse=True)[1]  # of a root's tree, steps in which only others would send
    return Schedule(
        plan.problem.topology, plan.problem.collective, plan.parts, step=steps, action=action, shard=shard, lo=lo,
        hi=hi, route=route, routes=plan.router.routes(known), scheduler=plan.scheduler,
    )  # fmt: skip


def _few_enough(plan: Plan) -> None:
    n, kind = plan.problem.collective.num_ranks, plan.problem.collective.kind
    rows = 0
    for chunk in plan.chunks:
        rows += n * n * (chunk.num_steps if isinstance(chunk, Exchange) else 2 if kind == "allreduce" else 1)
    if rows > _MOST_ROWS:
        raise error(
            "C0594",
            f"{plan.scheduler} on {n} ranks makes about {rows} transfers",
            notes=[f"written out are at most {_MOST_ROWS}, about 1,500 to 4,000 ranks"],
            hint="`collc simulate` needs its messages only",
            exit_status=3,
        )


def _transfers(plan: Plan, chunk: Chunk | Exchange) -> Iterator[tuple[int, int, Array, Array, Array]]:
    """Yield (step, action, shard, source, target) of a chunk, a step at a time."""
    collective = plan.problem.collective
    n, kind, phase = collective.num_ranks, collective.kind, plan.phase
    if isinstance(chunk, Exchange):
        for step, src, dst, copies in chunk.sends():
            yield step, Action.COPY if copies else Action.REDUCE, *_all_shards(n, src, dst)
        return
    sends = _gathered(chunk, collective) if kind in ("gather", "scatter") else _scattered(chunk, collective)
    for step, src, dst, shard in sends:
        if kind in _FORWARD and chunk.forwards:
            yield step, Action.COPY if kind == "gather" else Action.REDUCE, shard, src, dst
        if kind in _BACKWARD and chunk.backwards:
            late = phase if kind == "allreduce" else 0
            yield late + phase - 1 - step, Action.COPY, shard, dst, src


def _all_shards(n: int, src: Array, dst: Array) -> tuple[Array, Array, Array]:
    return np.tile(np.arange(n), len(src)), np.repeat(src, n), np.repeat(dst, n)


def _scattered(chunk: Chunk, collective: Collective) -> Iterator[tuple[int, Array, Array, Array]]:
    for step, (src, dst, block) in chunk.sends(collective.root):
        if collective.root is not None:
            block, src, dst = _all_shards(collective.num_ranks, src, dst)
        yield step, src, dst, block


def _gathered(chunk: Chunk, collective: Collective) -> Iterator[tuple[int, Array, Array, Array]]:
    """Yield what passes up the root's tree when every shard begins at its own rank."""
    at = np.arange(collective.num_ranks)
    above = np.full(collective.num_ranks, -1)
    for step, (src, dst, _) in sorted(chunk.sends(collective.root), key=lambda item: item[0]):
        above[:] = -1
        above[src] = dst
        shard = np.flatnonzero(above[at] >= 0)
        yield step, at[shard], above[at[shard]], shard
        at[shard] = above[at[shard]]


# ---- messages


def to_messages(plan: Plan) -> Messages:
    """Return the messages without saying which shards they carry; steps alike are stored once."""
    kind, flows = plan.problem.collective.kind, _Flows(plan)
    cuts = sorted(
        {0, plan.phase, *(x for chunk in plan.chunks for turn in _turns(chunk) for x in (turn.step, turn.end))}
    )
    width: list[dict[Any, int]] = [{} for _ in cuts[1:]]
    for chunk in plan.chunks:
        for turn in _turns(chunk):
            alike = flows.add(chunk, turn)
            for i in range(bisect_left(cuts, turn.step), bisect_left(cuts, turn.end)):
                width[i][alike] = width[i].get(alike, 0) + chunk.hi - chunk.lo
    times, steps, repeats = np.diff(cuts).tolist(), list[list[tuple[Array, Array]]](), list[int]()
    exchanges = any(isinstance(chunk, Exchange) for chunk in plan.chunks)
    if exchanges or kind in _FORWARD:
        steps += [flows.messages(alike, backwards=False) for alike in width]
        repeats += times
    if not exchanges and kind in _BACKWARD:
        steps += [flows.messages(alike, backwards=True) for alike in reversed(width)]
        repeats += times[::-1]
    return _gathered_messages(plan, steps, repeats)


def _turns(chunk: Chunk | Exchange) -> Sequence[Turn]:
    return chunk.turns if isinstance(chunk, Chunk) else [Turn(i, slot.dim, i) for i, slot in enumerate(chunk.slots)]


class _Flows:
    """What turns send, computed once for all that are alike but for the parts they carry."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self.n, self.root = plan.problem.collective.num_ranks, plan.problem.collective.root
        self.kept: dict[Any, tuple[Chunk | Exchange, Array, Array, Array]] = {}
        self.climbed: dict[int, dict[int, tuple[Array, Array, Array]]] = {}

    def add(self, chunk: Chunk | Exchange, turn: Turn) -> Any:
        """Return what turns alike have in common, as a key."""
        lines = chunk.alike(turn) if isinstance(chunk, Chunk) else (id(chunk), turn.first)
        key = (chunk.shape, chunk.way, chunk.lane, id(chunk.place), chunk.forwards, chunk.backwards, lines)
        if key not in self.kept:
            self.kept[key] = (chunk, *self._traffic(chunk, turn))
        return key

    def messages(self, width: dict[Any, int], backwards: bool) -> list[tuple[Array, Array]]:
        """Return (route keys, amounts) of turns under way together."""
        found = []
        for key, parts in width.items():
            chunk, src, dst, amount = self.kept[key]
            if chunk.backwards if backwards else chunk.forwards:
                ends = (dst, src) if backwards else (src, dst)
                found.append((self.plan.router.keys(*ends, chunk.way, chunk.lane), amount * parts))
        return found

    def _traffic(self, chunk: Chunk | Exchange, turn: Turn) -> tuple[Array, Array, Array]:
        """Return (source, target, blocks) of any step of a turn."""
        kind = self.plan.problem.collective.kind
        if isinstance(chunk, Exchange):
            src, dst, _ = chunk.ends(chunk.slots[turn.first])
            return src, dst, np.full(len(src), self.n)
        if kind in ("gather", "scatter"):
            if id(chunk) not in self.climbed:
                self.climbed[id(chunk)] = {
                    step: (a, b, c) for step, a, b, c in _gathered(chunk, self.plan.problem.collective)
                }
            src, dst, _ = self.climbed[id(chunk)][turn.step]
            pair, blocks = np.unique(src * self.n + dst, return_counts=True)
            return pair // self.n, pair % self.n, blocks
        src, dst, amount = chunk.traffic(turn, self.root)
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
        plan.problem.topology, collective, plan.parts * collective.num_ranks,
        step=np.repeat(np.arange(len(steps)), [len(k) for k in keys]), route=route,
        amount=np.concatenate(amounts) if amounts else none, times=np.array(repeats, dtype=np.int64), routes=routes,
        scheduler=plan.scheduler,
    )  # fmt: skip
