"""One-sided programs: channels, semaphores, and blocks of operations on local and remote items of three buffers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import numpy as np

from ..arrays import Array, Columnar, Columns, as_column
from ..collective import Collective
from ..frozen import frozen
from ..program import Buffer
from ..ragged import group_starts, owners, starts
from ..shown import clipped, counted, shown
from .opcodes import WORDS, Op

if TYPE_CHECKING:
    from ..validate import Flaws

__all__ = ["NO_CHANNEL", "Channel", "Item", "OneSided", "Operation", "Transport"]

#: the channel of an item that no switch reaches
NO_CHANNEL = -1


class Transport(IntEnum):
    """How an operation reaches other ranks."""

    LOCAL = -1  #   not at all
    MEMORY = 0  #   loads and stores, inside the ranks that share memory
    PORT = 1  #     a proxy posts the transfers, as a network needs
    SWITCH = 2  #   a switch multicasts and adds


class Channel(NamedTuple):
    """A channel of rank ``rank`` to ``peer``: the k-th one of a transport pairs with the peer's k-th one to ``rank``.

    A channel of a switch has no peer (-1), but the buffer and the ranks (``group``) that it joins.
    """

    rank: int
    peer: int
    transport: Transport
    buffer: Buffer = Buffer.INPUT
    group: tuple[int, ...] = ()


class Item(NamedTuple):
    """Chunks ``offset`` to ``offset + count`` (exclusive) of a buffer of ``rank``, in its own chunks.

    ``channel`` is the channel of a switch that reaches the buffer on all its ranks; then ``rank`` is the executing one.
    """

    rank: int
    buffer: Buffer
    offset: int
    count: int  # type: ignore[assignment]  # a tuple has a method of that name, which items do not need
    channel: int = NO_CHANNEL


class Operation(NamedTuple):
    """One operation of a block.

    ``links`` are channels (rows of the channel columns), or semaphores for SEM_ACQUIRE and SEM_RELEASE. The block does
    slice ``share`` of ``shares`` equal slices of every item. BARRIER has a ``number`` and the ``blocks`` that it joins.
    ``loop`` is the loop that the operation is in; -1: none.
    """

    op: Op
    transport: Transport = Transport.LOCAL
    links: tuple[int, ...] = ()
    src: tuple[Item, ...] = ()
    dst: tuple[Item, ...] = ()
    share: int = 0
    shares: int = 1
    number: int = 0
    blocks: int = 0
    loop: int = -1


_OPERATION_COLUMNS = ("opcode", "transport", "share", "shares", "number", "blocks", "loop", "sources")
_ITEM_COLUMNS = ("item_rank", "item_buffer", "item_offset", "item_count", "item_channel")


@frozen(eq=False)
class OneSided(Columnar):
    """Channels, semaphores and blocks (rows sorted by rank) and the operations of blocks (rows, block by block).

    Rank r has ``inputs[r]``, ``outputs[r]`` and ``scratch[r]`` chunks; all chunks have one size, and every shard of the
    collective has ``chunks``. In place, input and output overlap as :func:`collc.ir.layout.layout` says. Operation i
    has ``links[link_start[i]:link_start[i+1]]`` and the items ``item_start[i]`` to ``item_start[i+1]`` (exclusive), of
    which the first ``sources[i]`` are sources. The operations of a loop are adjacent; loop k runs them on slices of
    ``loop_unit[k]`` bytes of its ``loop_chunks[k]`` chunks.

    Signals of channels, semaphores and packets are those of mscclpp notes, section 4. If ``double_scratch``, packets
    use one half of scratch in one launch and the other half in the next. If ``together``, a program relies on all ranks
    having finished one launch when any begins the next; the pass ``handshake`` ends that. ``threads`` are those of a
    block, ``alignment`` is the unit of bytes of slices. ``reuse`` is whether all calls share one context.
    """

    collective: Collective
    chunks: int
    inputs: Array = attrs.field(converter=as_column)
    outputs: Array = attrs.field(converter=as_column)
    scratch: Array = attrs.field(converter=as_column)
    channel_rank: Array = attrs.field(converter=as_column)
    channel_peer: Array = attrs.field(converter=as_column)
    channel_transport: Array = attrs.field(converter=as_column)
    channel_buffer: Array = attrs.field(converter=as_column)
    group_start: Array = attrs.field(converter=as_column)
    groups: Array = attrs.field(converter=as_column)
    semaphore_rank: Array = attrs.field(converter=as_column)
    semaphore_value: Array = attrs.field(converter=as_column)
    loop_unit: Array = attrs.field(converter=as_column)
    loop_chunks: Array = attrs.field(converter=as_column)
    block_rank: Array = attrs.field(converter=as_column)
    block_start: Array = attrs.field(converter=as_column)
    opcode: Array = attrs.field(converter=as_column)
    transport: Array = attrs.field(converter=as_column)
    share: Array = attrs.field(converter=as_column)
    shares: Array = attrs.field(converter=as_column)
    number: Array = attrs.field(converter=as_column)
    blocks: Array = attrs.field(converter=as_column)
    loop: Array = attrs.field(converter=as_column)
    sources: Array = attrs.field(converter=as_column)
    link_start: Array = attrs.field(converter=as_column)
    links: Array = attrs.field(converter=as_column)
    item_start: Array = attrs.field(converter=as_column)
    item_rank: Array = attrs.field(converter=as_column)
    item_buffer: Array = attrs.field(converter=as_column)
    item_offset: Array = attrs.field(converter=as_column)
    item_count: Array = attrs.field(converter=as_column)
    item_channel: Array = attrs.field(converter=as_column)
    packets: bool = False
    inplace: bool = False
    double_scratch: bool = False
    together: bool = False
    reuse: bool = False
    threads: int = 1024
    alignment: int = 16
    name: str = "collective"
    scheduler: str = ""

    SCALARS = (
        "collective", "chunks", "packets", "inplace", "double_scratch", "together", "reuse", "threads", "alignment",
        "name", "scheduler",
    )  # fmt: skip
    COLUMNS = (
        "inputs", "outputs", "scratch", "channel_rank", "channel_peer", "channel_transport", "channel_buffer",
        "group_start", "groups", "semaphore_rank", "semaphore_value", "loop_unit", "loop_chunks", "block_rank",
        "block_start", *_OPERATION_COLUMNS, "link_start", "links", "item_start", *_ITEM_COLUMNS,
    )  # fmt: skip

    def __repr__(self) -> str:
        kind, ranks = self.collective.kind, counted(self.num_ranks, "rank")
        text = f"{counted(self.num_blocks, 'block')}, {counted(self.num_operations, 'operation')}"
        return shown(self, f"{clipped(self.name)}: {kind}, {ranks}, {clipped(self.scheduler)}, {text}")

    @cached_property
    def found(self) -> dict[Any, Any]:  # Any: each function has its own key and type
        """Cached results of functions of other modules, by name. No function changes a cached result."""
        return {}

    @property
    def num_ranks(self) -> int:
        """Ranks of the program's collective."""
        return self.collective.num_ranks

    @property
    def num_blocks(self) -> int:
        """Blocks of all ranks together."""
        return len(self.block_rank)

    @property
    def num_operations(self) -> int:
        """Operations of all blocks together."""
        return len(self.opcode)

    @cached_property
    def rank_blocks(self) -> Array:
        """The first block of each rank, then the number of blocks."""
        return group_starts(self.block_rank, self.num_ranks)

    @cached_property
    def block(self) -> Array:
        """The block of each operation."""
        return owners(np.diff(self.block_start.astype(np.int64)))

    @cached_property
    def rank(self) -> Array:
        """The rank of each operation."""
        return self.block_rank.astype(np.int64)[self.block]

    @cached_property
    def block_id(self) -> Array:
        """Each block's number among the blocks of its rank, as plans and messages name it."""
        return np.arange(self.num_blocks) - self.rank_blocks[self.block_rank]

    @cached_property
    def step(self) -> Array:
        """Each operation's number within its block."""
        return np.arange(self.num_operations) - self.block_start[self.block].astype(np.int64)

    @cached_property
    def item_operation(self) -> Array:
        """The operation of each item."""
        return owners(np.diff(self.item_start.astype(np.int64)))

    @cached_property
    def item_is_source(self) -> Array:
        """Which items are sources."""
        of = self.item_operation
        return np.arange(len(of)) - self.item_start[of].astype(np.int64) < self.sources[of]

    @cached_property
    def link_operation(self) -> Array:
        """The operation of each link."""
        return owners(np.diff(self.link_start.astype(np.int64)))

    @cached_property
    def partner(self) -> Array:
        """The channel that each channel pairs with, -1 if the peer has none (and for switches).

        The k-th channel of a transport from a to b pairs with the k-th one from b to a.
        """
        first: dict[tuple[int, int, int], list[int]] = {}
        ends = zip(self.channel_rank.tolist(), self.channel_peer.tolist(), self.channel_transport.tolist(), strict=True)
        keys = list(ends)
        for row, key in enumerate(keys):
            first.setdefault(key, []).append(row)
        found = np.full(len(keys), -1, dtype=np.int64)
        for (rank, peer, transport), rows in first.items():
            if transport != Transport.SWITCH:
                for row, other in zip(rows, first.get((peer, rank, transport), ()), strict=False):
                    found[row] = other
        return found

    def checks_of_form(self) -> tuple[Callable[[OneSided], Flaws], ...]:
        """Return the checks whether it is well formed, for :func:`collc.ir.validate.flaws`."""
        from .validate import STAGES

        return STAGES

    def place(self, operation: int) -> str:
        """Return ``rank R, block B, operation I`` for messages."""
        block = int(self.block[operation])
        return f"rank {self.block_rank[block]}, block {self.block_id[block]}, operation {self.step[operation]}"

    def word(self, operation: int) -> str:
        """Return the word of an operation."""
        return WORDS[int(self.opcode[operation])]

    @cached_property
    def channels(self) -> tuple[Channel, ...]:
        """All channels."""
        start, groups = self.group_start.tolist(), self.groups.tolist()
        columns = (self.channel_rank, self.channel_peer, self.channel_transport, self.channel_buffer)
        return tuple(
            Channel(rank, peer, Transport(transport), Buffer(buffer), tuple(groups[start[row] : start[row + 1]]))
            for row, (rank, peer, transport, buffer) in enumerate(zip(*(c.tolist() for c in columns), strict=True))
        )

    def operations(self) -> list[Operation]:
        """Return all operations as objects, in order; for readers, writers and small programs."""
        items = [
            Item(rank, _BUFFERS[buffer], offset, count, channel)
            for rank, buffer, offset, count, channel in zip(
                *(getattr(self, column).tolist() for column in _ITEM_COLUMNS), strict=True
            )
        ]
        links, first_link, first_item = self.links.tolist(), self.link_start.tolist(), self.item_start.tolist()
        return [
            Operation(
                _OPS[op], _TRANSPORTS[transport + 1], tuple(links[first_link[i] : first_link[i + 1]]),
                tuple(items[first_item[i] : first_item[i] + sources]),
                tuple(items[first_item[i] + sources : first_item[i + 1]]), share, shares, number, blocks, loop,
            )
            for i, (op, transport, share, shares, number, blocks, loop, sources) in enumerate(
                zip(*(getattr(self, column).tolist() for column in _OPERATION_COLUMNS), strict=True)
            )
        ]  # fmt: skip

    @classmethod
    def build(
        cls,
        collective: Collective,
        chunks: int,
        sizes: Iterable[tuple[int, int, int]],
        channels: Sequence[Channel],
        blocks: Iterable[tuple[int, Sequence[Operation]]],
        *,
        semaphores: Iterable[tuple[int, int]] = (),
        loops: Iterable[tuple[int, int]] = (),
        **settings: Any,  # Any: the scalars after the columns, of which mypy checks none
    ) -> OneSided:
        """Return the program of these channels and blocks ``(rank, operations)``, both sorted by rank.

        ``sizes`` are input, output and scratch chunks of each rank, ``semaphores`` are (rank, initial value), ``loops``
        (bytes of a slice, chunks).
        """
        table, pairs, turns, listed = list(sizes), list(semaphores), list(loops), list(blocks)
        flat = [operation for _, operations in listed for operation in operations]
        items = [item for operation in flat for side in (operation.src, operation.dst) for item in side]
        columns: Columns = {name: [row[k] for row in items] for k, name in enumerate(_ITEM_COLUMNS)}
        into, out, scratch = ([row[k] for row in table] for k in range(3))
        return cls(
            collective, chunks, into, out, scratch,
            channel_rank=[c.rank for c in channels], channel_peer=[c.peer for c in channels],
            channel_transport=[c.transport for c in channels], channel_buffer=[c.buffer for c in channels],
            group_start=starts([len(c.group) for c in channels]), groups=[r for c in channels for r in c.group],
            semaphore_rank=[rank for rank, _ in pairs], semaphore_value=[value for _, value in pairs],
            loop_unit=[unit for unit, _ in turns], loop_chunks=[count for _, count in turns],
            block_rank=[rank for rank, _ in listed], block_start=starts([len(rows) for _, rows in listed]),
            opcode=[o.op for o in flat], transport=[o.transport for o in flat], share=[o.share for o in flat],
            shares=[o.shares for o in flat], number=[o.number for o in flat], blocks=[o.blocks for o in flat],
            loop=[o.loop for o in flat], sources=[len(o.src) for o in flat],
            link_start=starts([len(o.links) for o in flat]), links=[link for o in flat for link in o.links],
            item_start=starts([len(o.src) + len(o.dst) for o in flat]), **{**columns, **settings},
        )  # fmt: skip


_OPS = tuple(Op)
_BUFFERS = tuple(Buffer)
_TRANSPORTS = tuple(Transport)
