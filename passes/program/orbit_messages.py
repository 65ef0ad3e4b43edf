"""The messages of a template: what they wait for, and which of their chunks could be sent at different times."""

from __future__ import annotations

import attrs
import numpy as np

from collc.ir.arrays import Array, distinct_pairs, lexsort
from collc.ir.editing import take, with_dependencies
from collc.ir.laid_out import keep_runs
from collc.ir.machine import execute, partners
from collc.ir.program import Buffer, Opcode
from collc.ir.ragged import first_of_group, group_starts, inverse, nth, ranges, starts
from collc.ir.symmetric_program import SymmetricProgram

from ..analysis.clocks import without_implied
from ..analysis.hazards import conflicts, needed

__all__ = [
    "divided_by_depth", "in_order", "in_parts", "message_conflicts", "message_order", "one_by_one", "relays",
    "waiting_as_needed", "waiting_for", "with_joined_copies", "without_implied_waits",
]  # fmt: skip


def message_order(program: SymmetricProgram) -> Array:
    """Return each message's position in one execution of the program."""
    return inverse(execute(program.batched).finished)


def message_conflicts(program: SymmetricProgram, order: Array) -> tuple[Array, Array]:
    """Return the pairs (later, earlier) of messages that access a chunk which one of them writes.

    ``order`` gives each message its position in a correct execution.
    """
    later, earlier = (program.message[rows] for rows in _row_conflicts(program, order))
    apart = later != earlier
    return distinct_pairs(later[apart], earlier[apart])


def _row_conflicts(program: SymmetricProgram, order: Array) -> tuple[Array, Array]:
    """Return the conflicts of the seed's instructions if its messages execute in this order."""
    row = np.arange(program.seed.num_instructions)
    return conflicts(program.seed, inverse(lexsort((row, order[program.message]))))


def waiting_for(program: SymmetricProgram, later: Array, earlier: Array) -> SymmetricProgram:
    """Return the program in which messages ``later`` depend on messages ``earlier``, and on nothing else."""
    first = program.message_start
    found = attrs.evolve(program, seed=with_dependencies(program.seed, first[later], first[earlier]))
    keep_runs(program, found, None, None)
    return found


def waiting_as_needed(program: SymmetricProgram, order: Array) -> SymmetricProgram:
    """Return the program with the dependencies that its conflicts need.

    ``order`` gives each message its position in a correct execution.
    """
    at = inverse(order)
    later, earlier = (order[column] for column in message_conflicts(program, order))
    later, earlier = needed(program.batched.block[at], *distinct_pairs(later, earlier))
    return waiting_for(program, at[later], at[earlier])


def in_order(program: SymmetricProgram, order: Array) -> SymmetricProgram:
    """Return the program with the messages of each block in the order of their positions in another execution."""
    by_block = lexsort((order, program.batched.block))
    start = program.message_start
    rows = ranges(start[by_block], np.diff(start)[by_block])
    found = attrs.evolve(program, seed=take(program.seed, rows), joined=program.joined[rows])
    keep_runs(program, found, inverse(by_block), inverse(rows))
    return waiting_as_needed(found, order[by_block])


def without_implied_waits(program: SymmetricProgram) -> SymmetricProgram:
    """Return the program without the dependencies that others imply."""
    reduced = without_implied(program.batched)
    return waiting_for(program, reduced.dependent, reduced.deps.astype(np.int64))


def with_joined_copies(program: SymmetricProgram) -> SymmetricProgram:
    """Return the program with copies from input to scratch as one message, if they are adjacent at both ends.

    They wait for nothing. What waits for one of them waits for all.
    """
    seed = program.seed
    idle = (seed.opcode == Opcode.COPY) & (seed.num_dependencies == 0)
    idle &= (seed.src_buffer == Buffer.INPUT) & (seed.dst_buffer == Buffer.SCRATCH)
    follows = np.zeros(len(idle), dtype=bool)
    follows[1:] = (seed.block[1:] == seed.block[:-1]) & idle[1:] & idle[:-1]
    for end in ("src", "dst"):
        offset = getattr(seed, f"{end}_offset").astype(np.int64)
        follows[1:] &= offset[1:] == offset[:-1] + seed.count[:-1]
    if not (follows & (program.joined == 0)).any():
        return program
    found = attrs.evolve(program, joined=(program.joined != 0) | follows)
    return waiting_for(found, *distinct_pairs(found.message[seed.dependent], found.message[seed.deps]))


def relays(program: SymmetricProgram, clashes: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return the pairs (arrival, send) of messages in which the send sends just what arrived, all of it.

    ``clashes`` are the program's :func:`message_conflicts`.
    """
    batched, (later, earlier) = program.batched, clashes
    forwards = batched.sends[later] & batched.receives[earlier]
    forwards &= np.bincount(later, minlength=batched.num_instructions)[later] == 1
    arrival, send = earlier[forwards], later[forwards]
    if not program.joined.any():  # a message is an instruction
        seed = program.seed
        same = (seed.dst_buffer[arrival] == seed.src_buffer[send]) & (seed.dst_offset[arrival] == seed.src_offset[send])
        same &= seed.count[arrival] == seed.count[send]
        return arrival[same], send[same]
    whole = [
        np.array_equal(_chunks(program, "dst", i), _chunks(program, "src", j))
        for i, j in zip(arrival.tolist(), send.tolist(), strict=True)
    ]
    kept = np.array(whole, dtype=bool)
    return arrival[kept], send[kept]


def _chunks(program: SymmetricProgram, end: str, message: int) -> Array:
    """Return the chunks of a message at an end, sorted, numbered by buffer and place."""
    rows = slice(*program.message_start[message : message + 2].tolist())
    buffer, offset = (getattr(program.seed, f"{end}_{c}")[rows].astype(np.int64) for c in ("buffer", "offset"))
    count = program.seed.count[rows].astype(np.int64)
    first = buffer + len(Buffer) * offset
    found: Array = np.sort(np.repeat(first, count) + len(Buffer) * nth(count))
    return found


def divided_by_depth(program: SymmetricProgram) -> SymmetricProgram:
    """Return the program with each message divided into those that could be sent at different times.

    A message then does not wait for data that arrive later than its first. Times are depths: messages on the longest
    chain of accesses, of messages, and of the blocks' own order. The program is the same if the instructions at both
    ends of a message differ in number or size.
    """
    other = _other_ends(program)
    if other is None:
        return program
    order = message_order(program)
    depth = _depths(program, order, other)
    sent, received = (np.where(program.seed.receives == end, depth, depth[other]) for end in (False, True))
    rows = lexsort((np.arange(len(depth)), received, sent, program.message))
    fresh = first_of_group(program.message[rows]) | first_of_group(sent[rows]) | first_of_group(received[rows])
    return _divided(program, order, rows, fresh)


def in_parts(program: SymmetricProgram, parts: Array) -> SymmetricProgram:
    """Return the program with message m divided into ``parts[m]`` messages of about as many chunks.

    Both ends have the same number. Each part is adjacent at the sender, if that is a rank of the seed.
    """
    other = _other_ends(program)
    if other is None or (parts <= 1).all():
        return program
    seed = program.seed
    place = program.placed(np.zeros(1, dtype=np.int64), seed.src_offset.astype(np.int64), program.moving("src"))
    place = np.where(seed.receives, place[other], place)
    rows = lexsort((np.arange(len(place)), place, program.message))
    count, start = seed.count[rows].astype(np.int64), program.message_start
    before = starts(count)
    size = np.diff(before[start])
    message = program.message[rows]
    part = (before[:-1] - before[start[:-1]][message]) * parts[message] // np.maximum(size[message], 1)
    return _divided(program, message_order(program), rows, first_of_group(message) | first_of_group(part))


def one_by_one(program: SymmetricProgram) -> SymmetricProgram:
    """Return the program with a message for each instruction of its seed."""
    rows = np.arange(program.seed.num_instructions)
    return _divided(program, message_order(program), rows, np.ones(len(rows), dtype=bool))


def _divided(program: SymmetricProgram, order: Array, rows: Array, fresh: Array) -> SymmetricProgram:
    """Return the program of these rows of its seed, in which those that are ``fresh`` begin a message.

    Rows change their places within messages only. New messages of one old message are executed in their order.
    """
    found = attrs.evolve(program, seed=take(program.seed, rows), joined=~fresh)
    new = found.message[inverse(rows)]
    at = lexsort((np.arange(int(new.max(initial=-1)) + 1), order[program.message[rows[fresh]]]))
    by_time = inverse(at)
    later, earlier = (by_time[new[column]] for column in _row_conflicts(program, order))
    later, earlier = needed(found.batched.block[at], *distinct_pairs(later, earlier))
    return waiting_for(found, at[later], at[earlier])


def _other_ends(program: SymmetricProgram) -> Array | None:
    """Return the instruction at the other end of each instruction, itself for a copy; None if messages differ."""
    start, partner = program.message_start, partners(program.batched)
    arriving = np.flatnonzero(partner >= 0)
    size = np.diff(start)
    if (size[arriving] != size[partner[arriving]]).any():
        return None
    here, there = (ranges(start[of], size[arriving]) for of in (arriving, partner[arriving]))
    if (program.seed.count[here] != program.seed.count[there]).any():
        return None
    other = np.arange(program.seed.num_instructions)
    other[here], other[there] = there, here
    return other


def _depths(program: SymmetricProgram, order: Array, other: Array) -> Array:
    """Return for each instruction the most messages on a chain that ends at it; an arrival is one after its send."""
    later, earlier = _row_conflicts(program, order)
    by_later = lexsort((earlier, later))
    later, earlier = later[by_later], earlier[by_later]
    first = group_starts(later, len(other)).tolist()
    start, block, receives = program.message_start.tolist(), program.batched.block.tolist(), program.batched.receives
    depth, latest = np.zeros(len(other), dtype=np.int64), [0] * program.seed.num_blocks
    for at in inverse(order).tolist():
        rows, of = slice(start[at], start[at + 1]), slice(first[start[at]], first[start[at + 1]])
        if receives[at]:
            depth[rows] = depth[other[rows]] + 1
        np.maximum.at(depth, later[of], depth[earlier[of]])
        depth[rows] = np.maximum(depth[rows], latest[block[at]])
        latest[block[at]] = int(depth[rows].max())
    return depth
