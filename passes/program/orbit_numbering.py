"""Number the chunks of a template so that its messages lie in few runs: what ``renumber`` does for all ranks.

Every rank has the whole vector of an allreduce, so the numbers of chunks are free. A message is a set, and needs an
instruction for each run of consecutive numbers. So the best numbering is the heaviest path through all chunks, as for
``renumber``. All counts follow from the messages of rank 0.

Each message may be divided into those that could be sent at different times. Parts need more runs: in a step of Swing
or Rabenseifner's algorithm, ranks exchange neighbouring chunks that arrived one after the other.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import attrs
import numpy as np

from collc.ir.arrays import Array, distinct, lexsort
from collc.ir.frozen import frozen
from collc.ir.laid_out import run_counts
from collc.ir.program import Buffer
from collc.ir.ragged import group_starts, owners, ranges, starts
from collc.ir.symmetric_program import SymmetricProgram

from ..analysis.paths import heavy_path, weight
from ..analysis.shared import shared_by_images, shared_with_first
from ..base import remark
from .orbit_messages import divided_by_depth

__all__ = ["divided_for_runs", "numbered_for_runs"]

#: kinds of chunks of all shards up to which all pairs are examined
_MOST_NODES = 4096
#: messages are divided if that needs at most this many times as many runs
_DIVIDED = Fraction(5, 4)


def divided_for_runs(program: SymmetricProgram, most: int | None = None) -> SymmetricProgram:
    """Return the program with its messages divided by depth, and numbered as by :func:`numbered_for_runs`.

    Messages stay whole if their parts would need more than 5/4 of their runs.
    """
    divided = divided_by_depth(program)
    if len(divided.message_start) == len(program.message_start):
        return numbered_for_runs(program, most)
    if not _is_free(program):
        whole, parts = (int(run_counts(one, most).sum()) for one in (program, divided))
        return divided if parts <= _DIVIDED * whole else program
    numbering, of_parts = _numbering(program), _numbering(divided)
    if numbering is not None and (of_parts is None or of_parts.runs > _DIVIDED * numbering.runs):
        return _numbered(program, numbering, most)
    return divided if of_parts is None else _numbered(divided, of_parts, most)


def numbered_for_runs(
    program: SymmetricProgram, most: int | None = None, share: int | None = None, by: str = "coalesce"
) -> SymmetricProgram:
    """Return the program with the numbering that needs the fewest instructions; runs have at most ``most`` chunks.

    The program is the same if its chunks have no free numbers, if no better numbering is found, if it saves less than
    1/``share`` of the instructions, or if more than 4,096 kinds of chunks differ in their messages.
    """
    numbering = _numbering(program) if _is_free(program) else None
    return program if numbering is None else _numbered(program, numbering, most, share, by)


def _is_free(program: SymmetricProgram) -> bool:
    """Return whether the chunks of a program may lie in any order."""
    return program.collective.kind == "allreduce" and not program.fixed and program.group.order > 1


def _numbered(
    program: SymmetricProgram, numbering: _Numbering, most: int | None, share: int | None = None, by: str = "coalesce"
) -> SymmetricProgram:
    """Return the program with a numbering if it saves instructions, as :func:`numbered_for_runs` says.

    Without it each run that is sent is two instructions at least. If these are more, no others need to be counted.
    """
    found = attrs.evolve(program, numbering=numbering.places)
    after, least = int(run_counts(found, most).sum()), 2 * numbering.runs_before
    if after < least and share is None:
        remark(f"{by}: {after} instructions for runs of neighbouring chunks instead of at least {least}")
        return found
    before = int(run_counts(program, most).sum())
    if after >= before or (share is not None and (before - after) * share < before):
        return program
    remark(f"{by}: {after} instructions for runs of neighbouring chunks instead of {before}")
    return found


@frozen(eq=False)
class _Numbering:
    """The place of each chunk of the vector, and how many runs all messages have with these places, and had before.

    Both numbers are of sent chunks that are the first of their kind, as if messages had one buffer and runs any length.
    So there are at least as many runs.
    """

    places: Array
    runs: int
    runs_before: int


def _numbering(program: SymmetricProgram) -> _Numbering | None:
    """Return the numbering of fewest runs; None if too many kinds of chunks differ, or all are alike."""
    seed, chunks, group = program.seed, program.chunks, program.group
    rows = np.flatnonzero(seed.sends & (seed.src_buffer != Buffer.SCRATCH))
    offset, count = seed.src_offset.astype(np.int64)[rows], seed.count.astype(np.int64)[rows]
    cuts = distinct(np.concatenate([[0, chunks], offset % chunks, offset % chunks + count]))
    first, last = (np.searchsorted(cuts, end) for end in (offset % chunks, offset % chunks + count))
    per_shard, width = len(cuts) - 1, last - first
    message = program.message[rows][owners(width)]
    interval = (offset // chunks * per_shard)[owners(width)] + ranges(first, width)
    together = per_shard * program.width  # the shards of the first ranks, and of their images, are as one
    kind = _kinds(together, message, interval)
    kinds = int(kind.max(initial=-1)) + 1
    if not 2 <= kinds * group.order <= _MOST_NODES:
        return None
    number = np.full(together, -1, dtype=np.int64)
    number[np.unique(kind, return_index=True)[1]] = np.arange(kinds)
    kept = number[interval % together] >= 0  # of each kind, the first interval
    message, interval = message[kept], interval[kept]
    count = shared_with_first(group, kinds, message, interval // together * kinds + number[interval % together])
    table = shared_by_images(group, count)
    before = np.arange(len(table))
    path = heavy_path(table, before)
    places = _places(path, kind, np.tile(np.diff(cuts), program.width))
    return _Numbering(places, *(len(interval) * group.order - weight(table, order) for order in (path, before)))


def _kinds(together: int, message: Array, interval: Array) -> Array:
    """Number the intervals of a shard by kind: those that the same messages carry of all shards are of one.

    ``message`` and ``interval`` are the pairs of all messages; there are ``together`` intervals of a shard.
    """
    shard, within = np.divmod(interval, together)
    order = lexsort((message, shard, within))
    carried = np.stack([shard[order], message[order]], axis=1)
    begin = group_starts(within[order], together).tolist()
    known = dict[bytes, int]()
    return np.array([known.setdefault(carried[a:b].tobytes(), len(known)) for a, b in pairwise(begin)])


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
