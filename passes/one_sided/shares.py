"""Blocks that share each operation, every block on its own slice of all items."""

from __future__ import annotations

import attrs
import numpy as np

from collc.ir.diagnostic import Excess, error
from collc.ir.one_sided.opcodes import Op
from collc.ir.one_sided.program import OneSided
from collc.ir.ragged import group_starts, ranges, starts

from .accesses import accesses
from .rows import BLOCK, BLOCKS, NUMBER, OPCODE, SHARE, SHARES, Rows, program_of, rows_of

__all__ = ["shared_among"]


def shared_among(program: OneSided, shares: int, max_barriers: int) -> OneSided:
    """Return the program with ``shares`` blocks in place of each, with channels and semaphores of their own.

    Blocks with the same slices of the same chunks need only each other's signals. Slices differ where operations access
    a chunk in items of different sizes. Then the blocks that share operations meet at a barrier wherever a block had a
    nop. Raises C0574 if that needs more than ``max_barriers`` barriers on a rank.
    """
    rows = rows_of(program)
    if shares == 1 or not len(rows):
        return program
    if not _sliced_alike(program, rows):
        rows = _with_barriers(program, rows, shares, max_barriers)
    return _copied(program, rows, shares)


def _sliced_alike(program: OneSided, rows: Rows) -> bool:
    """Return whether each chunk is at one place in all items that have it."""
    found = accesses(program, rows)
    offset, count = rows.items[found.item, 2], rows.items[found.item, 3]
    same = found.location[1:] == found.location[:-1]
    differ = (offset[1:] != offset[:-1]) | (count[1:] != count[:-1])
    return not (same & differ).any()


def _with_barriers(program: OneSided, rows: Rows, shares: int, most: int) -> Rows:
    """Return the operations with a barrier of the sharing blocks in place of each nop."""
    fullest = int(np.diff(program.rank_blocks).max())
    if fullest > most:
        raise error(
            "C0574", f"operations of {fullest} blocks of a rank need a barrier each, {most} barriers exist",
            hint="use `instances` in place of `shares`", exit_status=3, excess=Excess("barriers", fullest, most),
        )  # fmt: skip
    fixed = rows.fixed.copy()
    nops = fixed[:, OPCODE] == Op.NOP
    fixed[nops, OPCODE], fixed[nops, BLOCKS] = Op.BARRIER, shares
    fixed[nops, NUMBER] = program.block_id[fixed[nops, BLOCK]]
    return attrs.evolve(rows, fixed=fixed)


def _copied(program: OneSided, rows: Rows, shares: int) -> OneSided:
    """Return the program with ``shares`` copies of each block, channel and semaphore."""
    count = np.repeat(np.diff(group_starts(rows.fixed[:, BLOCK], program.num_blocks)), shares)
    share = np.repeat(np.tile(np.arange(shares), program.num_blocks), count)
    first = np.repeat(group_starts(rows.fixed[:, BLOCK], program.num_blocks)[:-1], shares)
    many = rows.take(ranges(first, count))
    fixed, links = many.fixed.copy(), many.links * shares + np.repeat(share, many.link_count)
    fixed[:, BLOCK] = fixed[:, BLOCK] * shares + share
    items, switched = many.items.copy(), many.items[:, 4] >= 0
    items[switched, 4] = items[switched, 4] * shares + np.repeat(share, many.item_count)[switched]
    works = many.item_count > 0
    fixed[works, SHARE], fixed[works, SHARES] = share[works], shares
    groups = np.diff(program.group_start.astype(np.int64))
    rows = attrs.evolve(many, fixed=fixed, links=links, items=items)
    return program_of(
        program, rows, block_rank=np.repeat(program.block_rank, shares),
        group_start=starts(np.repeat(groups, shares)),
        groups=program.groups[ranges(np.repeat(program.group_start[:-1], shares), np.repeat(groups, shares))],
        **{name: np.repeat(getattr(program, name), shares) for name in _REPEATED},
    )  # fmt: skip


_REPEATED = (
    "channel_rank", "channel_peer", "channel_transport", "channel_buffer", "semaphore_rank", "semaphore_value",
)  # fmt: skip
