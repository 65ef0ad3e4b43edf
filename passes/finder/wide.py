"""Compute the cost of an allgather by BFB on nodes with many links, without tables of all sets of links.

As in :mod:`.evaluate` the cost of a step is the greatest, over nodes, of the least load of the busiest link. The module
takes a load that some node needs at least, and tries it on all nodes together by a greedy flow in integers. If the flow
fails for a node, the node is solved exactly, which may raise the load.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from collc.ir.arrays import Array
from collc.ir.topology import Topology

from ..synthesis.breadth_first.balance import Histogram, assign, balance, links_of_mask
from .evaluate import in_masks, load_unit

__all__ = ["greatest_load", "wide_cost"]
_Filling = Callable[[Array, Array, Array], tuple[Array, Array]]


def wide_cost(topology: Topology) -> tuple[int, Fraction]:
    """Return (T_L, T_B) of an allgather by breadth first, as :func:`collc.passes.finder.evaluate.bfb_cost` does.

    Nodes have up to 32 in-links. Raises C0301 if the topology is not strongly connected.
    """
    topology.require_connected("an allgather")
    nodes, degree = topology.num_ranks, topology.degree or 0
    hops, masks, width = in_masks(topology, np.arange(nodes))
    masks = masks.astype(np.int64)
    steps = int(hops.max(initial=0))
    total = sum((greatest_load(np.where(hops == step, masks, 0), width) for step in range(1, steps + 1)), Fraction(0))
    return steps, total * degree / nodes


def greatest_load(masks: Array, width: int) -> Fraction:
    """Return the greatest load any node needs in one step; masks (nodes, sources), 0 for sources of other steps."""
    histogram = _histograms(masks)
    low = _lower_bounds(histogram, len(masks), width)
    best = Fraction(max(low), load_unit(width))
    left = _unserved(histogram, np.arange(len(masks)), best, width)
    rows, kinds, counts = histogram
    while len(left):
        # The node with the largest lower bound is solved next.
        hardest = max(left.tolist(), key=low.__getitem__)
        own = slice(*np.searchsorted(rows, [hardest, hardest + 1]))
        jobs = tuple(zip(kinds[own].tolist(), counts[own].tolist(), strict=True))
        left = left[left != hardest]
        if not _fits(jobs, best):
            best = balance(jobs).load
            left = _unserved(histogram, left, best, width)
    return best


def _fits(jobs: Histogram, ratio: Fraction) -> bool:
    """Return whether the jobs fit if every link takes at most this load."""
    links = [links_of_mask(mask) for mask, _ in jobs]
    room = {slot: ratio.numerator for group in links for slot in group}
    return assign(links, [count * ratio.denominator for _, count in jobs], room)[1] is None


def _histograms(masks: Array) -> tuple[Array, Array, Array]:
    """Return (node, mask, count) of every mask that occurs, by node."""
    rows, columns = np.nonzero(masks)
    keys, counts = np.unique((rows << 32) | masks[rows, columns], return_counts=True)
    return keys >> 32, keys & 0xFFFFFFFF, counts


def _lower_bounds(histogram: tuple[Array, Array, Array], nodes: int, width: int) -> list[int]:
    """Return for every node a lower bound of its load, in load units: all jobs over all links, or the jobs that fit one
    link only."""
    rows, kinds, counts = histogram
    jobs = np.bincount(rows, weights=counts, minlength=nodes).astype(np.int64).tolist()
    links = np.zeros(nodes, dtype=np.int64)
    np.bitwise_or.at(links, rows, kinds)
    alone = np.zeros(nodes, dtype=np.int64)
    single = (kinds & (kinds - 1)) == 0
    np.maximum.at(alone, rows[single], counts[single])
    unit = load_unit(width)
    needs = zip(jobs, links.tolist(), alone.tolist(), strict=True)
    return [max(each * (unit // max(union.bit_count(), 1)), one * unit) for each, union, one in needs]


def _unserved(histogram: tuple[Array, Array, Array], nodes: Array, ratio: Fraction, width: int) -> Array:
    """Return the nodes for which greedy flows at this load fail: some of them may need more.

    Masks of neighbouring links, as in Kautz digraphs, fill the links from one end to the other. Other masks fill the
    links with most room first, masks of few links before larger ones.
    """
    for fill in (_from_one_end, _levelled):
        rows, kinds, counts = (column[np.isin(histogram[0], nodes)] for column in histogram)
        sizes = np.bitwise_count(kinds).astype(np.int64)
        order = np.lexsort((kinds, sizes, rows)) if fill is _levelled else np.lexsort((kinds, rows))
        room = np.full((len(nodes), width), ratio.numerator, dtype=np.int64)
        # in units of 1/q job, where the ratio is p/q
        nodes = _without_room(rows[order], kinds[order], counts[order] * ratio.denominator, nodes, room, fill)
    return nodes


def _without_room(rows: Array, kinds: Array, units: Array, nodes: Array, room: Array, fill: _Filling) -> Array:
    """Fill the links with each node's masks, one after the other; return the nodes without enough room."""
    first, ends = np.searchsorted(rows, nodes), np.searchsorted(rows, nodes, side="right")
    bits = 1 << np.arange(room.shape[1])
    failed = np.zeros(len(nodes), dtype=bool)
    for place in range(int((ends - first).max(initial=0))):
        at = np.flatnonzero((first + place < ends) & ~failed)
        jobs = first[at] + place
        allowed = (kinds[jobs][:, None] & bits) > 0
        room[at], failed[at] = fill(room[at], allowed, units[jobs])
    return nodes[failed]


def _from_one_end(room: Array, allowed: Array, units: Array) -> tuple[Array, Array]:
    """Fill the allowed links one after the other; return the remaining room and whether a row had too little."""
    space = np.where(allowed, room, 0)
    before = np.cumsum(space, axis=1) - space
    return room - np.clip(units[:, None] - before, 0, space), space.sum(axis=1) < units


def _levelled(room: Array, allowed: Array, units: Array) -> tuple[Array, Array]:
    """Fill the allowed links with most room until their rooms are equal; return the remaining room and whether a row
    had too little."""
    space = np.where(allowed, room, -1)
    order = np.argsort(-space, axis=1, kind="stable")
    ranked = np.take_along_axis(space, order, axis=1)
    count = np.arange(1, allowed.shape[1] + 1)
    summed = np.cumsum(ranked, axis=1)
    # the room that disappears when the first k links are levelled down to the k-th
    reached = ((summed - count * ranked <= units[:, None]) & (ranked >= 0)).sum(axis=1)
    left = summed[np.arange(len(room)), reached - 1] - units
    level, more = left // reached, left % reached
    levelled = np.maximum(level[:, None] + (count <= more[:, None]), 0)
    np.put_along_axis(space, order, np.where(count <= reached[:, None], levelled, ranked), axis=1)
    return np.where(allowed, space, room), left < 0
