"""The chunks of an algorithm, as large as in its original file.

A Program cuts the shards in whole chunks, but a file can cut the whole buffer in any number. So a program that comes
from a file can have smaller chunks: several for each chunk of the file, and every step moves all of them at once. If no
pass has divided them, the file that collc writes has the original chunks again.
"""

from __future__ import annotations

import attrs

from .model import Algorithm, Gpu, Step

__all__ = ["in_larger_chunks"]

_COUNTED = ("i_chunks", "o_chunks", "s_chunks")


def in_larger_chunks(algorithm: Algorithm, scale: int) -> Algorithm | None:
    """Return the algorithm with chunks ``scale`` times as large; None if a step or buffer ends inside one.

    >>> in_larger_chunks(Algorithm("LL", 1, 6, 1, "allreduce", 1, (Gpu(0, 6, 6, 0, ()),)), 3).gpus[0].i_chunks
    2
    >>> in_larger_chunks(Algorithm("LL", 1, 6, 1, "allreduce", 1, (Gpu(0, 6, 6, 2, ()),)), 3)
    """
    steps = [step for gpu in algorithm.gpus for block in gpu.threadblocks for step in block.steps]
    numbers = {algorithm.nchunksperloop, *(getattr(gpu, name) for gpu in algorithm.gpus for name in _COUNTED)}
    for step in steps:
        if step.type != "nop":
            numbers.update((step.cnt, step.srcoff, step.dstoff))
    if any(number % scale for number in numbers):
        return None
    gpus = tuple(_larger_gpu(gpu, scale) for gpu in algorithm.gpus)
    return attrs.evolve(algorithm, nchunksperloop=algorithm.nchunksperloop // scale, gpus=gpus)


def _larger_gpu(gpu: Gpu, scale: int) -> Gpu:
    blocks = [
        attrs.evolve(block, steps=tuple(_larger_step(step, scale) for step in block.steps))
        for block in gpu.threadblocks
    ]
    counts = {name: getattr(gpu, name) // scale for name in _COUNTED}
    return attrs.evolve(gpu, threadblocks=tuple(blocks), **counts)


def _larger_step(step: Step, scale: int) -> Step:
    if step.type == "nop":
        return step
    return attrs.evolve(step, cnt=step.cnt // scale, srcoff=step.srcoff // scale, dstoff=step.dstoff // scale)
