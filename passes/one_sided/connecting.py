"""Channels of a one-sided program for the messages of a program: both ends of a pair name the same one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collc.ir.arrays import Array, Columns, distinct
from collc.ir.connections import connections
from collc.ir.frozen import frozen
from collc.ir.one_sided.program import Transport
from collc.ir.program import Program
from collc.ir.ragged import nth_in_group

__all__ = ["Channels", "channels"]


@frozen(eq=False)
class Channels:
    """The channels (``rank``, ``peer``, ``transport``: columns, sorted by rank) and those that blocks use.

    Block b sends on channel ``outward[b]`` and waits on channel ``inward[b]`` (-1: none).
    """

    rank: Array
    peer: Array
    transport: Array
    outward: Array
    inward: Array

    @property
    def columns(self) -> Columns:
        """The columns of a one-sided program."""
        return {
            "channel_rank": self.rank, "channel_peer": self.peer, "channel_transport": self.transport,
            "channel_buffer": np.zeros(len(self.rank), dtype=np.int64), "groups": [],
            "group_start": np.zeros(len(self.rank) + 1, dtype=np.int64),
        }  # fmt: skip


def channels(program: Program, domains: Sequence[int] | Array) -> Channels:
    """Return the channels of a program; ranks of one domain share memory.

    The k-th connections from a to b and from b to a share a channel of the pair, because signals of both directions
    have counts of their own. So the k-th channels of both ends are one, even if a's next rank is its previous one.
    """
    links = connections(program)
    src, dst = links.src.astype(np.int64), links.dst.astype(np.int64)
    ordinal = nth_in_group(src * program.num_ranks + dst)
    width = np.int64(max(len(src), 1))
    sent = (src * program.num_ranks + dst) * width + ordinal
    waited = (dst * program.num_ranks + src) * width + ordinal
    keys = distinct(np.concatenate([sent, waited]))
    rank, peer = np.divmod(keys // width, program.num_ranks)
    domain = np.asarray(domains)
    transport = np.where(domain[rank] == domain[peer], Transport.MEMORY, Transport.PORT)
    return Channels(
        rank, peer, transport,
        _of_blocks(keys, sent, links.outward), _of_blocks(keys, waited, links.inward),
    )  # fmt: skip


def _of_blocks(keys: Array, named: Array, connection: Array) -> Array:
    found = np.full(len(connection), -1, dtype=np.int64)
    used = connection >= 0
    found[used] = np.searchsorted(keys, named[connection[used]])
    return found
