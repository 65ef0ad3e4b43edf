"""Atoms, the smallest parts that a schedule moves as a whole, and the texts of failures."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from ..arrays import Array, distinct
from ..frozen import frozen
from ..schedule import Action, Schedule
from .report import Check, Row

__all__ = ["Atoms", "Wrong", "row_text"]

_MOST_LISTED = 1 << 16  # parts for which looking ends up in a list is cheaper than searching
_MOST_PLACES = 1 << 26  # ends of all shards that are looked up in a table


class Wrong(Exception):
    """A check failed; carries its name, its detail, and what explains it."""

    def __init__(
        self, name: str, detail: str, notes: tuple[str, ...] = (), rows: tuple[Row, ...] = (), hint: str = ""
    ):  # fmt: skip
        super().__init__(name, detail)
        self.check = Check(name, False, detail, notes, rows, hint)


@frozen
class Atoms:
    """Row i moves atoms ``first[i] .. last[i]`` (exclusive); atom k is parts ``ends[k] .. ends[k+1]`` of a shard."""

    ends: Array
    first: Array
    last: Array

    @classmethod
    def of(cls, s: Schedule) -> Atoms:
        """Return the atoms of a schedule: shards are cut wherever an interval of some row ends."""
        ends = distinct(np.concatenate([[0, s.parts], distinct(s.lo), distinct(s.hi)]).astype(np.int64))
        kind = np.uint16 if len(ends) < 2**16 else np.int64
        if s.parts >= _MOST_LISTED:
            return cls(ends, np.searchsorted(ends, s.lo).astype(kind), np.searchsorted(ends, s.hi).astype(kind))
        number = np.zeros(s.parts + 1, dtype=kind)
        number[ends] = np.arange(len(ends))
        return cls(ends, number.take(s.lo), number.take(s.hi))

    @property
    def count(self) -> int:
        """Atoms of a shard."""
        return len(self.ends) - 1

    @classmethod
    def by_shard(cls, s: Schedule, shards: int, few: int) -> list[tuple[int, int, Atoms]]:
        """Return (first shard, end, their atoms): runs of shards that are cut at the same places.

        A shard is cut only where an interval of one of its own rows ends, unless all shards have at most ``few`` atoms
        together if they are cut at the same places.
        """
        same = cls.of(s)
        places = len(same.ends)
        if places == 2 or shards * same.count <= few or shards * places > _MOST_PLACES:
            return [(0, shards, same)]
        is_end = np.zeros((shards, places), dtype=bool)
        is_end[:, [0, -1]] = is_end[s.shard, same.first] = is_end[s.shard, same.last] = True
        number = np.cumsum(is_end, axis=1, dtype=np.int32) - 1
        first, last = number[s.shard, same.first], number[s.shard, same.last]
        starts = [0, *(np.flatnonzero((is_end[1:] != is_end[:-1]).any(axis=1)) + 1).tolist(), shards]
        return [(a, b, cls(same.ends[is_end[a]], first, last)) for a, b in pairwise(starts)]

    def windows(self, size: int) -> Iterator[Atoms]:
        """Yield the atoms ``size`` at a time; what a row moves outside of a window it moves in another."""
        if size >= self.count:
            yield self
            return
        for a in range(0, self.count, size):
            b = min(a + size, self.count)
            first, last = (np.clip(end, a, b) - a for end in (self.first, self.last))
            yield Atoms(self.ends[a : b + 1], first, last)

    def name(self, s: Schedule, atom: int) -> str:
        """Return `` part [a/parts, b/parts) of`` for messages; empty if the atom is the whole shard."""
        a, b = int(self.ends[atom]), int(self.ends[atom + 1])
        return "" if (a, b) == (0, s.parts) else f" part [{a}/{s.parts}, {b}/{s.parts}) of"


def row_text(s: Schedule, i: int) -> str:
    """Return the transfer of row ``i`` as text for messages."""
    verb = "reduces" if s.action[i] == Action.REDUCE else "sends"
    part = "" if (s.lo[i], s.hi[i]) == (0, s.parts) else f" part [{s.lo[i]}/{s.parts}, {s.hi[i]}/{s.parts}) of"
    names = s.topology.names
    return f"step {s.step[i]}: rank {names[s.src[i]]} {verb}{part} shard {s.shard[i]} to rank {names[s.dst[i]]}"
