"""Small changes of one-sided programs, most of which are mistakes."""

from __future__ import annotations

import random

import attrs

from collc.ir.one_sided import Item, OneSided, Op, Operation
from collc.ir.program import Buffer

__all__ = ["blocks_of", "changed", "rebuilt"]

_OTHER = {
    Op.SIGNAL: Op.RLXSIGNAL, Op.RLXSIGNAL: Op.SIGNAL, Op.WAIT: Op.RLXWAIT, Op.RLXWAIT: Op.WAIT, Op.PWSF: Op.PWS,
    Op.PWS: Op.PUT, Op.RES: Op.RE, Op.UPKT: Op.COPY, Op.COPY: Op.CPKT, Op.SEM_ACQUIRE: Op.SEM_RELEASE,
    Op.BARRIER: Op.NOP,
}  # fmt: skip

Blocks = list[tuple[int, list[Operation]]]


def blocks_of(program: OneSided) -> Blocks:
    """Return the rank and the operations of each block."""
    rows, start = program.operations(), program.block_start.tolist()
    return [(rank, rows[start[b] : start[b + 1]]) for b, rank in enumerate(program.block_rank.tolist())]


def rebuilt(program: OneSided, blocks: Blocks, **settings: object) -> OneSided:
    """Return a program with other blocks and settings."""
    columns = (program.inputs, program.outputs, program.scratch)
    kept = {name: getattr(program, name) for name in ("packets", "inplace", "double_scratch", "together", "reuse")}
    return OneSided.build(
        program.collective, program.chunks, zip(*(c.tolist() for c in columns), strict=True), program.channels, blocks,
        semaphores=zip(program.semaphore_rank.tolist(), program.semaphore_value.tolist(), strict=True),
        loops=zip(program.loop_unit.tolist(), program.loop_chunks.tolist(), strict=True), **{**kept, **settings},
    )  # fmt: skip


def changed(program: OneSided, chance: random.Random) -> OneSided:
    """Return a program with one change that leaves it well formed."""
    blocks = blocks_of(program)
    filled = [k for k, (_, rows) in enumerate(blocks) if rows]
    rank, rows = blocks[chance.choice(filled)]
    at = chance.randrange(len(rows))
    row = rows[at]
    kind = chance.randrange(12)
    if kind <= 2:
        del rows[at]
    elif kind == 3:
        rows.insert(at, row)
    elif kind <= 5 and at + 1 < len(rows):
        rows[at], rows[at + 1] = rows[at + 1], row
    elif kind == 6 and row.op in _OTHER:
        rows[at] = row._replace(op=_OTHER[row.op])
    elif kind == 7 and row.links:
        rows[at] = row._replace(links=_other_links(program, rank, row, chance))
    elif kind == 8:
        name = chance.choice(("double_scratch", "together", "inplace"))
        return attrs.evolve(program, **{name: not getattr(program, name)})
    elif kind == 9:
        rows.insert(at, rows.pop(chance.randrange(len(rows))))
    elif row.src or row.dst:
        rows[at] = _other_items(program, row, chance)
    else:
        del rows[at]
    return rebuilt(program, blocks)


def _other_links(program: OneSided, rank: int, row: Operation, chance: random.Random) -> tuple[int, ...]:
    links = list(row.links)
    k = chance.randrange(len(links))
    owner = program.semaphore_rank if row.op in (Op.SEM_ACQUIRE, Op.SEM_RELEASE) else program.channel_rank
    mine = [link for link, of in enumerate(owner.tolist()) if of == rank]
    match chance.randrange(3):
        case 0:
            links[k] = chance.choice(mine)
        case 1:
            links.reverse()
        case _:
            del links[k]
    return tuple(links)


def _other_items(program: OneSided, row: Operation, chance: random.Random) -> Operation:
    sides = [list(row.src), list(row.dst)]
    side = chance.choice([s for s in sides if s])
    k = chance.randrange(len(side))
    old = side[k]
    match chance.randrange(4):
        case 0 | 1:
            side[k] = old._replace(offset=max(0, old.offset + chance.choice((-1, 1))))
        case 2:
            side[k] = old._replace(buffer=Buffer(chance.randrange(3)))
        case _:
            side[k] = Item(chance.randrange(program.num_ranks), *old[1:])
    return row._replace(src=tuple(sides[0]), dst=tuple(sides[1]))
