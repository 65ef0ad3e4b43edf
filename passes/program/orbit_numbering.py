"""Number the chunks of a template so that its messages lie in few runs: what ``renumber`` does for all ranks.

Every rank has the whole vector of an allreduce, so the numbers of chunks are free. A message is a set, and needs an
instruction for each run of consecutive numbers. So the best numbering is the heaviest path through all chunks, as for
``renumber``. All counts follow from the messages of rank 0.
"""

from __future__ import annotations

import attrs
import numpy as np

from collc.ir.arrays import Array, distinct
from collc.ir.laid_out import run_counts
from collc.ir.program import Buffer
from collc.ir.ragged import owners, ranges, starts
from collc.ir.symmetric_program import SymmetricProgram

from ..analysis.paths import MOST_NODES, heavy_path
from ..analysis.shared import shared_by_images, shared_with_first
from ..base import remark

__all__ = ["numbered_for_runs"]


def numbered_for_runs(
    program: SymmetricProgram, most: int | None = None, share: int | None = None, by: str = "coalesce"
) -> SymmetricProgram:
    """Return the program with the numbering that needs the fewest instructions; runs have at most ``most`` chunks.

    The program is the same if its chunks have no free numbers, if no better numbering is found, if it saves less than
    1/``share`` of the instructions, or if more than 2,048 kinds of chunks differ in their messages.
    """
    if program.width != 1 or program.collective.kind != "allreduce" or program.fixed:
        return program
    numbering = _numbering(program)
    if numbering is None:
        return program
    found = attrs.evolve(program, numbering=numbering)
    before, after = (int(run_counts(one, most).sum()) for one in (program, found))
    if after >= before or (share is not None and (before - after) * share < before):
        return program
    remark(f"{by}: {after} instructions for runs of neighbouring chunks instead of {before}")
    return found


def _numbering(program: SymmetricProgram) -> Array | None:
    """Return the place of each chunk of the vector; None if too many kinds of them differ, or all are alike."""
    seed, chunks, group = program.seed, program.chunks, program.group
    rows = np.flatnonzero(seed.sends & (seed.src_buffer != Buffer.SCRATCH))
    offset, count = seed.src_offset.astype(np.int64)[rows], seed.count.astype(np.int64)[rows]
    cuts = distinct(np.concatenate([[0, chunks], offset % chunks, offset % chunks + count]))
    first, last = (np.searchsorted(cuts, end) for end in (offset % chunks, offset % chunks + count))
    per_shard, width = len(cuts) - 1, last - first
    message = program.message[rows][owners(width)]
    interval = (offset // chunks * per_shard)[owners(width)] + ranges(first, width)
    count = shared_with_first(group, per_shard, message, interval)
    kind = _kinds(count)
    kinds = int(kind.max(initial=-1)) + 1
    if not 2 <= kinds * group.order <= MOST_NODES:
        return None
    representative = np.unique(kind, return_index=True)[1]
    table = shared_by_images(group, count[representative][:, :, representative])
    path = heavy_path(table, np.arange(len(table)))
    return _places(path, kind, np.diff(cuts))


def _kinds(count: Array) -> Array:
    """Number the intervals of a shard by kind: those that the same messages carry are of one."""
    together = count[:, 0, :]
    alone = np.diagonal(together)
    alike: Array = (together == alone) & (together == alone[:, None])
    return np.unique(alike.argmax(axis=1), return_inverse=True)[1].reshape(-1)


def _places(path: Array, kind: Array, width: Array) -> Array:
    """Return the place of each chunk if the kinds of shards lie in the order of a path: shard * kinds + kind."""
    kinds, chunks = int(kind.max()) + 1, int(width.sum())
    of_kind = np.bincount(kind, weights=width, minlength=kinds).astype(np.int64)
    start = np.empty(len(path), dtype=np.int64)
    start[path] = starts(of_kind[path % kinds])[:-1]
    # chunks of one kind keep their order
    kind_of = np.repeat(kind, width)
    inside = np.zeros(chunks, dtype=np.int64)
    for one in range(kinds):
        here = np.flatnonzero(kind_of == one)
        inside[here] = np.arange(len(here))
    shard = np.arange(len(path) // kinds)[:, None]
    places: Array = (start[shard * kinds + kind_of] + inside).ravel()
    return places
