"""Programs: threadblocks of instructions over three buffers of each rank. All code generators start here."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from functools import cached_property
from typing import Any

import attrs
import numpy as np

from .arrays import Array, Columnar, Columns, as_column
from .collective import Collective
from .frozen import frozen
from .opcodes import FUSED, LOCAL, READS_DST, READS_SRC, RECEIVES, REDUCES, SENDS, WRITES_DST, Opcode
from .ragged import group_starts, owners, starts
from .shown import clipped, counted, shown

__all__ = ["BLOCK_COLUMNS", "INSTRUCTION_COLUMNS", "Buffer", "Opcode", "Program"]


class Buffer(IntEnum):
    """The buffers of a rank: the call's input and output, and the program's own scratch."""

    INPUT = 0
    OUTPUT = 1
    SCRATCH = 2


BLOCK_COLUMNS = ("block_rank", "send_peer", "recv_peer", "channel")
INSTRUCTION_COLUMNS = ("opcode", "src_buffer", "src_offset", "dst_buffer", "dst_offset", "count")


@frozen(eq=False)
class Program(Columnar):
    """Threadblocks (rows of the block columns, sorted by rank) and their instructions (rows, block by block, in order).

    Every shard has ``chunks`` chunks; offsets and counts are in chunks. :meth:`Collective.input_slots` and
    ``output_slots`` define the layout of input and output; rank r has ``scratch[r]`` chunks of scratch. A peer of -1
    means none. A location that an opcode does not use is 0, 0. ``deps`` are rows of instructions of other blocks of the
    same rank; instruction i starts after ``deps[dep_start[i]:dep_start[i+1]]`` have finished. Messages between two
    ranks on one channel arrive in the order sent. If it is ``placed``, the author of the schedule chose channels,
    threadblocks or scratch: passes keep them.
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
    placed: bool = False

    SCALARS = ("collective", "chunks", "name", "scheduler", "placed")
    COLUMNS = ("scratch", *BLOCK_COLUMNS, "block_start", *INSTRUCTION_COLUMNS, "dep_start", "deps")

    def __repr__(self) -> str:
        kind, ranks = self.collective.kind, counted(self.num_ranks, "rank")
        text = f"{counted(self.num_blocks, 'threadblock')}, {counted(self.num_instructions, 'instruction')}"
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
        """Threadblocks of all ranks together."""
        return len(self.block_rank)

    @property
    def num_instructions(self) -> int:
        """Instructions of all threadblocks together."""
        return len(self.opcode)

    @property
    def num_channels(self) -> int:
        """One more than the largest channel number; 1 without threadblocks."""
        return int(self.channel.max(initial=0)) + 1

    @cached_property
    def rank_blocks(self) -> Array:
        """The first block of each rank, then the number of blocks."""
        return group_starts(self.block_rank, self.num_ranks)

    @cached_property
    def block(self) -> Array:
        """The block of each instruction."""
        return owners(np.diff(self.block_start.astype(np.int64)))

    @cached_property
    def rank(self) -> Array:
        """The rank of each instruction."""
        length: Array = np.diff(self.block_start.astype(np.int64))
        return np.repeat(self.block_rank.astype(np.int64), length)

    @cached_property
    def block_id(self) -> Array:
        """Each block's number among the blocks of its rank, as runtimes and messages name it."""
        return np.arange(self.num_blocks) - self.rank_blocks[self.block_rank]

    @cached_property
    def step(self) -> Array:
        """Each instruction's number within its block."""
        start = self.block_start.astype(np.int64)
        length: Array = np.diff(start)
        return np.arange(self.num_instructions) - np.repeat(start[:-1], length)

    @cached_property
    def num_dependencies(self) -> Array:
        """The number of dependencies of each instruction."""
        return np.diff(self.dep_start.astype(np.int64))

    @cached_property
    def dependent(self) -> Array:
        """The instruction that has the dependency, for each entry of ``deps``."""
        return owners(self.num_dependencies)

    # ---- masks: what each instruction does; read-only

    @cached_property
    def sends(self) -> Array:
        """Which instructions send to their send peer."""
        return self._each(SENDS)

    @cached_property
    def receives(self) -> Array:
        """Which instructions take what arrives from their receive peer."""
        return self._each(RECEIVES)

    @cached_property
    def reads_src(self) -> Array:
        """Which instructions read their src location."""
        return self._each(READS_SRC)

    @cached_property
    def reads_dst(self) -> Array:
        """Which instructions read their dst location before they write there."""
        return self._each(READS_DST)

    @cached_property
    def writes_dst(self) -> Array:
        """Which instructions write their dst location."""
        return self._each(WRITES_DST)

    @cached_property
    def reduces(self) -> Array:
        """Which instructions combine two operands by the collective's operation."""
        return self._each(REDUCES)

    @cached_property
    def fused(self) -> Array:
        """Which instructions add or send on what they receive."""
        return self._each(FUSED)

    @cached_property
    def local(self) -> Array:
        """Which instructions neither send nor receive."""
        return self._each(LOCAL)

    def _each(self, table: Array) -> Array:
        mask = table.take(self.opcode)
        mask.flags.writeable = False
        return mask

    def renamed(self, name: str) -> Program:
        """Return the program under another name; what was found of it stays known."""
        if name == self.name:
            return self
        other = attrs.evolve(self, name=name)
        other.found.update(self.found)
        return other

    def uses(self, end: str, buffer: Buffer | None = None) -> Array:
        """Return which instructions use their location ``end``, ``src`` or ``dst``, in this buffer or (None) in any."""
        used = self.reads_src if end == "src" else self.writes_dst
        return used if buffer is None else used & (getattr(self, f"{end}_buffer") == buffer)

    def input_chunks(self, rank: int) -> int:
        """Return the chunks of a rank's input buffer (0 if the collective gives it none)."""
        return self.collective.buffer_shards(rank, output=False) * self.chunks

    def output_chunks(self, rank: int) -> int:
        """Return the chunks of a rank's output buffer (0 if the collective gives it none)."""
        return self.collective.buffer_shards(rank, output=True) * self.chunks

    def dependencies(self, instruction: int) -> list[int]:
        """Return the dependencies of one instruction."""
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

        An instruction is ``(opcode, src buffer, src offset, dst buffer, dst offset, count, deps)``; ``deps`` are row
        numbers in the order given. Readers and tests use this method; passes build columns.
        """
        listed = [list(rows) for rows in instructions]
        flat = [row for rows in listed for row in rows]
        columns: Columns = {c: [row[i] for row in flat] for i, c in enumerate(INSTRUCTION_COLUMNS)}
        deps = [list(row[6]) for row in flat]
        table = list(blocks)
        return cls(
            collective, chunks, list(scratch),
            **{c: [row[i] for row in table] for i, c in enumerate(BLOCK_COLUMNS)},
            block_start=starts([len(rows) for rows in listed]), **columns,
            dep_start=starts([len(of_row) for of_row in deps]), deps=[d for of_row in deps for d in of_row],
            name=name, scheduler=scheduler, placed=False,
        )  # fmt: skip
