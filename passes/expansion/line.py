"""Line graphs (Definitions 1 and 12): a rank for every link of the base, a link for every two consecutive links."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from collc.ir.arrays import Array
from collc.ir.ragged import nth, owners, ranges, starts
from collc.ir.schedule import Schedule
from collc.ir.topology import Topology

from .rows import Rows, links_of, placed, require_rows

__all__ = ["line", "line_graph"]

_BLOCK = 1 << 22  # rows computed together


def line_graph(base: Topology) -> Topology:
    """Return L(G): rank i is link i of G; the links are sorted by tail, then by head."""
    tails, heads, _ = _followers(base)
    return Topology("line", base.num_links, tails, heads, classes=base.classes[:1], unit=base.unit)


def line(schedule: Schedule, topology: Topology) -> Schedule:
    """Return the allgather of L(G) = ``topology`` that expands an allgather of G.

    In the first step every rank sends its shard to all ranks that follow it. If the shard of rank r moves along a link
    u -> w of G in step t, then in step t + 1 the shards of all links into r move from u -> w to all links out of w.
    That takes one step more, and at most 1/N more T_B if G is regular (Theorem 7). Raises C0521 if the topology has
    other links.
    """
    base = schedule.topology
    tails, heads, first = _followers(base)
    number = placed(topology, tails, heads)
    rows = Rows(topology, schedule.parts)
    apart = tails != heads
    rows.add(0, tails[apart], 0, schedule.parts, number[apart])
    links = links_of(schedule).astype(np.int64)
    start, arriving = base.in_links
    source = schedule.shard.astype(np.int64)
    out = np.diff(first)[links]
    sizes = np.diff(start)[source] * out
    require_rows(topology, int(sizes.sum()))
    for block in _blocks(sizes):
        counts = sizes[block]
        row, place = block.start + owners(counts), nth(counts)
        shard = arriving[start[source[row]] + place // out[row]]
        follows = first[links[row]] + place % out[row]
        keep = shard != heads[follows]
        row, shard, follows = row[keep], shard[keep], follows[keep]
        step = schedule.step[row].astype(np.int64) + 1
        rows.add(step, shard, schedule.lo[row], schedule.hi[row], number[follows])
    return rows.schedule()


def _followers(base: Topology) -> tuple[Array, Array, Array]:
    """Return the pairs of consecutive links, sorted, and the start of each first link's pairs."""
    start, links = base.out_links
    counts = np.diff(start)[base.dst]
    return owners(counts), links[ranges(start[base.dst], counts)], starts(counts)


def _blocks(sizes: Array) -> list[slice]:
    """Divide rows into runs; the ``sizes`` of the rows in a run add up to about ``_BLOCK``."""
    total = np.cumsum(sizes)
    cuts = np.searchsorted(total, np.arange(_BLOCK, int(total[-1]) if len(total) else 0, _BLOCK)) + 1
    ends = [0, *np.unique(cuts).tolist(), len(sizes)]
    return [slice(a, b) for a, b in pairwise(ends) if a < b]
