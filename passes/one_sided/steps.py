"""Operations as small objects, for passes that join them: few at a time, in lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from collc.ir.one_sided.opcodes import SIGNALS, WAITS, Op, table
from collc.ir.one_sided.program import NO_CHANNEL

from .rows import FIXED, Rows, packet_items

__all__ = ["Piece", "Step", "steps_of", "to_rows"]

_SYNCHRONIZES = SIGNALS | WAITS | table(Op.SEM_ACQUIRE, Op.SEM_RELEASE, Op.BARRIER, Op.NOP, Op.FLUSH)
_OPS = tuple(Op)
_WAITS_OR_ACQUIRES = (WAITS | table(Op.SEM_ACQUIRE)).tolist()
_IS_SYNC = _SYNCHRONIZES.tolist()


class Piece(NamedTuple):
    """Chunks ``low`` to ``high`` (exclusive) of a buffer of a rank; ``packets`` says whether they hold packets."""

    rank: int
    buffer: int
    low: int
    high: int
    packets: bool

    def overlaps(self, other: Piece) -> bool:
        """Return whether both have a chunk in common."""
        return (
            self.low < other.high and other.low < self.high and self.rank == other.rank
            and self.buffer == other.buffer and self.packets == other.packets
        )  # fmt: skip


class Step:
    """One operation: its ``row`` of old, and what passes change of it."""

    __slots__ = ("depth", "dst", "fixed", "links", "moment", "op", "row", "src")

    def __init__(self, row: int, fixed: list[int], links: list[int], src: list[Piece], dst: list[Piece]):
        self.row, self.fixed, self.links, self.src, self.dst = row, fixed, links, src, dst
        self.op = _OPS[fixed[1]]
        self.depth = self.moment = 0

    @property
    def transport(self) -> int:
        """How it reaches other ranks."""
        return self.fixed[2]

    @property
    def synchronizes(self) -> bool:
        """Whether it signals, waits, acquires or releases."""
        return bool(_IS_SYNC[self.op])

    @property
    def learns(self) -> bool:
        """Whether it waits for a signal or acquires a semaphore."""
        return bool(_WAITS_OR_ACQUIRES[self.op])

    def become(self, op: Op) -> None:
        """Change what the operation does."""
        self.op = op

    def touches(self, pieces: Iterable[Piece]) -> bool:
        """Return whether it reads or writes some of the pieces."""
        return any(own.overlaps(piece) for piece in pieces for side in (self.src, self.dst) for own in side)

    def writes(self, pieces: Iterable[Piece]) -> bool:
        """Return whether it writes some of the pieces."""
        return any(own.overlaps(piece) for piece in pieces for own in self.dst)


def steps_of(rows: Rows, moments: Sequence[int], depths: Sequence[int]) -> list[Step]:
    """Return the operations as objects."""
    packets = packet_items(rows).tolist()
    pieces = [
        Piece(rank, buffer, low, low + count, packed)
        for (rank, buffer, low, count, _), packed in zip(rows.items.tolist(), packets, strict=True)
    ]
    links, found, link, item = rows.links.tolist(), [], 0, 0
    counts = zip(rows.fixed.tolist(), rows.link_count.tolist(), rows.item_count.tolist(), strict=True)
    for row, (fixed, more, number) in enumerate(counts):
        middle = item + fixed[8]
        one = Step(row, fixed, links[link : link + more], pieces[item:middle], pieces[middle : item + number])
        one.moment, one.depth = moments[row], depths[row]
        found.append(one)
        link, item = link + more, item + number
    return found


def to_rows(steps: Sequence[Step]) -> Rows:
    """Return the rows of operations."""
    fixed, links, items, link_count, item_count = [], list[int](), list[tuple[int, ...]](), [], []
    for one in steps:
        fixed.append((one.fixed[0], int(one.op), *one.fixed[2:8], len(one.src)))
        links += one.links
        link_count.append(len(one.links))
        item_count.append(len(one.src) + len(one.dst))
        items += one.src
        items += one.dst
    pieces = np.array(items, dtype=np.int64).reshape(-1, 5)
    pieces[:, 3] -= pieces[:, 2]
    pieces[:, 4] = NO_CHANNEL
    return Rows(
        np.array(fixed, dtype=np.int64).reshape(-1, len(FIXED)), np.array(link_count, dtype=np.int64),
        np.array(links, dtype=np.int64), np.array(item_count, dtype=np.int64), pieces,
    )  # fmt: skip
