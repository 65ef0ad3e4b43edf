"""Document -> one-sided program: both levels of numbers resolved, chunks scaled so that every shard has whole ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd

import numpy as np

from collc.ir.arrays import Array, Columns
from collc.ir.collective import Collective
from collc.ir.one_sided.opcodes import Op
from collc.ir.one_sided.program import NO_CHANNEL, OneSided, Transport
from collc.ir.ragged import owners, ranges, starts

from .model import BUFFERS, LL, LOOP, OPS, TRANSPORTS, Gpu, Plan, PlanItem, PlanOp

__all__ = ["chunks_of", "to_one_sided"]

#: the operations over memory that use channels; others may name some
_COUNTING = frozenset({Op.SIGNAL, Op.WAIT, Op.RLXSIGNAL, Op.RLXWAIT})


def chunks_of(plan: Plan, collective: Collective) -> tuple[int, int]:
    """Return the chunks of a shard, and how many of them a chunk of the file is.

    >>> from .model import Gpu
    >>> ranks = tuple(Gpu(r, 2, 2, 0, (), (), (), ()) for r in range(4))
    >>> chunks_of(Plan("x", "allreduce", "LL", True, False, False, 16, 1024, 0, 9, ranks), Collective("allreduce", 4))
    (1, 2)
    """
    first = plan.gpus[0]
    shards = [(first.input, collective.input_shards), (first.output, collective.output_shards)]
    count, number = max(shards, key=lambda pair: pair[1])
    scale = number // gcd(count, number)
    return count * scale // number, scale


class _Kinds:
    """The operations of a plan, equal ones of the reader once, with numbers as they stand in the file.

    Item k is of ``items[k]``: where it is, its buffer or its number in the block, its first chunk and its chunks.
    """

    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}  # by identity, for the plan keeps its operations
        self.columns: list[tuple[int, ...]] = []
        self.semaphores: list[bool] = []
        self.num_links: list[int] = []
        self.links: list[int] = []
        self.num_items: list[int] = []
        self.items: list[tuple[int, int, int, int]] = []

    def add(self, op: PlanOp) -> int:
        """Add an operation and return its number."""
        code, transport = OPS[op.name], op.transport
        self.columns.append((
            int(code), int(TRANSPORTS[transport]) if transport else -1, op.share, op.shares, op.barrier, op.blocks,
            len(op.src),
        ))  # fmt: skip
        links = _linked(code, op)
        self.semaphores.append(bool(op.semaphores))
        self.num_links.append(len(links))
        self.links += links
        self.num_items.append(len(op.src) + len(op.dst))
        self.items += map(_item, (*op.src, *op.dst))
        number = self.numbers[id(op)] = len(self.columns) - 1
        return number


def _linked(code: Op, op: PlanOp) -> tuple[int, ...]:
    """Return the channels or semaphores of an operation; over memory only signals and waits use channels."""
    if op.semaphores:
        return op.semaphores
    return () if op.transport == "memory" and code not in _COUNTING else op.channels


_HERE, _PEER, _SWITCH = range(3)


def _item(item: PlanItem) -> tuple[int, int, int, int]:
    if item.letter:
        return _HERE, int(BUFFERS[item.letter]), item.first, item.size
    if item.remote >= 0:
        return _PEER, item.remote, item.first, item.size
    return _SWITCH, item.switch, item.first, item.size


class _Loaded:
    """The lists of a plan while operations are added, rank by rank and block by block."""

    def __init__(self, scale: int) -> None:
        self.scale = scale
        self.channels: list[tuple[int, int, int, int, tuple[int, ...]]] = []
        self.semaphores: list[tuple[int, int]] = []
        self.loops: list[tuple[int, int]] = []
        self.blocks: list[int] = []
        self.sizes: list[int] = []
        self.kinds = _Kinds()
        self.kind: list[int] = []
        self.loop: list[int] = []
        #: of each block and transport, the rows of its channels, and the owners and buffers of its remote buffers
        self.rows: list[list[int]] = []
        self.reached: list[list[tuple[int, int]]] = []
        self.first_semaphore: list[int] = []

    def add(self, gpu: Gpu) -> None:
        """Add a rank: its channels by transport in the order of their numbers, its semaphores and blocks."""
        first = {}
        for transport, kind in TRANSPORTS.items():
            first[transport] = len(self.channels)
            for channel in gpu.channels:
                if channel.transport == transport:
                    buffer = int(BUFFERS[channel.letter]) if channel.letter else 0
                    self.channels += [(gpu.id, peer, int(kind), 0, ()) for peer in channel.peers]
                    self.channels += [(gpu.id, -1, int(kind), buffer, group) for group in channel.groups]
        owned = [(buffer.rank, int(BUFFERS[buffer.letter])) for buffer in gpu.buffers]
        for block in gpu.blocks:
            self.blocks.append(gpu.id)
            self.first_semaphore.append(len(self.semaphores))
            for transport, row in first.items():
                self.rows.append([row + one for one in block.linked(transport)])
                self.reached.append([owned[one] for one in block.reached(transport)])
            before = len(self.kind)
            self.operations(block.ops)
            self.sizes.append(len(self.kind) - before)
        self.semaphores += [(gpu.id, value) for value in gpu.semaphores]

    def operations(self, ops: Iterable[PlanOp], loop: int = -1) -> None:
        """Add operations; those of a pipeline with the number of its loop."""
        numbers, kinds = self.kinds.numbers, self.kinds
        for op in ops:
            number = numbers.get(id(op))
            if number is None:
                if op.name == LOOP:
                    self.loops.append((op.unit, op.chunks * self.scale))
                    self.operations(op.inner, len(self.loops) - 1)
                    continue
                number = kinds.add(op)
            self.kind.append(number)
            self.loop.append(loop)

    def columns(self) -> Columns:
        """Return the columns of operations, links and items: numbers of a block become rows, ranks and buffers."""
        kinds, kind = self.kinds, np.array(self.kind, dtype=np.int64)
        block = owners(self.sizes)
        named = np.array(kinds.columns, dtype=np.int64).reshape(-1, len(_OPERATIONS))[kind]
        columns: Columns = dict(zip(_OPERATIONS, named.T, strict=True))
        list_of = block * len(TRANSPORTS) + named[:, 1]
        num_links, num_items = (np.array(one, dtype=np.int64)[kind] for one in (kinds.num_links, kinds.num_items))
        links = np.array(kinds.links, dtype=np.int64)[ranges(starts(kinds.num_links)[kind], num_links)]
        return {
            **columns, "loop": self.loop, "link_start": starts(num_links), "item_start": starts(num_items),
            "links": self._links(owners(num_links), links, kind, block, list_of),
            **self._items(owners(num_items), ranges(starts(kinds.num_items)[kind], num_items), block, list_of),
        }  # fmt: skip

    def _links(self, of: Array, number: Array, kind: Array, block: Array, list_of: Array) -> Array:
        """Return the rows of channels or semaphores that operations name by ``number``."""
        rows, first = _joined(self.rows, 1)
        semaphore = np.array(self.kinds.semaphores, dtype=bool)[kind[of]]
        found = np.array(self.first_semaphore, dtype=np.int64)[block[of]] + number
        channel = np.flatnonzero(~semaphore)
        found[channel] = rows[first[list_of[of[channel]]] + number[channel], 0]
        return found

    def _items(self, of: Array, row: Array, block: Array, list_of: Array) -> Columns:
        """Return the columns of items ``row`` of the kinds of operations ``of``."""
        items = np.array(self.kinds.items, dtype=np.int64).reshape(-1, 4)[row]
        where, number = items[:, 0], items[:, 1]
        rank, buffer = np.array(self.blocks, dtype=np.int64)[block[of]], number.copy()
        channel = np.full(len(of), NO_CHANNEL, dtype=np.int64)
        peer, switch = np.flatnonzero(where == _PEER), np.flatnonzero(where == _SWITCH)
        reached, first = _joined(self.reached, 2)
        rank[peer], buffer[peer] = reached[first[list_of[of[peer]]] + number[peer]].T
        rows, first = _joined(self.rows, 1)
        at = block[of[switch]] * len(TRANSPORTS) + int(Transport.SWITCH)
        channel[switch] = rows[first[at] + number[switch], 0]
        buffer[switch] = np.array([one[3] for one in self.channels], dtype=np.int64)[channel[switch]]
        return dict(
            zip(_ITEMS, (rank, buffer, items[:, 2] * self.scale, items[:, 3] * self.scale, channel), strict=True)
        )


def _joined(lists: Sequence[Sequence[object]], width: int) -> tuple[Array, Array]:
    """Return lists of numbers (or tuples of ``width``) as rows of one table, and the first row of each."""
    return (
        np.array([one for listed in lists for one in listed], dtype=np.int64).reshape(-1, width),
        starts([len(listed) for listed in lists]),
    )


def to_one_sided(plan: Plan, collective: Collective) -> OneSided:
    """Return the program of a plan that breaks no rule of :mod:`.structure`, for the collective that it performs."""
    chunks, scale = chunks_of(plan, collective)
    loaded = _Loaded(scale)
    for gpu in plan.gpus:
        loaded.add(gpu)
    channels, semaphores, loops = (
        _columns(loaded.channels, 5),
        _columns(loaded.semaphores, 2),
        _columns(loaded.loops, 2),
    )
    columns: Columns = {
        **{f"{name}s": [getattr(gpu, name) * scale for gpu in plan.gpus] for name in ("input", "output")},
        "scratch": [gpu.scratch * scale for gpu in plan.gpus],
        **dict(zip(_CHANNELS, channels, strict=False)), "group_start": starts([len(group) for group in channels[4]]),
        "groups": [one for group in channels[4] for one in group], "semaphore_rank": semaphores[0],
        "semaphore_value": semaphores[1], "loop_unit": loops[0], "loop_chunks": loops[1], "block_rank": loaded.blocks,
        "block_start": starts(loaded.sizes), **loaded.columns(),
    }  # fmt: skip
    return OneSided(
        collective, chunks, **columns, packets=plan.protocol == LL, inplace=plan.inplace,
        double_scratch=plan.double_scratch, together=False, reuse=plan.reuse, threads=plan.threads,
        alignment=plan.alignment, name=plan.name, scheduler="",
    )  # fmt: skip


_CHANNELS = ("channel_rank", "channel_peer", "channel_transport", "channel_buffer")
_OPERATIONS = ("opcode", "transport", "share", "shares", "number", "blocks", "sources")
_ITEMS = ("item_rank", "item_buffer", "item_offset", "item_count", "item_channel")


def _columns(rows: list, number: int) -> list[list]:  # type: ignore[type-arg]  # of tuples of the columns
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(number)]
