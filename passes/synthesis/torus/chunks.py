"""Parts of every shard and how they travel: dimensions in turn, by the product rule.

A shard belongs to a rank, so it has that rank's coordinates. At (dimension i, substep k) rank r sends every shard that
it still has and whose i-th coordinate line i sends from r_i then. Whether r still has it is decided dimension by
dimension. So the transfers of a stage are a product of lists of pairs (own coordinate, shard's coordinate): no shape of
torus needs its own rule, and everything is arithmetic on whole columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from math import prod

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.frozen import frozen

from .lines import Line

__all__ = ["ExchangeStep", "ExchangedPart", "ScatteredPart", "Stage", "interleaved_stages"]
#: sender, receiver, shard of every transfer of a step
Sends = tuple[Array, Array, Array]
#: sender, receiver, amount of every message of a step
Traffic = tuple[Array, Array, Array]


@frozen
class Stage:
    """Substeps ``first`` .. ``first + length - 1`` of a dimension, from step ``step`` on.

    Substeps of one stage load the links equally.
    """

    step: int
    dim: int
    first: int
    length: int = 1

    @property
    def end(self) -> int:
        """The step after the last of the stage."""
        return self.step + self.length


def interleaved_stages(substeps: Sequence[int], start: int) -> list[Stage]:
    """Return stages of one substep: the unfinished dimensions in turn, from ``start``."""
    left, done = list(substeps), [0] * len(substeps)
    stages: list[Stage] = []
    while any(left):
        for dim in [*range(start, len(left)), *range(start)]:
            if left[dim]:
                stages.append(Stage(len(stages), dim, done[dim]))
                left[dim] -= 1
                done[dim] += 1
    return stages


@frozen(eq=False)
class _RoutedPart:
    """Parts ``lo .. hi`` of every shard; the logical torus is ``shape``, with rank ``place[i]`` at place i.

    ``direction`` (0 or 1) chooses one of two equally short routes, ``lane`` one of several parallel links.
    """

    shape: tuple[int, ...]
    lo: int
    hi: int
    direction: int = 0
    lane: int = 0
    place: Array | None = None
    #: whether it takes part in the reduce-scatter, and in its reverse
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


@frozen(eq=False)
class ScatteredPart(_RoutedPart):
    """A part that is scattered: ``lines``, one per dimension, run in ``stages``."""

    lines: tuple[Line, ...] = attrs.field(kw_only=True)
    stages: tuple[Stage, ...] = attrs.field(kw_only=True)

    @property
    def num_steps(self) -> int:
        """Steps until the last stage has ended."""
        return max((stage.end for stage in self.stages), default=0)

    def _before(self, stage: Stage) -> list[int]:
        """Return how many substeps of each dimension precede a stage."""
        done = [0] * len(self.shape)
        for other in self.stages:
            if other.end <= stage.step:
                done[other.dim] = max(done[other.dim], other.first + other.length)
        return done

    def sends(self, root: int | None = None) -> Iterator[tuple[int, Sends]]:
        """Yield (step, transfers) of the reduce-scatter: of all shards, or of the root's alone."""
        at = None if root is None else self.where(root)
        for stage in self.stages:
            done = self._before(stage)
            held = [line.held(done[i]) if i != stage.dim else None for i, line in enumerate(self.lines)]
            for offset in range(stage.length):
                lists = []
                for i, other in enumerate(held):
                    a, b, to = self.lines[i].sends(stage.first + offset) if other is None else (*other, other[0])
                    kept = np.ones(len(a), dtype=bool) if at is None else b == at[i]
                    lists.append((a[kept], b[kept], to[kept]))
                src, shard, dst = (self.rank(self.product([x[column] for x in lists])) for column in range(3))
                yield stage.step + offset, (src, dst, shard)

    def alike(self, stage: Stage) -> tuple[object, ...]:
        """Return a key of a stage's traffic; the part of the shards plays no role."""
        return tuple(map(id, self.lines)), stage.dim, stage.first, tuple(self._before(stage))

    def traffic(self, stage: Stage, root: int | None = None) -> Traffic:
        """Return the messages of any step of a stage, in shards; of the root's shard alone if there is a root."""
        done, sent = self._before(stage), []
        at = None if root is None else self.where(root)
        for i, line in enumerate(self.lines):
            if at is not None:
                a = np.flatnonzero(line.when[:, at[i]] == stage.first) if i == stage.dim else (
                    np.flatnonzero(line.when[:, at[i]] >= done[i]))  # fmt: skip
                sent.append((a, line.to[a, at[i]] if i == stage.dim else a, np.ones(len(a), dtype=np.int64)))
            elif i == stage.dim:
                sent.append(line.traffic(stage.first))
            else:
                a = np.arange(line.size)
                sent.append((a, a, line.holdings(done[i])))
        src, dst = (self.rank(self.product([x[column] for x in sent])) for column in (0, 1))
        amount = np.ones(1, dtype=np.int64)
        for _, _, count in sent:
            amount = (amount[:, None] * count).ravel()
        return src, dst, amount


@frozen
class ExchangeStep:
    """A step along ``dim``: ``sender[j]`` sends to ``receiver[j]``, which reduces, or with ``copies`` copies.

    ``present`` are the participating coordinates of each dimension.
    """

    dim: int
    sender: Array
    receiver: Array
    present: tuple[Array, ...]
    copies: bool = False


@frozen(eq=False)
class ExchangedPart(_RoutedPart):
    """A part that every rank sends whole in every step: an allreduce without a scatter."""

    exchanges: tuple[ExchangeStep, ...] = attrs.field(kw_only=True)

    @property
    def num_steps(self) -> int:
        """The number of steps."""
        return len(self.exchanges)

    def sends(self) -> Iterator[tuple[int, Array, Array, bool]]:
        """Yield (step, sender, receiver, whether it is a copy)."""
        for step, exchange_step in enumerate(self.exchanges):
            yield step, *self.ends(exchange_step)

    def ends(self, exchange_step: ExchangeStep) -> tuple[Array, Array, bool]:
        """Return (sender, receiver, whether it is a copy) of a step."""
        src, dst = (
            self.rank(
                self.product([column if i == exchange_step.dim else a for i, a in enumerate(exchange_step.present)])
            )
            for column in (exchange_step.sender, exchange_step.receiver)
        )
        return src, dst, exchange_step.copies
