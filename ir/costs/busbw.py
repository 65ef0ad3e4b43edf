"""The bandwidths that nccl-tests print: algbw and busbw, and the factor between them.

algbw is M over the time, M as nccl-tests counts it: the vector of an allreduce, broadcast or reduce; what an allgather
or gather leaves, and what a reduce-scatter or scatter begins with; of an all-to-all what one rank sends. busbw is algbw
times a factor that makes collectives and numbers of ranks comparable: what the links of a rank carry at least
(PERFORMANCE.md of nccl-tests). If shards differ in size, it is what those of the busiest rank carry at least.
"""

from __future__ import annotations

from fractions import Fraction

from ..collective import Collective

__all__ = ["bus_factor", "bus_factor_of"]

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


def bus_factor_of(collective: Collective) -> Fraction | None:
    """Return :func:`bus_factor` of a collective, whose shards may differ in size.

    >>> bus_factor_of(Collective("allgather", 4, weights=(1, 0, 2, 1)))
    Fraction(1, 1)
    """
    if collective.weights is None:
        return bus_factor(collective.kind, collective.num_members)
    if collective.name == collective.kind:
        return None
    return Fraction(_busiest(collective), collective.whole)


def _busiest(collective: Collective) -> int:
    """Return the weight that the links of the busiest rank carry at least."""
    g, weight = collective.num_members, [int(one) for one in collective.weight]
    if collective.kind == "alltoall":
        sent = [sum(weight[v * g : (v + 1) * g]) - weight[v * g + v] for v in range(g)]
        received = [sum(weight[v::g]) - weight[v * g + v] for v in range(g)]
        return max(*sent, *received)
    own = min(weight) if collective.root is None else weight[int(collective.places[collective.root])]
    return sum(weight) - own if g > 1 else 0
