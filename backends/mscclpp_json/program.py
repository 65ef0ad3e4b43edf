"""Document -> one-sided program: both levels of numbers resolved, chunks scaled so that every shard has whole ones."""

from __future__ import annotations

from math import gcd

import numpy as np

from collc.ir.arrays import Array, Columns
from collc.ir.collective import Collective
from collc.ir.one_sided.opcodes import Op, table
from collc.ir.one_sided.program import NO_CHANNEL, OneSided, Transport
from collc.ir.ragged import owners, ranges, starts

from .kinds import PEER, SWITCH, Kinds
from .model import BUFFERS, LL, TRANSPORTS, Gpu, Plan

__all__ = ["chunks_of", "to_one_sided"]

#: the operations over memory that use channels; others may name some
_COUNTING = table(Op.SIGNAL, Op.WAIT, Op.RLXSIGNAL, Op.RLXWAIT)


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


class _Loaded:
    """The lists of a plan: its channels and semaphores by rank, and what its operations name."""

    def __init__(self, plan: Plan, kinds: Kinds, scale: int) -> None:
        self.kinds, self.scale, self.block = kinds, scale, owners(kinds.sizes)
        self.channels: list[tuple[int, int, int, int, tuple[int, ...]]] = []
        self.semaphores = [(gpu.id, value) for gpu in plan.gpus for value in gpu.semaphores]
        first = np.array([self._add(gpu) for gpu in plan.gpus], dtype=np.int64)
        owned = [(buffer.rank, int(BUFFERS[buffer.letter])) for gpu in plan.gpus for buffer in gpu.buffers]
        first_buffer, first_semaphore = (
            starts([len(listed) for listed in lists])
            for lists in ([gpu.buffers for gpu in plan.gpus], [gpu.semaphores for gpu in plan.gpus])
        )
        #: the rows of channels and the owners and buffers of remote buffers, in the order of the blocks' lists
        rank = np.repeat(kinds.rank, len(TRANSPORTS))
        self.rows = kinds.linked.values + np.repeat(
            first[rank, np.arange(len(rank)) % len(TRANSPORTS)], kinds.linked.lengths)  # fmt: skip
        of = kinds.reached.values + np.repeat(first_buffer[rank], kinds.reached.lengths)
        self.reached = np.array(owned, dtype=np.int64).reshape(-1, 2)[of]
        self.first_semaphore = first_semaphore[kinds.rank]

    def _add(self, gpu: Gpu) -> list[int]:
        """Add the channels of a rank by transport, in the order of their numbers; return the first of each."""
        first = []
        for transport, kind in TRANSPORTS.items():
            first.append(len(self.channels))
            for channel in gpu.channels:
                if channel.transport == transport:
                    buffer = int(BUFFERS[channel.letter]) if channel.letter else 0
                    self.channels += [(gpu.id, peer, int(kind), 0, ()) for peer in channel.peers]
                    self.channels += [(gpu.id, -1, int(kind), buffer, group) for group in channel.groups]
        return first

    def columns(self) -> Columns:
        """Return the columns of operations, links and items: numbers of a block become rows, ranks and buffers."""
        kinds, kind = self.kinds, self.kinds.kind
        named = (
            kinds.code, kinds.transport, kinds.share, kinds.shares, kinds.barrier, kinds.joins, kinds.sources,
        )  # fmt: skip
        columns: Columns = {name: column[kind] for name, column in zip(_OPERATIONS, named, strict=True)}
        list_of = self.block * len(TRANSPORTS) + kinds.transport[kind]
        num_items = kinds.items[kind]
        of, row = owners(num_items), ranges(starts(kinds.items)[kind], num_items)
        return {
            **columns, "loop": kinds.loop, "item_start": starts(num_items), **self._links(kind, list_of),
            **self._items(of, row, list_of),
        }  # fmt: skip

    def _links(self, kind: Array, list_of: Array) -> Columns:
        """Return the rows of channels or semaphores that operations name; over memory only signals use channels."""
        kinds = self.kinds
        holds = kinds.semaphores > 0
        unused = ~holds & (kinds.transport == Transport.MEMORY) & ~_COUNTING[kinds.code]
        count = np.where(holds, kinds.semaphores, np.where(unused, 0, kinds.channels))[kind]
        held = holds[kind]
        of, number = owners(count), np.empty(int(count.sum()), dtype=np.int64)
        for mask, first, values, begin in (
            (held, starts(kinds.semaphores), kinds.semaphore, self.first_semaphore[self.block]),
            (~held, starts(kinds.channels), kinds.channel, self.kinds.linked.start[list_of]),
        ):
            some = np.where(mask, count, 0)
            number[mask[of]] = values[ranges(first[kind], some)] + np.repeat(begin, some)
        channel = np.flatnonzero(~held[of])
        number[channel] = self.rows[number[channel]]
        return {"link_start": starts(count), "links": number}

    def _items(self, of: Array, row: Array, list_of: Array) -> Columns:
        """Return the columns of items ``row`` of the kinds of operations ``of``."""
        kinds = self.kinds
        where, number = kinds.where[row], kinds.number[row]
        rank, buffer = kinds.rank[self.block[of]], number.copy()
        channel = np.full(len(of), NO_CHANNEL, dtype=np.int64)
        peer, switch = np.flatnonzero(where == PEER), np.flatnonzero(where == SWITCH)
        rank[peer], buffer[peer] = self.reached[kinds.reached.start[list_of[of[peer]]] + number[peer]].T
        at = self.block[of[switch]] * len(TRANSPORTS) + int(Transport.SWITCH)
        channel[switch] = self.rows[kinds.linked.start[at] + number[switch]]
        buffer[switch] = np.array([one[3] for one in self.channels], dtype=np.int64)[channel[switch]]
        values = (rank, buffer, kinds.first[row] * self.scale, kinds.size[row] * self.scale, channel)
        return dict(zip(_ITEMS, values, strict=True))


def to_one_sided(plan: Plan, collective: Collective, kinds: Kinds | None = None) -> OneSided:
    """Return the program of a plan that breaks no rule of :mod:`.structure`, for the collective that it performs.

    ``kinds`` are those of the plan, if they are known.
    """
    chunks, scale = chunks_of(plan, collective)
    kinds = kinds or Kinds(plan)
    loaded = _Loaded(plan, kinds, scale)
    loops = _columns([(unit, count * scale) for unit, count in kinds.loops], 2)
    channels, semaphores = _columns(loaded.channels, 5), _columns(loaded.semaphores, 2)
    columns: Columns = {
        **{f"{name}s": [getattr(gpu, name) * scale for gpu in plan.gpus] for name in ("input", "output")},
        "scratch": [gpu.scratch * scale for gpu in plan.gpus],
        **dict(zip(_CHANNELS, channels, strict=False)), "group_start": starts([len(group) for group in channels[4]]),
        "groups": [one for group in channels[4] for one in group], "semaphore_rank": semaphores[0],
        "semaphore_value": semaphores[1], "loop_unit": loops[0], "loop_chunks": loops[1], "block_rank": kinds.rank,
        "block_start": starts(kinds.sizes), **loaded.columns(),
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
