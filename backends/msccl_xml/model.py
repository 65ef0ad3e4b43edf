"""An MSCCL-XML file as the runtimes read it: attributes, ranks, threadblocks, steps in document order.

:mod:`.reader` makes it from text, :mod:`.document` from a Program. :mod:`.writer` prints it, :mod:`.structure` and
:mod:`.limits` check it, and :mod:`.consume` computes what the runtimes execute. This module checks nothing.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collc.ir.collective import Collective

    from .consume import Operation
    from .program import Loaded

__all__ = ["KINDS", "MESSAGE_TYPES", "OPCODES", "TYPES", "Algorithm", "Gpu", "Step", "Threadblock"]

from collc.ir.program import Opcode

#: step type -> opcode
OPCODES: dict[str, Opcode] = {
    "nop": Opcode.NOP, "s": Opcode.SEND, "r": Opcode.RECV, "cpy": Opcode.COPY, "re": Opcode.REDUCE,
    "rcs": Opcode.RECV_COPY_SEND, "rrc": Opcode.RECV_REDUCE_COPY, "rrs": Opcode.RECV_REDUCE_SEND,
    "rrcs": Opcode.RECV_REDUCE_COPY_SEND,
}  # fmt: skip

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
class Step:
    """One ``<step>``. ``depid`` and ``deps`` are -1 if it has no dependency; ``line`` is 0 if it comes from no text."""

    s: int
    type: str
    srcbuf: str
    srcoff: int
    dstbuf: str
    dstoff: int
    cnt: int
    depid: int = -1
    deps: int = -1
    hasdep: int = 0
    line: int = attrs.field(default=0, eq=False)


@attrs.frozen
class Threadblock:
    """One ``<tb>``: its peers (-1 for none), its channel and its steps in document order."""

    id: int
    send: int
    recv: int
    chan: int
    steps: tuple[Step, ...]
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

    @cached_property
    def loaded(self) -> dict[Collective, Loaded]:
        """The programs of this algorithm, by kind, number of ranks and root of the collective."""
        return {}

    @property
    def num_steps(self) -> int:
        """Steps of all threadblocks of all ranks."""
        return sum(len(tb.steps) for gpu in self.gpus for tb in gpu.threadblocks)
