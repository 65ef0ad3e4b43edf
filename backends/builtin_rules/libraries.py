"""The collectives of Open MPI's component ``tuned`` and of UCC's ``tl/ucp``: their algorithms and numbers."""

from __future__ import annotations

from typing import Literal, TypeAlias

from collc.ir.frozen import frozen

__all__ = ["LIBRARIES", "TITLES", "Builtin", "Entry", "Library"]

Library: TypeAlias = Literal["openmpi", "ucc"]
Needs: TypeAlias = Literal["any", "even", "power", "root 0"]

TITLES: dict[Library, str] = {"openmpi": "Open MPI", "ucc": "UCC"}


@frozen
class Builtin:
    """An algorithm of a library: its name or number there, its model, the ranks it needs, variables that fix it."""

    name: str
    model: str
    needs: Needs = "any"
    variables: tuple[tuple[str, str], ...] = ()

    def takes(self, ranks: int, root: int | None) -> bool:
        """Return whether the model holds for a number of ranks and a root."""
        return {
            "any": True, "even": ranks % 2 == 0, "power": ranks & (ranks - 1) == 0, "root 0": not root,
        }[self.needs]  # fmt: skip


@frozen
class Entry:
    """A function of a library: its name or number there, its algorithms with a model, and the names of those without.

    ``per_rank``: the library decides by the bytes of one rank's block, not of the whole vector.
    """

    name: str
    algorithms: tuple[Builtin, ...]
    unmodeled: tuple[str, ...] = ()
    per_rank: bool = False


def _radix(*names: str) -> tuple[tuple[str, str], ...]:
    return tuple((f"UCC_TL_UCP_{name}_RADIX", "2") for name in names)


#: library -> collective -> its functions; numbers are those of Open MPI 4 and 5 (``ompi_info --param coll tuned -l 9``)
LIBRARIES: dict[Library, dict[str, tuple[Entry, ...]]] = {
    "openmpi": {
        "allgather": (Entry("0", (
            Builtin("2", "bruck allgather"), Builtin("3", "recursive doubling allgather", "power"),
            Builtin("4", "ring allgather"), Builtin("5", "neighbor exchange allgather", "even"),
        ), ("linear", "sparbit")),),
        "allreduce": (Entry("2", (
            Builtin("1", "linear allreduce"), Builtin("3", "recursive doubling allreduce"),
            Builtin("4", "ring allreduce"), Builtin("6", "rabenseifner allreduce"),
        ), ("nonoverlapping", "segmented_ring")),),
        "alltoall": (Entry("3", (
            Builtin("2", "pairwise alltoall"), Builtin("3", "bruck alltoall"),
        ), ("linear", "linear_sync")),),
        "broadcast": (Entry("7", (
            Builtin("1", "linear broadcast"), Builtin("6", "binomial broadcast"),
            Builtin("8", "scatter, recursive doubling broadcast", "power"), Builtin("9", "scatter, ring broadcast"),
        ), ("chain", "pipeline", "split_binary_tree", "binary_tree", "knomial")),),
        "reduce": (Entry("11", (
            Builtin("1", "linear reduce"), Builtin("5", "binomial reduce"),
            Builtin("7", "rabenseifner reduce", "root 0"),
        ), ("chain", "pipeline", "binary", "in-order_binary")),),
        "reduce-scatter": (Entry("12", (
            Builtin("2", "recursive halving reduce-scatter"), Builtin("3", "ring reduce-scatter"),
        ), ("non-overlapping", "butterfly")),),
    },
    "ucc": {
        "allgather": (Entry("allgather", (
            Builtin("bruck", "bruck allgather"), Builtin("ring", "ring allgather"),
            Builtin("neighbor", "neighbor exchange allgather", "even"),
        ), ("knomial", "sparbit", "linear", "batched")),),
        "allreduce": (Entry("allreduce", (
            Builtin("knomial", "recursive doubling allreduce", "power", _radix("ALLREDUCE_KN")),
            Builtin("sra_knomial", "rabenseifner allreduce", "power", _radix("ALLREDUCE_SRA_KN")),
        ), ("dbt", "sliding_window")),),
        "alltoall": (Entry("alltoall", (
            Builtin("pairwise", "pairwise alltoall", "any", (("UCC_TL_UCP_ALLTOALL_PAIRWISE_NUM_POSTS", "1"),)),
            Builtin("bruck", "bruck alltoall"),
        ), ("onesided",)),),
        "broadcast": (Entry("bcast", (
            Builtin("knomial", "binomial broadcast", "any", _radix("BCAST_KN")),
            Builtin("sag_knomial", "scatter, recursive doubling broadcast", "power", _radix("BCAST_SAG_KN")),
        ), ("dbt",)),),
        "reduce-scatter": (Entry("reduce_scatter", (
            Builtin("ring", "ring reduce-scatter", "any", (("UCC_TL_UCP_REDUCE_SCATTER_RING_BIDIRECTIONAL", "n"),)),
            Builtin("knomial", "recursive halving reduce-scatter", "power", _radix("REDUCE_SCATTER_KN")),
        ), (), per_rank=True),),
    },
}  # fmt: skip
