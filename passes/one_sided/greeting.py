"""Signals at the start and the end of launches, and the channels that they use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np

from collc.ir.arrays import Array, lexsort
from collc.ir.one_sided.opcodes import SIGNALS, WAITS, Op
from collc.ir.one_sided.program import OneSided, Transport
from collc.ir.ragged import inverse, starts

from .rows import TRANSPORT, Rows, emit, joined, program_of, rows_of

__all__ = ["Greetings", "synchronizing"]

_BEGIN, _BEFORE, _OWN, _AFTER, _PLACES = range(5)  #: places beside an operation


class Greetings:
    """A program to which signals between ranks are added.

    A channel has one waiting and one signalling block, so that counts never depend on the order of blocks. A new
    channel joins two blocks that have none free.
    """

    def __init__(self, program: OneSided, most: int):
        self.program, self.most, self.rows = program, most, rows_of(program)
        self.rank, self.peer = program.channel_rank.tolist(), program.channel_peer.tolist()
        self.transport, self.partner = program.channel_transport.tolist(), program.partner.tolist()
        self.signals, self.waits = self._users(SIGNALS), self._users(WAITS)
        #: channel -> the last operation that signals on it
        self.last: dict[int, int] = {}
        of = program.link_operation
        signals = np.flatnonzero(SIGNALS[program.opcode[of]])
        self.last.update(zip(program.links[signals].tolist(), of[signals].tolist(), strict=True))
        self.of: dict[tuple[int, int], list[int]] = {}
        for row, pair in enumerate(zip(self.rank, self.peer, strict=True)):
            self.of.setdefault(pair, []).append(row)
        #: (position of an operation, where beside it, operation, block, transport) -> channels
        self.added: dict[tuple[int, int, Op, int, int], list[int]] = {}
        #: block -> its first operation that must wait for the beginning of peers, on these channels
        self.first: dict[int, int] = {}
        self.begun: list[tuple[int, int]] = []

    def _users(self, table: Array) -> dict[int, set[int]]:
        """Return the blocks that signal on each channel, or wait on it."""
        found: dict[int, set[int]] = {}
        of = self.program.link_operation
        links = np.flatnonzero(table[self.program.opcode[of]])
        blocks = self.program.block[of[links]].tolist()
        for channel, block in zip(self.program.links[links].tolist(), blocks, strict=True):
            found.setdefault(channel, set()).add(block)
        return found

    def begin(self, operation: int, peer: int) -> None:
        """Let the block of an operation wait, before its first operation added so, until ``peer`` has begun."""
        block = int(self.program.block[operation])
        channel, other = self._free(block, peer)
        self.first[block] = min(operation, self.first.get(block, operation))
        self.begun.append((block, channel))
        self._add(int(self.program.block_start[other]), _BEGIN, Op.RLXSIGNAL, other, self.partner[channel])

    def end(self, operation: int, peer: int) -> None:
        """Let ``peer`` wait at its end until the block of an operation has done it."""
        block = int(self.program.block[operation])
        channel = self._unfollowed(block, operation, peer)
        other = min(self.waits.get(self.partner[channel]) or {int(self.program.rank_blocks[peer])})
        self.signals[channel], self.waits[self.partner[channel]] = {block}, {other}
        self._add(operation, _AFTER, Op.SIGNAL, block, channel)
        start, end = self.program.block_start[other : other + 2].astype(np.int64).tolist()
        self._add(max(start, end - 1), _AFTER, Op.WAIT, other, self.partner[channel])

    def _unfollowed(self, block: int, operation: int, peer: int) -> int:
        """Return a channel on which a block can signal after an operation: it never does so later."""
        rank = int(self.program.block_rank[block])
        for channel in self.of.get((rank, peer), ()):
            own, other = self.signals.get(channel, set()), self.partner[channel]
            alone = other >= 0 and own <= {block} and len(self.waits.get(other, ())) <= 1
            if alone and self.last.get(channel, -1) < operation:
                return channel
        return self._new(rank, peer)

    def _add(self, at: int, where: int, op: Op, block: int, channel: int) -> None:
        self.added.setdefault((at, where, op, block, self.transport[channel]), []).append(channel)

    def _free(self, block: int, peer: int) -> tuple[int, int]:
        """Return a channel to ``peer`` on which a block can wait, and the peer's block that signals on it."""
        rank = int(self.program.block_rank[block])
        for channel in self.of.get((rank, peer), ()):
            other = self.partner[channel]
            if other >= 0 and self.waits.get(channel, set()) <= {block} and len(self.signals.get(other, ())) <= 1:
                break
        else:
            channel = self._new(rank, peer)
        other = self.partner[channel]
        own = self.signals.get(other) or self.waits.get(other) or {int(self.program.rank_blocks[peer])}
        signalling = min(own)
        self.waits[channel], self.signals[other] = {block}, {signalling}
        return channel, signalling

    def _new(self, rank: int, peer: int) -> int:
        """Return a new channel from ``rank`` to ``peer``, with its partner."""
        known = self.of.get((rank, peer), ())
        transport = self.transport[known[0]] if known else int(Transport.MEMORY)
        row = len(self.rank)
        self.rank += [rank, peer]
        self.peer += [peer, rank]
        self.transport += [transport] * 2
        self.partner += [row + 1, row]
        self.of.setdefault((rank, peer), []).append(row)
        self.of.setdefault((peer, rank), []).append(row + 1)
        return row

    def result(self) -> OneSided:
        """Return the program with all signals and waits."""
        for block, channel in self.begun:
            self._add(self.first[block], _BEFORE, Op.RLXWAIT, block, channel)
        parts, keys = [self.rows], [_OWN + _PLACES * np.arange(len(self.rows))]
        for at, where, op, block, transport, channels in self._operations():
            parts.append(synchronizing(block, op, transport, channels))
            keys.append(np.array([_PLACES * at + where]))
        return _with_channels(self, joined(parts).by_block(np.concatenate(keys)))

    def _operations(self) -> Iterator[tuple[int, int, Op, int, int, list[int]]]:
        """Yield the added operations, each with no more channels than fit."""
        for (at, where, op, block, transport), channels in sorted(self.added.items()):
            ordered = sorted(channels)
            for low in range(0, len(ordered), self.most):
                yield at, where, op, block, transport, ordered[low : low + self.most]


def synchronizing(block: int, op: Op, transport: int, links: Sequence[int]) -> Rows:
    """Return one operation on channels or semaphores."""
    one = emit(np.array([block]), op, transport)
    return attrs.evolve(one, link_count=np.array([len(links)]), links=np.array(links, dtype=np.int64))


def _with_channels(greetings: Greetings, rows: Rows) -> OneSided:
    """Return the program of these operations and all channels, sorted by rank again."""
    program, rank = greetings.program, np.array(greetings.rank, dtype=np.int64)
    if len(rank) == len(program.channel_rank):
        return program_of(program, rows)
    order = lexsort([rank])
    place = inverse(order)
    number = len(rank) - len(program.channel_rank)
    groups = starts(np.append(np.diff(program.group_start.astype(np.int64)), np.zeros(number, dtype=np.int64))[order])
    columns = {"channel_rank": rank, "channel_peer": greetings.peer, "channel_transport": greetings.transport}
    of_channel = np.repeat(rows.fixed[:, TRANSPORT] != Transport.LOCAL, rows.link_count)
    links = np.where(of_channel, place[np.where(of_channel, rows.links, 0)], rows.links)
    items = rows.items.copy()
    switched = items[:, 4] >= 0
    items[switched, 4] = place[items[switched, 4]]
    return program_of(
        program, attrs.evolve(rows, links=links, items=items),
        channel_buffer=np.append(program.channel_buffer, np.zeros(number, dtype=np.int64))[order], group_start=groups,
        **{name: np.array(column)[order] for name, column in columns.items()},
    )  # fmt: skip
