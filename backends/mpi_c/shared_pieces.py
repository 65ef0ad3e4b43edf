"""Messages of several runs as C tables whose lists both ends of a message share.

In an all-to-all without a group, the pieces of a message hold few runs each, and no two messages have equal lists. So
sender and receiver of a message have one list, with the places of both. A row has the chunks of a run, and at each end
its distance from the end of the run before. These are small numbers, because a message lists its runs in the order of
the receiver's places. A row of no chunks names the buffers at both ends, which the next row enters at their beginning.
A row of fewer than no chunks begins a series: the next row has its runs, and the distances from each to the next.
"""

from __future__ import annotations

import numpy as np

from collc.ir.arrays import Array, Columns
from collc.ir.frozen import frozen
from collc.ir.machine import partners, receivers
from collc.ir.opcodes import Opcode
from collc.ir.program import Program
from collc.ir.ragged import first_of_group, group_starts, owners, ranges, starts
from collc.ir.symmetric_program import AnyProgram, SymmetricProgram

from .pieces import ENDS, Lists, Pieces, series

__all__ = ["TITLE", "shared_pieces", "shares"]

TITLE = (
    "Lists of the runs of messages, which both ends share: how many rows each step has (0: it is one run; else its\n"
    " * places are its first row). A row has the chunks of a run, and its distance from the end of the run before,\n"
    " * where it is read and where it is written. Of 0 chunks: these are the buffers of what follows, which begins at\n"
    " * their beginning. Below 0: the chunks of each of several runs, negated; the next row has the number of runs,\n"
    " * and the distances from each to the next."
)

_COLUMNS = ("piece_count", "piece_src", "piece_dst")

#: runs at equal distances that are a series: two take as many numbers one by one
_SERIES = 3


def shares(program: AnyProgram) -> bool:
    """Return whether a program is an all-to-all that lists the messages of all ranks, so that its file shares lists."""
    listed = isinstance(program, SymmetricProgram) and 1 < program.width == program.num_ranks
    return listed and program.collective.kind == "alltoall"


def shared_pieces(program: AnyProgram) -> Pieces:
    """Return the pieces of an algorithm in a file whose messages share lists; a program of all ranks has none."""
    if isinstance(program, Program):
        none = np.full(program.num_instructions, -1, dtype=np.int64)
        return Pieces(none * 0, none, none, dict.fromkeys(_COLUMNS, none[:0]))
    runs, list_of = _Runs.of(program)
    table, begin = runs.rows()
    lists, first = Lists(len(_COLUMNS)), list[int]()
    for at in range(len(begin) - 1):
        first.append(lists.add(table[begin[at] : begin[at + 1]]))
    has = list_of >= 0
    place = np.append(np.array(first, dtype=np.int64), -1)[list_of]
    uses = {end: program.seed.uses(end)[program.message_start[:-1]] for end in ENDS}
    columns: Columns = dict(zip(_COLUMNS, lists.table().T, strict=True))
    number = np.where(has, np.append(np.diff(begin), 0)[list_of], 0)
    return Pieces(number, np.where(uses["src"], place, -1), np.where(uses["dst"], place, -1), columns)


@frozen(eq=False)
class _Runs:
    """The runs of all lists: ``owner`` is the list of each, ``count`` its chunks; buffer and offset at both ends."""

    owner: Array
    count: Array
    src_buffer: Array
    src: Array
    dst_buffer: Array
    dst: Array

    @classmethod
    def of(cls, program: SymmetricProgram) -> tuple[_Runs, Array]:
        """Return the runs, and the list of each message, -1 if it is one run.

        A message that is stored where it arrives shares the list of its sender. One that is added has its own, with
        the places of what the receiver reads.
        """
        batched, seed = program.batched, program.seed
        size = np.diff(program.message_start)
        to = receivers(partners(batched))
        several, sends = size > 1, batched.sends
        stored = sends & (to >= 0) & (batched.opcode[to] == Opcode.RECV)
        heads = np.flatnonzero(several & (sends | (batched.opcode != Opcode.RECV)))
        list_of = np.full(len(size), -1, dtype=np.int64)
        list_of[heads] = np.arange(len(heads))
        shared = several & stored
        list_of[to[shared]] = list_of[shared]
        ends = {"src": heads, "dst": np.where(stored[heads], to[heads], heads)}
        columns = list[Array]()
        for end, message in ends.items():
            rows = ranges(program.message_start[message], size[heads])
            used = seed.uses(end)[rows]
            columns += [np.where(used, getattr(seed, f"{end}_{what}").astype(np.int64)[rows], 0)
                        for what in ("buffer", "offset")]  # fmt: skip
        count = seed.count.astype(np.int64)[ranges(program.message_start[heads], size[heads])]
        return cls(owners(size[heads]), count, *columns), list_of

    def rows(self) -> tuple[Array, Array]:
        """Return the rows of all lists, shape (rows, 3), and where each list begins, with the end of the last."""
        first, times = series(self.owner, self.count, [(self.src_buffer, self.src), (self.dst_buffer, self.dst)])
        apart = np.where(times < _SERIES, times, 1)
        first, times = ranges(first, apart), np.where(times < _SERIES, 1, times).repeat(apart)
        last, several = first + times - 1, times > 1
        fresh = first_of_group(self.owner[first])
        fresh |= first_of_group(self.src_buffer[first]) | first_of_group(self.dst_buffer[first])
        width = fresh + 1 + several
        begin = starts(width)
        run = begin[:-1] + fresh
        table = np.zeros((int(begin[-1]), len(_COLUMNS)), dtype=np.int64)
        table[run, 0] = np.where(several, -1, 1) * self.count[first]
        table[run[several] + 1, 0] = times[several]
        places = ((self.src_buffer, self.src), (self.dst_buffer, self.dst))
        for column, (buffer, offset) in enumerate(places, 1):
            before = np.append(0, offset[last] + self.count[last])[: len(first)]
            table[run, column] = offset[first] - np.where(fresh, 0, before)
            table[run[several] + 1, column] = offset[first[several] + 1] - offset[first[several]]
            table[begin[:-1][fresh], column] = buffer[first[fresh]]
        lists = int(self.owner[-1]) + 1 if len(self.owner) else 0
        return table, begin[group_starts(self.owner[first], lists)]
