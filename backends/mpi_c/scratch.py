"""The layout of scratch for chunks of different sizes.

The chunks of a count differ by at most one element, so the size of a chunk depends on its place in the vector. Input
and output are the vector itself, but in scratch a program may put any chunk anywhere. This module finds the chunks of
every access to scratch, and lays scratch out anew in *segments*. Chunks that are consecutive in the vector and in
scratch stay side by side, so every access is one contiguous run of elements for any count.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.collective import CUSTOM, UNEVEN, Collective
from collc.ir.diagnostic import error
from collc.ir.editing import cut, shifted
from collc.ir.machine import execute, partners
from collc.ir.program import Buffer, Program
from collc.ir.ragged import first_of_group, group_starts, nth, nth_in_group, owners, starts
from collc.ir.symmetric_program import AnyProgram

__all__ = ["Segments", "is_counted", "is_whole", "lay_out", "slot_shards", "span", "vector_chunks"]

#: collectives with the count of the whole vector; the others count one rank's block
_WHOLE = frozenset({"allreduce", "broadcast", "reduce"})


def is_whole(collective: Collective) -> bool:
    """Return whether the size of a call is that of the whole vector, not of one rank's block."""
    return collective.kind in _WHOLE or is_counted(collective)


def is_counted(collective: Collective) -> bool:
    """Return whether a call has a count for each shard."""
    return collective.name in UNEVEN.values() or collective.kind == CUSTOM


def slot_shards(collective: Collective, rank: int, output: bool) -> Array:
    """Return the shard in each slot of a rank's input (or output)."""
    shards = collective.shards_at(rank, output)
    slots: Array = (collective.output_slots if output else collective.input_slots)(rank, shards)
    held: Array = shards[slots >= 0]
    order = np.argsort(slots[slots >= 0], kind="stable")
    found: Array = held[order]
    return found


def vector_chunks(program: Program, side: str, rows: Array, inside: Array | int = 0) -> Array:
    """Return the chunk (of ``span``) that instructions access in input or output, ``inside`` chunks from the first."""
    offset: Array = getattr(program, f"{side}_offset").astype(np.int64)[rows] + inside
    if not is_counted(program.collective):
        chunk: Array = offset % span(program)
        return chunk
    buffer, rank = getattr(program, f"{side}_buffer")[rows], program.rank[rows]
    tables = {
        output: [slot_shards(program.collective, r, bool(output)) for r in range(program.num_ranks)]
        for output in (False, True)
    }
    found = np.zeros(len(offset), dtype=np.int64)
    for output, of_rank in tables.items():
        here = buffer == (Buffer.OUTPUT if output else Buffer.INPUT)
        begin = starts([len(shards) for shards in of_rank])[:-1]
        shard = np.concatenate(of_rank)[begin[rank[here]] + offset[here] // program.chunks]
        found[here] = shard * program.chunks + offset[here] % program.chunks
    return found


def span(program: AnyProgram) -> int:
    """Return the number of chunks in the count of a call; with a count for each shard, in all of them."""
    if is_counted(program.collective):
        return program.collective.num_shards * program.chunks
    shards = program.collective.num_shards if program.collective.kind in _WHOLE else 1
    return shards * program.chunks


@attrs.frozen(eq=False)
class Segments:
    """Runs of scratch cells that hold consecutive chunks, sorted by rank and ``cell``, the first cell of the run.

    Segments of rank r are rows ``first[r]`` .. ``first[r+1]``; ``chunk`` is the chunk (of ``span``) in the first cell;
    ``cells[r]`` is the number of cells of rank r.
    """

    first: Array
    cell: Array
    chunk: Array
    cells: Array


def lay_out(program: Program) -> tuple[Program, Segments]:
    """Return the program with its scratch offsets renumbered to cells of the segments returned with it.

    It splits instructions between chunks that are not consecutive in the vector, and messages equally at both ends.
    Raises C0704 if the chunks of a message have other sizes at the receiver than at the sender.
    """
    if _by_runs(program):
        none = np.zeros(0, dtype=np.int64)
        cells = np.zeros(program.num_ranks, dtype=np.int64)
        return attrs.evolve(program, scratch=cells), Segments(np.append(cells, 0), none, none, cells)
    chunk, row = _contents(program)
    same = row[1:] == row[:-1]
    jump = same & ((chunk[1:] != (chunk[:-1] + 1) % span(program)) | _begins_shard(program, chunk[1:]))
    if jump.any():
        program = _split(program, row, np.concatenate([[False], jump]))
        row = owners(program.count)
    # a nop has no chunk; the last instruction may be one
    first = np.append(chunk, 0)[group_starts(row, program.num_instructions)[:-1]]
    return _renumber(program, first)


def _by_runs(program: Program) -> bool:
    """Return whether no instruction uses scratch or crosses shards with counts of their own: nothing is to be laid out.

    Then the first chunk of an instruction says which its others are. Raises C0704 as :func:`lay_out` does.
    """
    count, places = program.count.astype(np.int64), dict[str, Array]()
    for side in ("src", "dst"):
        rows = np.flatnonzero(program.uses(side))
        offset = getattr(program, f"{side}_offset").astype(np.int64)[rows]
        if (getattr(program, f"{side}_buffer")[rows] == Buffer.SCRATCH).any():
            return False
        if is_counted(program.collective) and (offset % program.chunks + count[rows] > program.chunks).any():
            return False
        places[side] = np.full(len(count), -1, dtype=np.int64)
        places[side][rows] = vector_chunks(program, side, rows)
    sender = partners(program)
    receives, chunk = np.flatnonzero(sender >= 0), np.where(places["src"] < 0, places["dst"], places["src"])
    if (chunk[count > 0] < 0).any():
        return False
    other = sender[receives]
    _require(program, receives[count[receives] != count[other]])
    _require(program, receives[chunk[receives] != chunk[other]])
    _require(program, np.flatnonzero((places["src"] >= 0) & (places["dst"] >= 0) & (chunk != places["dst"])))
    return True


# ---- the chunks of an instruction


def _contents(program: Program) -> tuple[Array, Array]:
    """Return every moved chunk (of ``span``), and the instruction that moves it, in row order."""
    count = program.count.astype(np.int64)
    row, inside = owners(count), nth(count)
    reads = program.reads_src & (program.src_buffer != Buffer.SCRATCH)
    writes = program.writes_dst & (program.dst_buffer != Buffer.SCRATCH)
    chunk = np.full(len(row), -1, dtype=np.int64)
    for side, uses in (("dst", writes), ("src", reads)):
        here = uses[row]
        chunk[here] = vector_chunks(program, side, row[here], inside[here])
    if (chunk < 0).any():
        chunk = _through_scratch(program, chunk)
    _check_messages(program, chunk)
    both = (reads & writes)[row]
    _require(program, row[both][chunk[both] != vector_chunks(program, "dst", row[both], inside[both])])
    return chunk, row


def _begins_shard(program: Program, chunk: Array) -> Array:
    """Return whether a chunk is the first of a shard with a count of its own: shards need not lie side by side."""
    first: Array = chunk % program.chunks == 0
    return first if is_counted(program.collective) else np.zeros_like(first)


def _through_scratch(program: Program, chunk: Array) -> Array:
    """Complete ``chunk`` for instructions that use only scratch: execute the program and track what scratch holds."""
    known = chunk.tolist()
    start = starts(program.count).tolist()
    rank = program.rank.tolist()
    cells = [[-1] * int(n) for n in program.scratch]
    reads = program.uses("src", Buffer.SCRATCH).tolist()
    writes = program.uses("dst", Buffer.SCRATCH).tolist()
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
    """Require that received chunks have the sizes of the sent ones."""
    count = program.count.astype(np.int64)
    start = starts(count)
    sender = partners(program)
    receives = np.flatnonzero(sender >= 0)
    _require(program, receives[count[receives] != count[sender[receives]]])
    row, inside = np.repeat(receives, count[receives]), nth(count[receives])
    _require(program, row[chunk[start[row] + inside] != chunk[start[sender[row]] + inside]])


def _require(program: Program, wrong: Sequence[int] | Array) -> None:
    if len(wrong):
        raise error(
            "C0704",
            f"{program.place(int(wrong[0]))} puts a chunk where a chunk of another size belongs",
            notes=["chunks of a vector differ in size if their number does not divide the count"],
        )


# ---- splitting and renumbering


def _split(program: Program, row: Array, apart: Array) -> Program:
    """Split instructions before the moved chunks that ``apart`` marks. Dependents of one depend on its last part."""
    fresh = apart | first_of_group(row)
    moving = np.flatnonzero(fresh)
    number = np.bincount(row[moving], minlength=program.num_instructions)
    number = np.maximum(number, 1)  # a nop moves no chunk and stays
    owner = owners(number)
    begin = np.zeros(len(owner), dtype=np.int64)
    begin[program.count[owner] > 0] = nth_in_group(row)[moving]
    ends = np.append(begin[1:], 0)
    last = np.cumsum(number) - 1
    ends[last] = program.count
    return cut(program, number, count=ends - begin, **shifted(program, owner, begin))


def _renumber(program: Program, chunk: Array) -> tuple[Program, Segments]:
    """Lay the accessed scratch out in segments; ``chunk`` is the first chunk of each instruction."""
    used = {end: np.flatnonzero(program.uses(end, Buffer.SCRATCH)) for end in ("src", "dst")}
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
    """Every chunk in scratch: one row for each (rank, scratch offset minus chunk modulo span, offset).

    Chunks that are consecutive in scratch and in the vector have consecutive rows. ``fresh`` marks rows that do not
    continue the row before.
    """

    keys: Array
    rank: Array
    shift: Array
    offset: Array
    fresh: Array
    span: int

    @classmethod
    def of(cls, program: Program, chunk: Array, used: dict[str, Array]) -> _Accesses:
        """Return the accesses of instructions; ``used`` has the rows that use scratch as ``src`` and as ``dst``."""
        rows = np.concatenate(list(used.values())).astype(np.int64)
        first = np.concatenate([getattr(program, f"{n}_offset")[r].astype(np.int64) for n, r in used.items()])
        count = program.count[rows].astype(np.int64)
        keys = np.unique(_key(program, np.repeat(rows, count), np.repeat(first, count), chunk, nth(count)))
        room, cut = _room(program), span(program)
        rank, shift, offset = keys // room // cut, keys // room % cut, keys % room
        fresh = first_of_group(keys - np.arange(len(keys))) | _begins_shard(program, (offset - shift) % cut)
        return cls(keys, rank, shift, offset, fresh, cut)

    def _cell(self) -> Array:
        """Number the rows within their rank."""
        return nth_in_group(self.rank)

    def cells(self, program: Program, chunk: Array, rows: Array, offset: Array) -> Array:
        """Return the cell where each access of ``rows`` at ``offset`` begins."""
        return self._cell()[np.searchsorted(self.keys, _key(program, rows, offset, chunk, rows * 0))]

    def segments(self, program: Program) -> Segments:
        start = np.flatnonzero(self.fresh)
        first, cells = (group_starts(ranks, program.num_ranks) for ranks in (self.rank[start], self.rank))
        chunk = (self.offset[start] - self.shift[start]) % self.span
        return Segments(first, self._cell()[start], chunk, np.diff(cells))


def _room(program: Program) -> int:
    return int(program.scratch.max(initial=0)) + 2  # a gap between the last offset of a shift and the first of the next


def _key(program: Program, rows: Array, offset: Array, chunk: Array, nth: Array) -> Array:
    rank = program.rank[rows]
    shift = (offset - chunk[rows]) % span(program)
    key: Array = (rank * span(program) + shift) * _room(program) + offset + nth
    return key
