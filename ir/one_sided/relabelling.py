"""One-sided programs with other numbers of ranks, and with them of peers, shards, blocks, channels and semaphores."""

from __future__ import annotations

import attrs
import numpy as np

from ..arrays import Array
from ..collective import Collective
from ..ragged import inverse
from ..relabelling import RowMap, moved_offsets, moved_peers
from .opcodes import Op, table
from .program import OneSided

__all__ = ["relabelled"]

_SEMAPHORES = table(Op.SEM_ACQUIRE, Op.SEM_RELEASE)
_OPERATION = ("opcode", "transport", "share", "shares", "number", "blocks", "loop", "sources")


def relabelled(ir: OneSided, collective: Collective, number: Array) -> OneSided | None:
    """Return a one-sided program in which rank r has the number ``number[r]``, as :func:`..relabelling.relabelled`."""
    number = number.astype(np.int64)
    if not ir.collective.is_plain or ir.collective.ordered or len(ir.groups) or (ir.item_channel >= 0).any():
        return None
    channels, semaphores = (RowMap.by_rank(rank, number) for rank in (ir.channel_rank, ir.semaphore_rank))
    blocks = RowMap.by_rank(ir.block_rank, number)
    block_start, rows = blocks.lists(ir.block_start)
    link_start, links = rows.lists(ir.link_start)
    item_start, items = rows.lists(ir.item_start)
    offset = moved_offsets(
        ir, np.ones(len(ir.item_rank), dtype=bool), ir.item_rank, ir.item_buffer, ir.item_offset, ir.item_count, number
    )
    if offset is None:
        return None
    of_semaphores = _SEMAPHORES[ir.opcode[ir.link_operation]]
    link, peer = ir.links.astype(np.int64), moved_peers(ir.channel_peer, number)
    link[of_semaphores] = semaphores.place[link[of_semaphores]]
    link[~of_semaphores] = channels.place[link[~of_semaphores]]
    each = inverse(number)
    return attrs.evolve(
        ir, collective=collective, inputs=ir.inputs[each], outputs=ir.outputs[each], scratch=ir.scratch[each],
        channel_rank=number[ir.channel_rank][channels.order], channel_peer=peer[channels.order],
        channel_transport=ir.channel_transport[channels.order], channel_buffer=ir.channel_buffer[channels.order],
        semaphore_rank=number[ir.semaphore_rank][semaphores.order],
        semaphore_value=ir.semaphore_value[semaphores.order], block_rank=number[ir.block_rank][blocks.order],
        block_start=block_start, link_start=link_start, links=link[links.order], item_start=item_start,
        item_rank=number[ir.item_rank][items.order], item_offset=offset[items.order],
        **{name: getattr(ir, name)[items.order] for name in ("item_buffer", "item_count", "item_channel")},
        **{name: getattr(ir, name)[rows.order] for name in _OPERATION},
    )  # fmt: skip
