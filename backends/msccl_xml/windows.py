"""How a call's size decides what one message holds, and which sizes a file is used for.

A runtime cuts chunks in tiles and moves up to A chunks in one primitive operation, A being what fits a
tile: many small chunks at once, large ones one by one. A step of c chunks is ceil(c/A) operations, each a
slot of its connection, so a program may pass for small calls and deadlock for large ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import lcm

from .model import KINDS, MESSAGE_TYPES, Algorithm
from .profiles import MAX_SPLIT, Profile

__all__ = [
    "ENDLESS",
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

#: No GPU has such a buffer (128 GiB): a limit beyond it is none.
ENDLESS = 1 << 37

#: collectives whose size counts the parts of all ranks
WHOLE = frozenset({"allgather", "reduce-scatter", "alltoall", "gather", "scatter"})


def size_limit(algorithm: Algorithm, profile: Profile) -> int | None:
    """Return the largest call, in bytes, that a runtime uses the file for; nothing where there is no limit."""
    stated = profile.default_max_bytes if algorithm.max_bytes is None else algorithm.max_bytes
    if profile.exclusive_max_bytes:
        return stated - 1
    return stated or None


def splits(chunks: int, smallest: int, largest: int | None, tile: int) -> tuple[int, int]:
    """Return the least and the greatest A over calls of ``smallest`` to ``largest`` bytes cut in ``chunks`` chunks.

    Only calls that can be cut so evenly are considered, as the runtimes use a file for no others. All A between
    occur too.

    >>> splits(8, 0, None, 1 << 21), splits(8, 8 << 20, (8 << 20) + 7, 1 << 21)
    ((1, 71), (2, 2))
    """

    def held(chunk: int) -> int:
        return min(max(tile // max(chunk, 1), 1), MAX_SPLIT)

    least = 1 if largest is None else held(largest // chunks)
    return min(least, held(-(-smallest // chunks))), held(-(-smallest // chunks))


def largest_size(chunks: int, tile: int, split: int) -> int:
    """Return the largest call, in bytes, for which messages still hold ``split`` chunks."""
    return chunks * (tile // split)


def size_unit(algorithm: Algorithm) -> int:
    """Return what the sizes of all calls a file is used for are multiples of: its chunks, and every rank's part.

    Elements are of one byte, the smallest there are.
    """
    parts = algorithm.ngpus if KINDS.get(algorithm.coll) in WHOLE else 1
    return lcm(max(algorithm.nchunksperloop, 1), max(parts, 1))


def smallest_call(algorithm: Algorithm) -> int:
    """Return the smallest call, in bytes, that a file is used for as far as ``minBytes`` says."""
    unit = size_unit(algorithm)
    return max(-(-max(algorithm.min_bytes or 0, 1) // unit), 1) * unit


def first_size(algorithm: Algorithm, tile: int, split: int) -> int:
    """Return the smallest call, in bytes, of which a message holds no more than ``split`` chunks.

    All larger calls hold no more either.
    """
    if split >= MAX_SPLIT:
        return smallest_call(algorithm)
    unit, chunks = size_unit(algorithm), algorithm.nchunksperloop
    size = chunks * (tile // (split + 1) + 1)
    return max(-(-size // unit) * unit, smallest_call(algorithm))


def stated_limit(largest: int, profile: Profile) -> int:
    """Return what ``maxBytes`` must say for a runtime to use a file for calls of up to ``largest`` bytes."""
    return largest + int(profile.exclusive_max_bytes)


def tile_limit(chunks: int, profile: Profile, proto: str) -> int:
    """Return the largest call, in bytes, that takes no more tiles than a launch can count."""
    return chunks * profile.tile[proto] * profile.max_tiles


def behaviours(counts: Iterable[int], low: int, high: int) -> list[int]:
    """Return one A of ``low`` to ``high`` for each way of cutting steps of these counts, ascending.

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
    return {
        step.cnt
        for gpu in algorithm.gpus
        for block in gpu.threadblocks
        for step in block.steps
        if step.type in MESSAGE_TYPES
    }
