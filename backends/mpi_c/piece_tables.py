"""Tables of pieces -> the runs of messages. It shares no code with the writer."""

from __future__ import annotations

import attrs
import numpy as np

from collc.ir.arrays import Array, Columns
from collc.ir.opcodes import USES, Opcode
from collc.ir.program import Buffer, Program
from collc.ir.ragged import first_of_group, owners, ranges

from .cursor import Unreadable
from .numbers import Numbers

__all__ = ["listed_pieces", "piece_columns", "runs_of"]

_COLUMNS = ("piece_buffer", "piece_place", "piece_count", "piece_times", "piece_stride")
_SHARED = ("piece_count", "piece_src", "piece_dst")
_FIXED = ("piece_count", "piece_place")

#: runs that an algorithm may have, so that a wrong number does not take all memory
_MOST_RUNS = 1 << 27

#: runs that a series has at least
_SERIES = 3

_OPCODE = 15  # the bits of a step's code that are its opcode


def piece_columns(numbers: Numbers) -> tuple[str, ...]:
    """Return the names of the tables of pieces: those of lists that both ends of a message share, or of each end."""
    if _is_fixed(numbers):
        return _FIXED
    return _SHARED if _shares(numbers) else _COLUMNS


def _shares(numbers: Numbers) -> bool:
    """Return whether a message that reads and writes has one list for both."""
    return "piece_src" in numbers or _is_fixed(numbers)


def _is_fixed(numbers: Numbers) -> bool:
    return "piece_place" in numbers and "piece_buffer" not in numbers


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
    for name in ("piece_count",) if _shares(numbers) else ("piece_count", "piece_times"):
        if not np.array_equal(numbers[name][here], numbers[name][there]):
            raise Unreadable("a message writes other runs than it reads")
    if _shares(numbers) and not np.array_equal(here, there):
        raise Unreadable("a message has two lists, of which it reads and writes one each")
    lists = {end: _Runs.of(numbers, end, first[end][used[end]], pieces[used[end]]) for end in USES}
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
    def of(cls, numbers: Numbers, end: str, first: Array, pieces: Array) -> _Runs:
        rows = ranges(first, pieces)
        if _is_fixed(numbers):
            return cls._expanded(*_fixed_rows(numbers, end, rows, pieces))
        if _shares(numbers):
            return cls._expanded(*_shared_rows(numbers, end, rows, pieces))
        buffer, place, count, times, stride = (numbers[name][rows] for name in _COLUMNS)
        return cls._expanded(owners(pieces), buffer, place, count, times, stride, len(pieces))

    @classmethod
    def _expanded(
        cls, owner: Array, buffer: Array, place: Array, count: Array, times: Array, stride: Array, lists: int
    ) -> _Runs:
        """Return the runs of pieces; ``owner`` is the list of each."""
        if (times < 1).any() or ((times == 1) != (stride == 0)).any():
            raise Unreadable("a piece has no runs, or runs at the same place")
        if (times > _MOST_RUNS).any() or times.sum() > _MOST_RUNS:
            raise Unreadable(f"the messages have more than {_MOST_RUNS} runs")
        piece = owners(times)
        offset = place[piece] + ranges(np.zeros_like(times), times) * np.repeat(stride, times)
        number = np.bincount(owner[piece], minlength=lists)
        return cls(number, buffer[piece], offset, count[piece])


def _fixed_rows(
    numbers: Numbers, end: str, rows: Array, pieces: Array
) -> tuple[Array, Array, Array, Array, Array, Array, int]:
    """Return what :func:`_shared_rows` does of lists whose runs are read and written at the same places."""
    owner, code, distance = owners(pieces), numbers["piece_count"][rows], numbers["piece_place"][rows]
    ends = np.append(owner[1:] != owner[:-1], True)[: len(owner)]
    more = np.zeros(len(code), dtype=bool)  # rows that have the runs of a series
    more[1:] = (code[:-1] < 0) & ~ends[:-1]
    if (ends & (code < 0) & ~more).any() or (more & (code < _SERIES)).any():
        raise Unreadable("a list of runs ends before their number, or has a series of none")
    at = np.flatnonzero(~more)
    several = code[at] < 0
    chunks, output = np.divmod(np.abs(code[at]), 2)
    if (chunks < 1).any():
        raise Unreadable("a list has a run of no chunks")
    after = np.minimum(at + 1, max(len(rows) - 1, 0))
    times, stride = np.where(several, code[after], 1), np.where(several, distance[after], 0)
    opens = first_of_group(owner[at])
    advance = np.append(0, (times - 1) * stride + chunks)[: len(at)]
    reached = np.cumsum(distance[at] + np.where(opens, 0, advance))
    begins = np.flatnonzero(opens)
    before = np.append(0, reached)[begins]
    place = reached - before[np.cumsum(opens) - 1]
    buffer = np.where((output == 1) | (end == "dst"), int(Buffer.OUTPUT), int(Buffer.INPUT))
    return owner[at], buffer, place, chunks, times, stride, len(pieces)


def _shared_rows(
    numbers: Numbers, end: str, rows: Array, pieces: Array
) -> tuple[Array, Array, Array, Array, Array, Array, int]:
    """Return list, buffer, place, chunks, runs and stride of each piece at one end, and the number of lists.

    ``rows`` are those of the lists, one after the other.
    """
    owner, count, distance = owners(pieces), numbers["piece_count"][rows], numbers[f"piece_{end}"][rows]
    opens, ends = first_of_group(owner), np.append(owner[1:] != owner[:-1], True)[: len(owner)]
    more = np.append(False, count[:-1] < 0)[: len(count)]  # rows that have the runs of a series
    names = (count == 0) & ~more
    if (names != (names | opens)).any() or (ends & ((count < 0) | names)).any() or (names[1:] & names[:-1]).any():
        raise Unreadable("a list of runs does not begin with their buffers, or ends before their number")
    if (count[more] < _SERIES).any() or (names & ((distance < 0) | (distance >= len(Buffer)))).any():
        raise Unreadable("a list of runs has a series of none, or a buffer that there is not")
    at = np.flatnonzero(~more & ~names)
    several = count[at] < 0
    chunks, after = np.abs(count[at]), np.minimum(at + 1, max(len(rows) - 1, 0))
    times, stride = np.where(several, count[after], 1), np.where(several, distance[after], 0)
    enters = np.append(True, names[:-1])[: len(names)][at]
    advance = np.append(0, (times - 1) * stride + chunks)[: len(at)]
    reached = np.cumsum(distance[at] + np.where(enters, 0, advance))
    begins = np.flatnonzero(enters)
    before = np.append(0, reached)[begins]
    group = np.cumsum(enters) - 1
    buffer = distance[np.flatnonzero(names)][group]
    return owner[at], buffer, reached - before[group], chunks, times, stride, len(pieces)
