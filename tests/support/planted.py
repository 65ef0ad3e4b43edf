"""Faults to plant into passes: what they leave is changed a little, so that its form is sound and its meaning wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs
import numpy as np
import pytest

from collc.ir.machine import partners
from collc.ir.program import Opcode, Program
from collc.ir.schedule import Forest, Schedule
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.validate import structure
from collc.ir.verify import verify
from collc.registry import classes as registry

__all__ = ["FAULTS", "plant", "spoiled"]

FAULTS = ("drop", "peer", "wait", "offset")


def spoiled(level: Any, how: str) -> Any:
    """Return the level with the first fault of its kind that is sound in form and wrong, if there is one."""
    for found in _changed(level, how):
        if not structure(found) and not verify(found).ok:
            return found
    return None


def plant(monkeypatch: pytest.MonkeyPatch, name: str, how: str) -> list[bool]:
    """Let a pass leave a fault; return a list that says, for every time it ran, whether there was a fault to make."""
    cls, made = registry.pass_class(name), list[bool]()
    whole = cls.run

    def run(self: Any, ir: Any) -> Any:
        right = whole(self, ir)
        wrong = spoiled(right, how)
        made.append(wrong is not None)
        return right if wrong is None else wrong

    monkeypatch.setattr(cls, "run", run)
    return made


def _changed(level: Any, how: str) -> Iterator[Any]:
    if isinstance(level, SymmetricSchedule):
        yield from (SymmetricSchedule(seed) for seed in _changed(level.seed, how))
    elif isinstance(level, Schedule):
        yield from _SCHEDULE[how](level)
    elif isinstance(level, Forest):
        yield from _FOREST[how](level)
    else:
        yield from _PROGRAM[how](level)


def _with(level: Any, column: str, row: int, value: int) -> Any:
    values = getattr(level, column).astype(np.int64)
    values[row] = value
    return attrs.evolve(level, **{column: values})


# ---- schedules and forests


def _drop_row(level: Schedule) -> Iterator[Any]:
    yield from (level.rows(np.delete(np.arange(len(level)), row)) for row in reversed(range(len(level))))


def _other_link(level: Schedule | Forest) -> Iterator[Any]:
    for row in range(len(level.route)):
        yield _with(level, "route", row, (int(level.route[row]) + 1) % len(level.routes))


def _earlier(level: Schedule) -> Iterator[Any]:
    """Yield schedules that send something before it is there."""
    for row in np.flatnonzero(level.step > 0).tolist():
        first = np.concatenate([[row], np.delete(np.arange(len(level)), row)])
        yield attrs.evolve(level.rows(first), step=np.concatenate([[0], np.delete(level.step, row)]))


def _other_shard(level: Schedule) -> Iterator[Any]:
    for row in range(len(level)):
        yield _with(level, "shard", row, (int(level.shard[row]) + 1) % level.collective.num_shards)
        if level.hi[row] < level.parts:
            moved = _with(level, "lo", row, int(level.lo[row]) + 1)
            yield _with(moved, "hi", row, int(level.hi[row]) + 1)


def _drop_edge(level: Forest) -> Iterator[Any]:
    for row in reversed(range(len(level.tree))):
        kept = np.delete(np.arange(len(level.tree)), row)
        yield attrs.evolve(level, **{c: getattr(level, c)[kept] for c in ("tree", "parent", "child", "route")})


def _other_weight(level: Forest) -> Iterator[Any]:
    for row in range(level.num_trees):
        if level.weight[row] > 1:
            yield _with(level, "weight", row, int(level.weight[row]) - 1)
    for row in range(level.num_trees):
        yield _with(level, "root", row, (int(level.root[row]) + 1) % level.collective.num_ranks)


_SCHEDULE: dict[str, Callable[[Any], Iterator[Any]]] = {
    "drop": _drop_row, "peer": _other_link, "wait": _earlier, "offset": _other_shard,
}  # fmt: skip
_FOREST: dict[str, Callable[[Any], Iterator[Any]]] = {
    "drop": _drop_edge, "peer": _other_link, "wait": _drop_edge, "offset": _other_weight,
}  # fmt: skip


# ---- programs


def _drop_message(program: Program) -> Iterator[Program]:
    """Yield programs that lack a message at both ends."""
    partner = partners(program)
    for row in np.flatnonzero((program.opcode == Opcode.RECV) & (partner >= 0)).tolist():
        rows = [row, int(partner[row])]
        if program.opcode[rows[1]] == Opcode.SEND:
            columns = {c: getattr(program, c).astype(np.int64) for c in _BARE}
            for column in columns.values():
                column[rows] = 0
            yield attrs.evolve(program, **columns)


_BARE = ("opcode", "src_buffer", "src_offset", "dst_buffer", "dst_offset", "count")


def _other_peer(program: Program) -> Iterator[Program]:
    for column in ("send_peer", "recv_peer"):
        for block in np.flatnonzero(getattr(program, column) >= 0).tolist():
            yield _with(program, column, block, (int(getattr(program, column)[block]) + 1) % program.num_ranks)


def _fewer_waits(program: Program) -> Iterator[Program]:
    start = program.dep_start.astype(np.int64)
    for dep in range(len(program.deps)):
        row = int(np.searchsorted(start, dep, side="right")) - 1
        fewer = start - (np.arange(len(start)) > row)
        yield attrs.evolve(program, dep_start=fewer, deps=np.delete(program.deps, dep))


def _other_place(program: Program) -> Iterator[Program]:
    for column in ("src_offset", "dst_offset"):
        for row in range(program.num_instructions):
            for by in (1, -1):
                yield _with(program, column, row, int(getattr(program, column)[row]) + by)


_PROGRAM: dict[str, Callable[[Any], Iterator[Any]]] = {
    "drop": _drop_message, "peer": _other_peer, "wait": _fewer_waits, "offset": _other_place,
}  # fmt: skip
