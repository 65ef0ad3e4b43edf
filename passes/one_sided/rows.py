"""Operations as rows of few arrays, which passes gather, join and number anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import attrs
import numpy as np

from collc.ir.arrays import Array, Columns, lexsort
from collc.ir.frozen import frozen
from collc.ir.one_sided.opcodes import PACKET_READS, PACKET_WRITES, Op, table
from collc.ir.one_sided.program import NO_CHANNEL, OneSided, Transport
from collc.ir.ragged import group_starts, ranges, starts

__all__ = [
    "BLOCK", "BLOCKS", "FIXED", "NUMBER", "OPCODE", "SHARE", "SHARES", "SOURCES", "TRANSPORT", "Place", "Rows", "emit",
    "joined", "packet_items", "program_of", "rows_of",
]  # fmt: skip

#: the columns of :attr:`Rows.fixed`
FIXED = ("block", "opcode", "transport", "share", "shares", "number", "blocks", "loop", "sources")
BLOCK, OPCODE, TRANSPORT, SHARE, SHARES, NUMBER, BLOCKS, LOOP, SOURCES = range(9)
#: the columns of :attr:`Rows.items`
ITEMS = ("item_rank", "item_buffer", "item_offset", "item_count", "item_channel")
#: items of one side: rank, buffer, offset, count, each a column or one number for all
Place: TypeAlias = tuple[Any, Any, Any, Any]  # Any: an array or an integer


_ONE_SLOT = table(Op.UPKT, Op.RPPKT, Op.GSTOREPKT)
_FIRST_PLAIN = table(Op.REPKT, Op.RESPKT, Op.RECPKT, Op.RECSPKT)


@frozen(eq=False)
class Rows:
    """Operations: ``fixed`` has shape (operations, 9), ``items`` (items, 5), ``links`` (links,).

    Operation i has ``item_count[i]`` of the items and ``link_count[i]`` of the links, in order.
    """

    fixed: Array
    link_count: Array
    links: Array
    item_count: Array
    items: Array

    def __len__(self) -> int:
        return len(self.fixed)

    def take(self, order: Array) -> Rows:
        """Return these operations in this order; some may be missing or repeated."""
        link_count, item_count = self.link_count[order], self.item_count[order]
        links = ranges(starts(self.link_count)[order], link_count)
        items = ranges(starts(self.item_count)[order], item_count)
        return Rows(
            self.fixed.take(order, axis=0), link_count, self.links[links], item_count, self.items.take(items, axis=0)
        )

    def by_block(self, keys: Array) -> Rows:
        """Return the operations sorted by block, then by ``keys``, then as they are."""
        return self.take(lexsort((keys, self.fixed[:, BLOCK])))


def rows_of(program: OneSided) -> Rows:
    """Return the operations of a program as rows, read-only: they are kept with the program."""
    if "rows" not in program.found:
        _keep(program, _rows_of(program))
    found: Rows = program.found["rows"]
    return found


def _keep(program: OneSided, rows: Rows) -> None:
    for column in (rows.fixed, rows.link_count, rows.links, rows.item_count, rows.items):
        column.flags.writeable = False
    program.found["rows"] = rows


def _rows_of(program: OneSided) -> Rows:
    fixed = np.empty((program.num_operations, len(FIXED)), dtype=np.int64)
    fixed[:, BLOCK] = program.block
    for k, name in enumerate(FIXED[1:], start=1):
        fixed[:, k] = getattr(program, name)
    items = np.empty((len(program.item_rank), len(ITEMS)), dtype=np.int64)
    for k, name in enumerate(ITEMS):
        items[:, k] = getattr(program, name)
    links, items_of = (np.diff(column.astype(np.int64)) for column in (program.link_start, program.item_start))
    return Rows(fixed, links, program.links.astype(np.int64), items_of, items)


def program_of(program: OneSided, rows: Rows, **changed: Any) -> OneSided:  # Any: fields of OneSided, each of its type
    """Return the program with these operations instead of its own; ``rows`` ascend by block."""
    result = attrs.evolve(program, **columns_of(rows, len(changed.get("block_rank", program.block_rank))), **changed)
    _keep(result, rows)
    return result


def columns_of(rows: Rows, num_blocks: int) -> Columns:
    """Return the columns of operations, items and links of a program with ``num_blocks`` blocks."""
    fixed = {name: rows.fixed[:, k] for k, name in enumerate(FIXED) if name != "block"}
    items = {name: rows.items[:, k] for k, name in enumerate(ITEMS)}
    return {
        **fixed, **items, "block_start": group_starts(rows.fixed[:, BLOCK], num_blocks),
        "link_start": starts(rows.link_count), "links": rows.links, "item_start": starts(rows.item_count),
    }  # fmt: skip


def joined(parts: Sequence[Rows]) -> Rows:
    """Return the operations of all parts, one part after the other."""
    return Rows(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in attrs.fields(Rows)))


def emit(
    block: Array,
    op: Op,
    transport: Any = Transport.LOCAL,  # Any: a column or one value, as in a place
    *,
    links: Array | None = None,
    src: Sequence[Place] = (),
    dst: Sequence[Place] = (),
) -> Rows:
    """Return one operation for each entry of ``block``, each with at most one link and with as many items."""
    number, sides = len(block), (*src, *dst)
    fixed = np.zeros((number, len(FIXED)), dtype=np.int64)
    fixed[:, BLOCK], fixed[:, OPCODE], fixed[:, TRANSPORT], fixed[:, SOURCES] = block, op, transport, len(src)
    fixed[:, SHARES], fixed[:, LOOP] = 1, -1
    items = np.zeros((number, len(sides), len(ITEMS)), dtype=np.int64)
    for k, side in enumerate(sides):
        for column, values in enumerate((*side, NO_CHANNEL)):
            items[:, k, column] = values
    return Rows(
        fixed, np.full(number, 0 if links is None else 1), np.zeros(0, dtype=np.int64) if links is None else links,
        np.full(number, len(sides)), items.reshape(-1, len(ITEMS)),
    )  # fmt: skip


def packet_items(rows: Rows) -> Array:
    """Return which items are packets in scratch."""
    operation = np.repeat(np.arange(len(rows)), rows.item_count)
    nth, opcode, sources = ranges(0, rows.item_count), rows.fixed[operation, OPCODE], rows.fixed[operation, SOURCES]
    read = PACKET_READS[opcode] & (nth < sources) & (_ONE_SLOT[opcode] | (nth > 0))
    sums = _FIRST_PLAIN[opcode]
    written = PACKET_WRITES[opcode] & (nth >= sources) & (~sums | (nth > sources))
    found: Array = read | written
    return found
