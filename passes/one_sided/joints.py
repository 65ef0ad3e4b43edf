"""Semaphores for the dependencies between blocks of a program."""

from __future__ import annotations

import numpy as np

from collc.ir.arrays import Array, lexsort
from collc.ir.frozen import frozen
from collc.ir.program import Program
from collc.ir.ragged import first_of_group

__all__ = ["Joints", "joints"]


@frozen(eq=False)
class Joints:
    """Semaphores of the ranks ``rank`` (ascending); ``dependent[k]`` acquires ``semaphore[k]``, ``dependency[k]``
    releases it.
    """

    rank: Array
    semaphore: Array
    dependent: Array
    dependency: Array


def joints(program: Program) -> Joints:
    """Return one semaphore for each pair of blocks of which one depends on the other.

    Both blocks use it in the same order, so the k-th acquire follows the k-th release. A dependency that an earlier
    one of the pair implies needs no acquire.
    """
    dependent, dependency = program.dependent.astype(np.int64), program.deps.astype(np.int64)
    own, other = program.block[dependent], program.block[dependency]
    between = own != other
    dependent, dependency, own, other = (column[between] for column in (dependent, dependency, own, other))
    pair = own * np.int64(program.num_blocks) + other
    order = lexsort((-dependency, dependent, pair))
    dependent, dependency, pair = dependent[order], dependency[order], pair[order]
    kept = _ascending(pair, dependency, program.num_instructions)
    dependent, dependency, pair = dependent[kept], dependency[kept], pair[kept]
    fresh = first_of_group(pair)
    semaphore = np.cumsum(fresh) - 1
    rank = program.rank[dependent[fresh]]
    return Joints(rank, semaphore, dependent, dependency)


def _ascending(group: Array, values: Array, number: int) -> Array:
    """Return which values are above all earlier ones of their group; values are below ``number``."""
    if not len(group):
        return np.zeros(0, dtype=bool)
    fresh = first_of_group(group)
    height = values + np.cumsum(fresh) * np.int64(number)
    highest = np.append(-1, np.maximum.accumulate(height)[:-1])
    kept: Array = fresh | (height > highest)
    return kept
