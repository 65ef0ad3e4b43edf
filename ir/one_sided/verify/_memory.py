"""The addresses of a one-sided program's buffers, in parts of a chunk.

Scratch that holds packets is twice as large: packet k of a chunk is data and flags in the places of two parts. Data
without flags in the same scratch are not moved apart, so both may overlap, as they do in the executor.
"""

from __future__ import annotations

import numpy as np

from ...arrays import Array
from ...frozen import frozen
from ...program import Buffer
from ...ragged import starts
from ..program import OneSided

__all__ = ["MAX_ADDRESSES", "MAX_PARTS", "Memory", "addresses", "sizes"]

#: more parts of a chunk than this are not executed
MAX_PARTS = 1 << 16
#: more addresses than this in all buffers are not executed
MAX_ADDRESSES = 1 << 25


@frozen(eq=False)
class Memory:
    """``base[rank, buffer]`` is the first address of a buffer, ``size`` its chunks; a chunk has ``parts`` addresses.

    The addresses of rank r are ``start[r]`` to ``start[r + 1]`` (exclusive), from ``scratch[r]`` on those of scratch.
    """

    base: Array
    size: Array
    start: Array
    parts: int

    @classmethod
    def of(cls, program: OneSided, parts: int) -> Memory:
        """Return the addresses, in place or out of place as the program is called (:mod:`collc.ir.layout`)."""
        size = sizes(program)
        into, out = size[:, Buffer.INPUT], size[:, Buffer.OUTPUT]
        shared = (into > 0) & (out > 0) & (program.inplace and program.collective.pre is None)
        own = np.maximum(program.collective.places, 0) * program.chunks
        own = np.minimum(own, np.abs(into - out))
        base = np.zeros_like(size)
        base[:, Buffer.INPUT] = np.where(shared & (into < out), own, 0)
        base[:, Buffer.OUTPUT] = np.where(shared, np.where(out < into, own, 0), into)
        base[:, Buffer.SCRATCH] = np.where(shared, np.maximum(into, out), into + out)
        held = size[:, Buffer.SCRATCH] * (2 if program.packets else 1)
        start = starts(base[:, Buffer.SCRATCH] + held)
        return cls((base + start[:-1, None]) * parts, size, start * parts, parts)

    @property
    def total(self) -> int:
        """Addresses of all ranks together."""
        return int(self.start[-1])

    def rank(self, address: Array) -> Array:
        """Return the rank that owns each address."""
        return np.searchsorted(self.start, address, side="right") - 1

    def name(self, address: int, slot: bool = False) -> str:
        """Return ``output chunk 5 of rank 3`` (both names if the buffers overlap)."""
        rank = int(self.rank(np.array([address]))[0])
        names = []
        for kind in Buffer:
            offset = address - int(self.base[rank, kind])
            if kind is Buffer.SCRATCH:
                if offset >= 0:
                    width = 2 * self.parts if slot else self.parts
                    names.append(f"{'packets' if slot else 'scratch chunk'} {offset // width}")
            elif 0 <= offset < self.size[rank, kind] * self.parts:
                names.append(f"{kind.name.lower()} chunk {offset // self.parts}")
        return f"{' = '.join(names)} of rank {rank}"


def sizes(program: OneSided) -> Array:
    """Return the chunks in each rank's input, output and scratch buffer: shape (ranks, 3)."""
    columns = (program.inputs, program.outputs, program.scratch)
    return np.stack([column.astype(np.int64) for column in columns], axis=1)


def addresses(program: OneSided, parts: int) -> int:
    """Return the most addresses of all buffers, of which a chunk has ``parts``."""
    into, out, scratch = sizes(program).sum(axis=0).tolist()
    return int(into + out + scratch * 2) * parts
