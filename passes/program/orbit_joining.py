"""Join blocks of a template in pairs: one receives and one sends, as ``fuse`` joins blocks of all ranks.

Joined blocks share a channel. A block of rank i that sends to the image of rank j under f, and receives from another
image, has images on all ranks. So what is joined, and in which order messages are executed, is decided once for all.
"""

from __future__ import annotations

import attrs
import numpy as np

from collc.ir.arrays import Array, lexsort
from collc.ir.editing import join_blocks, take
from collc.ir.frozen import frozen
from collc.ir.laid_out import keep_runs
from collc.ir.machine import completes_with, execute
from collc.ir.progress import progress
from collc.ir.ragged import inverse, owners, ranges
from collc.ir.symmetric_program import SymmetricProgram

from ..analysis.hazards import agree, needed
from ..analysis.timing import Times, play
from .limits import image_steps, instructions_and_free
from .merging import merge
from .orbit_messages import message_conflicts, message_order, waiting_for, without_implied_waits
from .pairing import Pairs, pair_blocks

__all__ = ["JoinLimits", "Turns", "block_steps", "in_pairs"]

_ROUNDS = 4


@frozen
class JoinLimits:
    """A runtime's limits on steps of a block, channels, and chunks of an instruction, None for no limit.

    FIFOs hold ``depth`` messages. Without ``fused`` instructions each counts as the instructions that replace it.
    """

    steps: int | None
    channels: int | None
    count: int | None
    depth: int
    fused: bool


@frozen(eq=False)
class Turns:
    """A template, the times of its messages, their places in the order of turns, and their conflicts in that order."""

    program: SymmetricProgram
    times: Times
    place: Array
    clashes: tuple[Array, Array]

    @classmethod
    def of(cls, program: SymmetricProgram, alpha: int, unit: int) -> Turns:
        """Return the turns by the model of :mod:`..analysis.timing`."""
        order = message_order(program)
        times = play(program.batched, alpha, unit, lambda: inverse(order))
        place, clashes = times.places(inverse(order)), message_conflicts(program, order)
        return cls(program, times, place, clashes if agree(place, *clashes) else message_conflicts(program, place))


def block_steps(program: SymmetricProgram, limits: JoinLimits) -> Array:
    """Return the most steps that each block has on any image, with an instruction for each run of its messages.

    Each dependency of a message after the first is a step, in an all-to-all each after one for every run.
    """
    batched = program.batched
    instructions, free = instructions_and_free(program, limits.count, limits.fused)
    return image_steps(instructions, free, batched.num_dependencies, batched.block, batched.num_blocks)


def in_pairs(turns: Turns, limits: JoinLimits) -> SymmetricProgram | None:
    """Return the template with as many blocks joined as possible, first those of the same peer.

    None if limits or FIFOs do not allow it. Blocks that forward data do not come first, because nothing is fused: their
    connections would have to share a channel with those of other ranks, which then have fewer pairs to join.
    """
    program, length, none = turns.program, block_steps(turns.program, limits), np.zeros(0, dtype=np.int64)
    pairs = pair_blocks(program.batched, (none, none), True, length, limits.steps, long_first=True)
    for turn in range(_ROUNDS):
        progress("joining threadblocks, round", turn + 1)
        if limits.channels is not None and int(pairs.channel.max(initial=0)) >= limits.channels:
            return None
        found = _joined(turns, pairs, limits.depth)
        if found is None:
            return None
        joined, owner = found
        wrong = np.zeros(joined.seed.num_blocks, dtype=bool)
        if limits.steps is not None:
            wrong = block_steps(joined, limits) > limits.steps
        stuck = None
        if not completes_with(joined.batched, limits.depth):
            stuck = execute(joined.batched, limits.depth).deadlock
        if stuck is not None:
            wrong[[joined.batched.block[wait.instruction] for wait in stuck.cycle or stuck.waits]] = True
        apart = (wrong & (np.bincount(owner) > 1))[owner]
        if not apart.any():
            return None if stuck else joined
        pairs = attrs.evolve(pairs, host=np.where(apart, np.arange(len(owner)), pairs.host))
    return None


def _joined(turns: Turns, pairs: Pairs, depth: int) -> tuple[SymmetricProgram, Array] | None:
    """Return the template of joined blocks, and the number there of each of its blocks before; None for a deadlock."""
    given, batched = turns.program, turns.program.batched
    alone = np.full(batched.num_instructions, -1, dtype=np.int64)
    merged = merge(batched, turns.times.due, lambda: turns.place, turns.clashes, alone, pairs.host, depth, patient=True)
    if merged is None:
        return None
    place = inverse(merged.order)
    blocks, owner = join_blocks(given.seed, merged.host)
    blocks["channel"] = np.zeros(len(blocks["block_rank"]), dtype=np.int64)
    connected = (given.seed.send_peer >= 0) | (given.seed.recv_peer >= 0)
    np.maximum.at(blocks["channel"], owner[connected], pairs.channel[connected])
    block = owner[batched.block]
    rows = lexsort((place, block))
    start = given.message_start
    size = np.diff(start)[rows]
    of = ranges(start[rows], size)
    seed = take(given.seed, of, block[rows][owners(size)], blocks)
    clashes = turns.clashes if agree(place, *turns.clashes) else message_conflicts(given, place)
    later, earlier = needed(block[merged.order], *(place[column] for column in clashes))
    number = inverse(rows)[merged.order]
    found = attrs.evolve(given, seed=seed, joined=given.joined[of])
    keep_runs(given, found, inverse(rows), inverse(of))
    return without_implied_waits(waiting_for(found, number[later], number[earlier])), owner
