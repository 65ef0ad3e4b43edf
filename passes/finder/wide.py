"""What an allgather by BFB costs where nodes have many links, without tables of all sets of links.

As in :mod:`.evaluate` the cost of a step is the greatest, over nodes, of the least load of the busiest link. Only the
greatest matters: a ratio that some node needs at least is tried on all nodes together, by a greedy flow in integers;
nodes that it serves are done, and the few others are solved exactly, which may raise the ratio.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from collc.ir.arrays import Array
from collc.ir.topology import Topology

from ..synthesis.breadth_first.balance import Histogram, assign, balance, links_of_mask
from .evaluate import in_masks

__all__ = ["wide_cost"]
_Way = Callable[[Array, Array, Array], tuple[Array, Array]]


def wide_cost(topology: Topology) -> tuple[int, Fraction]:
    """Return (T_L, T_B) of an allgather by breadth first, as :func:`collc.passes.finder.evaluate.bfb_cost` does.

    For up to 32 links into every node. Raises C0301 where the topology is not strongly connected.
    """
    topology.require_connected("an allgather")
    nodes, degree = topology.num_ranks, topology.degree or 0
    hops, masks, width = in_masks(topology, np.arange(nodes))
    masks = masks.astype(np.int64)
    steps = int(hops.max(initial=0))
    total = sum((_greatest(np.where(hops == step, masks, 0), width) for step in range(1, steps + 1)), Fraction(0))
    return steps, total * degree / nodes


def _greatest(masks: Array, width: int) -> Fraction:
    """Return the greatest load any node needs in one step; masks (nodes, sources), 0 for sources of other steps."""
    histogram = _histograms(masks)
    low = _lower_bounds(histogram, len(masks), width)
    best = max(low)
    left = _unserved(histogram, np.arange(len(masks)), best, width)
    rows, kinds, counts = histogram
    while len(left):
        # The node that needs most, as far as is known, decides how much is tried next.
        hardest = max(left.tolist(), key=low.__getitem__)
        mine = slice(*np.searchsorted(rows, [hardest, hardest + 1]))
        jobs = tuple(zip(kinds[mine].tolist(), counts[mine].tolist(), strict=True))
        left = left[left != hardest]
        if not _fits(jobs, best):
            best = balance(jobs).load
            left = _unserved(histogram, left, best, width)
    return best


def _fits(jobs: Histogram, ratio: Fraction) -> bool:
    """Whether no link needs more than this load."""
    links = [links_of_mask(mask) for mask, _ in jobs]
    room = {slot: ratio.numerator for group in links for slot in group}
    return assign(links, [count * ratio.denominator for _, count in jobs], room)[1] is None


def _histograms(masks: Array) -> tuple[Array, Array, Array]:
    """Return (node, mask, count) of every mask that occurs, by node."""
    rows, columns = np.nonzero(masks)
    keys, counts = np.unique((rows << 32) | masks[rows, columns], return_counts=True)
    return keys >> 32, keys & 0xFFFFFFFF, counts


def _lower_bounds(histogram: tuple[Array, Array, Array], nodes: int, width: int) -> list[Fraction]:
    """Return for every node what it needs at least: all jobs over all links, or the jobs of one link alone."""
    rows, kinds, counts = histogram
    jobs = np.bincount(rows, weights=counts, minlength=nodes).astype(np.int64).tolist()
    links = np.zeros(nodes, dtype=np.int64)
    np.bitwise_or.at(links, rows, kinds)
    alone = np.zeros(nodes, dtype=np.int64)
    single = (kinds & (kinds - 1)) == 0
    np.maximum.at(alone, rows[single], counts[single])
    needs = zip(jobs, links.tolist(), alone.tolist(), strict=True)
    return [max(Fraction(each, max(union.bit_count(), 1)), Fraction(one)) for each, union, one in needs]


def _unserved(histogram: tuple[Array, Array, Array], nodes: Array, ratio: Fraction, width: int) -> Array:
    """Return those of the nodes for which greedy flows at this load fail: some of them may need more.

    Masks of neighbouring links, as in Kautz digraphs, are served best from one end to the other; others by giving jobs
    to the links with most room, masks of few links first.
    """
    for way in (_from_one_end, _levelled):
        rows, kinds, counts = (column[np.isin(histogram[0], nodes)] for column in histogram)
        sizes = np.bitwise_count(kinds).astype(np.int64)
        order = np.lexsort((kinds, sizes, rows)) if way is _levelled else np.lexsort((kinds, rows))
        room = np.full((len(nodes), width), ratio.numerator, dtype=np.int64)
        # in units of 1/q job, where the ratio is p/q
        nodes = _served(rows[order], kinds[order], counts[order] * ratio.denominator, nodes, room, way)
    return nodes


def _served(rows: Array, kinds: Array, units: Array, nodes: Array, room: Array, way: _Way) -> Array:
    """Pour each node's masks one after the other, those of all nodes together; return the nodes that had too little
    room.
    """
    first, ends = np.searchsorted(rows, nodes), np.searchsorted(rows, nodes, side="right")
    bits = 1 << np.arange(room.shape[1])
    failed = np.zeros(len(nodes), dtype=bool)
    for turn in range(int((ends - first).max(initial=0))):
        at = np.flatnonzero((first + turn < ends) & ~failed)
        here = first[at] + turn
        allowed = (kinds[here][:, None] & bits) > 0
        room[at], failed[at] = way(room[at], allowed, units[here])
    return nodes[failed]


def _from_one_end(room: Array, allowed: Array, units: Array) -> tuple[Array, Array]:
    """Fill the allowed links one after the other; return the room left and which rows had too little."""
    space = np.where(allowed, room, 0)
    before = np.cumsum(space, axis=1) - space
    return room - np.clip(units[:, None] - before, 0, space), space.sum(axis=1) < units


def _levelled(room: Array, allowed: Array, units: Array) -> tuple[Array, Array]:
    """Take from the allowed links with most room until those are level; return the room left and which rows had too
    little."""
    space = np.where(allowed, room, -1)
    order = np.argsort(-space, axis=1, kind="stable")
    ranked = np.take_along_axis(space, order, axis=1)
    count = np.arange(1, allowed.shape[1] + 1)
    summed = np.cumsum(ranked, axis=1)
    # So much flows out when the first k links are levelled down to the k-th.
    reached = ((summed - count * ranked <= units[:, None]) & (ranked >= 0)).sum(axis=1)
    left = summed[np.arange(len(room)), reached - 1] - units
    level, more = left // reached, left % reached
    levelled = np.maximum(level[:, None] + (count <= more[:, None]), 0)
    np.put_along_axis(space, order, np.where(count <= reached[:, None], levelled, ranked), axis=1)
    return np.where(allowed, space, room), left < 0
