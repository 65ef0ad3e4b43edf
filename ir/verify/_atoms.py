"""What the execution of a schedule works on: parts of shards cut at every interval's ends, and how failures read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np

from ..schedule import Action, Schedule
from .report import Check

__all__ = ["Atoms", "Wrong", "row_text"]

Array = np.ndarray[Any, np.dtype[Any]]

_MOST_LISTED = 1 << 16  # parts for which looking ends up in a list is cheaper than searching


class Wrong(Exception):
    """A check failed; carries its name and detail."""

    def __init__(self, name: str, detail: str):
        super().__init__(name, detail)
        self.check = Check(name, False, detail)


@attrs.frozen
class Atoms:
    """Row i moves atoms ``first[i] .. last[i]`` (exclusive); atom k is parts ``ends[k] .. ends[k+1]`` of a shard."""

    ends: Array
    first: Array
    last: Array

    @classmethod
    def of(cls, s: Schedule) -> Atoms:
        ends = np.unique(np.concatenate([np.unique(s.lo), np.unique(s.hi)]).astype(np.int64))
        ends = np.union1d(ends, [0, s.parts])
        kind = np.uint16 if len(ends) < 2**16 else np.int64
        if s.parts >= _MOST_LISTED:
            return cls(ends, np.searchsorted(ends, s.lo).astype(kind), np.searchsorted(ends, s.hi).astype(kind))
        number = np.zeros(s.parts + 1, dtype=kind)
        number[ends] = np.arange(len(ends))
        return cls(ends, number[s.lo], number[s.hi])

    @property
    def count(self) -> int:
        return len(self.ends) - 1

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
        a, b = int(self.ends[atom]), int(self.ends[atom + 1])
        return "" if (a, b) == (0, s.parts) else f" part [{a}/{s.parts}, {b}/{s.parts}) of"


def row_text(s: Schedule, i: int) -> str:
    verb = "reduces" if s.action[i] == Action.REDUCE else "sends"
    piece = "" if (s.lo[i], s.hi[i]) == (0, s.parts) else f" part [{s.lo[i]}/{s.parts}, {s.hi[i]}/{s.parts}) of"
    names = s.topology.names
    return f"step {s.step[i]}: rank {names[s.src[i]]} {verb}{piece} shard {s.shard[i]} to rank {names[s.dst[i]]}"
