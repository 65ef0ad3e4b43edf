"""A chunk of every shard and the way it goes: dimensions in turn, by the product rule.

A block is the shard of a rank, so a vector of coordinates. At (dimension i, substep k) rank r sends every block that it
still has and whose i-th coordinate line i sends from r_i then. Whether r still has it is decided dimension by
dimension, so what a turn moves is a product of lists of pairs (own coordinate, block's coordinate): no shape of torus
needs a rule of its own, and everything is arithmetic on whole columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from math import prod
from typing import Any

import attrs
import numpy as np

from .lines import Line

__all__ = ["Chunk", "Exchange", "Slot", "Turn", "queue"]

Array = np.ndarray[Any, np.dtype[Any]]
#: sender, receiver, block of every transfer of a step
Sends = tuple[Array, Array, Array]
#: sender, receiver, amount of every message of a step
Traffic = tuple[Array, Array, Array]


@attrs.frozen
class Turn:
    """Substeps ``first`` .. ``first + length - 1`` of a dimension, from step ``step`` on.

    Substeps of one turn load the links alike.
    """

    step: int
    dim: int
    first: int
    length: int = 1

    @property
    def end(self) -> int:
        return self.step + self.length


def queue(substeps: Sequence[int], start: int) -> list[Turn]:
    """Return one substep after the other of the dimensions in turn, from ``start``, leaving out what has finished."""
    left, done = list(substeps), [0] * len(substeps)
    turns: list[Turn] = []
    while any(left):
        for dim in [*range(start, len(left)), *range(start)]:
            if left[dim]:
                turns.append(Turn(len(turns), dim, done[dim]))
                left[dim] -= 1
                done[dim] += 1
    return turns


@attrs.frozen(eq=False)
class _Chunk:
    """Parts ``lo .. hi`` of every shard; the logical torus is ``shape``, rank ``place[i]`` stands at its place i.

    ``way`` (0 or 1) says which of two shortest ways, ``lane`` which of several parallel links its messages take.
    """

    shape: tuple[int, ...]
    lo: int
    hi: int
    way: int = 0
    lane: int = 0
    place: Array | None = None
    #: whether it is part of a reduce-scatter, and of what that becomes when it runs backwards
    forwards: bool = True
    backwards: bool = True

    @cached_property
    def strides(self) -> tuple[int, ...]:
        return tuple(prod(self.shape[i + 1 :]) for i in range(len(self.shape)))

    def rank(self, where: Array) -> Array:
        return where if self.place is None else self.place[where]

    def where(self, rank: int) -> tuple[int, ...]:
        """Return the coordinates of a rank."""
        place = rank if self.place is None else int(np.flatnonzero(self.place == rank)[0])
        return tuple(int(x) for x in np.unravel_index(place, self.shape)) if self.shape else ()

    def product(self, lists: Sequence[Array]) -> Array:
        """Return the sums of one element from each list times its dimension's stride, last dimension fastest."""
        total = np.zeros(1, dtype=np.int64)
        for stride, values in zip(self.strides, lists, strict=True):
            total = (total[:, None] + np.asarray(values, dtype=np.int64)[None, :] * stride).ravel()
        return total


@attrs.frozen(eq=False)
class Chunk(_Chunk):
    """A chunk that is scattered: ``lines``, one a dimension, take ``turns``."""

    lines: tuple[Line, ...] = attrs.field(kw_only=True)
    turns: tuple[Turn, ...] = attrs.field(kw_only=True)

    @property
    def num_steps(self) -> int:
        return max((turn.end for turn in self.turns), default=0)

    def _before(self, turn: Turn) -> list[int]:
        """Return how many substeps of each dimension have been before a turn."""
        done = [0] * len(self.shape)
        for other in self.turns:
            if other.end <= turn.step:
                done[other.dim] = max(done[other.dim], other.first + other.length)
        return done

    def sends(self, root: int | None = None) -> Iterator[tuple[int, Sends]]:
        """Yield (step, transfers) of the reduce-scatter: of all blocks, or of the root's alone."""
        at = None if root is None else self.where(root)
        for turn in self.turns:
            done = self._before(turn)
            held = [line.held(done[i]) if i != turn.dim else None for i, line in enumerate(self.lines)]
            for offset in range(turn.length):
                lists = []
                for i, other in enumerate(held):
                    a, b, to = self.lines[i].sends(turn.first + offset) if other is None else (*other, other[0])
                    kept = np.ones(len(a), dtype=bool) if at is None else b == at[i]
                    lists.append((a[kept], b[kept], to[kept]))
                src, block, dst = (self.rank(self.product([x[column] for x in lists])) for column in range(3))
                yield turn.step + offset, (src, dst, block)

    def alike(self, turn: Turn) -> tuple[object, ...]:
        """Return what decides what a turn sends, but for the parts of the shards."""
        return tuple(map(id, self.lines)), turn.dim, turn.first, tuple(self._before(turn))

    def traffic(self, turn: Turn, root: int | None = None) -> Traffic:
        """Return the messages of any step of a turn, in blocks; of the root's block alone where there is one."""
        done, sent = self._before(turn), []
        at = None if root is None else self.where(root)
        for i, line in enumerate(self.lines):
            if at is not None:
                a = np.flatnonzero(line.when[:, at[i]] == turn.first) if i == turn.dim else (
                    np.flatnonzero(line.when[:, at[i]] >= done[i]))  # fmt: skip
                sent.append((a, line.to[a, at[i]] if i == turn.dim else a, np.ones(len(a), dtype=np.int64)))
            elif i == turn.dim:
                sent.append(line.traffic(turn.first))
            else:
                a = np.arange(line.size)
                sent.append((a, a, line.holdings(done[i])))
        src, dst = (self.rank(self.product([x[column] for x in sent])) for column in (0, 1))
        amount = np.ones(1, dtype=np.int64)
        for _, _, count in sent:
            amount = (amount[:, None] * count).ravel()
        return src, dst, amount


@attrs.frozen
class Slot:
    """A step of an exchange along ``dim``: ``sender[j]`` sends to ``receiver[j]``, who adds, or with ``copies`` keeps.

    ``present`` are the coordinates of each dimension that take part.
    """

    dim: int
    sender: Array
    receiver: Array
    present: tuple[Array, ...]
    copies: bool = False


@attrs.frozen(eq=False)
class Exchange(_Chunk):
    """A chunk of which everyone sends all it has, every time: an allreduce without a scatter, one slot a step."""

    slots: tuple[Slot, ...] = attrs.field(kw_only=True)

    @property
    def num_steps(self) -> int:
        return len(self.slots)

    def sends(self) -> Iterator[tuple[int, Array, Array, bool]]:
        """Yield (step, sender, receiver, whether it is a copy)."""
        for step, slot in enumerate(self.slots):
            yield step, *self.ends(slot)

    def ends(self, slot: Slot) -> tuple[Array, Array, bool]:
        """Return (sender, receiver, whether it is a copy) of a slot."""
        src, dst = (
            self.rank(self.product([column if i == slot.dim else a for i, a in enumerate(slot.present)]))
            for column in (slot.sender, slot.receiver)
        )
        return src, dst, slot.copies
