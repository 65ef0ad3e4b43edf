"""The versions of the runtime that collc writes for: what each executes, and the numbers that bound a plan."""

from __future__ import annotations

from collc.ir.frozen import frozen
from collc.ir.one_sided.opcodes import Op

__all__ = [
    "GPUS", "MAX_BARRIERS", "MAX_BYTES", "MAX_ITERATIONS", "MAX_LINKS", "MAX_LINK_IDS", "MAX_OPERATIONS",
    "MAX_RANKS_PER_NODE", "MAX_SEMAPHORE_IDS", "MAX_THREADS", "REUSED_SCRATCH", "RUNTIMES", "Runtime",
]  # fmt: skip

#: operations of a block, nops and the operations of pipelines included (notes 3)
MAX_OPERATIONS = 64
#: channels of a block of one type, and remote buffers of a block by one type
MAX_LINKS = 16
#: channels of an operation
MAX_LINK_IDS = 8
MAX_SEMAPHORE_IDS = 16
#: barriers of a GPU, of all plans together
MAX_BARRIERS = 16
MAX_THREADS = 1024
#: a buffer has fewer bytes: offsets have 32 bits
MAX_BYTES = 2**32
#: turns of a pipeline, a number of 16 bits
MAX_ITERATIONS = 2**16 - 1
#: ranks of a node that reach others by InfiniBand: one NIC each
MAX_RANKS_PER_NODE = 8
#: bytes of scratch that calls share, if a plan reuses resources
REUSED_SCRATCH = 64 << 20

#: multiprocessors of GPUs, by the names that people use
GPUS = {
    "a100": 108, "h100": 132, "h200": 132, "gh200": 132, "b200": 148, "gb200": 148, "mi250x": 110, "mi300x": 304,
    "mi325x": 304, "mi355x": 256, "l40s": 142,
}  # fmt: skip


@frozen
class Runtime:
    """A version: the operations that it lacks, and how many items an operation has on each side.

    ``cuts_short`` says that it cuts items of fewer units than slices wrongly.
    """

    name: str
    title: str
    lacks: frozenset[Op]
    max_items: int
    cuts_short: bool


RUNTIMES = {
    one.name: one
    for one in (
        Runtime("0.8", "MSCCL++ 0.8", frozenset({Op.RECPKT, Op.RECSPKT, Op.GSTOREPKT}), 8, True),
        Runtime("0.9", "MSCCL++ 0.9", frozenset({Op.GSTOREPKT}), 10, True),
        Runtime("main", "MSCCL++ of its main branch", frozenset(), 10, False),
    )
}
