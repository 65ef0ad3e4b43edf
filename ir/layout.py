"""The layout of buffers in memory: every chunk of every buffer has one address.

In place, the buffers overlap: the smaller one is inside the larger one, so an input location can be an output location.
So aliasing is only a choice of the start of each buffer.
"""

from __future__ import annotations

from math import gcd, lcm

import numpy as np

from .arrays import Array
from .frozen import frozen
from .program import Buffer, Program
from .ragged import starts

__all__ = ["Layout", "exact_sizes", "granule", "layout", "locations", "sizes", "total"]


@frozen(eq=False)
class Layout:
    """The layout: ``base[rank, buffer]`` is the address of a buffer's first chunk, ``size`` its number of chunks.

    There are ``total`` addresses; those of a rank are ``start[rank]`` to ``start[rank + 1]`` (exclusive).
    """

    base: Array
    size: Array
    start: Array
    inplace: bool

    @property
    def total(self) -> int:
        """Addresses of all ranks together, in chunks."""
        return int(self.start[-1])

    def name(self, program: Program, address: int) -> str:
        """Return ``output chunk 5 of rank 3`` (both names if the buffers overlap)."""
        rank = int(np.searchsorted(self.start, address, side="right")) - 1
        names = [
            f"{kind.name.lower()} chunk {address - int(self.base[rank, kind])}"
            for kind in Buffer
            if 0 <= address - self.base[rank, kind] < self.size[rank, kind]
        ]
        return f"{' = '.join(names)} of rank {rank}"


def total(program: Program) -> int:
    """Return the chunks in all buffers, exactly, however many."""
    given, taken, scratch = exact_sizes(program)
    return sum(given) + sum(taken) + sum(scratch)


def sizes(program: Program) -> Array:
    """Return the chunks in each rank's input, output and scratch buffer: shape (ranks, 3)."""
    return np.stack([np.array(column, dtype=np.int64) for column in exact_sizes(program)], axis=1)


def exact_sizes(program: Program) -> tuple[list[int], list[int], list[int]]:
    """Return the chunks in the input, output and scratch of all ranks, as Python integers, which cannot overflow."""
    collective = program.collective
    if collective.root is None and collective.members is None and collective.pre is None:  # all ranks as rank 0
        n = program.num_ranks
        return [program.input_chunks(0)] * n, [program.output_chunks(0)] * n, program.scratch.tolist()
    ranks = range(program.num_ranks)
    return [program.input_chunks(r) for r in ranks], [program.output_chunks(r) for r in ranks], program.scratch.tolist()


def layout(program: Program, inplace: bool) -> Layout:
    """Return where a program's buffers lie out of place (all apart) or in place (input and output overlapping).

    In place, buffers of one size coincide; of two sizes, the smaller lies at the rank's own block of the
    larger: in an allgather or gather the input in the output, in a reduce-scatter or scatter the output in
    the input. A rank without input or without output has no overlap, and a custom collective has none.
    """
    known: Layout | None = program.found.get(("layout", inplace))
    if known is None:
        known = program.found["layout", inplace] = _layout(program, inplace)
    return known


def _layout(program: Program, inplace: bool) -> Layout:
    size = sizes(program)
    into, out = size[:, Buffer.INPUT], size[:, Buffer.OUTPUT]
    shared = (into > 0) & (out > 0) & (inplace and program.collective.pre is None)
    own = np.maximum(program.collective.places, 0) * program.chunks
    base = np.zeros_like(size)
    base[:, Buffer.INPUT] = np.where(shared & (into < out), own, 0)
    base[:, Buffer.OUTPUT] = np.where(shared, np.where(out < into, own, 0), into)
    base[:, Buffer.SCRATCH] = np.where(shared, np.maximum(into, out), into + out)
    start = starts(base[:, Buffer.SCRATCH] + size[:, Buffer.SCRATCH])
    return Layout(base + start[:-1, None], size, start, inplace)


def locations(program: Program, where: Layout) -> tuple[Array, Array]:
    """Return the address of each instruction's src and dst; meaningless if the opcode does not use it. Read-only."""
    if where is not program.found.get(("layout", where.inplace)):
        return _locations(program, where)
    known: tuple[Array, Array] | None = program.found.get(("locations", where.inplace))
    if known is None:
        known = program.found["locations", where.inplace] = _locations(program, where)
    return known


def _locations(program: Program, where: Layout) -> tuple[Array, Array]:
    first, base = program.rank * len(Buffer), where.base.ravel()
    src = base.take(first + program.src_buffer % len(Buffer)) + program.src_offset
    dst = base.take(first + program.dst_buffer % len(Buffer)) + program.dst_offset
    src.flags.writeable = dst.flags.writeable = False  # all callers get the same arrays
    return src, dst


def granule(program: Program) -> int:
    """Return the most chunks that can be taken as one: their number divides all buffers, offsets and counts.

    It is a number from which a reader finds the chunks again, because it cuts shards in as few chunks as it can.
    """
    numbers = [
        program.count,
        *(getattr(program, f"{end}_offset").compress(program.uses(end)) for end in ("src", "dst")),
    ]
    most = gcd(int(np.gcd.reduce(sizes(program), axis=None)), *(int(np.gcd.reduce(column)) for column in numbers))
    shards = max(program.collective.input_shards, program.collective.output_shards)
    whole = shards * program.chunks
    found = (n for n in range(most, 1, -1) if most % n == 0 and lcm(whole // n, shards) == whole)
    return next(found, 1)
