"""The bandwidths that nccl-tests print: algbw and busbw, and the factor between them.

algbw is M over the time, M as nccl-tests counts it: the vector of an allreduce, broadcast or reduce; what an allgather
or gather leaves, and what a reduce-scatter or scatter begins with; of an all-to-all what one rank sends. busbw is algbw
times a factor that makes collectives and numbers of ranks comparable: what the links of a rank carry at least
(PERFORMANCE.md of nccl-tests).
"""

from __future__ import annotations

from fractions import Fraction

__all__ = ["bus_factor"]

#: (whole, per_rank): the factor on N ranks is ``whole - per_rank / N``
_FACTORS = {
    "allreduce": (2, 2), "allgather": (1, 1), "reduce-scatter": (1, 1), "alltoall": (1, 1), "gather": (1, 1),
    "scatter": (1, 1), "broadcast": (1, 0), "reduce": (1, 0),
}  # fmt: skip


def bus_factor(kind: str, ranks: int) -> Fraction | None:
    """Return busbw over algbw of a collective on ``ranks`` ranks; None for a collective that nccl-tests do not have.

    >>> bus_factor("allreduce", 8), bus_factor("allgather", 8), bus_factor("broadcast", 8)
    (Fraction(7, 4), Fraction(7, 8), Fraction(1, 1))
    """
    found = _FACTORS.get(kind)
    return None if found is None else found[0] - Fraction(found[1], max(ranks, 1))
