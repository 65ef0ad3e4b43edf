"""Where scratch chunks lie when chunks differ in size.

A count of elements is cut in chunks that differ by at most one element, so a chunk's size depends on which chunk of
the vector it is. Input and output are the vector itself; in scratch a program puts any chunk anywhere. Here every
access to scratch learns which chunks it moves, and scratch is laid out anew in *segments*: chunks that follow each
other in the vector and in scratch stay side by side, so every access is one contiguous run of elements for any count.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from collc.ir.collective import Collective
from collc.ir.diagnostic import error
from collc.ir.machine import execute, partners
from collc.ir.program import INSTRUCTION_COLUMNS, Buffer, Opcode, Program

__all__ = ["Segments", "is_whole", "lay_out", "span"]

Array = np.ndarray[Any, np.dtype[Any]]

#: collectives whose count is that of the whole vector; the others count the elements of one rank's block
_WHOLE = frozenset({"allreduce", "broadcast", "reduce"})

_READS = np.array([op.reads_src for op in Opcode])
_WRITES = np.array([op.writes_dst for op in Opcode])


def is_whole(collective: Collective) -> bool:
    """Return whether the count of a call is that of the whole vector, not of one rank's block."""
    return collective.kind in _WHOLE


def span(program: Program) -> int:
    """Return into how many chunks ``count`` elements of the call are cut."""
    shards = program.collective.num_shards if program.collective.kind in _WHOLE else 1
    return shards * program.chunks


@attrs.frozen(eq=False)
class Segments:
    """Runs of scratch cells that hold consecutive chunks, sorted by rank and ``cell``, the first cell of the run.

    Segments of rank r are rows ``first[r]`` .. ``first[r+1]``; ``chunk`` is the chunk (of ``span``) in the first cell;
    ``cells[r]`` is how many cells rank r needs.
    """

    first: Array
    cell: Array
    chunk: Array
    cells: Array


def lay_out(program: Program) -> tuple[Program, Segments]:
    """Return the program with its scratch offsets renumbered to cells of the segments returned with it.

    Instructions whose chunks do not follow each other in the vector are split where they do not, messages alike at
    both ends. Raises C0704 where a message's chunks have other sizes at the receiver than at the sender.
    """
    chunk, row = _contents(program)
    same = row[1:] == row[:-1]
    jump = same & (chunk[1:] != (chunk[:-1] + 1) % span(program))
    if jump.any():
        program = _split(program, row, np.concatenate([[False], jump]))
        row = np.repeat(np.arange(program.num_instructions), program.count.astype(np.int64))
    first = chunk[np.searchsorted(row, np.arange(program.num_instructions))] if len(chunk) else chunk
    return _renumber(program, first)


# ---- which chunks an instruction moves


def _contents(program: Program) -> tuple[Array, Array]:
    """Return the chunk (of ``span``) of everything moved, and the instruction that moves it, in row order."""
    count = program.count.astype(np.int64)
    row = np.repeat(np.arange(len(count)), count)
    nth = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    reads = _READS[program.opcode] & (program.src_buffer != Buffer.SCRATCH)
    writes = _WRITES[program.opcode] & (program.dst_buffer != Buffer.SCRATCH)
    src, dst = program.src_offset.astype(np.int64), program.dst_offset.astype(np.int64)
    offset = np.where(reads, src, np.where(writes, dst, -1))
    chunk = np.where(offset[row] >= 0, (offset[row] + nth) % span(program), -1)
    if (chunk < 0).any():
        chunk = _through_scratch(program, chunk)
    _check_messages(program, chunk)
    both = (reads & writes)[row]
    _require(program, row[both & (chunk != (dst[row] + nth) % span(program))])
    return chunk, row


def _through_scratch(program: Program, chunk: Array) -> Array:
    """Complete ``chunk`` for instructions that touch nothing but scratch: execute, remembering what lies where."""
    known = chunk.tolist()
    start = np.concatenate([[0], np.cumsum(program.count.astype(np.int64))]).tolist()
    rank = program.block_rank[program.block].tolist()
    cells = [[-1] * int(n) for n in program.scratch]
    reads = (_READS[program.opcode] & (program.src_buffer == Buffer.SCRATCH)).tolist()
    writes = (_WRITES[program.opcode] & (program.dst_buffer == Buffer.SCRATCH)).tolist()
    src, dst, source = program.src_offset.tolist(), program.dst_offset.tolist(), partners(program).tolist()
    for i in execute(program).finished.tolist():
        a, b = start[i], start[i + 1]
        if known[a:b] and known[a] < 0:
            if source[i] >= 0:
                run = known[start[source[i]] : start[source[i] + 1]]
            else:
                run = cells[rank[i]][src[i] : src[i] + b - a]
            known[a:b] = run
        if reads[i] and cells[rank[i]][src[i] : src[i] + b - a] != known[a:b]:
            _require(program, [i])
        if writes[i]:
            cells[rank[i]][dst[i] : dst[i] + b - a] = known[a:b]
    return np.array(known, dtype=np.int64)


def _check_messages(program: Program, chunk: Array) -> None:
    """Require that what arrives has the sizes of what was sent."""
    count = program.count.astype(np.int64)
    start = np.cumsum(count) - count
    sender = partners(program)
    receives = np.flatnonzero(sender >= 0)
    _require(program, receives[count[receives] != count[sender[receives]]])
    row = np.repeat(receives, count[receives])
    nth = np.arange(len(row)) - np.repeat(np.cumsum(count[receives]) - count[receives], count[receives])
    _require(program, row[chunk[start[row] + nth] != chunk[start[sender[row]] + nth]])


def _require(program: Program, wrong: Any) -> None:
    if len(wrong):
        raise error(
            "C0704",
            f"{program.place(int(wrong[0]))} puts a chunk where a chunk of another size belongs",
            notes=["chunks of a vector differ in size where its count is not a multiple of their number"],
        )


# ---- splitting and renumbering


def _split(program: Program, row: Array, cut: Array) -> Program:
    """Cut instructions before the moved chunks that ``cut`` marks; waits for an instruction are for its last piece."""
    fresh = cut | np.concatenate([[True], row[1:] != row[:-1]])
    moving = np.flatnonzero(fresh)
    pieces = np.bincount(row[moving], minlength=program.num_instructions)
    pieces = np.maximum(pieces, 1)  # a nop moves nothing and stays
    owner = np.repeat(np.arange(program.num_instructions), pieces)
    last = np.cumsum(pieces) - 1
    begin = np.zeros(len(owner), dtype=np.int64)
    nth = np.arange(len(row)) - np.searchsorted(row, row)
    begin[program.count[owner] > 0] = nth[moving]
    begins = np.append(begin[1:], 0)
    ends = np.where(np.isin(np.arange(len(owner)), last), program.count[owner].astype(np.int64), begins)
    columns = {c: getattr(program, c)[owner].astype(np.int64) for c in INSTRUCTION_COLUMNS}
    columns["src_offset"] += np.where(_READS[columns["opcode"]], begin, 0)
    columns["dst_offset"] += np.where(_WRITES[columns["opcode"]], begin, 0)
    columns["count"] = ends - begin
    waits = np.zeros(len(owner) + 1, dtype=np.int64)
    waits[1:][last - pieces + 1] = np.diff(program.dep_start.astype(np.int64))
    return attrs.evolve(
        program, block_start=np.concatenate([[0], last + 1])[program.block_start], dep_start=np.cumsum(waits),
        deps=last[program.deps] if len(program.deps) else program.deps, **columns,
    )  # fmt: skip


def _renumber(program: Program, chunk: Array) -> tuple[Program, Segments]:
    """Lay the accessed scratch out in segments; ``chunk`` is the first chunk of each instruction."""
    code = program.opcode
    used = {
        "src": np.flatnonzero(_READS[code] & (program.src_buffer == Buffer.SCRATCH)),
        "dst": np.flatnonzero(_WRITES[code] & (program.dst_buffer == Buffer.SCRATCH)),
    }
    table = _Accesses.of(program, chunk, used)
    columns = {}
    for name, rows in used.items():
        offsets = getattr(program, f"{name}_offset").astype(np.int64)
        offsets[rows] = table.cells(program, chunk, rows, offsets[rows])
        columns[f"{name}_offset"] = offsets
    segments = table.segments(program)
    return attrs.evolve(program, scratch=segments.cells, **columns), segments


@attrs.frozen(eq=False)
class _Accesses:
    """Every scratch chunk by what it holds: one row for each (rank, scratch offset minus chunk modulo span, offset).

    Chunks that follow each other in scratch and in the vector have rows that follow each other; ``fresh`` marks rows
    that do not follow the row before.
    """

    keys: Array
    rank: Array
    shift: Array
    offset: Array
    fresh: Array
    span: int

    @classmethod
    def of(cls, program: Program, chunk: Array, used: dict[str, Array]) -> _Accesses:
        """Return the cells that instructions touch; ``used`` has the rows that use each of their ends, by its name."""
        rows = np.concatenate(list(used.values())).astype(np.int64)
        first = np.concatenate([getattr(program, f"{n}_offset")[r].astype(np.int64) for n, r in used.items()])
        count = program.count[rows].astype(np.int64)
        nth = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
        keys = np.unique(_key(program, np.repeat(rows, count), np.repeat(first, count), chunk, nth))
        room, cut = _room(program), span(program)
        rank, shift, offset = keys // room // cut, keys // room % cut, keys % room
        fresh = np.ones(len(keys), dtype=bool)
        fresh[1:] = keys[1:] != keys[:-1] + 1
        return cls(keys, rank, shift, offset, fresh, cut)

    def _cell(self) -> Array:
        """Number the rows within their rank."""
        return np.arange(len(self.keys)) - np.searchsorted(self.rank, self.rank)

    def cells(self, program: Program, chunk: Array, rows: Array, offset: Array) -> Array:
        """Return the cell where each access of ``rows`` at ``offset`` begins."""
        return self._cell()[np.searchsorted(self.keys, _key(program, rows, offset, chunk, rows * 0))]

    def segments(self, program: Program) -> Segments:
        start = np.flatnonzero(self.fresh)
        ranks = np.arange(program.num_ranks + 1)
        return Segments(
            np.searchsorted(self.rank[start], ranks), self._cell()[start],
            (self.offset[start] - self.shift[start]) % self.span,
            np.diff(np.searchsorted(self.rank, ranks)),
        )  # fmt: skip


def _room(program: Program) -> int:
    return int(program.scratch.max(initial=0)) + 2  # so that the last offset of a shift and the first of the next part


def _key(program: Program, rows: Array, offset: Array, chunk: Array, nth: Array) -> Array:
    rank = program.block_rank[program.block[rows]].astype(np.int64)
    shift = (offset - chunk[rows]) % span(program)
    return (rank * span(program) + shift) * _room(program) + offset + nth
