"""The spellings, limits and sizes of each runtime that reads MSCCL-XML, one frozen table each.

``msccl`` is microsoft/msccl (NCCL 2.12), ``executor`` Azure/msccl-executor-nccl (NCCL 2.23), ``rccl``
ROCm's RCCL with its MSCCL (ROCm 6.x). The numbers come from their parsers and kernels, not from
documentation.
"""

from __future__ import annotations

from collc.ir.frozen import frozen

__all__ = ["MAX_SPLIT", "PROFILES", "PROTOCOLS", "Profile", "Protocol"]

#: The most chunks that one primitive operation moves, for any size of message.
MAX_SPLIT = 71


@frozen
class Protocol:
    """A wire protocol: how many operations fit into one connection before the receiver takes one."""

    name: str
    fifo_depth: int


#: Of the 8 slots of a connection, an operation of Simple takes 4, one of LL and LL128 takes 1.
PROTOCOLS: dict[str, Protocol] = {p.name: p for p in (Protocol("Simple", 2), Protocol("LL", 8), Protocol("LL128", 8))}

_EVERY_OP = frozenset({"s", "r", "cpy", "re", "rcs", "rrc", "rrs", "rrcs", "nop"})


@frozen
class Profile:
    """The limits and spellings of one runtime.

    ``tile`` is the number of bytes of a chunk that one pass over the steps moves, by protocol. ``resident`` is the
    number of threadblocks of a rank that run at once. The runtimes do not check it: the launch is not cooperative.
    """

    name: str
    title: str
    spellings: dict[str, str]  # collective -> value of `coll`
    required: tuple[str, ...]  # attributes of <algo>, besides those that all runtimes need
    max_steps: int
    max_threadblocks: int
    resident: int
    max_channels: int
    tile: dict[str, int]
    ops: frozenset[str] = _EVERY_OP
    max_threadblocks_per_channel: int = 31
    max_count: int = 71
    max_dependency_id: int = 127
    max_offset: int = 32767
    max_nodes: int = 4095
    max_children: int = 1024
    max_fused_reductions: int = 16
    max_name: int = 63
    max_tiles: int = 65536
    max_algorithms: int = 1024  # files loaded; the rest is ignored
    exclusive_max_bytes: bool = False  # maxBytes is an exclusive limit, and never 0
    default_max_bytes: int = 0  # if the file has no maxBytes; 0: no limit
    reads_outofplace: bool = True  # else `inplace` must equal the use of the call
    counts_must_match: bool = False  # i_chunks and o_chunks must fit nchunksperloop
    unordered_sends: frozenset[str] = frozenset()  # protocols with sends that end without a barrier
    max_threads: int | None = None  # largest nthreads; None: the runtime ignores it
    builtin_names: frozenset[tuple[str, str]] = frozenset()  # (collective, name) of built-in algorithms

    @property
    def reads_folder(self) -> bool:
        """Whether it loads all files of a folder, not those of a list."""
        return self.reads_outofplace

    @property
    def fused(self) -> bool:
        """Whether it runs fused instructions."""
        return self.ops >= _EVERY_OP


def _spellings(reduce_scatter: str, **more: str) -> dict[str, str]:
    return {
        "allreduce": "allreduce", "allgather": "allgather", "reduce-scatter": reduce_scatter,
        "alltoall": "alltoall", "broadcast": "broadcast", "reduce": "reduce", **more,
    }  # fmt: skip


_NVIDIA_TILE = {"Simple": 1 << 21, "LL": 32 << 10, "LL128": 576_000}
_RCCL_TILE = {"Simple": 1 << 21, "LL": 16 << 10, "LL128": 50_176}

#: the runtimes by name
PROFILES: dict[str, Profile] = {
    p.name: p
    for p in (
        Profile(
            "executor", "msccl-executor-nccl", _spellings("reducescatter"), ("outofplace", "minBytes", "maxBytes"),
            max_steps=64, max_threadblocks=1024, resident=108, max_channels=32, tile=_NVIDIA_TILE,
        ),
        Profile(
            "msccl", "microsoft/msccl", _spellings("reduce_scatter", custom="custom"), ("name",),
            max_steps=256, max_threadblocks=216, resident=108, max_channels=32, tile=_NVIDIA_TILE,
            exclusive_max_bytes=True, default_max_bytes=1 << 27, reads_outofplace=False, counts_must_match=True,
            max_threads=640, max_algorithms=4, builtin_names=frozenset({("alltoall", "2D")}),
        ),
        Profile(
            "rccl", "RCCL", _spellings("reducescatter"), ("outofplace", "minBytes", "maxBytes"),
            max_steps=64, max_threadblocks=64, resident=64, max_channels=128, tile=_RCCL_TILE,
            ops=frozenset({"s", "r", "cpy", "re", "nop"}), unordered_sends=frozenset({"LL"}),
        ),
    )
}  # fmt: skip
