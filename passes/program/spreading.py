"""How messages are spread over channels: the connection of each instruction, its channel there, and its block.

All is decided from columns, before any program is built, so that a number of channels can be tried cheaply.
"""

from __future__ import annotations

import numpy as np

from collc.ir.arrays import Array, Columns, lexsort
from collc.ir.frozen import frozen
from collc.ir.machine import connections
from collc.ir.program import Program
from collc.ir.ragged import nth_in_group, owners, ranges, starts

from .pairing import PER_CHANNEL

__all__ = ["Blocks", "Layout", "free_channels", "least_loaded"]

#: connections from which on messages are spread over the channels of all connections at once
_WIDE = 16


@frozen(eq=False)
class Blocks:
    """Blocks of instructions: their ``columns``, the block ``owner`` of each instruction, and the connection ``link``
    of each block (-1: none).
    """

    columns: Columns
    owner: Array
    link: Array

    def __len__(self) -> int:
        return len(self.link)


@frozen(eq=False)
class Layout:
    """The connections of a program, and the connection of each instruction: one row per instruction.

    ``src`` and ``dst`` are the ranks of each connection, ``messages`` the number of its messages; ``link_of`` is the
    connection of each instruction (-1: local), ``nth`` its number among the connection's messages. ``sent`` are the
    rows that send, by connection and number, and ``count`` the chunks of every row of the program.
    """

    src: Array
    dst: Array
    messages: Array
    rank: Array
    link_of: Array
    is_send: Array
    nth: Array
    sent: Array
    count: Array

    def part(self, ranks: Array) -> tuple[Layout, Array, Array]:
        """Return the connections that end at these ranks (a mask), their numbers here, and the rows of the ranks.

        Rows that send to these ranks from others have no place in it, but their messages do.
        """
        rows, links = np.flatnonzero(ranks.take(self.rank)), np.flatnonzero(ranks[self.src] | ranks[self.dst])
        number = np.full(len(self.src) + 1, -1, dtype=np.int64)
        number[links] = np.arange(len(links))
        sent = self.sent[ranges(starts(self.messages)[links], self.messages[links])]
        part = Layout(
            self.src[links], self.dst[links], self.messages[links], self.rank[rows], number[self.link_of[rows]],
            self.is_send[rows], self.nth.take(rows), sent, self.count,
        )  # fmt: skip
        return part, links, rows

    @classmethod
    def of(cls, program: Program, order: Array) -> Layout:
        """Return the connections of a program; messages are numbered in ``order``."""
        conns = connections(program)
        is_send = program.sends
        is_receive = program.receives
        link_of = np.where(
            is_send, conns.outward.take(program.block), np.where(is_receive, conns.inward.take(program.block), -1)
        )
        link_of = np.where(link_of < 0, _companions(program, np.where(is_receive, link_of, -1)), link_of)
        nth, sent = _message_numbers(link_of, is_send, is_send | is_receive, order)
        messages = np.bincount(link_of[is_send], minlength=len(conns))
        return cls(conns.src, conns.dst, messages, program.rank, link_of, is_send, nth, sent, program.count)

    def blocks(self, num_channels: Array, channel: Array) -> Blocks:
        """Return the blocks for a number of channels per connection; ``channel`` are those of all, one after the other.

        Each channel of a connection has a block at either end; local instructions of a rank have another one.
        """
        link = owners(num_channels)
        end = starts(num_channels).take(self.link_of) + self.spread(num_channels) + np.where(self.is_send, 0, len(link))
        slot = np.where(self.link_of < 0, 2 * len(link) + self.rank, end)
        ranks = np.arange(int(self.rank.max(initial=-1)) + 1)
        src, dst, none = self.src[link], self.dst[link], np.full(len(ranks), -1)
        table = np.stack([
            np.concatenate([src, dst, ranks]), np.repeat([0, 1, 2], [len(link), len(link), len(ranks)]),
            np.concatenate([dst, src, none]), np.concatenate([channel, channel, 0 * ranks]),
            np.concatenate([link, link, none]),
        ])  # fmt: skip
        used = np.zeros(table.shape[1], dtype=bool)
        used[slot] = True
        kept = np.flatnonzero(used)
        kept = kept[lexsort(list(table[3::-1, kept]))]
        number = np.zeros(len(used), dtype=np.int64)
        number[kept] = np.arange(len(kept))
        rank, kind, peer, channel, link = table[:, kept]
        send_peer, recv_peer = np.where(kind == 0, peer, -1), np.where(kind == 1, peer, -1)
        columns = {"block_rank": rank, "send_peer": send_peer, "recv_peer": recv_peer, "channel": channel}
        return Blocks(columns, number.take(slot), link)

    def spread(self, num_channels: Array) -> Array:
        """Return which of its connection's channels each instruction uses: the one with the fewest chunks so far."""
        if (num_channels <= 1).all():
            return np.zeros(len(self.link_of), dtype=np.int64)
        chosen = np.append(least_loaded(self.count.take(self.sent), self.messages, num_channels), 0)
        start, has_message = starts(self.messages), np.append(self.messages, 0).take(self.link_of) > self.nth
        return chosen.take(np.where(has_message, start.take(self.link_of) + self.nth, -1))


def least_loaded(count: Array, messages: Array, num_channels: Array) -> Array:
    """Return the channel of each message: the lowest of those of its connection with the fewest chunks so far.

    ``count`` are the chunks of the messages, connection after connection; connection k has ``messages[k]`` of them.
    """
    start, chosen = starts(messages), np.zeros(len(count), dtype=np.int64)
    several = np.flatnonzero((num_channels > 1) & (messages > 1))
    if len(several) >= _WIDE:
        _spread_at_once(count, messages, num_channels, several, chosen)
        return chosen
    sizes = count.tolist()
    for link in several.tolist():
        load = [0] * int(num_channels[link])
        for i in range(int(start[link]), int(start[link + 1])):
            chosen[i] = least = min(range(len(load)), key=load.__getitem__)
            load[least] += sizes[i]
    return chosen


def _spread_at_once(count: Array, messages: Array, num_channels: Array, several: Array, chosen: Array) -> None:
    """Choose the channels of the messages of these connections, the n-th messages of all at a time."""
    several = several[lexsort([-messages[several]])]  # those with fewer messages end before others
    start, width = starts(messages)[several], int(num_channels[several].max())
    load = np.where(np.arange(width) < num_channels[several, None], 0, np.iinfo(np.int64).max)
    active = np.searchsorted(-messages[several], -np.arange(int(messages[several[0]])), side="left")
    for n, number in enumerate(active.tolist()):
        row = start[:number] + n
        least = load[:number].argmin(axis=1)
        chosen[row] = least
        load[np.arange(number), least] += count.take(row)


def free_channels(src: Array, dst: Array, num_channels: Array, receiver: Array | None = None) -> Array:
    """Return the channels of each connection, one after the other: the lowest that are free at both ends.

    No channel is used twice between two ranks, and no rank sends or receives more than ``PER_CHANNEL`` times on one.
    Those that receive are ``receiver``: of a template, the ranks of which ``dst`` are images.
    """
    receiver = dst if receiver is None else receiver
    degrees = [int(np.bincount(end).max(initial=0)) for end in (src, receiver)]
    again = (src[1:] == src[:-1]) & (dst[1:] == dst[:-1])  # connections are sorted by their ranks
    if max(degrees) <= PER_CHANNEL and not again.any():
        return ranges(0, num_channels)
    taken: set[tuple[int, int, int]] = set()
    sending: dict[tuple[int, int], int] = {}
    receiving: dict[tuple[int, int], int] = {}
    channels = np.empty(int(num_channels.sum()), dtype=np.int64)
    at = 0
    ends = (column.tolist() for column in (src, dst, receiver, num_channels))
    for a, b, into, count in zip(*ends, strict=True):
        c = 0
        for _ in range(count):
            while (
                (a, b, c) in taken
                or sending.get((a, c), 0) >= PER_CHANNEL
                or receiving.get((into, c), 0) >= PER_CHANNEL
            ):
                c += 1
            taken.add((a, b, c))
            sending[a, c] = sending.get((a, c), 0) + 1
            receiving[into, c] = receiving.get((into, c), 0) + 1
            channels[at] = c
            at += 1
    return channels


def _companions(program: Program, link_of: Array) -> Array:
    """Keep the local instructions of a receiving block with the receive before them, if there is one.

    ``link_of`` is the connection of each receive, and -1 for all other instructions.
    """
    index = np.arange(len(link_of))
    start = program.block_start.take(program.block).astype(np.int64)
    known = np.maximum.accumulate(np.where(link_of >= 0, index, -1)) if len(index) else index
    return np.where(known >= start, link_of.take(known), -1)


def _message_numbers(link_of: Array, is_send: Array, is_message: Array, order: Array) -> tuple[Array, Array]:
    """Number the messages of each connection at both ends; companions take the number of their receive.

    Also return the rows that send, by connection and number.
    """
    nth = np.zeros(len(link_of), dtype=np.int64)
    ordered = []
    for side in (is_send, is_message & ~is_send):
        rows = np.flatnonzero(side)
        rows = rows.take(lexsort((order.take(rows), link_of.take(rows))))
        nth[rows] = nth_in_group(link_of.take(rows))
        ordered.append(rows)
    index = np.arange(len(link_of))
    last = np.maximum.accumulate(np.where(is_message & ~is_send, index, 0)) if len(index) else index
    return np.where((link_of >= 0) & ~is_message, nth.take(last), nth), ordered[0]
