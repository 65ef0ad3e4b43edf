"""Programs with other numbers of ranks, and with them of peers, shards, threadblocks and channels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from .arrays import Array, Columns
from .collective import Collective
from .program import Program
from .ragged import inverse, ranges, starts

if TYPE_CHECKING:
    from .one_sided.program import OneSided

__all__ = ["RowMap", "moved_offsets", "moved_peers", "relabelled"]

#: kinds whose shards belong to ranks; in the others every place of the vector is like every other
_OF_RANKS = frozenset({"allgather", "reduce-scatter", "gather", "scatter", "alltoall"})


def relabelled(ir: Program, collective: Collective, number: Array) -> Program | None:
    """Return a program in which rank r has the number ``number[r]``, a permutation: it performs ``collective``.

    Shards that belong to ranks go with them. The result is None if an instruction then needs several places in one
    buffer, and for programs with shards of different sizes, members, conditions, an order of ranks, or switches.
    """
    if not ir.collective.is_plain or ir.collective.ordered:
        return None
    number = number.astype(np.int64)
    blocks = RowMap.by_rank(ir.block_rank, number)
    block_start, rows = blocks.lists(ir.block_start)
    dep_start, deps = rows.lists(ir.dep_start)
    columns: Columns = {"opcode": ir.opcode[rows.order], "count": ir.count[rows.order]}
    for end in ("src", "dst"):
        buffer = getattr(ir, f"{end}_buffer")
        offset = moved_offsets(ir, ir.uses(end), ir.rank, buffer, getattr(ir, f"{end}_offset"), ir.count, number)
        if offset is None:
            return None
        columns |= {f"{end}_buffer": buffer[rows.order], f"{end}_offset": offset[rows.order]}
    return attrs.evolve(
        ir, collective=collective, scratch=ir.scratch[inverse(number)],
        block_rank=number[ir.block_rank][blocks.order], send_peer=moved_peers(ir.send_peer, number)[blocks.order],
        recv_peer=moved_peers(ir.recv_peer, number)[blocks.order], channel=ir.channel[blocks.order],
        block_start=block_start, dep_start=dep_start, deps=rows.place[ir.deps][deps.order], **columns,
    )  # fmt: skip


class RowMap:
    """Rows of one table in another order: ``order`` are the old rows, ``place`` is the new row of each old one."""

    def __init__(self, order: Array) -> None:
        self.order, self.place = order, inverse(order)

    @classmethod
    def by_rank(cls, rank: Array, number: Array) -> RowMap:
        """Return the rows sorted by new rank; those of one rank keep their order."""
        return cls(np.argsort(number[rank], kind="stable"))

    def lists(self, start: Array) -> tuple[Array, RowMap]:
        """Return where the list of every row starts now, and the rows of the lists."""
        counts = np.diff(start.astype(np.int64))[self.order]
        return starts(counts), RowMap(ranges(start.astype(np.int64)[:-1][self.order], counts))


def moved_peers(peer: Array, number: Array) -> Array:
    """Return the numbers of peers; -1 means none."""
    return np.append(number, -1)[peer]


def moved_offsets(
    ir: Program | OneSided, used: Array, rank: Array, buffer: Array, offset: Array, count: Array, number: Array
) -> Array | None:
    """Return the offsets of locations when shards go with their ranks; None if one would fall apart."""
    offset = offset.astype(np.int64)
    if ir.collective.kind not in _OF_RANKS or ir.num_ranks == 1:
        return offset
    shards = np.array([
        [ir.collective.buffer_shards(one, output=False), ir.collective.buffer_shards(one, output=True), 0]
        for one in range(ir.num_ranks)
    ], dtype=np.int64)  # fmt: skip
    moves = used & (shards[rank, buffer] > 1)
    first = offset[moves] // ir.chunks
    last = (offset[moves] + np.maximum(count[moves].astype(np.int64), 1) - 1) // ir.chunks
    breaks = starts(number[1:] != number[:-1] + 1)
    if (last >= ir.num_ranks).any() or (breaks[last] > breaks[first]).any():
        return None
    offset[moves] += (number[first] - first) * ir.chunks
    return offset
