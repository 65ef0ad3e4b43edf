"""What each runtime that reads MSCCL-XML takes: spellings, limits and sizes, one frozen table each.

``msccl`` is microsoft/msccl (NCCL 2.12), ``executor`` Azure/msccl-executor-nccl (NCCL 2.23), ``rccl``
ROCm's RCCL with its MSCCL (ROCm 6.x). The numbers are those of their parsers and kernels, not of any
documentation.
"""

from __future__ import annotations

import attrs

__all__ = ["MAX_SPLIT", "PROFILES", "PROTOCOLS", "Profile", "Protocol"]

#: The most chunks one primitive operation moves, whatever the message's size.
MAX_SPLIT = 71


@attrs.frozen
class Protocol:
    """A wire protocol: how many operations one connection holds before the receiver has taken any."""

    name: str
    fifo_depth: int


#: An operation of Simple always takes 4 of a connection's 8 slots; one of LL and LL128 takes 1.
PROTOCOLS: dict[str, Protocol] = {p.name: p for p in (Protocol("Simple", 2), Protocol("LL", 8), Protocol("LL128", 8))}

_EVERY_OP = frozenset({"s", "r", "cpy", "re", "rcs", "rrc", "rrs", "rrcs", "nop"})


@attrs.frozen
class Profile:
    """The limits and spellings of one runtime.

    ``tile`` is the part of a chunk, in bytes, that one pass over the steps moves, by protocol. ``resident``
    is how many threadblocks a rank may have so that all run at once (nothing checks it; the launch is not
    cooperative).
    """

    name: str
    title: str
    spellings: dict[str, str]  # collective -> what `coll` must say
    required: tuple[str, ...]  # attributes of <algo> that must be there, beyond those all runtimes need
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
    exclusive_max_bytes: bool = False  # maxBytes is the first size the file is not used for, and never 0
    default_max_bytes: int = 0  # where the file says none; 0 = no limit
    reads_outofplace: bool = True  # else a call's in-placeness must equal `inplace`
    counts_must_match: bool = False  # i_chunks and o_chunks must fit nchunksperloop
    loose_sends: frozenset[str] = frozenset()  # protocols under which a send ends without a barrier
    max_threads: int | None = None  # of the attribute nthreads; nothing: ignored
    taken_names: frozenset[tuple[str, str]] = frozenset()  # (collective, name) that stand for something built in

    @property
    def reads_folder(self) -> bool:
        """Whether it loads all files of a folder; else those of a list."""
        return self.reads_outofplace

    @property
    def fused(self) -> bool:
        """Whether it runs the instructions that receive and do something else at once."""
        return self.ops >= _EVERY_OP


def _spellings(reduce_scatter: str) -> dict[str, str]:
    return {
        "allreduce": "allreduce", "allgather": "allgather", "reduce-scatter": reduce_scatter,
        "alltoall": "alltoall", "broadcast": "broadcast", "reduce": "reduce",
    }  # fmt: skip


_NVIDIA_TILE = {"Simple": 1 << 21, "LL": 32 << 10, "LL128": 576_000}
_RCCL_TILE = {"Simple": 1 << 21, "LL": 16 << 10, "LL128": 50_176}

#: name -> what that runtime takes
PROFILES: dict[str, Profile] = {
    p.name: p
    for p in (
        Profile(
            "executor", "msccl-executor-nccl", _spellings("reducescatter"), ("outofplace", "minBytes", "maxBytes"),
            max_steps=64, max_threadblocks=1024, resident=108, max_channels=32, tile=_NVIDIA_TILE,
        ),
        Profile(
            "msccl", "microsoft/msccl", _spellings("reduce_scatter"), ("name",),
            max_steps=256, max_threadblocks=216, resident=108, max_channels=32, tile=_NVIDIA_TILE,
            exclusive_max_bytes=True, default_max_bytes=1 << 27, reads_outofplace=False, counts_must_match=True,
            max_threads=640, max_algorithms=4, taken_names=frozenset({("alltoall", "2D")}),
        ),
        Profile(
            "rccl", "RCCL", _spellings("reducescatter"), ("outofplace", "minBytes", "maxBytes"),
            max_steps=64, max_threadblocks=64, resident=64, max_channels=128, tile=_RCCL_TILE,
            ops=frozenset({"s", "r", "cpy", "re", "nop"}), loose_sends=frozenset({"LL"}),
        ),
    )
}  # fmt: skip
