"""Messages of several runs as C tables: lists of pieces, each of them runs of chunks at equal distances.

A message reads the runs of one list and writes those of another; an end that it does not use has no list. The chunks
of a message often lie at equal distances (those of a subtree of a torus, of a ball of a Kautz digraph), so a piece
stands for many runs. What one rank sends, the next often receives at the same places, so equal lists are written once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np

from collc.ir.arrays import Array, Columns
from collc.ir.program import Program
from collc.ir.ragged import group_starts
from collc.ir.symmetric_program import AnyProgram, SymmetricProgram

__all__ = ["ENDS", "Lists", "Pieces", "pieces_of", "series"]

ENDS = ("src", "dst")

#: tables of pieces in files with GROUPS
_COLUMNS = ("piece_buffer", "piece_place", "piece_count", "piece_times", "piece_stride")


@attrs.frozen(eq=False)
class Pieces:
    """The pieces of one algorithm: ``columns`` has a row for each.

    ``number`` has the pieces of each message, 0 if it is one run. ``src`` and ``dst`` are the first pieces that it
    reads and writes, 0 if there are none.
    """

    number: Array
    src: Array
    dst: Array
    columns: Columns

    def __len__(self) -> int:
        return len(self.columns["piece_count"])

    def first(self, end: str, before: int) -> Array:
        """Return the first piece of each message at ``end``, after the ``before`` pieces of other algorithms."""
        own: Array = getattr(self, end)
        return np.where(own >= 0, own + before, 0)


def pieces_of(program: AnyProgram) -> Pieces:
    """Return the pieces of an algorithm; a program of all ranks has none."""
    if isinstance(program, Program):
        none = np.full(program.num_instructions, -1, dtype=np.int64)
        return Pieces(none * 0, none, none, dict.fromkeys(_COLUMNS, none[:0]))
    seed, messages = program.seed, len(program.message_start) - 1
    rows = np.flatnonzero((np.diff(program.message_start) > 1)[program.message])
    first, times = _series(program, rows)
    opening = rows[first]
    message = program.message[opening]
    begin = group_starts(message, messages)
    lists, starts_at = Lists(len(_COLUMNS)), {end: np.full(messages, -1, dtype=np.int64) for end in ENDS}
    tables = {end: _table(program, rows, first, times, end) for end in ENDS}
    uses = {end: seed.uses(end) for end in ENDS}
    for at in np.flatnonzero(np.diff(begin)).tolist():
        for end in ENDS:
            if uses[end][opening[begin[at]]]:
                starts_at[end][at] = lists.add(tables[end][begin[at] : begin[at + 1]])
    columns: Columns = dict(zip(_COLUMNS, lists.table().T, strict=True))
    return Pieces(np.diff(begin), starts_at["src"], starts_at["dst"], columns)


def _table(program: SymmetricProgram, rows: Array, first: Array, times: Array, end: str) -> Array:
    """Return the pieces as they lie at one end, shape (pieces, columns)."""
    seed, opening = program.seed, rows[first]
    offset = getattr(seed, f"{end}_offset").astype(np.int64)
    second = rows[np.minimum(first + 1, len(rows) - 1)] if len(rows) else rows
    stride = np.where(times > 1, offset[second] - offset[opening], 0)
    columns = (getattr(seed, f"{end}_buffer")[opening], offset[opening], seed.count[opening], times, stride)
    return np.stack([column.astype(np.int64) for column in columns], axis=1)


class Lists:
    """Lists of rows with some columns, one after the other, equal ones once."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.known, self.parts, self.size = dict[bytes, int](), list[Array](), 0

    def add(self, rows: Array) -> int:
        """Return the first piece of a list."""
        key = rows.tobytes()
        if key not in self.known:
            self.known[key] = self.size
            self.parts.append(rows)
            self.size += len(rows)
        return self.known[key]

    def table(self) -> Array:
        """Return the rows of all lists, shape (rows, columns)."""
        return np.concatenate([np.zeros((0, self.columns), dtype=np.int64), *self.parts])


# ---- series


def _series(program: SymmetricProgram, rows: Array) -> tuple[Array, Array]:
    """Return the first row of each piece, as a place in ``rows``, and its runs."""
    seed, places = program.seed, list[tuple[Array, Array]]()
    for end in ENDS:
        used = seed.uses(end)[rows]
        columns = (getattr(seed, f"{end}_{what}").astype(np.int64)[rows] for what in ("buffer", "offset"))
        buffer, offset = (np.where(used, column, 0) for column in columns)
        places.append((buffer, offset))
    return series(program.message[rows], seed.count[rows], places)


def series(owner: Array, count: Array, places: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Return the first row of each piece, and its runs, for runs of ``count`` chunks of lists ``owner``.

    ``places`` has buffer and offset of each run, end by end. From left to right, a piece takes as many rows of its list
    as lie at equal distances, at all ends.
    """
    if not len(owner):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    joint = (owner[1:] == owner[:-1]) & (count[1:] == count[:-1])
    change = np.zeros(max(len(owner) - 2, 0), dtype=bool)
    for buffer, offset in places:
        step = np.diff(offset)
        joint &= buffer[1:] == buffer[:-1]
        change |= step[1:] != step[:-1]
    fresh = np.append(True, change | (joint[1:] != joint[:-1]))[: len(joint)]
    last = np.append(np.flatnonzero(fresh)[1:], len(joint)) - 1  # of the joints at equal distances
    after = np.arange(len(owner)) + 1
    after[:-1][joint] = np.repeat(last, np.diff(np.append(np.flatnonzero(fresh), len(joint))))[joint] + 2
    first = np.fromiter(_followed(after.tolist()), dtype=np.int64)
    return first, np.diff(np.append(first, len(owner)))


def _followed(after: list[int]) -> Iterator[int]:
    at = 0
    while at < len(after):
        yield at
        at = after[at]
