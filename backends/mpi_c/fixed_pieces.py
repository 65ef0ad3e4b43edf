"""Messages of several runs of chunks with fixed places as C tables: one list has where a message is read and written.

In an allreduce without a group every chunk has the same place on all ranks. So a message is read where it is written,
by its sender and by its receiver. Only the buffer differs: a rank reads its input until data have arrived, and writes
its output. A row has the chunks of a run, doubled, and one more if it is read from the output; and its distance from
the end of the run before. A row of fewer than no chunks begins a series: the next row has its runs, and the distance
from each to the next. Messages of the same runs share a list, of whatever ranks and steps they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from collc.ir.arrays import Array, Columns
from collc.ir.machine import partners, receivers
from collc.ir.opcodes import Opcode
from collc.ir.program import Buffer, Program
from collc.ir.ragged import first_of_group, group_starts, owners, ranges, starts
from collc.ir.symmetric_program import AnyProgram, SymmetricProgram

from .pieces import Lists, Pieces, series

__all__ = ["TITLE", "all_fixed", "fixed_pieces"]

TITLE = (
    "Lists of the runs of messages with fixed places: how many rows each step has (0: it is one run; else its places\n"
    " * are the first row). A row has twice the chunks of a run, and 1 more if it is read from the output; and the\n"
    " * distance from the end of the run before. Below 0: the same of each of several runs, negated; the next row has\n"
    " * the number of runs, and the distance from each to the next. All runs are written to the output."
)

_COLUMNS = ("piece_count", "piece_place")

#: runs at equal distances that are a series: two take as many numbers one by one
_SERIES = 3


def all_fixed(programs: Iterable[AnyProgram]) -> bool:
    """Return whether a file has messages of several runs, and all of them have fixed places, of all ranks listed."""
    several = [one for one in programs if isinstance(one, SymmetricProgram) and one.joined.any()]
    return bool(several) and all(_is_fixed(one) for one in several)


def _is_fixed(program: SymmetricProgram) -> bool:
    """Return whether each message of several runs is read and written at the same places, those of its receiver."""
    if not program.fixed or not 1 < program.width == program.num_ranks:
        return False
    if "fixed pieces" not in program.found:
        program.found["fixed pieces"] = _agrees(program)
    found: bool = program.found["fixed pieces"]
    return found


def _agrees(program: SymmetricProgram) -> bool:
    seed, batched = program.seed, program.batched
    several = (np.diff(program.message_start) > 1)[program.message]
    reads, writes = seed.reads_src & several, seed.writes_dst & several
    if (seed.src_buffer[reads] == Buffer.SCRATCH).any() or (seed.dst_buffer[writes] != Buffer.OUTPUT).any():
        return False
    both = reads & writes
    if not np.array_equal(seed.src_offset[both], seed.dst_offset[both]):
        return False
    sender = partners(batched)
    got = np.flatnonzero((sender >= 0) & (batched.opcode == Opcode.RECV) & (np.diff(program.message_start) > 1))
    begin, size = program.message_start[:-1], np.diff(program.message_start)
    if not np.array_equal(size[got], size[sender[got]]):
        return False
    here, there = ranges(begin[got], size[got]), ranges(begin[sender[got]], size[got])
    return np.array_equal(seed.dst_offset[here], seed.src_offset[there]) and np.array_equal(
        seed.count[here], seed.count[there]
    )


def fixed_pieces(program: AnyProgram) -> Pieces:
    """Return the pieces of an algorithm in a file of :func:`all_fixed`; a program of instructions has none."""
    if isinstance(program, Program):
        none = np.full(program.num_instructions, -1, dtype=np.int64)
        return Pieces(none * 0, none, none, dict.fromkeys(_COLUMNS, none[:0]))
    seed, batched = program.seed, program.batched
    size, begin = np.diff(program.message_start), program.message_start[:-1]
    to = receivers(partners(batched))
    heads = np.flatnonzero((size > 1) & (batched.opcode != Opcode.RECV))
    list_of = np.full(len(size), -1, dtype=np.int64)
    list_of[heads] = np.arange(len(heads))
    stored = heads[batched.sends[heads] & (to[heads] >= 0)]
    stored = stored[batched.opcode[to[stored]] == Opcode.RECV]
    list_of[to[stored]] = list_of[stored]  # what is stored as it arrives is written where it is read
    rows = ranges(begin[heads], size[heads])
    table, first = _rows(
        owners(size[heads]), seed.count.astype(np.int64)[rows], seed.src_buffer[rows] == Buffer.OUTPUT,
        seed.src_offset.astype(np.int64)[rows], len(heads),
    )  # fmt: skip
    lists = Lists(len(_COLUMNS))
    place = np.array([lists.add(table[low:high]) for low, high in pairwise(first.tolist())], dtype=np.int64)
    has = list_of >= 0
    of = np.where(has, np.append(place, -1)[list_of], -1)
    number = np.where(has, np.append(np.diff(first), 0)[list_of], 0)
    columns: Columns = dict(zip(_COLUMNS, lists.table().T, strict=True))
    uses = {end: seed.uses(end)[begin] for end in ("src", "dst")}
    return Pieces(number, np.where(uses["src"], of, -1), np.where(uses["dst"], of, -1), columns)


def _rows(owner: Array, count: Array, output: Array, place: Array, lists: int) -> tuple[Array, Array]:
    """Return the rows of all lists, shape (rows, 2), and where each list begins, with the end of the last.

    Run i has ``count`` chunks from ``place`` on, of list ``owner``; ``output`` says whether it is read from there.
    """
    first, times = series(owner, count, [(output.astype(np.int64), place)])
    apart = np.where(times < _SERIES, times, 1)
    first, times = ranges(first, apart), np.where(times < _SERIES, 1, times).repeat(apart)
    last, several = first + times - 1, times > 1
    begin = starts(1 + several)
    run = begin[:-1]
    table = np.zeros((int(begin[-1]), len(_COLUMNS)), dtype=np.int64)
    table[run, 0] = np.where(several, -1, 1) * (2 * count[first] + output[first])
    before = np.append(0, place[last] + count[last])[: len(first)]
    table[run, 1] = place[first] - np.where(first_of_group(owner[first]), 0, before)
    table[run[several] + 1, 0] = times[several]
    table[run[several] + 1, 1] = place[first[several] + 1] - place[first[several]]
    return table, begin[group_starts(owner[first], lists)]
