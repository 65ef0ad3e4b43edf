"""What a group must send: the data that have to leave sets of nodes, as shares of its vector. All exact."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import attrs

from collc.ir.collective import Collective
from collc.ir.graph.members import Inside

__all__ = ["LEAST", "Half", "halves", "single_sets"]


#: the least part of an even shard that a plan has room for
LEAST = Fraction(1, 1024)


@attrs.frozen(eq=False)
class Half:
    """Data of ``supply`` vectors (by rank of the members' network) that must reach all ``sinks``.

    ``inward``: on the transpose, so that what leaves a set there enters it. Between the ranks of every set and the
    others ``crosswise`` data are as many times as much as there are members outside; with ``pairs``, those of each
    pair of ranks, as shares of the vector, count (of the transpose: receiver first).
    """

    supply: tuple[Fraction, ...]
    sinks: tuple[int, ...]
    inward: bool = False
    crosswise: bool = False
    pairs: tuple[tuple[Fraction, ...], ...] | None = None

    def needed(self, nodes: frozenset[int]) -> Fraction:
        """Return the vectors that must leave a set of nodes; 0 if all sinks are in it."""
        if self.pairs is not None:
            rows = (row for rank, row in enumerate(self.pairs) if rank in nodes)
            return sum((share for row in rows for rank, share in enumerate(row) if rank not in nodes), Fraction(0))
        outside = sum(sink not in nodes for sink in self.sinks)
        inside = sum((amount for rank, amount in enumerate(self.supply) if rank in nodes), Fraction(0))
        return inside * (outside if self.crosswise else min(outside, 1))


def halves(collective: Collective, bounding: bool) -> tuple[Half, ...]:
    """Return what a collective of all ranks must send.

    An allreduce is a reduce-scatter and an allgather, each of which gets half of the time. Shards of weight 0 have a
    little room too: schedules bring them. ``bounding``: what must be sent in any case, of an allreduce a vector out of
    every set of nodes and one into it.
    """
    n = collective.num_ranks
    everyone, root = tuple(range(n)), collective.root or 0
    whole = tuple(Fraction(int(rank == root)) for rank in everyone)
    weight = collective.weight.tolist()
    least = Fraction(0) if bounding else LEAST / n
    own = tuple(max(Fraction(amount, collective.whole), least) for amount in weight) if len(weight) == n else ()
    match collective.kind:
        case "allgather" | "reduce-scatter":
            return (Half(own, everyone, collective.kind == "reduce-scatter"),)
        case "broadcast" | "reduce":
            return (Half(whole, everyone, collective.kind == "reduce"),)
        case "gather" | "scatter":
            return (Half(own, (root,), collective.kind == "scatter"),)
        case "allreduce":
            each = whole if bounding else tuple(2 * amount for amount in own)
            return Half(each, everyone), Half(each, everyone, inward=True)
        case "alltoall":
            shard = tuple(Fraction(1, n) for _ in everyone)
            pairs = _pairs(collective, least / n)
            back = None if pairs is None else tuple(zip(*pairs, strict=True))
            return Half(shard, everyone, False, True, pairs), Half(shard, everyone, True, True, back)
        case _:
            raise ValueError(f"what a `{collective.kind}` sends does not follow from its kind")


def _pairs(collective: Collective, least: Fraction) -> tuple[tuple[Fraction, ...], ...] | None:
    """Return the share of the vector that each rank sends to each other, at least ``least``; None if all are equal."""
    if collective.weights is None:
        return None
    n, whole = collective.num_ranks, collective.whole
    rows = [collective.weights[rank * n : (rank + 1) * n] for rank in range(n)]
    return tuple(tuple(max(Fraction(amount, whole), least) for amount in row) for row in rows)


def single_sets(network: Inside) -> Iterator[frozenset[int]]:
    """Yield every single rank, and all nodes but one rank: the cuts to begin with."""
    nodes = range(network.topology.num_nodes)
    for rank in range(network.topology.num_ranks):
        yield frozenset([rank])
        yield frozenset(nodes).difference([rank])
