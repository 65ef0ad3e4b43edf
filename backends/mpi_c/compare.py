"""Is what was decoded from a C file the program that was to be emitted?

The file may have scratch laid out anew and instructions cut in pieces where scratch demands it, nothing else. That
scratch is the same is a matter of one-to-one: every cell of the file stands for one chunk of the vector in one place of
the program's scratch, and the other way round. Then whatever is read was written by the same instruction.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from collc.ir.machine import partners
from collc.ir.program import BLOCK_COLUMNS, Buffer, Opcode, Program

from .decode import ALWAYS, IN_PLACE, Decoded
from .scratch import span

__all__ = ["differences", "shortages"]

Array = np.ndarray[Any, np.dtype[Any]]

_READS = np.array([op.reads_src for op in Opcode])
_WRITES = np.array([op.writes_dst for op in Opcode])
_SENDS = np.array([op.sends for op in Opcode])
_RECEIVES = np.array([op.receives for op in Opcode])
#: collectives whose input lies in the output where a call is in place
_OVERLAID = frozenset({"allreduce", "allgather", "alltoall", "reduce", "broadcast"})
_SIDES = (("src", _READS), ("dst", _WRITES))


def differences(one: Decoded, wanted: Program) -> Iterator[str]:
    """Yield what a decoded program, right in itself, does otherwise than ``wanted``; up to what makes the rest idle."""
    found = one.program
    for name in ("kind", "num_ranks", "root", "reduces"):
        if getattr(found.collective, name) != getattr(wanted.collective, name):
            yield f"{name} is {getattr(found.collective, name)}, not {getattr(wanted.collective, name)}"
    if found.chunks != wanted.chunks:
        yield f"shards have {found.chunks} chunks, not {wanted.chunks}"
    for name in BLOCK_COLUMNS:
        if not np.array_equal(getattr(found, name), getattr(wanted, name)):
            yield f"the blocks differ in {name.replace('_', ' ')}"
            return
    owner = _owners(found, wanted)
    if owner is None or not np.array_equal(found.opcode, wanted.opcode[owner]):
        yield "the blocks have other instructions"
        return
    inside = _inside(found, owner)
    yield from _other_counts(found, wanted, owner)
    yield from _other_waits(found, wanted, owner)
    yield from _other_places(found, wanted, owner, inside)
    chunk = _chunks(one)
    if isinstance(chunk, str):
        yield chunk
    else:
        yield from _other_sizes(found, chunk)
        yield from _other_scratch(one, wanted, owner, inside, chunk)


# ---- pieces of instructions


def _owners(found: Program, wanted: Program) -> Array | None:
    """Return the instruction of ``wanted`` that each one of ``found`` is a piece of; nothing where they do not align.

    Instructions are as long as they move chunks, those that move none 1.
    """
    ends = [np.cumsum(np.maximum(one.count.astype(np.int64), 1)) for one in (found, wanted)]
    owner = np.searchsorted(ends[1], ends[0], side="left")
    if len({int(e.max(initial=0)) for e in ends}) > 1:
        return None
    last = np.searchsorted(ends[0], ends[1], side="left")
    if len(last) and not np.array_equal(ends[0][last], ends[1]):
        return None
    starts = [np.concatenate([[0], e])[one.block_start] for e, one in zip(ends, (found, wanted), strict=True)]
    return owner if np.array_equal(starts[0], starts[1]) else None


def _inside(found: Program, owner: Array) -> Array:
    """Return how many chunks of an instruction come before each piece of it."""
    count = found.count.astype(np.int64)
    before = np.cumsum(count) - count
    return before - before[np.searchsorted(owner, owner)]


def _other_counts(found: Program, wanted: Program, owner: Array) -> Iterator[str]:
    moved = np.bincount(owner, found.count.astype(np.int64), minlength=wanted.num_instructions).astype(np.int64)
    yield from _first(found, np.flatnonzero((moved != wanted.count)[owner]), "moves another number of chunks")


def _other_waits(found: Program, wanted: Program, owner: Array) -> Iterator[str]:
    """Yield where waits differ: the first piece of an instruction has its waits, for the last pieces of others."""
    first = np.concatenate([[True], owner[1:] != owner[:-1]]) if len(owner) else np.zeros(0, dtype=bool)
    last = np.searchsorted(owner, np.arange(wanted.num_instructions), side="right") - 1
    waits = np.where(first, np.diff(wanted.dep_start.astype(np.int64))[owner], 0)
    wrong = np.diff(found.dep_start.astype(np.int64)) != waits
    yield from _first(found, np.flatnonzero(wrong), "has another number of waits")
    if not wrong.any() and not np.array_equal(found.deps, last[wanted.deps]):
        at = int(np.argmax(found.deps != last[wanted.deps]))
        row = int(np.searchsorted(found.dep_start, at, side="right")) - 1
        yield f"{found.place(row)} waits for another instruction"


def _other_places(found: Program, wanted: Program, owner: Array, inside: Array) -> Iterator[str]:
    """Yield where instructions read or write other places; those in scratch are compared apart."""
    for side, used in _SIDES:
        uses = used[found.opcode]
        buffer, other = getattr(found, f"{side}_buffer"), getattr(wanted, f"{side}_buffer")[owner]
        offset = getattr(found, f"{side}_offset").astype(np.int64)
        due = getattr(wanted, f"{side}_offset").astype(np.int64)[owner] + np.where(uses, inside, 0)
        apart = uses & (other == Buffer.SCRATCH)
        wrong = (buffer != other) | (~apart & (offset != due))
        yield from _first(found, np.flatnonzero(wrong), f"has another {side}")


def _first(program: Program, rows: Array, what: str) -> Iterator[str]:
    if len(rows):
        yield f"{program.place(int(rows[0]))} {what}"


# ---- chunks and their sizes


def _chunks(one: Decoded) -> Array | str:
    """Return the first chunk of a count that each instruction moves, -1 for a nop; or what is wrong with segments."""
    program, cut = one.program, span(one.program)
    found = np.full(program.num_instructions, -1, dtype=np.int64)
    for side, used in _SIDES:
        rows = np.flatnonzero(used[program.opcode])
        offset = getattr(program, f"{side}_offset").astype(np.int64)[rows]
        chunk = offset % cut
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


def _held(one: Decoded, rows: Array, cell: Array) -> Array | str:
    """Return the chunk that is in the first cell of each access to scratch, or what is wrong with segments."""
    program, cut = one.program, span(one.program)
    cells = program.scratch.astype(np.int64)
    room = int(cells.max(initial=0)) + 1
    ranks = np.repeat(np.arange(program.num_ranks), np.diff(one.first))
    outside = (one.cell < 0) | (one.cell >= cells[ranks]) | (one.held < 0) | (one.held >= cut)
    keys = ranks * room + one.cell
    begins = one.cell[one.first[:-1][np.diff(one.first) > 0]]
    if outside.any() or (np.diff(keys) <= 0).any() or begins.any() or (np.diff(one.first) == 0)[cells > 0].any():
        return "the segments of scratch do not divide its cells"
    if not len(rows):
        return np.zeros(0, dtype=np.int64)
    rank = program.block_rank[program.block[rows]].astype(np.int64)
    end = cell + np.maximum(program.count[rows].astype(np.int64), 1) - 1
    segment = np.searchsorted(keys, rank * room + cell, side="right") - 1
    apart = np.flatnonzero(segment != np.searchsorted(keys, rank * room + end, side="right") - 1)
    if len(apart):
        return f"{program.place(int(rows[apart[0]]))} reaches over segments of scratch"
    held: Array = (one.held[segment] + cell - one.cell[segment]) % cut
    return held


def _other_sizes(program: Program, chunk: Array) -> Iterator[str]:
    """Yield a message that arrives with other sizes than it was sent with."""
    sender = partners(program)
    receives = np.flatnonzero(sender >= 0)
    wrong = receives[chunk[receives] != chunk[sender[receives]]]
    yield from _first(program, wrong, "receives a chunk of another size than was sent")


def _other_scratch(one: Decoded, wanted: Program, owner: Array, inside: Array, chunk: Array) -> Iterator[str]:
    """Yield why the file's scratch is not the program's, laid out anew and with no cell too many."""
    program, cut = one.program, span(one.program)
    there, here = [], []
    for side, used in _SIDES:
        rows = np.flatnonzero(used[program.opcode] & (getattr(program, f"{side}_buffer") == Buffer.SCRATCH))
        count = program.count[rows].astype(np.int64)
        nth = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
        every = np.repeat(rows, count)
        rank = program.block_rank[program.block[every]].astype(np.int64)
        offset = getattr(wanted, f"{side}_offset").astype(np.int64)[owner[every]] + inside[every] + nth
        room = int(wanted.scratch.max(initial=0)) + 1
        there.append((rank * room + offset) * cut + (chunk[every] + nth) % cut)
        here.append(rank * (int(program.scratch.max(initial=0)) + 1) + getattr(program, f"{side}_offset")[every] + nth)
    pairs = np.unique(np.stack([np.concatenate(there), np.concatenate(here)]), axis=1)
    if any(len(np.unique(side)) != pairs.shape[1] for side in pairs):
        yield "scratch does not hold what the program's does"
    if len(np.unique(pairs[1])) != int(program.scratch.astype(np.int64).sum()):
        yield "there are cells of scratch that nothing uses"


# ---- what the engine needs


def shortages(one: Decoded) -> Iterator[str]:
    """Yield what the engine does not allow although some step cannot do without: slots, their room, and sends."""
    program, copied = one.program, one.copied
    opcode, count = program.opcode, program.count.astype(np.int64)
    sends, receives, adds = _SENDS[opcode], _RECEIVES[opcode], _RECEIVES[opcode] & _READS[opcode] & _WRITES[opcode]
    leaves = sends & ((copied & (ALWAYS | IN_PLACE) > 0) | (opcode == Opcode.RECV_REDUCE_SEND))
    aside = leaves | (receives & leaves) | (adds & _overlaps(program))
    yield from _short(one, aside, one.slots < 1, "has no slot for a copy")
    small = count > one.slot_chunks[program.block]
    yield from _first(program, np.flatnonzero(aside & small), "needs a larger slot than its block has")
    yield from _short(one, sends, one.sends < 1, "may not send")
    if (one.slots < 0).any() or (one.slot_chunks < 0).any() or (one.sends < 0).any():
        yield "a block is allowed less than nothing"
    wrong = np.flatnonzero((copied > 0) & ~sends)
    yield from _first(program, wrong, "is to send a copy, but sends nothing")


def _short(one: Decoded, needs: Array, lacks: Array, what: str) -> Iterator[str]:
    yield from _first(one.program, np.flatnonzero(needs & lacks[one.program.block]), what)


def _overlaps(program: Program) -> Array:
    """Return whether each instruction's two places may be one, in place or out of place.

    The bindings of other collectives lay no input over output.
    """
    shifted = program.chunks if program.collective.kind == "allgather" else 0
    rank = program.block_rank[program.block].astype(np.int64)
    src, dst = (getattr(program, f"{side}_offset").astype(np.int64) for side in ("src", "dst"))
    inward = (program.src_buffer == Buffer.INPUT) & (program.dst_buffer == Buffer.OUTPUT)
    inward &= program.collective.kind in _OVERLAID
    same = program.src_buffer == program.dst_buffer
    apart = np.abs(src + np.where(inward, rank * shifted, 0) - dst)
    result: Array = (same | inward) & (apart < program.count)
    return result
