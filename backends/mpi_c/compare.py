"""Compares a program decoded from a C file with the emitted program.

Two differences are allowed: the file lays out scratch anew, and it splits instructions if that layout demands it.
Scratch must correspond one-to-one: each cell of the file holds one chunk of the vector from one place of the program's
scratch, and vice versa. Then every instruction reads what the same instruction wrote.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from collc.ir.arrays import Array
from collc.ir.machine import partners
from collc.ir.opcodes import USES
from collc.ir.program import BLOCK_COLUMNS, Buffer, Opcode, Program
from collc.ir.ragged import first_of_group, nth, owners, starts

from .decode import ALWAYS, IN_PLACE, Decoded
from .scratch import is_counted, span

__all__ = ["differences", "scratch_faults", "shortages", "unused_scratch"]

#: collectives whose input is part of the output in calls in place
_OVERLAID = frozenset({"allreduce", "allgather", "alltoall", "reduce", "broadcast"})


def differences(one: Decoded, emitted: Program) -> Iterator[str]:
    """Yield the differences between a correct decoded program and the emitted one; a large one ends the comparison."""
    found = one.plain
    for name in ("name", "num_ranks", "members", "root", "reduces", "pre", "post"):
        if getattr(found.collective, name) != getattr(emitted.collective, name):
            yield f"{name} is {getattr(found.collective, name)}, not {getattr(emitted.collective, name)}"
    if found.chunks != emitted.chunks:
        yield f"shards have {found.chunks} chunks, not {emitted.chunks}"
    for name in BLOCK_COLUMNS:
        if not np.array_equal(getattr(found, name), getattr(emitted, name)):
            yield f"the blocks differ in {name.replace('_', ' ')}"
            return
    owner = _owners(found, emitted)
    if owner is None or not np.array_equal(found.opcode, emitted.opcode[owner]):
        yield "the blocks have other instructions"
        return
    inside = _inside(found, owner)
    yield from _other_counts(found, emitted, owner)
    yield from _other_dependencies(found, emitted, owner)
    yield from _other_places(found, emitted, owner, inside)
    chunk = _chunks(one)
    if isinstance(chunk, str):
        yield chunk
    else:
        yield from _other_sizes(found, chunk)
        yield from _other_scratch(one, emitted, owner, inside, chunk)


def scratch_faults(one: Decoded) -> Iterator[str]:
    """Yield the faults of a decoded program's scratch in itself: chunks of other sizes, unused cells."""
    chunk = _chunks(one)
    if isinstance(chunk, str):
        yield chunk
        return
    yield from _other_sizes(one.plain, chunk)
    yield from unused_scratch(one.plain)


def unused_scratch(program: Program) -> Iterator[str]:
    """Yield the first rank with cells of scratch that no instruction uses."""
    most = np.zeros(program.num_ranks, dtype=np.int64)
    for side in USES:
        rows = np.flatnonzero(program.uses(side, Buffer.SCRATCH))
        end = getattr(program, f"{side}_offset")[rows].astype(np.int64) + program.count[rows]
        np.maximum.at(most, program.rank[rows], end)
    wrong = np.flatnonzero(most != program.scratch)
    if len(wrong):
        yield f"rank {wrong[0]} has {program.scratch[wrong[0]]} cells of scratch, but uses {most[wrong[0]]}"


# ---- splits of instructions


def _owners(found: Program, emitted: Program) -> Array | None:
    """Return the instruction of ``emitted`` that each one of ``found`` is a split of; None if they do not align.

    The length of an instruction is the number of chunks that it moves, but at least 1.
    """
    ends = [starts(np.maximum(one.count, 1)) for one in (found, emitted)]
    owner = np.searchsorted(ends[1][1:], ends[0][1:], side="left")
    if ends[0][-1] != ends[1][-1] or not np.isin(ends[1], ends[0]).all():
        return None
    begins = [e[one.block_start] for e, one in zip(ends, (found, emitted), strict=True)]
    return owner if np.array_equal(begins[0], begins[1]) else None


def _inside(found: Program, owner: Array) -> Array:
    """Return how many chunks of an instruction come before each split of it."""
    before = starts(found.count)[:-1]
    return before - before[np.searchsorted(owner, owner)]


def _other_counts(found: Program, emitted: Program, owner: Array) -> Iterator[str]:
    moved = np.bincount(owner, found.count.astype(np.int64), minlength=emitted.num_instructions).astype(np.int64)
    yield from _first(found, np.flatnonzero((moved != emitted.count)[owner]), "moves another number of chunks")


def _other_dependencies(found: Program, emitted: Program, owner: Array) -> Iterator[str]:
    """Yield differences of dependencies: the first split of an instruction has them, on the last splits of others."""
    first = first_of_group(owner)
    last = np.searchsorted(owner, np.arange(emitted.num_instructions), side="right") - 1
    number = np.where(first, emitted.num_dependencies[owner], 0)
    wrong = found.num_dependencies != number
    yield from _first(found, np.flatnonzero(wrong), "has another number of dependencies")
    if not wrong.any() and not np.array_equal(found.deps, last[emitted.deps]):
        at = int(np.argmax(found.deps != last[emitted.deps]))
        yield f"{found.place(int(found.dependent[at]))} depends on another instruction"


def _other_places(found: Program, emitted: Program, owner: Array, inside: Array) -> Iterator[str]:
    """Yield instructions that read or write other places; another function compares those in scratch."""
    for side in USES:
        uses = found.uses(side)
        buffer, other = getattr(found, f"{side}_buffer"), getattr(emitted, f"{side}_buffer")[owner]
        offset = getattr(found, f"{side}_offset").astype(np.int64)
        due = getattr(emitted, f"{side}_offset").astype(np.int64)[owner] + np.where(uses, inside, 0)
        apart = uses & (other == Buffer.SCRATCH)
        wrong = (buffer != other) | (~apart & (offset != due))
        yield from _first(found, np.flatnonzero(wrong), f"has another {side}")


def _first(program: Program, rows: Array, what: str) -> Iterator[str]:
    if len(rows):
        yield f"{program.place(int(rows[0]))} {what}"


# ---- chunks and their sizes


def _chunks(one: Decoded) -> Array | str:
    """Return the first chunk of a count that each instruction moves, -1 for a nop; or the fault of the segments."""
    program = one.plain
    found = np.full(program.num_instructions, -1, dtype=np.int64)
    for side in USES:
        rows = np.flatnonzero(program.uses(side))
        offset = getattr(program, f"{side}_offset").astype(np.int64)[rows]
        chunk = _vector_chunks(program, side, rows, offset)
        inside = np.flatnonzero(getattr(program, f"{side}_buffer")[rows] == Buffer.SCRATCH)
        held = _held(one, rows[inside], offset[inside])
        if isinstance(held, str):
            return held
        chunk[inside] = held
        wrong = rows[(found[rows] >= 0) & (found[rows] != chunk)]
        if len(wrong):
            return f"{program.place(int(wrong[0]))} puts a chunk where a chunk of another size belongs"
        found[rows] = chunk
    return found


def _vector_chunks(program: Program, side: str, rows: Array, offset: Array) -> Array:
    """Return the chunk of a count at an offset of input or output; with a count for each shard, of all shards."""
    if not is_counted(program.collective):
        chunk: Array = offset % span(program)
        return chunk
    c, found = program.collective, offset % program.chunks
    for output, slots in ((False, c.input_slots), (True, c.output_slots)):
        buffer = Buffer.OUTPUT if output else Buffer.INPUT
        here = np.flatnonzero(getattr(program, f"{side}_buffer")[rows] == buffer)
        for rank in np.unique(program.rank[rows[here]]).tolist():
            shards = c.shards_at(rank, output)
            place = slots(rank, shards)
            shard = np.zeros(c.num_shards, dtype=np.int64)
            shard[place[place >= 0]] = shards[place >= 0]
            those = here[program.rank[rows[here]] == rank]
            found[those] += shard[offset[those] // program.chunks] * program.chunks
    return found


def _held(one: Decoded, rows: Array, cell: Array) -> Array | str:
    """Return the chunk in the first cell of each access to scratch, or the fault of the segments."""
    program, cut = one.plain, span(one.plain)
    cells = program.scratch.astype(np.int64)
    room = int(cells.max(initial=0)) + 1
    ranks = owners(np.diff(one.first))
    outside = (one.cell < 0) | (one.cell >= cells[ranks]) | (one.held < 0) | (one.held >= cut)
    keys = ranks * room + one.cell
    begins = one.cell[one.first[:-1][np.diff(one.first) > 0]]
    if outside.any() or (np.diff(keys) <= 0).any() or begins.any() or (np.diff(one.first) == 0)[cells > 0].any():
        return "the segments of scratch do not divide its cells"
    if not len(rows):
        return np.zeros(0, dtype=np.int64)
    rank = program.rank[rows]
    end = cell + np.maximum(program.count[rows].astype(np.int64), 1) - 1
    segment = np.searchsorted(keys, rank * room + cell, side="right") - 1
    apart = np.flatnonzero(segment != np.searchsorted(keys, rank * room + end, side="right") - 1)
    if len(apart):
        return f"{program.place(int(rows[apart[0]]))} accesses more than one segment of scratch"
    held: Array = (one.held[segment] + cell - one.cell[segment]) % cut
    return held


def _other_sizes(program: Program, chunk: Array) -> Iterator[str]:
    """Yield a message whose receive has other sizes than its send."""
    sender = partners(program)
    receives = np.flatnonzero(sender >= 0)
    wrong = receives[chunk[receives] != chunk[sender[receives]]]
    yield from _first(program, wrong, "receives a chunk of another size than its sender sends")


def _other_scratch(one: Decoded, emitted: Program, owner: Array, inside: Array, chunk: Array) -> Iterator[str]:
    """Yield the faults of the file's layout of scratch: another content, or unused cells."""
    program, cut = one.plain, span(one.plain)
    in_program, in_file = [], []
    for side in USES:
        rows = np.flatnonzero(program.uses(side, Buffer.SCRATCH))
        within = nth(program.count[rows])
        every = rows[owners(program.count[rows])]
        rank = program.rank[every]
        offset = getattr(emitted, f"{side}_offset").astype(np.int64)[owner[every]] + inside[every] + within
        room = int(emitted.scratch.max(initial=0)) + 1
        in_program.append((rank * room + offset) * cut + (chunk[every] + within) % cut)
        in_file.append(
            rank * (int(program.scratch.max(initial=0)) + 1) + getattr(program, f"{side}_offset")[every] + within
        )
    pairs = np.unique(np.stack([np.concatenate(in_program), np.concatenate(in_file)]), axis=1)
    if any(len(np.unique(side)) != pairs.shape[1] for side in pairs):
        yield "scratch does not hold the data of the program's"
    if len(np.unique(pairs[1])) != int(program.scratch.astype(np.int64).sum()):
        yield "some cells of scratch are unused"


# ---- resources of the engine


def shortages(one: Decoded) -> Iterator[str]:
    """Yield the resources that a step needs beyond those of the engine: slots, their size, and sends."""
    program, copied = one.plain, one.copied
    opcode, count = program.opcode, program.count.astype(np.int64)
    sends, receives, adds = program.sends, program.receives, program.receives & program.reads_src & program.writes_dst
    sends_copy = sends & ((copied & (ALWAYS | IN_PLACE) > 0) | (opcode == Opcode.RECV_REDUCE_SEND))
    takes_slot = sends_copy | (receives & sends_copy) | (adds & _overlaps(program))
    yield from _short(one, takes_slot, one.slots < 1, "has no slot for a copy")
    small = count > one.slot_chunks[program.block]
    yield from _first(program, np.flatnonzero(takes_slot & small), "needs a larger slot than its block has")
    yield from _short(one, sends, one.sends < 1, "may not send")
    if (one.slots < 0).any() or (one.slot_chunks < 0).any() or (one.sends < 0).any():
        yield "a block has a negative allowance"
    wrong = np.flatnonzero((copied > 0) & ~sends)
    yield from _first(program, wrong, "is marked to send a copy, but does not send")
    blind = np.flatnonzero((copied & IN_PLACE > 0) & (program.collective.places[program.rank] < 0))
    yield from _first(program, blind, "sends a copy in calls in place only, but its rank only relays")


def _short(one: Decoded, needs: Array, lacks: Array, what: str) -> Iterator[str]:
    yield from _first(one.plain, np.flatnonzero(needs & lacks[one.plain.block]), what)


def _overlaps(program: Program) -> Array:
    """Return whether the two places of each instruction may overlap, in place or out of place.

    Only the bindings of ``_OVERLAID`` put the input into the output.
    """
    shifted = program.chunks if program.collective.kind == "allgather" else 0
    rank = program.rank
    src, dst = (getattr(program, f"{side}_offset").astype(np.int64) for side in ("src", "dst"))
    inward = (program.src_buffer == Buffer.INPUT) & (program.dst_buffer == Buffer.OUTPUT)
    inward &= program.collective.kind in _OVERLAID
    same = program.src_buffer == program.dst_buffer
    apart = np.abs(src + np.where(inward, rank * shifted, 0) - dst)
    result: Array = (same | inward) & (apart < program.count)
    return result
