"""Where sums lie that a rank only sends on."""

from __future__ import annotations

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.one_sided.opcodes import Op, table
from collc.ir.one_sided.program import OneSided
from collc.ir.program import Buffer
from collc.ir.ragged import starts

from .accesses import Accesses, accesses
from .rows import OPCODE, SOURCES, Rows, rows_of
from .scratch import trimmed

__all__ = ["stored_sums"]

_SUMS = table(Op.RESPKT, Op.RECPKT, Op.RECSPKT)


def stored_sums(program: OneSided) -> OneSided:
    """Return the program whose sums that no operation reads again lie where the block later stores the result.

    Operations on packets store their sum. If a rank only sends it on, no operation reads it where it is stored, so it
    would need scratch of its own. The place of the operand does, or in an allreduce the same chunk of the output: if
    only this block uses the place, and writes it before it reads it again.
    """
    rows = rows_of(program)
    sums, source, stored = _dead(program, rows)
    if not len(sums):
        return program
    target = rows.items[source].copy()
    into = (target[:, 1] == Buffer.INPUT) & (program.collective.kind == "allreduce")
    target[into, 1] = Buffer.OUTPUT
    moved = rows.items.copy()
    moved[stored] = target
    fits = (target[:, 1] != Buffer.INPUT) & _unused(program, attrs.evolve(rows, items=moved), stored)
    items = rows.items.copy()
    items[stored[fits]] = target[fits]
    return trimmed(program, attrs.evolve(rows, items=items))


def _dead(program: OneSided, rows: Rows) -> tuple[Array, Array, Array]:
    """Return the sums that no operation reads, with the item of the plain operand and the one of the place."""
    first = starts(rows.item_count)[:-1]
    sums = np.flatnonzero(_SUMS[rows.fixed[:, OPCODE]])
    stored = first[sums] + rows.fixed[sums, SOURCES]
    found = accesses(program, rows)
    read = np.zeros(int(found.location.max(initial=0)) + 1, dtype=bool)
    read[found.location[~found.write]] = True
    alive = np.zeros(len(rows.items), dtype=bool)
    alive[found.item[read[found.location]]] = True
    dead = (rows.items[stored, 1] == Buffer.SCRATCH) & ~alive[stored]
    return sums[dead], first[sums[dead]], stored[dead]


def _unused(program: OneSided, rows: Rows, stored: Array) -> Array:
    """Return which places one block alone uses, and writes next if at all; outputs it must write."""
    found = accesses(program, rows)
    block = program.block[found.operation]
    several = _any(found, np.append(False, (found.location[1:] == found.location[:-1]) & (block[1:] != block[:-1])))
    after = np.append(found.location[1:] == found.location[:-1], False)
    following = np.append(found.write[1:], False) & after
    last = ~after & (rows.items[found.item, 1] != Buffer.OUTPUT)
    good = ~several[found.location] & (following | last)
    wrong = np.zeros(len(rows.items), dtype=bool)
    wrong[found.item[~good]] = True
    return ~wrong[stored]


def _any(found: Accesses, mask: Array) -> Array:
    """Return for each location whether the mask has one of its accesses."""
    result = np.zeros(int(found.location.max(initial=0)) + 1, dtype=bool)
    result[found.location[mask]] = True
    return result
