"""Tables of pieces -> the runs of messages. It shares no code with the writer."""

from __future__ import annotations

import attrs
import numpy as np

from collc.ir.arrays import Array, Columns
from collc.ir.opcodes import USES, Opcode
from collc.ir.program import Program
from collc.ir.ragged import owners, ranges, starts

from .cursor import Unreadable
from .numbers import Numbers

__all__ = ["PIECE_COLUMNS", "listed_pieces", "runs_of"]

PIECE_COLUMNS = ("piece_buffer", "piece_place", "piece_count", "piece_times", "piece_stride")

#: runs that an algorithm may have, so that a wrong number does not take all memory
_MOST_RUNS = 1 << 27

_OPCODE = 15  # the bits of a step's code that are its opcode


def listed_pieces(numbers: Numbers) -> int:
    """Return the number of pieces, each of them in the list of a step; raise Unreadable for lists of other pieces."""
    pieces, opcode = numbers["step_pieces"], numbers["step_code"] & _OPCODE
    size = len(numbers["piece_count"])
    if (pieces < 0).any() or (pieces > size).any() or (opcode >= len(Opcode)).any():
        raise Unreadable("`step_pieces` names pieces that there are not")
    edges = np.zeros(size + 1, dtype=np.int64)
    for end, uses in USES.items():
        rows = np.flatnonzero((pieces > 0) & uses[opcode])
        first = numbers[f"step_{end}"][rows]
        if (first < 0).any() or (first > size - pieces[rows]).any():
            raise Unreadable(f"`step_{end}` names pieces that there are not")
        np.add.at(edges, first, 1)
        np.add.at(edges, first + pieces[rows], -1)
    listed = np.cumsum(edges)[:size] > 0
    total = int(np.count_nonzero(listed))
    if not listed[:total].all():
        raise Unreadable("a piece is in no list")
    return total


def runs_of(numbers: Numbers, messages: Program, pieces: Array) -> tuple[Array, Columns]:
    """Return the number of runs of each message, and the columns of all runs; ``pieces`` are those of each message.

    A message of no pieces is one run. Raises Unreadable for lists that do not make up the message.
    """
    several = pieces > 0
    used = {end: several & messages.uses(end) for end in USES}
    idle = [getattr(messages, f"{end}_buffer")[several] for end in USES]
    idle += [getattr(messages, f"{end}_offset")[several & ~used[end]] for end in USES]
    if any(column.any() for column in idle) or (several & ~used["src"] & ~used["dst"]).any():
        raise Unreadable("a step of several runs has a place of its own")
    first = {end: getattr(messages, f"{end}_offset").astype(np.int64) for end in USES}
    both = used["src"] & used["dst"]
    here, there = (ranges(first[end][both], pieces[both]) for end in USES)
    for name in ("piece_count", "piece_times"):
        if not np.array_equal(numbers[name][here], numbers[name][there]):
            raise Unreadable("a message writes other runs than it reads")
    lists = {end: _Runs.of(numbers, first[end][used[end]], pieces[used[end]]) for end in USES}
    number = np.ones(len(pieces), dtype=np.int64)
    for end in USES:
        number[used[end]] = lists[end].number
    owner = owners(number)
    names = ("src_buffer", "src_offset", "dst_buffer", "dst_offset", "count")
    columns: Columns = {name: getattr(messages, name).astype(np.int64)[owner] for name in names}
    for end in USES:
        rows = used[end][owner]
        columns[f"{end}_buffer"][rows], columns[f"{end}_offset"][rows] = lists[end].buffer, lists[end].offset
        columns["count"][rows] = lists[end].count
    if (np.bincount(owner, weights=columns["count"], minlength=len(number)) != messages.count).any():
        raise Unreadable("`step_count` is not the chunks of the pieces")
    if (several & (number == 1)).any():
        raise Unreadable("`step_pieces` has pieces for a message of one run")
    return number, columns


@attrs.frozen(eq=False)
class _Runs:
    """The runs of some lists: how many each list has; buffer, first chunk, and chunks of each."""

    number: Array
    buffer: Array
    offset: Array
    count: Array

    @classmethod
    def of(cls, numbers: Numbers, first: Array, pieces: Array) -> _Runs:
        rows = ranges(first, pieces)
        times, stride = numbers["piece_times"][rows], numbers["piece_stride"][rows]
        if (times < 1).any() or ((times == 1) != (stride == 0)).any():
            raise Unreadable("a piece has no runs, or runs at the same place")
        if (times > _MOST_RUNS).any() or times.sum() > _MOST_RUNS:
            raise Unreadable(f"the messages have more than {_MOST_RUNS} runs")
        piece = np.repeat(rows, times)
        offset = numbers["piece_place"][piece] + ranges(np.zeros_like(times), times) * np.repeat(stride, times)
        number = np.diff(starts(times)[starts(pieces)])
        return cls(number, numbers["piece_buffer"][piece], offset, numbers["piece_count"][piece])
