"""A program of the same verdict with fewer chunks: chunks that all instructions move together are one.

In an allreduce whose chunks have fixed places, an instruction reads and writes the same places on all ranks. If its
ends never fall between two chunks, both are in the same state at all times, on every rank. So one of them stands for
both. The memory of an execution then grows with the ends of instructions, not with the chunks.
"""

from __future__ import annotations

import attrs
import numpy as np

from ..arrays import Array, Columns
from ..machine import partners
from ..program import Buffer, Program

__all__ = ["coarser"]


def coarser(program: Program) -> Program | None:
    """Return a program with fewer chunks that is correct exactly if ``program`` is; None if this module knows none.

    ``program`` is to have a good structure. All its data are to lie in input and output at their places of the vector,
    wherever they are read, sent, received and written.
    """
    collective, size = program.collective, program.collective.num_shards * program.chunks
    if collective.kind != "allreduce" or not collective.is_plain or program.scratch.any():
        return None
    place, count = _places(program), program.count.astype(np.int64)
    if place is None or (place < 0).any() or (count < 1).any() or (place + count > size).any():
        return None
    inner = np.zeros(size + 1, dtype=bool)
    inner[0] = inner[place] = inner[place + count] = True
    chunks = -(-int(np.count_nonzero(inner[:-1])) // collective.num_shards)
    if chunks >= program.chunks:
        return None
    free = np.flatnonzero(~inner[:-1])  # the vector is to have whole shards: more ends are no fault
    inner[free[: collective.num_shards * chunks - np.count_nonzero(inner[:-1])]] = True
    number = np.cumsum(inner) - 1
    first = number[place]
    columns: Columns = {f"{end}_offset": np.where(program.uses(end), first, 0) for end in ("src", "dst")}
    return attrs.evolve(program, chunks=chunks, count=number[place + count] - first, **columns)


def _places(program: Program) -> Array | None:
    """Return the place of the vector that each instruction moves; None if an instruction or a message has several."""
    uses = {end: program.uses(end) for end in ("src", "dst")}
    src, dst = (getattr(program, f"{end}_offset").astype(np.int64) for end in ("src", "dst"))
    for end, used in uses.items():
        if (getattr(program, f"{end}_buffer")[used] == Buffer.SCRATCH).any():
            return None
    if not (uses["src"] | uses["dst"]).all() or (src != dst)[uses["src"] & uses["dst"]].any():
        return None
    place: Array = np.where(uses["src"], src, dst)
    partner = partners(program)
    arrives = np.flatnonzero(partner >= 0)
    sent = partner[arrives]
    if (place[arrives] != place[sent]).any() or (program.count[arrives] != program.count[sent]).any():
        return None
    return place
