"""Operations with more channels or items than the runtime keeps: several operations instead of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np

from collc.ir.arrays import Array
from collc.ir.diagnostic import Excess, error
from collc.ir.one_sided.opcodes import Op, table
from collc.ir.one_sided.program import Item, OneSided, Operation

__all__ = ["split_operations"]

_T = TypeVar("_T")

_SEMAPHORES = frozenset({Op.SEM_ACQUIRE, Op.SEM_RELEASE})
#: operations whose sources and destinations are pairs
_PAIRS = frozenset({Op.PUT, Op.PWS, Op.PWSF, Op.GET, Op.PPKT})
#: sums -> (the sum that stores locally, what sends the stored sum to a peer)
_SUMS = {
    Op.RE: (Op.RE, Op.PUT), Op.RES: (Op.RE, Op.PUT), Op.RRE: (Op.RRE, Op.PUT), Op.RRES: (Op.RRE, Op.PUT),
    Op.REPKT: (Op.REPKT, Op.PPKT), Op.RESPKT: (Op.REPKT, Op.PPKT),
}  # fmt: skip
_NOP = Operation(Op.NOP)


def split_operations(ir: OneSided, max_link_ids: int, max_semaphores: int, max_items: int) -> OneSided:
    """Return the program in which no operation has more channels, semaphores, or items on a side.

    A sum of many sources becomes sums into its destination, one after the other. A sum to many peers stores first, and
    puts then. Raises C0573 for an operation that has no such form.
    """
    large = _large(ir, max_link_ids, max_semaphores, max_items)
    if not large.any():
        return ir
    operations, starts = ir.operations(), ir.block_start.tolist()
    blocks = []
    for block, rank in enumerate(ir.block_rank.tolist()):
        rows = range(starts[block], starts[block + 1])
        split: list[Operation] = []
        for row in rows:
            one = operations[row]
            split += _split(ir, row, one, max_link_ids, max_semaphores, max_items) if large[row] else (one,)
        blocks.append((rank, split))
    settings = {name: getattr(ir, name) for name in OneSided.SCALARS if name not in ("collective", "chunks")}
    return OneSided.build(
        ir.collective, ir.chunks, zip(*(c.tolist() for c in (ir.inputs, ir.outputs, ir.scratch)), strict=True),
        ir.channels, blocks, semaphores=zip(ir.semaphore_rank.tolist(), ir.semaphore_value.tolist(), strict=True),
        loops=zip(ir.loop_unit.tolist(), ir.loop_chunks.tolist(), strict=True), **settings,
    )  # fmt: skip


def _large(ir: OneSided, max_link_ids: int, max_semaphores: int, max_items: int) -> Array:
    """Return which operations have too many channels, semaphores or items."""
    links, sources = np.diff(ir.link_start.astype(np.int64)), ir.sources.astype(np.int64)
    most = np.where(table(*_SEMAPHORES)[ir.opcode], max_semaphores, max_link_ids)
    items = np.diff(ir.item_start.astype(np.int64)) - sources
    found: Array = (links > most) | (sources > max_items) | (items > max_items)
    return found


def _split(
    ir: OneSided, row: int, one: Operation, max_link_ids: int, max_semaphores: int, max_items: int
) -> Iterator[Operation]:
    """Yield the operations that do what one does."""
    if one.op in _PAIRS:
        size = min(max_items, max_link_ids) if one.links else max_items
        yield from _pairs(one, size)
    elif one.op is Op.RPPKT:
        size = min(max_items, max_link_ids) if one.links else max_items
        links = _parts(one.links, size, len(one.dst))
        for dst, ids in zip(_batched(one.dst, size), links, strict=True):
            yield one._replace(dst=dst, links=ids)
    elif one.op in _SUMS:
        yield from _sums(one, max_items)
    elif not one.src and not one.dst:
        for some in _batched(one.links, max_semaphores if one.op in _SEMAPHORES else max_link_ids):
            yield one._replace(links=some)
    else:
        most = max(len(one.src), len(one.dst), len(one.links))
        raise error(
            "C0573", f"{ir.place(row)} ({one.op.word}) has {most} items or channels, the runtime takes {max_items}",
            hint="use fewer peers at once", exit_status=3, excess=Excess("items", most, max_items),
        )  # fmt: skip


def _pairs(one: Operation, size: int) -> Iterator[Operation]:
    links = _parts(one.links, size, len(one.src))
    for src, dst, ids in zip(_batched(one.src, size), _batched(one.dst, size), links, strict=True):
        yield one._replace(src=src, dst=dst, links=ids)


def _batched(items: tuple[_T, ...], size: int) -> Iterator[tuple[_T, ...]]:
    """Yield the items in groups of ``size``; the last may be smaller."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _parts(links: Sequence[int], size: int, items: int) -> Iterator[tuple[int, ...]]:
    """Yield the channels of each part of the items; without channels, none."""
    for start in range(0, items, size):
        yield tuple(links[start : start + size])


def _sums(one: Operation, size: int) -> Iterator[Operation]:
    """Yield sums of few sources, then what sends the result to peers that do not fit the last one."""
    stores, sends = _SUMS[one.op]
    total, peers = one.dst[0], one.dst[1:]
    rest = [item for item in one.src if item != total]
    # A source that the first sum overwrites comes first.
    first = [item for item in one.src if item == total] or [rest.pop(0)]
    groups = [tuple(rest[k : k + size - 1]) for k in range(0, len(rest), size - 1)] or [()]
    for number, group in enumerate(groups):
        sources = (*(first if not number else [total]), *group)
        if number < len(groups) - 1:
            yield one._replace(op=stores, src=sources, dst=(total,))
            yield _NOP
        else:
            yield one._replace(src=sources, dst=(total, *peers[: size - 1]))
    for left in _batched(peers[size - 1 :], size):
        yield _NOP
        yield from _sent(one, sends, total, left)


def _sent(one: Operation, sends: Op, total: Item, peers: tuple[Item, ...]) -> Iterator[Operation]:
    yield one._replace(op=sends, src=(total,) * len(peers), dst=peers)
