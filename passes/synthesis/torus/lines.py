"""One dimension of a reduce-scatter: when a coordinate forwards a shard, and where to.

A *line* has d coordinates and a shard for each of them. Coordinate a sends shard b != a exactly once; its receiver
sends it later, or is b. So the sends of a shard are a tree that leads to b, in the order of time. Several dimensions
combine by a product rule (:mod:`.chunks`), and an allgather is the same, backwards in time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property

import attrs
import numpy as np

from collc.ir.arrays import Array, fit
from collc.ir.frozen import frozen

__all__ = ["Line", "ring_line", "short_ring_line", "tree_line", "with_folds", "with_guest"]


def _narrow(table: Array) -> Array:
    """Return a table in the narrowest type: lines of thousands of coordinates stay cached."""
    return table.astype(fit(int(table.min()), int(table.max())), copy=False)


@frozen(eq=False)
class Line:
    """Coordinate a sends shard b in substep ``when[a, b]`` to ``to[a, b]``; both (d, d).

    Own shards are never sent: ``when[a, a]`` is the number of substeps.
    """

    substeps: int
    when: Array = attrs.field(converter=_narrow)
    to: Array = attrs.field(converter=_narrow)

    @property
    def size(self) -> int:
        """Coordinates of the dimension."""
        return len(self.when)

    def sends(self, substep: int) -> tuple[Array, Array, Array]:
        """Return (sender, shard, receiver) of all sends of a substep."""
        a, b = np.nonzero(self.when == substep)
        return a, b, self.to[a, b]

    def held(self, substep: int) -> tuple[Array, Array]:
        """Return (coordinate, shard) for every shard not sent before a substep."""
        return np.nonzero(self.when >= substep)  # type: ignore[return-value]

    def traffic(self, substep: int) -> tuple[Array, Array, Array]:
        """Return (sender, receiver, number of shards) of a substep."""
        a, _, to = self.sends(substep)
        key, count = np.unique(a * self.size + to, return_counts=True)
        return key // self.size, key % self.size, count

    def holdings(self, substep: int) -> Array:
        """Return how many shards each coordinate has not sent before a substep."""
        held: Array = np.count_nonzero(self.when >= substep, axis=1)
        return held

    def volume(self, substep: int) -> int:
        """Return the most shards that a coordinate sends in a substep."""
        return int(np.count_nonzero(self.when == substep, axis=1).max(initial=0))


@frozen(eq=False)
class _Ring:
    """The line in which every shard travels round a ring to its coordinate: a ``Line`` with tables only on demand."""

    size: int
    direction: int

    @property
    def substeps(self) -> int:
        return self.size - 1

    @cached_property
    def when(self) -> Array:
        at = np.arange(self.size)
        return self.size - 1 - (at[None, :] - at[:, None]) * self.direction % self.size

    @cached_property
    def to(self) -> Array:
        at = np.arange(self.size)
        return np.where(at[None, :] == at[:, None], -1, ((at + self.direction) % self.size)[:, None])

    def sends(self, substep: int) -> tuple[Array, Array, Array]:
        a = np.arange(self.size)
        return a, (a + self.direction * (self.size - 1 - substep)) % self.size, (a + self.direction) % self.size

    def held(self, substep: int) -> tuple[Array, Array]:
        return np.nonzero(self.when >= substep)  # type: ignore[return-value]

    def traffic(self, substep: int) -> tuple[Array, Array, Array]:
        a = np.arange(self.size)
        return a, (a + self.direction) % self.size, np.ones(self.size, dtype=np.int64)

    def holdings(self, substep: int) -> Array:
        return np.full(self.size, self.size - substep)


@cache
def ring_line(size: int, direction: int) -> Line:
    """Return the line of size - 1 substeps in which all forward a shard to their neighbour, ``direction`` +1 or -1."""
    return _Ring(size, direction)  # type: ignore[return-value]


@frozen(eq=False)
class _ShortRing(_Ring):
    """The line in which every shard takes the shorter direction round a ring; ``direction`` breaks ties."""

    @property
    def substeps(self) -> int:
        return self.size // 2

    @cached_property
    def when(self) -> Array:
        up = (np.arange(self.size)[None, :] - np.arange(self.size)[:, None]) % self.size
        when: Array = self.substeps - np.minimum(up, self.size - up)
        return when

    @cached_property
    def to(self) -> Array:
        at = np.arange(self.size)
        up = (at[None, :] - at[:, None]) % self.size
        direction = np.where(2 * up == self.size, self.direction, np.where(2 * up < self.size, 1, -1))
        return np.where(up == 0, -1, (at[:, None] + direction) % self.size)

    def sends(self, substep: int) -> tuple[Array, Array, Array]:
        a, away = np.arange(self.size), self.substeps - substep
        directions = (self.direction,) if 2 * away == self.size else (1, -1)
        sent = [(a, (a + direction * away) % self.size, (a + direction) % self.size) for direction in directions]
        shard, to = (np.concatenate([row[column] for row in sent]) for column in (1, 2))
        return np.tile(a, len(directions)), shard, to

    def traffic(self, substep: int) -> tuple[Array, Array, Array]:
        a, _, to = self.sends(substep)
        return a, to, np.ones(len(a), dtype=np.int64)

    def holdings(self, substep: int) -> Array:
        return np.full(self.size, min(2 * (self.substeps - substep) + 1, self.size))


@cache
def short_ring_line(size: int, direction: int) -> Line:
    """Return the line of size // 2 substeps in which all forward shards in both directions, farthest first.

    Breadth first on a ring: shards half round go up (``direction`` +1) or down (-1).
    """
    return _ShortRing(size, direction)  # type: ignore[return-value]


def tree_line(peers: Sequence[Array]) -> Line:
    """Return the line of exchanges: in substep k coordinate a may send to ``peers[k][a]``, (d,) or to any of (d, m).

    A shard is sent in the latest substep from which its coordinate can still be reached: only this rule makes every
    shard travel once (the two sends of section 3.2 of the Swing paper are not always "the last two"). Coordinates that
    do not reach a shard have -1 there: no line, unless folded.
    """
    tables = [np.asarray(p).reshape(len(p), -1) for p in peers]
    size, steps = len(tables[0]), len(tables)
    when, to = np.full((size, size), -1, dtype=np.int8), np.full((size, size), -1, dtype=fit(-1, size))
    np.fill_diagonal(when, steps)
    for k in range(steps - 1, -1, -1):
        reached = when > k  # a snapshot: shards sent in this substep cannot be forwarded in it
        for peer in tables[k].T:
            fresh = (when < 0) & reached[peer]
            when[fresh] = k
            np.copyto(to, peer[:, None].astype(to.dtype), where=fresh)
    return Line(steps, when, to)


def with_guest(core: Line) -> Line:
    """Return the line with one more coordinate, the last, which exchanges with every other directly.

    Substep k has as many of its messages as a core coordinate sends shards, the first substep one more; neighbours come
    in the substeps with the most. So an odd dimension needs no more substeps than the even one below it.
    """
    size, substeps = core.size + 1, max(core.substeps, 1)
    volume = np.array([core.volume(k) for k in range(substeps)])
    volume[0] += 1
    at = np.arange(core.size)
    nearest = np.argsort(np.minimum(at + 1, core.size - at), kind="stable")
    substep = np.empty(core.size, dtype=np.int64)
    substep[nearest] = np.repeat(np.argsort(-volume, kind="stable"), np.sort(volume)[::-1])[: core.size]
    when, to = np.full((size, size), substeps, dtype=np.int64), np.full((size, size), -1, dtype=np.int64)
    own = np.where(np.eye(core.size, dtype=bool), substeps, core.when)
    when[:-1, :-1], to[:-1, :-1] = own, core.to
    when[:-1, -1], to[:-1, -1] = substep, core.size
    when[-1, :-1], to[-1, :-1] = substep, at
    return Line(substeps, when, to)


def with_folds(core: Line, place: Array, guest: Array, host: Array) -> Line:
    """Return the line in which every guest first sends all its shards to its host, and receives its own at the end.

    ``place`` are the coordinates of the core, in order; ``guest`` and ``host`` are pairs of coordinates.
    """
    size, substeps = core.size + len(guest), core.substeps + 2
    when, to = np.full((size, size), -1, dtype=np.int64), np.full((size, size), -1, dtype=np.int64)
    when[np.ix_(place, place)] = core.when + 1
    to[np.ix_(place, place)] = np.where(core.to >= 0, place[core.to], -1)
    when[:, guest], to[:, guest] = when[:, host], to[:, host]  # a guest's shard goes to its host ..
    when[host, guest], to[host, guest] = substeps - 1, guest  # .. which forwards it at the end
    when[guest], to[guest] = 0, host[:, None]
    np.fill_diagonal(when, substeps)
    return Line(substeps, when, to)
