"""An MSCCL-XML file as the runtimes consume it: attributes, ranks, threadblocks, steps in document order.

Both directions meet here: :mod:`.reader` makes it from text, :mod:`.document` from a Program;
:mod:`.writer` prints it, :mod:`.structure` and :mod:`.limits` judge it, :mod:`.consume` says what the
runtimes execute. Nothing is checked here.
"""

from __future__ import annotations

import attrs

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

#: what ``coll`` says -> the collective it names (the reduce-scatter has two spellings)
KINDS: dict[str, str] = {
    "allreduce": "allreduce", "allgather": "allgather", "reduce_scatter": "reduce-scatter",
    "reducescatter": "reduce-scatter", "alltoall": "alltoall", "broadcast": "broadcast", "reduce": "reduce",
    "gather": "gather", "scatter": "scatter",
}  # fmt: skip


@attrs.frozen
class Step:
    """One ``<step>``. ``depid`` and ``deps`` are -1 where it waits for nobody; ``line`` is 0 where no text was read."""

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
    """One ``<algo>``. What some runtime does without is nothing (None) where the file does not say it."""

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
    remarks: tuple[str, ...] = attrs.field(default=(), eq=False)  # what was read otherwise than it is written
    line: int = attrs.field(default=0, eq=False)

    @property
    def num_steps(self) -> int:
        """Steps of all threadblocks of all ranks."""
        return sum(len(tb.steps) for gpu in self.gpus for tb in gpu.threadblocks)
