"""Where the buffers of a one-sided program lie: one address for every chunk of every rank."""

from __future__ import annotations

import numpy as np

from collc.ir.arrays import Array
from collc.ir.one_sided.program import OneSided
from collc.ir.program import Buffer
from collc.ir.ragged import starts

__all__ = ["bases"]


def bases(program: OneSided) -> Array:
    """Return the address of the first chunk of each buffer: shape (ranks, 3); in place, as in :mod:`collc.ir.layout`.

    After all of them there is nothing: addresses of different ranks differ.
    """
    into, out, scratch = (c.astype(np.int64) for c in (program.inputs, program.outputs, program.scratch))
    own = np.maximum(program.collective.places, 0) * program.chunks
    shared = np.full(len(into), program.inplace and program.collective.pre is None)
    base = np.zeros((len(into), 3), dtype=np.int64)
    base[:, Buffer.INPUT] = np.where(shared & (into < out), own, 0)
    base[:, Buffer.OUTPUT] = np.where(shared, np.where(out < into, own, 0), into)
    base[:, Buffer.SCRATCH] = np.where(shared, np.maximum(into, out), into + out)
    return base + starts(base[:, Buffer.SCRATCH] + scratch)[:-1, None]
