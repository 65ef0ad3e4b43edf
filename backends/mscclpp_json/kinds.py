"""The operations and lists of a plan as columns, with numbers as they stand in the file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TypeVar

import numpy as np

from collc.ir.arrays import Array
from collc.ir.frozen import frozen
from collc.ir.ragged import starts

from .model import BUFFERS, LOOP, MISSING, OPS, TRANSPORTS, Block, Plan, PlanItem, PlanOp

__all__ = ["HERE", "PEER", "SWITCH", "Kinds", "Lists"]

#: where an item is: in a buffer of the rank, of a peer, or behind a switch
HERE, PEER, SWITCH = range(3)

_T = TypeVar("_T")


@frozen(eq=False)
class Lists:
    """Numbers that blocks list by transport: list b * 3 + t of block b and transport t has ``values`` from ``start``
    to the next start.
    """

    start: Array
    values: Array

    @property
    def lengths(self) -> Array:
        """The numbers of each list."""
        return np.diff(self.start)

    @classmethod
    def of(cls, blocks: Sequence[Block], lists: Callable[[Block], Sequence[tuple[str, tuple[int, ...]]]]) -> Lists:
        """Return the lists of blocks; those of one transport in one block follow each other."""
        found = [
            (b * len(TRANSPORTS) + int(TRANSPORTS[name]), ids)
            for b, block in enumerate(blocks) for name, ids in lists(block)
        ]  # fmt: skip
        found.sort(key=lambda one: one[0])
        lengths = np.zeros(len(blocks) * len(TRANSPORTS), dtype=np.int64)
        np.add.at(lengths, [number for number, _ in found], [len(ids) for _, ids in found])
        return cls(starts(lengths), np.array([one for _, ids in found for one in ids], dtype=np.int64))


class Kinds:
    """The operations of a plan; equal ones of the reader are one object, and one kind.

    Operation i, block by block and pipelines without their frames, is of kind ``kind[i]``, in loop ``loop[i]``;
    block b has ``sizes[b]``. Kind k is operation ``ops[k]``, with opcode ``code`` (-1: unknown) and ``transport`` (-1:
    none). It has ``channels[k]`` numbers of ``channel`` and ``semaphores[k]`` of ``semaphore``, and ``items[k]`` items,
    of which ``sources[k]`` are sources. Of these ``where``, ``number`` (of a buffer, or in the lists of the block),
    ``first`` and ``size`` are known.
    """

    def __init__(self, plan: Plan):
        self.blocks = [block for gpu in plan.gpus for block in gpu.blocks]
        self.rank = np.repeat(np.arange(len(plan.gpus)), [len(gpu.blocks) for gpu in plan.gpus])
        self.loops: list[tuple[int, int]] = []
        listed = [block.ops for block in self.blocks]
        flat = list(chain.from_iterable(listed))
        self.ops, self.kind = _once(flat)
        self.loop, self.sizes = np.full(len(flat), -1), np.array([len(ops) for ops in listed], dtype=np.int64)
        if any(op.name == LOOP for op in self.ops):
            flat = self._unrolled(listed)
            self.ops, self.kind = _once(flat)
        self.linked = Lists.of(self.blocks, lambda block: block.channels)
        self.reached = Lists.of(self.blocks, lambda block: block.buffers)
        self._columns()
        self._items()

    def _unrolled(self, listed: Sequence[tuple[PlanOp, ...]]) -> list[PlanOp]:
        """Return the operations, those of pipelines in their place, and number the loops."""
        flat: list[PlanOp] = []
        loop: list[int] = []
        sizes: list[int] = []
        for ops in listed:
            before = len(flat)
            for op in ops:
                inner = op.inner if op.name == LOOP else (op,)
                if op.name == LOOP:
                    self.loops.append((op.unit, op.chunks))
                flat += inner
                loop += [len(self.loops) - 1 if op.name == LOOP else -1] * len(inner)
            sizes.append(len(flat) - before)
        self.loop, self.sizes = np.array(loop, dtype=np.int64), np.array(sizes, dtype=np.int64)
        return flat

    def _columns(self) -> None:
        ops = self.ops
        codes = {name: int(op) for name, op in OPS.items()}
        transports = {"": -1, **{name: int(transport) for name, transport in TRANSPORTS.items()}}
        rows = [
            (
                codes.get(op.name, -1), transports[op.transport], op.share, op.shares, op.barrier, op.blocks,
                len(op.src), len(op.src) + len(op.dst), len(op.channels), len(op.semaphores), op.adds == "sum",
            )
            for op in ops
        ]  # fmt: skip
        columns = np.array(rows, dtype=np.int64).reshape(-1, 11).T
        self.code, self.transport, self.share, self.shares, self.barrier, self.joins = columns[:6]
        self.sources, self.items, self.channels, self.semaphores, self.sums = columns[6:]
        self.channel = np.array([one for op in ops for one in op.channels], dtype=np.int64)
        self.semaphore = np.array([one for op in ops for one in op.semaphores], dtype=np.int64)

    def _items(self) -> None:
        items, row = _once([item for op in self.ops for side in (op.src, op.dst) for item in side])
        table = np.array([_item(item) for item in items], dtype=np.int64).reshape(-1, 4)[row]
        self.where, self.number, self.first, self.size = table.T


def _once(objects: Sequence[_T]) -> tuple[list[_T], Array]:
    """Return the distinct objects, by identity, and which of them each is."""
    identities = list(map(id, objects))
    distinct = dict(zip(identities, objects, strict=True))
    numbers = {identity: number for number, identity in enumerate(distinct)}
    row = np.fromiter(map(numbers.__getitem__, identities), dtype=np.int64, count=len(identities))
    return list(distinct.values()), row


def _item(item: PlanItem) -> tuple[int, int, int, int]:
    if item.letter:
        return HERE, int(BUFFERS[item.letter]), item.first, item.size
    if item.remote != MISSING:
        return PEER, item.remote, item.first, item.size
    return SWITCH, item.switch, item.first, item.size
