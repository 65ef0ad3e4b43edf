"""The chunks of an algorithm, as large as in its original file.

A Program cuts the shards in whole chunks, but a file can cut the whole buffer in any number. So a program that comes
from a file can have smaller chunks: several for each chunk of the file, and every step moves all of them at once. If no
pass has divided them, the file that collc writes has the original chunks again.
"""

from __future__ import annotations

import attrs
import numpy as np

from .model import Algorithm, Gpu
from .steps import COUNTED, KINDS_OF, TYPE, Steps

__all__ = ["in_larger_chunks"]

_NOP = KINDS_OF.index("nop")
_SIZES = ("i_chunks", "o_chunks", "s_chunks")


def in_larger_chunks(algorithm: Algorithm, scale: int) -> Algorithm | None:
    """Return the algorithm with chunks ``scale`` times as large; None if a step or buffer ends inside one.

    >>> in_larger_chunks(Algorithm("LL", 1, 6, 1, "allreduce", 1, (Gpu(0, 6, 6, 0, ()),)), 3).gpus[0].i_chunks
    2
    >>> in_larger_chunks(Algorithm("LL", 1, 6, 1, "allreduce", 1, (Gpu(0, 6, 6, 2, ()),)), 3)
    """
    numbers = {algorithm.nchunksperloop, *(getattr(gpu, name) for gpu in algorithm.gpus for name in _SIZES)}
    moved = algorithm.table[algorithm.table[:, TYPE] != _NOP]
    if any(number % scale for number in numbers) or (moved[:, COUNTED] % scale).any():
        return None
    gpus = tuple(_larger_gpu(gpu, scale) for gpu in algorithm.gpus)
    return attrs.evolve(algorithm, nchunksperloop=algorithm.nchunksperloop // scale, gpus=gpus)


def _larger_gpu(gpu: Gpu, scale: int) -> Gpu:
    blocks = [attrs.evolve(block, steps=_larger_steps(block.steps, scale)) for block in gpu.threadblocks]
    counts = {name: getattr(gpu, name) // scale for name in _SIZES}
    return attrs.evolve(gpu, threadblocks=tuple(blocks), **counts)


def _larger_steps(steps: Steps, scale: int) -> Steps:
    table = steps.table.copy()
    moves = table[:, TYPE] != _NOP
    table[np.ix_(moves, COUNTED)] //= scale
    return Steps(table)
