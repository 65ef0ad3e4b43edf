"""An MSCCL-XML file as the runtimes read it: attributes, ranks, threadblocks, steps in document order.

:mod:`.reader` makes it from text, :mod:`.document` from a Program. :mod:`.writer` prints it, :mod:`.structure` and
:mod:`.limits` check it, and :mod:`.consume` computes what the runtimes execute. This module checks nothing.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.program import Opcode
from collc.ir.ragged import owners, starts

from .steps import LINE, OPCODES, Step, Steps, as_steps, joined

if TYPE_CHECKING:
    from collc.ir.collective import Collective

    from .consume import Device, Operation
    from .program import Loaded

__all__ = ["KINDS", "MESSAGE_TYPES", "OPCODES", "TYPES", "Algorithm", "Gpu", "Step", "Steps", "Threadblock"]

#: opcode -> step type
TYPES: dict[Opcode, str] = {opcode: name for name, opcode in OPCODES.items()}

#: step types that use a connection
MESSAGE_TYPES = frozenset(name for name, opcode in OPCODES.items() if opcode.sends or opcode.receives)

#: value of ``coll`` -> collective (reduce-scatter has two spellings)
KINDS: dict[str, str] = {
    "allreduce": "allreduce", "allgather": "allgather", "reduce_scatter": "reduce-scatter",
    "reducescatter": "reduce-scatter", "alltoall": "alltoall", "broadcast": "broadcast", "reduce": "reduce",
    "gather": "gather", "scatter": "scatter",
}  # fmt: skip


@attrs.frozen
class Threadblock:
    """One ``<tb>``: its peers (-1 for none), its channel and its steps in document order."""

    id: int
    send: int
    recv: int
    chan: int
    steps: Steps = attrs.field(converter=as_steps)
    line: int = attrs.field(default=0, eq=False)

    @cached_property
    def executed(self) -> list[Operation]:
        """The operations that the device runs; :func:`.consume.executed` keeps them here."""
        return []


@attrs.frozen
class Gpu:
    """One ``<gpu>``: a rank, the chunks of its three buffers, its threadblocks in document order."""

    id: int
    i_chunks: int
    o_chunks: int
    s_chunks: int
    threadblocks: tuple[Threadblock, ...]
    line: int = attrs.field(default=0, eq=False)


@attrs.frozen
class Algorithm:
    """One ``<algo>``. An attribute that not all runtimes need is None if the file does not have it."""

    proto: str
    nchannels: int
    nchunksperloop: int
    ngpus: int
    coll: str
    inplace: int
    gpus: tuple[Gpu, ...]
    name: str | None = None
    outofplace: int | None = None
    min_bytes: int | None = None
    max_bytes: int | None = None
    nthreads: int | None = None
    comments: tuple[str, ...] = ()
    remarks: tuple[str, ...] = attrs.field(
        default=(), eq=False
    )  # values that the runtimes read differently from their text
    line: int = attrs.field(default=0, eq=False)
    #: the text without the lines of steps that were read by lines; "" if none were
    skeleton: str = attrs.field(default="", eq=False, repr=False)

    def headed(self, **changes: Any) -> Algorithm:  # Any: new values of fields, each of its own type
        """Return the algorithm with other attributes and the same ranks; their columns stay known."""
        other = attrs.evolve(self, **changes)
        return other.knowing(**{name: getattr(self, name) for name in ("table", "starts", "rank_table", "block_table")})

    def knowing(self, **columns: Array) -> Algorithm:
        """Return the algorithm itself, with columns of its ranks that need not be collected again."""
        for name, column in columns.items():
            object.__setattr__(self, name, column)
        return self

    def equals(self, other: Algorithm) -> bool:
        """Return what ``self == other`` does, with all steps compared at once."""
        return attrs.evolve(self, gpus=()) == attrs.evolve(other, gpus=()) and self.has_gpus_of(other)

    def has_gpus_of(self, other: Algorithm) -> bool:
        """Return whether both have equal ranks, with equal threadblocks and steps."""
        return (
            np.array_equal(self.rank_table, other.rank_table)
            and np.array_equal(self.block_table, other.block_table)
            and np.array_equal(self.starts, other.starts)
            and np.array_equal(self.table[:, :LINE], other.table[:, :LINE])
        )

    @cached_property
    def rank_table(self) -> Array:
        """The numbers of each ``<gpu>``, one row each: id, i_chunks, o_chunks, s_chunks, number of threadblocks."""
        rows = [(one.id, one.i_chunks, one.o_chunks, one.s_chunks, len(one.threadblocks)) for one in self.gpus]
        return np.array(rows, dtype=np.int64).reshape(-1, 5)

    @cached_property
    def block_table(self) -> Array:
        """The numbers of each ``<tb>``, in document order: row of its rank in the table of ranks, id, send, recv, chan.

        Shape (5, threadblocks).
        """
        numbers = [(one.id, one.send, one.recv, one.chan) for gpu in self.gpus for one in gpu.threadblocks]
        columns = np.array(numbers, dtype=np.int64).reshape(-1, 4).T
        return np.concatenate([owners(self.rank_table[:, 4])[None, :], columns])

    @cached_property
    def loaded(self) -> dict[Collective, Loaded]:
        """The programs of this algorithm, by kind, number of ranks and root of the collective."""
        return {}

    @cached_property
    def blocks(self) -> tuple[tuple[Gpu, Threadblock], ...]:
        """All threadblocks with their ranks, in document order."""
        return tuple((gpu, block) for gpu in self.gpus for block in gpu.threadblocks)

    @cached_property
    def table(self) -> Array:
        """The steps of all threadblocks, in document order, with the columns of :class:`.steps.Steps`."""
        return joined([block.steps for _, block in self.blocks])

    @cached_property
    def starts(self) -> Array:
        """The first step of each threadblock, and after the last the number of steps."""
        return starts([len(block.steps) for _, block in self.blocks])

    @cached_property
    def devices(self) -> list[Device | None]:
        """What the device runs; :func:`.consume.device` keeps it here."""
        return []

    @property
    def num_steps(self) -> int:
        """Steps of all threadblocks of all ranks."""
        return len(self.table)
