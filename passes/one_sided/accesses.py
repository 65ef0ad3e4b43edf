"""Which chunks each thread reads and writes: plain accesses, chunk range by chunk range."""

from __future__ import annotations

import numpy as np

from collc.ir.arrays import Array, lexsort, numbered
from collc.ir.frozen import frozen
from collc.ir.one_sided.opcodes import Op
from collc.ir.one_sided.program import OneSided
from collc.ir.ragged import ranges

from .addresses import bases
from .rows import OPCODE, SOURCES, Rows, packet_items

__all__ = ["Accesses", "accesses"]


@frozen(eq=False)
class Accesses:
    """Accesses to plain chunks, sorted by ``location``, then by operation, reads before writes.

    A location is a run of chunks that every item has as a whole or not at all. ``item`` is the item of each access.
    """

    location: Array
    operation: Array
    item: Array
    write: Array


def accesses(program: OneSided, rows: Rows) -> Accesses:
    """Return the plain accesses of operations; those to packets order themselves."""
    operation = np.repeat(np.arange(len(rows)), rows.item_count)
    item = np.flatnonzero(~packet_items(rows) & (rows.fixed[operation, OPCODE] != Op.FLUSH))
    operation = operation[item]
    write = ranges(0, rows.item_count)[item] >= rows.fixed[operation, SOURCES]
    low = bases(program)[rows.items[item, 0], rows.items[item, 1]] + rows.items[item, 2]
    high = low + rows.items[item, 3]
    first, last = np.split(numbered(np.concatenate([low, high]))[1], 2)
    entry = np.repeat(np.arange(len(item)), last - first)
    location = ranges(first, last - first)
    order = lexsort([location])  # items are listed by operation, those that it reads first
    entry = entry[order]
    return Accesses(location[order], operation[entry], item[entry], write[entry])
