"""The document of an MSCCL++ execution plan: what a file says, before its numbers are resolved.

Sizes and indices are in chunks of the file. Operations name channels and remote buffers by their position in the lists
of their block, and a block names those of its rank.
"""

from __future__ import annotations

from typing import NamedTuple

from collc.ir.one_sided.opcodes import Op
from collc.ir.one_sided.program import Transport
from collc.ir.program import Buffer

__all__ = [
    "BUFFERS",
    "KINDS",
    "LETTERS",
    "LINKED",
    "LL",
    "LOOP",
    "MISSING",
    "NAMES",
    "OPS",
    "OPTIONAL",
    "SIMPLE",
    "SPELLINGS",
    "TRANSPORTS",
    "Block",
    "Channel",
    "Gpu",
    "Plan",
    "PlanItem",
    "PlanOp",
    "RemoteBuffer",
]  # fmt: skip

#: the protocols of a plan; LL doubles scratch, for the flags of packets
SIMPLE, LL = "Simple", "LL"

#: the letter of a buffer in a plan -> the buffer
BUFFERS = {"i": Buffer.INPUT, "o": Buffer.OUTPUT, "s": Buffer.SCRATCH}
LETTERS = {buffer: letter for letter, buffer in BUFFERS.items()}

#: the word of a transport in a plan -> the transport
TRANSPORTS = {"memory": Transport.MEMORY, "port": Transport.PORT, "switch": Transport.SWITCH}
NAMES = {transport: word for word, transport in TRANSPORTS.items()}

#: the name of a collective in a plan -> its kind; other names say nothing
KINDS = {
    "allreduce": "allreduce", "allgather": "allgather", "reducescatter": "reduce-scatter", "alltoall": "alltoall",
    "broadcast": "broadcast", "reduce": "reduce", "gather": "gather", "scatter": "scatter",
}  # fmt: skip
SPELLINGS = {kind: name for name, kind in KINDS.items()}

#: the name of an operation in a plan -> the operation
OPS = {op.word: op for op in Op}
#: the name of an operation that holds others
LOOP = "pipeline"
#: operations whose channel ids say which items go over which channel
LINKED = frozenset({Op.PUT, Op.PWS, Op.PWSF, Op.RPPKT})

#: a number that an item does not have
MISSING = -1

#: the defaults of keys that a plan may lack
OPTIONAL = {
    "reuse_resources": False, "use_double_scratch_buffer": False, "buffer_alignment": 16, "num_threads_per_block": 1024,
    "min_message_size": 0, "max_message_size": 2**64 - 1,
}  # fmt: skip


class PlanItem(NamedTuple):
    """Chunks ``first`` to ``first + size`` of a buffer: a local one by its letter, a remote one or one behind a switch
    by its number in the lists of the block.
    """

    letter: str
    first: int
    size: int
    remote: int = MISSING
    switch: int = MISSING


class PlanOp(NamedTuple):
    """An operation as the file names it; ``inner`` are those of a pipeline, which works in slices of ``unit`` bytes."""

    name: str
    transport: str = ""
    channels: tuple[int, ...] = ()
    src: tuple[PlanItem, ...] = ()
    dst: tuple[PlanItem, ...] = ()
    share: int = 0
    shares: int = 1
    barrier: int = 0
    blocks: int = 0
    semaphores: tuple[int, ...] = ()
    adds: str = "sum"
    unit: int = 0
    chunks: int = 0
    inner: tuple[PlanOp, ...] = ()


class Channel(NamedTuple):
    """Channels of one type: one to each peer; of a switch, one of each group to a buffer."""

    transport: str
    peers: tuple[int, ...] = ()
    letter: str = ""
    groups: tuple[tuple[int, ...], ...] = ()


class RemoteBuffer(NamedTuple):
    """A buffer of another rank, and the transports that reach it."""

    rank: int
    letter: str
    transports: tuple[str, ...]


class Block(NamedTuple):
    """A threadblock: its channels and remote buffers by transport, as numbers in the lists of its rank."""

    id: int
    channels: tuple[tuple[str, tuple[int, ...]], ...]
    buffers: tuple[tuple[str, tuple[int, ...]], ...]
    ops: tuple[PlanOp, ...]

    def linked(self, transport: str) -> tuple[int, ...]:
        """Return its channels of a transport, in the order of their numbers in its operations."""
        return tuple(one for kind, ids in self.channels if kind == transport for one in ids)

    def reached(self, transport: str) -> tuple[int, ...]:
        """Return its remote buffers by a transport, in the order of their numbers in its operations."""
        return tuple(one for kind, ids in self.buffers if kind == transport for one in ids)


class Gpu(NamedTuple):
    """A rank: the chunks of its buffers, its channels, remote buffers, semaphores (first values) and blocks."""

    id: int
    input: int
    output: int
    scratch: int
    channels: tuple[Channel, ...]
    buffers: tuple[RemoteBuffer, ...]
    semaphores: tuple[int, ...]
    blocks: tuple[Block, ...]


class Plan(NamedTuple):
    """A whole plan; sizes of calls are in bytes, both ends inclusive. ``remarks`` are what the reader noticed."""

    name: str
    collective: str
    protocol: str
    inplace: bool
    reuse: bool
    double_scratch: bool
    alignment: int
    threads: int
    min_bytes: int
    max_bytes: int
    gpus: tuple[Gpu, ...]
    remarks: tuple[str, ...] = ()
