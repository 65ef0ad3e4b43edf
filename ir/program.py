"""What each rank executes: threadblocks of instructions over three buffers. All code generators start here."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from functools import cached_property
from typing import Any

import attrs
import numpy as np

from .arrays import Columnar, as_column
from .collective import Collective

__all__ = ["BLOCK_COLUMNS", "INSTRUCTION_COLUMNS", "Buffer", "Opcode", "Program"]

Array = np.ndarray[Any, np.dtype[Any]]


class Buffer(IntEnum):
    INPUT = 0
    OUTPUT = 1
    SCRATCH = 2


class Opcode(IntEnum):
    """What an instruction does, chunk by chunk; all locations are on the executing rank (msccl-xml notes, 1.4).

    "in" is what arrives from the threadblock's receive peer, "out" what leaves to its send peer.
    """

    NOP = 0  #                      waits for its dependencies
    SEND = 1  #                     out <- src
    RECV = 2  #                     dst <- in
    COPY = 3  #                     dst <- src
    REDUCE = 4  #                   dst <- src + dst
    RECV_COPY_SEND = 5  #           dst <- in; out <- in
    RECV_REDUCE_COPY = 6  #         dst <- src + in
    RECV_REDUCE_SEND = 7  #         out <- src + in
    RECV_REDUCE_COPY_SEND = 8  #    dst <- src + in; out <- src + in

    @property
    def sends(self) -> bool:
        return self in _SENDS

    @property
    def receives(self) -> bool:
        return self in _RECEIVES

    @property
    def reads_src(self) -> bool:
        return self in _READS

    @property
    def writes_dst(self) -> bool:
        return self in _WRITES

    @property
    def reads_dst(self) -> bool:
        return self is Opcode.REDUCE

    @property
    def reduces(self) -> bool:
        return self in _REDUCES


_SENDS = frozenset({1, 5, 7, 8})
_RECEIVES = frozenset({2, 5, 6, 7, 8})
_READS = frozenset({1, 3, 4, 6, 7, 8})
_WRITES = frozenset({2, 3, 4, 5, 6, 8})
_REDUCES = frozenset({4, 6, 7, 8})

BLOCK_COLUMNS = ("block_rank", "send_peer", "recv_peer", "channel")
INSTRUCTION_COLUMNS = ("opcode", "src_buffer", "src_offset", "dst_buffer", "dst_offset", "count")


@attrs.frozen(eq=False)
class Program(Columnar):
    """Threadblocks (rows of the block columns, sorted by rank) and their instructions (rows, block by block, in order).

    Every shard is cut in ``chunks`` chunks; offsets and counts are chunks. Input and output buffers are laid out as
    :meth:`Collective.input_slots` and ``output_slots`` say; ``scratch[r]`` chunks of scratch are rank r's.
    Peers are -1 where a block has none; a location that an opcode does not use is 0, 0. ``deps`` are rows of
    instructions of other blocks of the same rank that must have finished; instruction i waits for
    ``deps[dep_start[i]:dep_start[i+1]]``. Messages between a pair of ranks on a channel arrive in the order sent.
    """

    collective: Collective
    chunks: int
    scratch: Array = attrs.field(converter=as_column)
    block_rank: Array = attrs.field(converter=as_column)
    send_peer: Array = attrs.field(converter=as_column)
    recv_peer: Array = attrs.field(converter=as_column)
    channel: Array = attrs.field(converter=as_column)
    block_start: Array = attrs.field(converter=as_column)
    opcode: Array = attrs.field(converter=as_column)
    src_buffer: Array = attrs.field(converter=as_column)
    src_offset: Array = attrs.field(converter=as_column)
    dst_buffer: Array = attrs.field(converter=as_column)
    dst_offset: Array = attrs.field(converter=as_column)
    count: Array = attrs.field(converter=as_column)
    dep_start: Array = attrs.field(converter=as_column)
    deps: Array = attrs.field(converter=as_column)
    name: str = "collective"
    scheduler: str = ""

    SCALARS = ("collective", "chunks", "name", "scheduler")
    COLUMNS = ("scratch", *BLOCK_COLUMNS, "block_start", *INSTRUCTION_COLUMNS, "dep_start", "deps")

    @property
    def num_ranks(self) -> int:
        return self.collective.num_ranks

    @property
    def num_blocks(self) -> int:
        return len(self.block_rank)

    @property
    def num_instructions(self) -> int:
        return len(self.opcode)

    @property
    def num_channels(self) -> int:
        return int(self.channel.max(initial=0)) + 1

    @cached_property
    def rank_blocks(self) -> Array:
        """The first block of each rank, then the number of blocks."""
        return np.searchsorted(self.block_rank, np.arange(self.num_ranks + 1))

    @cached_property
    def block(self) -> Array:
        """The block of each instruction."""
        return np.repeat(np.arange(self.num_blocks), np.diff(self.block_start.astype(np.int64)).astype(np.int64))

    @cached_property
    def block_id(self) -> Array:
        """Each block's number among the blocks of its rank, as runtimes and messages name it."""
        return np.arange(self.num_blocks) - self.rank_blocks[self.block_rank]

    @cached_property
    def step(self) -> Array:
        """Each instruction's number within its block."""
        return np.arange(self.num_instructions) - self.block_start[self.block].astype(np.int64)

    def input_chunks(self, rank: int) -> int:
        """Chunks in the input buffer of a rank (0 where the collective gives it none)."""
        return self._buffer(rank, self.collective.input_slots, self.collective.input_shards)

    def output_chunks(self, rank: int) -> int:
        """Chunks in the output buffer of a rank (0 where the collective gives it none)."""
        return self._buffer(rank, self.collective.output_slots, self.collective.output_shards)

    def _buffer(self, rank: int, slots: Any, shards: int) -> int:
        # a rank that has any shard has its own, which in an alltoall is the one from itself to itself
        own = rank * (self.num_ranks + 1) if self.collective.kind == "alltoall" else rank
        return shards * self.chunks if slots(rank, own) >= 0 else 0

    def waits(self, instruction: int) -> list[int]:
        """Return the instructions that one waits for."""
        return [int(d) for d in self.deps[self.dep_start[instruction] : self.dep_start[instruction + 1]]]

    def place(self, instruction: int) -> str:
        """Return ``rank R, threadblock T, step S`` for messages."""
        block = int(self.block[instruction])
        rank, step = int(self.block_rank[block]), int(self.step[instruction])
        return f"rank {rank}, threadblock {int(self.block_id[block])}, step {step}"

    @classmethod
    def build(
        cls,
        collective: Collective,
        chunks: int,
        scratch: Iterable[int],
        blocks: Iterable[tuple[int, int, int, int]],
        instructions: Iterable[Iterable[tuple[Opcode, Buffer, int, Buffer, int, int, Iterable[int]]]],
        *,
        name: str = "collective",
        scheduler: str = "",
    ) -> Program:
        """Return the program of ``(rank, send peer, recv peer, channel)`` blocks and a list of instructions for each.

        An instruction is ``(opcode, src buffer, src offset, dst buffer, dst offset, count, deps)``; deps are row
        numbers in the order given. Meant for readers and tests; passes build columns.
        """
        listed = [list(rows) for rows in instructions]
        flat = [row for rows in listed for row in rows]
        columns = {c: [row[i] for row in flat] for i, c in enumerate(INSTRUCTION_COLUMNS)}
        waits = [list(row[6]) for row in flat]
        table = list(blocks)
        return cls(
            collective, chunks, list(scratch),
            **{c: [row[i] for row in table] for i, c in enumerate(BLOCK_COLUMNS)},
            block_start=np.cumsum([0, *(len(rows) for rows in listed)]), **columns,
            dep_start=np.cumsum([0, *(len(w) for w in waits)]), deps=[d for w in waits for d in w],
            name=name, scheduler=scheduler,
        )  # fmt: skip
