"""Breadth-first broadcast on a topology with a symmetry: one receiver is solved, and gives all others.

Rank 0's receptions of every shard v, each multiplied by v^-1, are the transfers of shard 0 to all ranks: the template
of a :class:`SymmetricSchedule`. Distances come from one breadth-first search, since d(v, w) = d(w^-1 v, 0), so no table
of pairs of ranks is needed.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from collc.ir.arrays import Array, lexsort
from collc.ir.group import Group
from collc.ir.topology import Topology

from .balance import Balance, Histogram
from .division import Division

__all__ = ["shard_0"]
Batch = tuple[int, Array, Array, Array, Array, int]  # step, shard, link, lo, hi, parts


def shard_0(topology: Topology, division: Division, transposed: bool = False) -> Iterator[Batch]:
    """Yield the transfers of shard 0 of the optimal BFB allgather, a step at a time; steps count from 0.

    ``topology`` is connected and has a symmetry. With ``transposed`` the allgather is the transpose's; links keep their
    numbers.
    """
    group = _symmetry(topology)
    hops = topology.hops_from(0) if transposed else topology.hops_to(0)
    links, tails = _into_rank_0(topology, transposed)
    masks, number = _masks(group, hops, tails)
    order = lexsort((number, hops))  # stable: shards of one distance and mask stay ascending
    hops, number = hops[order], number[order]
    kinds = tuple(division.kinds(topology, links[None, :])[0].tolist())
    start = np.searchsorted(hops, np.arange(1, int(hops[-1]) + 2))
    solved: dict[Histogram, Balance] = {}
    for step, (a, b) in enumerate(zip(start[:-1].tolist(), start[1:].tolist(), strict=True)):
        known, counts = np.unique(number[a:b], return_counts=True)
        histogram = tuple((masks[m], count) for m, count in zip(known.tolist(), counts.tolist(), strict=True))
        if histogram not in solved:
            solved[histogram] = division.divide(histogram, kinds)
        share = solved[histogram]
        moved = group.inverse(order[a:b][share.job])
        link = links[share.slot]
        yield step, share.job * 0, _translated(topology, group, link, moved), share.lo, share.hi, share.parts


def _symmetry(topology: Topology) -> Group:
    if topology.symmetry is None:
        raise ValueError(f"topology {topology.name} has no symmetry")
    return topology.symmetry


def _into_rank_0(topology: Topology, transposed: bool) -> tuple[Array, Array]:
    """Return the links into rank 0, without loops, and the ranks they come from."""
    heads, tails = (topology.src, topology.dst) if transposed else (topology.dst, topology.src)
    links = np.flatnonzero((heads == 0) & (tails != 0))
    return links, tails[links].astype(np.int64)


def _masks(group: Group, hops: Array, tails: Array) -> tuple[list[int], Array]:
    """Return which in-links of rank 0 lie on a shortest path from each rank.

    These are the masks that occur, ascending, as integers of one bit a link, and for each rank the number of its mask
    in that list.
    """
    n, width = len(hops), len(tails)
    ranks = np.arange(n)
    usable = np.zeros((n, width), dtype=bool)  # the last link first: rows of bytes then sort as their integers do
    for slot, before in enumerate(group.inverse(tails).tolist()):
        usable[:, width - 1 - slot] = hops[group.multiply(before, ranks)] + 1 == hops
    rows, number = np.unique(np.packbits(usable, axis=1), axis=0, return_inverse=True)
    spare = -width % 8
    return [int.from_bytes(row.tobytes(), "big") >> spare for row in rows], number.reshape(n)


def _translated(topology: Topology, group: Group, links: Array, by: Array) -> Array:
    """Return the links of the same places of the ranks multiplied by ``by``, elementwise."""
    degree = topology.num_links // topology.num_ranks
    translated: Array = group.multiply(by, topology.src[links]) * degree + links % degree
    return translated
