"""The FIFOs between a program's threadblocks, and the primitives that instructions move through them."""

from __future__ import annotations

import numpy as np

from .arrays import Array, distinct, lexsort
from .frozen import frozen
from .program import Program
from .ragged import nth_in_group

__all__ = ["Connections", "connections", "partners", "primitives", "receivers"]


@frozen(eq=False)
class Connections:
    """The FIFOs of a program: columns ``src``, ``dst`` (ranks) and ``channel``, sorted by them.

    ``outward`` and ``inward`` are the connection that each block sends into and receives from (-1: none);
    ``sender`` and ``receiver`` are the block at each end of each connection (-1: none).
    """

    src: Array
    dst: Array
    channel: Array
    outward: Array
    inward: Array
    sender: Array
    receiver: Array

    def __len__(self) -> int:
        return len(self.src)


def connections(program: Program) -> Connections:
    """Return the connections that the program's blocks name, used or not. Peers must be ranks or -1."""
    if "connections" not in program.found:
        program.found["connections"] = _connections(program)
    found: Connections = program.found["connections"]
    return found


def _connections(program: Program) -> Connections:
    ranks, here = program.num_ranks, program.block_rank.astype(np.int64)
    names, channel = np.unique(program.channel.astype(np.int64), return_inverse=True)
    channels = max(len(names), 1)
    to, source = program.send_peer.astype(np.int64), program.recv_peer.astype(np.int64)
    out_key = np.where(to >= 0, (here * ranks + to) * channels + channel, -1)
    in_key = np.where(source >= 0, (source * ranks + here) * channels + channel, -1)
    keys = distinct(np.concatenate([out_key[to >= 0], in_key[source >= 0]]))
    outward = np.where(to >= 0, np.searchsorted(keys, out_key), -1)
    inward = np.where(source >= 0, np.searchsorted(keys, in_key), -1)
    sender, receiver = np.full((2, len(keys)), -1, dtype=np.int64)
    sender[outward[to >= 0]] = np.flatnonzero(to >= 0)
    receiver[inward[source >= 0]] = np.flatnonzero(source >= 0)
    pair = keys // channels
    columns = pair // ranks, pair % ranks, names[keys % channels], outward, inward, sender, receiver
    for column in columns:
        column.flags.writeable = False  # all callers get the same arrays
    return Connections(*columns)


def partners(program: Program) -> Array:
    """Return the matching send of each receiving instruction; -1 if there is none.

    The k-th send of a connection pairs with its k-th receive; each end of it is one block. The result is read-only.
    """
    if "partners" not in program.found:
        program.found["partners"] = _partners(program)
        program.found["partners"].flags.writeable = False
    found: Array = program.found["partners"]
    return found


def _partners(program: Program) -> Array:
    links = connections(program)
    result = np.full(program.num_instructions, -1, dtype=np.int64)
    sends, sent = _by_connection(np.flatnonzero(program.sends), links.outward.take(program.block))
    receives, received = _by_connection(np.flatnonzero(program.receives), links.inward.take(program.block))
    if np.array_equal(sent, received):  # every connection has as many sends as receives
        result[receives] = sends
        return result
    width = program.num_instructions + 1
    sent_key, received_key = (group * width + nth_in_group(group) for group in (sent, received))
    if len(sends):
        at = np.minimum(np.searchsorted(sent_key, received_key), len(sends) - 1)
        found = sent_key[at] == received_key
        result[receives[found]] = sends[at[found]]
    return result


def receivers(partner: Array) -> Array:
    """Return for each sending instruction the matching receive; -1 if there is none.

    ``partner`` is the result of :func:`partners`.
    """
    result = np.full(len(partner), -1, dtype=np.int64)
    received = np.flatnonzero(partner >= 0)
    result[partner.take(received)] = received
    return result


def _by_connection(rows: Array, connection: Array) -> tuple[Array, Array]:
    """Return rows ordered by connection, and the connection of each."""
    rows = rows.take(lexsort([connection.take(rows)]))
    return rows, connection.take(rows)


def primitives(program: Program, split: int | None) -> Array:
    """Return how many primitives each instruction runs as; a nop counts as one.

    Raises ValueError for a split below 1.
    """
    if split is None:
        return np.ones(program.num_instructions, dtype=np.int64)
    if split < 1:
        raise ValueError(f"split must be at least 1 chunk, found {split}")
    return np.maximum(-(-program.count.astype(np.int64) // split), 1)
