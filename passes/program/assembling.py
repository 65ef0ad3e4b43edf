"""The program of joined blocks and fused instructions, after their execution was simulated."""

from __future__ import annotations

import numpy as np

from collc.ir.arrays import Array, Columns, lexsort
from collc.ir.editing import join_blocks, take
from collc.ir.layout import layout
from collc.ir.program import INSTRUCTION_COLUMNS, Buffer, Opcode, Program
from collc.ir.ragged import inverse

from ..analysis.hazards import accesses, synchronize
from .merging import Merged
from .pairing import Pairs

__all__ = ["assemble"]


def assemble(program: Program, merged: Merged, pairs: Pairs) -> tuple[Program, list[list[int]]]:
    """Return the merged program, with recomputed dependencies, and the former blocks of each of its blocks."""
    place = inverse(merged.order)
    fused = np.flatnonzero(merged.follow >= 0)
    dead = _only_forwarded(program, place, fused)
    columns: Columns = {c: getattr(program, c).astype(np.int64) for c in INSTRUCTION_COLUMNS}
    reduces = program.opcode[fused] == Opcode.RECV_REDUCE_COPY
    columns["opcode"][fused] = np.where(
        reduces, np.where(dead, Opcode.RECV_REDUCE_SEND, Opcode.RECV_REDUCE_COPY_SEND), Opcode.RECV_COPY_SEND
    )
    for c in ("dst_buffer", "dst_offset"):
        columns[c][fused[reduces & dead]] = 0
    blocks, owner = join_blocks(program, merged.host)
    blocks["channel"] = np.zeros(len(blocks["block_rank"]), dtype=np.int64)
    connected = (program.send_peer >= 0) | (program.recv_peer >= 0)
    np.maximum.at(blocks["channel"], owner[connected], pairs.channel[connected])
    absorbed = np.zeros(program.num_instructions, dtype=bool)
    absorbed[merged.follow[fused]] = True
    rows = np.flatnonzero(~absorbed)
    new_block = owner[program.block]
    rows = rows[lexsort((place[rows], new_block[rows]))]
    result = take(program, rows, new_block[rows], blocks, **{c: values[rows] for c, values in columns.items()})
    members: list[list[int]] = [[] for _ in blocks["block_rank"]]
    for b, k in enumerate(owner.tolist()):
        members[k].append(b)
    return synchronize(result, place[rows]), members


def _only_forwarded(program: Program, place: Array, fused: Array) -> Array:
    """Return which fused receives store data that only their own send reads, in scratch or overwritten later."""
    if not len(fused):
        return np.zeros(0, dtype=bool)
    instruction, location, write, address = accesses(program)
    by_time = lexsort((write, place[instruction], location))
    instruction, location, write, address = (a[by_time] for a in (instruction, location, write, address))
    where = layout(program, inplace=True)
    rank = program.rank[instruction]
    in_scratch = address >= where.base[rank, Buffer.SCRATCH]
    n = len(instruction)
    # after the store comes the read of its send; then another store, or no further access
    at = np.arange(n)
    follows = np.concatenate([location[1:] == location[:-1], [False]])
    second = np.minimum(at + 2, n - 1)
    more = np.concatenate([follows[1:], [False]]) & follows
    overwritten = more & write[second] & (instruction[second] != instruction[np.minimum(at + 1, n - 1)])
    unread = follows & (overwritten | (~more & in_scratch))
    live = np.zeros(program.num_instructions, dtype=bool)
    live[instruction[write & ~unread]] = True
    return ~live[fused]
