"""Distribute the messages of a template over channels, so that no block of any image has too many steps."""

from __future__ import annotations

import attrs
import numpy as np

from collc.ir.arrays import Array, Columns, lexsort
from collc.ir.editing import take
from collc.ir.frozen import frozen
from collc.ir.laid_out import keep_runs
from collc.ir.machine import partners
from collc.ir.program import Program
from collc.ir.ragged import first_of_group, inverse, nth_in_group, ranges, starts
from collc.ir.symmetric_program import SymmetricProgram

from ..analysis.hazards import needed
from .limits import image_steps, instructions_and_free
from .orbit_messages import in_parts, message_conflicts, message_order, waiting_for
from .spreading import free_channels, least_loaded

__all__ = ["Messages", "Room", "on_channels", "spread_over_channels"]

_ROUNDS = 16
_SENDING, _RECEIVING, _LOCAL = 0, 1, 2


@frozen
class Room:
    """The least channels of a connection, and a runtime's limits: None for no limit.

    Without ``fused`` instructions each counts as the instructions that replace it.
    """

    channels: int
    steps: int | None
    most_channels: int | None
    threadblocks: int | None
    count: int | None
    fused: bool


def spread_over_channels(program: SymmetricProgram, room: Room) -> SymmetricProgram | None:
    """Return the program with as many channels as its images need; None if its messages do not fit.

    Every message goes to the channel of its connection with the fewest chunks so far. Each is divided into as many
    parts as its connection has channels; if the parts do not fit, messages stay whole.
    """
    whole = Messages.of(program, room)
    for parts in (True, False):
        found = _spread(program, whole, room, parts)
        if found is not None:
            return found
    return None


def _spread(program: SymmetricProgram, whole: Messages, room: Room, parts: bool) -> SymmetricProgram | None:
    """Return the program with its messages on channels, each in as many ``parts`` as its connection has, or whole."""
    number = np.full(len(whole.carries), max(room.channels, 1), dtype=np.int64)
    local = np.ones(program.width, dtype=np.int64)
    for _ in range(_ROUNDS):
        divided = np.append(number, 1)[whole.link] if parts else 1
        parted = in_parts(program, np.where(whole.kind == _LOCAL, 1, divided))
        found = (whole if parted is program else Messages.of(parted, room)).spread(number, local)
        if found.limits_exceeded(room):
            return None
        more = found.more(room.steps, number, local)
        if more is None:
            return None
        if all(map(np.array_equal, more, (number, local))):
            return found.program(parted)
        number, local = more
    return None


def on_channels(program: SymmetricProgram, number: int, room: Room) -> SymmetricProgram | None:
    """Return the program with the messages from a rank to another on ``number`` channels, in the order of an execution.

    None if these are more channels or blocks than a runtime has, or if messages arrive in another order.
    """
    messages = Messages.of(program, room).by_ranks(program.num_ranks)
    found = messages.spread(np.full(len(messages.carries), number))
    return None if found.limits_exceeded(room) or not found.in_order else found.program(program)


@frozen(eq=False)
class Messages:
    """The messages of the template: by connection, the ranks of the template at its ends ``src`` and ``dst``, the rank
    ``to`` which it leads, and how many it ``carries``.

    By message, ``rank`` is its rank, ``kind`` says whether it is sent, arrives or stays, ``link`` is its connection (0
    for what stays) and ``nth`` its number there, ``peer`` its other rank, ``order`` its position in an execution. What
    stays has a number among all that its rank keeps: ``stays`` are these, rank by rank, in the order of an execution.
    ``sent`` are those that leave, by connection. ``instructions`` and ``free`` are those of
    :func:`.limits.instructions_and_free`.
    """

    src: Array
    dst: Array
    to: Array
    carries: Array
    rank: Array
    kind: Array
    link: Array
    nth: Array
    peer: Array
    count: Array
    order: Array
    sent: Array
    stays: Array
    instructions: Array
    free: Array
    conflicts: tuple[Array, Array]

    @classmethod
    def of(cls, program: SymmetricProgram, room: Room) -> Messages:
        """Return the messages of a template; instructions are counted as ``room`` says."""
        batched, seed = program.batched, program.seed
        kind = np.select([batched.sends, batched.receives], [_SENDING, _RECEIVING], _LOCAL)
        links = program.links
        # connections in the order of their ranks, parallel ones by channel
        ends = lexsort((links.channel, links.dst, links.src))
        number = np.append(inverse(ends), 0)
        of_block = number[np.maximum(links.outward, links.inward)]
        peer = np.maximum(seed.send_peer, seed.recv_peer).astype(np.int64)
        leaving = np.flatnonzero(kind == _SENDING)
        leaving = leaving[lexsort([of_block[batched.block[leaving]]])]
        link, order = of_block[batched.block], message_order(program)
        nth = np.zeros(len(kind), dtype=np.int64)
        nth[leaving] = nth_in_group(link[leaving])
        partner = partners(batched)
        arriving = kind == _RECEIVING
        nth[arriving] = nth[partner[arriving]]
        stays = np.flatnonzero(kind == _LOCAL)
        stays = stays[lexsort((order[stays], batched.rank[stays]))]
        nth[stays] = nth_in_group(batched.rank[stays])
        instructions, free = instructions_and_free(program, room.count, room.fused)
        return cls(
            links.src[ends], links.dst[ends] % program.width, links.dst[ends],
            np.bincount(link[leaving], minlength=len(links)), batched.rank.astype(np.int64), kind, link, nth,
            peer[batched.block], batched.count.astype(np.int64), order, leaving, stays, instructions, free,
            message_conflicts(program, order),
        )  # fmt: skip

    def by_ranks(self, ranks: int) -> Messages:
        """Return the messages with one connection from a rank to another, in the order of an execution."""
        _, first, pair = np.unique(self.src * ranks + self.to, return_index=True, return_inverse=True)
        link = np.append(pair, 0)[self.link]
        leaving = np.flatnonzero(self.kind == _SENDING)
        leaving = leaving[lexsort((self.order[leaving], link[leaving]))]
        by_old = lexsort((self.nth[leaving], self.link[leaving]))  # connection by connection, as arrivals are looked up
        nth = self.nth.copy()
        nth[leaving] = nth_in_group(link[leaving])
        arriving = np.flatnonzero(self.kind == _RECEIVING)
        nth[arriving] = nth[leaving][by_old][starts(self.carries)[self.link[arriving]] + self.nth[arriving]]
        carries = np.bincount(pair, self.carries, len(first)).astype(np.int64)
        return attrs.evolve(
            self, src=self.src[first], dst=self.dst[first], to=self.to[first], carries=carries, link=link, nth=nth,
            sent=leaving,
        )  # fmt: skip

    def spread(self, number: Array, local: Array | None = None) -> _Spread:
        """Return the messages with ``number`` channels for each connection, and ``local`` blocks for what a rank keeps.

        The first part of what stays is in the first block, and so on. By default there is one block.
        """
        of_sent = least_loaded(self.count[self.sent], self.carries, number)
        which = of_sent[np.minimum(starts(self.carries)[self.link] + self.nth, max(len(of_sent) - 1, 0))]
        return self.on(number, which, local)

    def on(self, number: Array, which: Array, local: Array | None = None) -> _Spread:
        """Return the messages with ``number`` channels for each connection, of which each message has ``which``."""
        channels = free_channels(self.src, self.to, number, self.dst)
        part = np.zeros(len(self.kind), dtype=np.int64)
        if local is not None:
            rank = self.rank[self.stays]
            part[self.stays] = self.nth[self.stays] * local[rank] // np.bincount(rank)[rank]
        which = starts(number)[self.link] + which
        return _Spread.of(self, np.where(self.kind == _LOCAL, 0, channels[which]), part)


@frozen(eq=False)
class _Spread:
    """The blocks of messages: ``rows`` are the messages, block by block, in the order of an execution.

    ``block`` is the block of each message, ``waits`` are the pairs of messages (later, earlier) of different blocks.
    """

    messages: Messages
    channel: Array
    rows: Array
    block: Array
    waits: tuple[Array, Array]

    @classmethod
    def of(cls, messages: Messages, channel: Array, part: Array) -> _Spread:
        m = messages
        keys = part, channel, m.peer, m.kind, m.rank
        rows, place = lexsort((m.order, *keys)), lexsort(keys)
        fresh = np.any([first_of_group(column[place]) for column in keys], axis=0)
        block = np.empty(len(rows), dtype=np.int64)
        block[place] = np.cumsum(fresh) - 1
        at = inverse(m.order)
        later, earlier = (m.order[column] for column in m.conflicts)
        later, earlier = needed(block[at], later, earlier)
        return cls(m, channel, rows, block, (at[later], at[earlier]))

    @property
    def steps(self) -> Array:
        """The most steps that each block has on any image; each dependency after the ``free`` ones is one."""
        m = self.messages
        waits = np.bincount(self.waits[0], minlength=len(m.kind))
        return image_steps(m.instructions, m.free, waits, self.block, int(self.block.max(initial=-1)) + 1)

    @property
    def in_order(self) -> bool:
        """Whether messages arrive in the order in which they are sent."""
        rows = self.rows[self.messages.kind[self.rows] == _RECEIVING]
        block, nth = self.block[rows], self.messages.nth[rows]
        return bool(((block[1:] != block[:-1]) | (nth[1:] > nth[:-1])).all())

    def limits_exceeded(self, room: Room) -> bool:
        """Return whether these are more channels or blocks than a runtime has."""
        rank = self.messages.rank[self.rows[first_of_group(self.block[self.rows])]]
        blocks = int(np.bincount(rank).max(initial=0))
        limits = (int(self.channel.max(initial=0)) + 1, room.most_channels), (blocks, room.threadblocks)
        return any(most is not None and found > most for found, most in limits)

    def more(self, most: int | None, number: Array, local: Array) -> tuple[Array, Array] | None:
        """Return the channels of connections, and the blocks of what ranks keep, so that fewer blocks are too long.

        None if one cannot become shorter.
        """
        if most is None:
            return number, local
        m, steps = self.messages, self.steps
        more, more_local, kept = number.copy(), local.copy(), np.bincount(m.rank[m.stays], minlength=len(local))
        head = self.rows[first_of_group(self.block[self.rows])]
        for block in np.flatnonzero(steps > most).tolist():
            message = head[block]
            if m.kind[message] == _LOCAL:
                at, before, after, limit = int(m.rank[message]), local, more_local, kept
            else:
                at, before, after, limit = int(m.link[message]), number, more, m.carries
            if before[at] >= limit[at]:
                return None
            need = max(-(-int(steps[block]) * int(before[at]) // most), int(before[at]) + 1)
            after[at] = max(after[at], min(need, int(limit[at])))
        return more, more_local

    def program(self, given: SymmetricProgram) -> SymmetricProgram:
        """Return the program of these blocks."""
        seed, start = given.seed, given.message_start
        size = np.diff(start)[self.rows]
        rows = ranges(start[self.rows], size)
        head = self.rows[first_of_group(self.block[self.rows])]
        peer, kind = self.messages.peer[head], self.messages.kind[head]
        blocks: Columns = {
            "block_rank": self.messages.rank[head], "send_peer": np.where(kind == _SENDING, peer, -1),
            "recv_peer": np.where(kind == _RECEIVING, peer, -1), "channel": self.channel[head],
        }  # fmt: skip
        moved: Program = take(seed, rows, np.repeat(self.block[self.rows], size), blocks)
        place = inverse(self.rows)
        found = attrs.evolve(given, seed=moved, joined=given.joined[rows])
        keep_runs(given, found, place, inverse(rows))
        return waiting_for(found, *(place[column] for column in self.waits))
