"""How the size of a call determines the chunks in one message, and which sizes a file serves.

A runtime cuts chunks in tiles, and one primitive operation moves up to A chunks, as many as fit into a tile: many small
chunks at once, large ones one by one. A step of c chunks is ceil(c/A) operations, each with a slot of its connection.
So a program can complete in small calls and deadlock in large ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import lcm

import numpy as np

from collc.ir.arrays import distinct

from .model import KINDS, MESSAGE_TYPES, Algorithm
from .profiles import MAX_SPLIT, Profile
from .steps import COUNT, KINDS_OF, TYPE

__all__ = [
    "UNBOUNDED",
    "WHOLE",
    "behaviours",
    "first_size",
    "largest_size",
    "message_counts",
    "size_limit",
    "size_unit",
    "smallest_call",
    "splits",
    "stated_limit",
    "tile_limit",
]

#: Upper end of an unbounded size range: 128 GiB, more than any GPU has.
UNBOUNDED = 1 << 37

#: collectives whose size counts the data of all ranks
WHOLE = frozenset({"allgather", "reduce-scatter", "alltoall", "gather", "scatter"})


def size_limit(algorithm: Algorithm, profile: Profile) -> int | None:
    """Return the largest call (bytes) for which a runtime uses the file; None if there is no limit."""
    stated = profile.default_max_bytes if algorithm.max_bytes is None else algorithm.max_bytes
    if profile.exclusive_max_bytes:
        return stated - 1
    return stated or None


def splits(chunks: int, smallest: int, largest: int | None, tile: int) -> tuple[int, int]:
    """Return the least and the greatest A over calls of ``smallest`` to ``largest`` bytes cut in ``chunks`` chunks.

    Only calls that the chunks divide evenly count, because the runtimes use a file for no others. All A in between
    occur too.

    >>> splits(8, 0, None, 1 << 21), splits(8, 8 << 20, (8 << 20) + 7, 1 << 21)
    ((1, 71), (2, 2))
    """

    def held(chunk: int) -> int:
        return min(max(tile // max(chunk, 1), 1), MAX_SPLIT)

    least = 1 if largest is None else held(largest // chunks)
    return min(least, held(-(-smallest // chunks))), held(-(-smallest // chunks))


def largest_size(chunks: int, tile: int, split: int) -> int:
    """Return the largest call (bytes) with ``split`` chunks in a message."""
    return chunks * (tile // split)


def size_unit(algorithm: Algorithm) -> int:
    """Return the number that divides the sizes of all calls that a file serves: of its chunks, and of its ranks' data.

    Elements have one byte, the smallest size.
    """
    parts = algorithm.ngpus if KINDS.get(algorithm.coll) in WHOLE else 1
    return lcm(max(algorithm.nchunksperloop, 1), max(parts, 1))


def smallest_call(algorithm: Algorithm) -> int:
    """Return the smallest call (bytes) that a file serves by its ``minBytes``."""
    unit = size_unit(algorithm)
    return max(-(-max(algorithm.min_bytes or 0, 1) // unit), 1) * unit


def first_size(algorithm: Algorithm, tile: int, split: int) -> int:
    """Return the smallest call (bytes) with at most ``split`` chunks in a message.

    The same holds for all larger calls.
    """
    if split >= MAX_SPLIT:
        return smallest_call(algorithm)
    unit, chunks = size_unit(algorithm), algorithm.nchunksperloop
    size = chunks * (tile // (split + 1) + 1)
    return max(-(-size // unit) * unit, smallest_call(algorithm))


def stated_limit(largest: int, profile: Profile) -> int:
    """Return the ``maxBytes`` with which a runtime uses a file for calls of up to ``largest`` bytes."""
    return largest + int(profile.exclusive_max_bytes)


def tile_limit(chunks: int, profile: Profile, proto: str) -> int:
    """Return the largest call (bytes) whose tiles one launch can count."""
    return chunks * profile.tile[proto] * profile.max_tiles


def behaviours(counts: Iterable[int], low: int, high: int) -> list[int]:
    """Return one A of ``low`` to ``high`` for each different split of steps with these counts, ascending.

    >>> behaviours([4], 1, 71), behaviours([1], 1, 71)
    ([1, 2, 4], [1])
    """
    seen: dict[tuple[int, ...], int] = {}
    distinct = sorted(set(counts))
    for split in range(low, high + 1):
        seen.setdefault(tuple(-(-count // split) for count in distinct), split)
    return list(seen.values())


def message_counts(algorithm: Algorithm) -> set[int]:
    """Return the counts of all steps that send or receive."""
    uses = np.array([name in MESSAGE_TYPES for name in KINDS_OF])
    return set(distinct(algorithm.table[uses.take(algorithm.table[:, TYPE]), COUNT]).tolist())
