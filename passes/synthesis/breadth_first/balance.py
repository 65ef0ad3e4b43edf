"""Dividing jobs among links exactly: the core of BFB (Theorem 19 of the direct-connect paper, as a formula).

Jobs are the shards that a node must receive in one step, through its in-links. A job may be divided among the links of
its mask. The least possible load of the busiest link is a maximum over sets of links: the jobs confined to the set,
divided by the number of its links. So it is a rational whose denominator is at most the number of links.
"""

from __future__ import annotations

from collections import deque
from fractions import Fraction
from itertools import pairwise
from math import gcd

import attrs
import numpy as np

from collc.ir.ragged import owners, ranges

__all__ = ["Balance", "Flow", "Histogram", "assign", "balance", "cut_jobs", "divide", "links_of_mask"]

#: ``(mask, count)`` pairs: the number of jobs that may use the links of each mask
Histogram = tuple[tuple[int, int], ...]


@attrs.frozen
class Balance:
    """An optimal division: ``load`` jobs on the busiest link, or the time of the slowest if links differ.

    Piece i gives the interval [lo, hi)/``parts`` of job ``job[i]`` to link ``slot[i]``. Jobs count through the
    histogram's masks in order.
    """

    load: Fraction
    parts: int
    job: np.ndarray
    slot: np.ndarray
    lo: np.ndarray
    hi: np.ndarray


@attrs.frozen
class Flow:
    """What each group of jobs sends over each link, in 1/``unit`` of a job; ``load`` as in :class:`Balance`."""

    flow: list[dict[int, int]]
    unit: int
    load: Fraction


def balance(histogram: Histogram) -> Balance:
    """Divide jobs optimally; ``histogram`` lists ``(mask, count)``: ``count`` jobs may use the links that are bits
    of ``mask``.

    The optimum is found by Newton's method on the ratio: a flow that routes everything at the current ratio proves it
    optimal; one that cannot names a set of links with a larger ratio. All integers, no tolerance.

    >>> balance(((0b01, 1), (0b11, 2))).load
    Fraction(3, 2)
    """
    found = divide(histogram)
    return cut_jobs([count for _, count in histogram], found.flow, found.unit, found.load)


def divide(histogram: Histogram) -> Flow:
    """Return the optimal division of :func:`balance`, before jobs are cut."""
    masks = [mask for mask, _ in histogram]
    counts = [count for _, count in histogram]
    links = [links_of_mask(mask) for mask in masks]
    ratio = _first_ratio(masks, counts)
    while True:
        unit = ratio.denominator
        room = {slot: ratio.numerator for group in links for slot in group}
        flow, confined = assign(links, [count * unit for count in counts], room)
        if confined is None:
            return Flow(flow, unit, ratio)
        ratio = _ratio(masks, counts, confined)


def links_of_mask(mask: int) -> list[int]:
    """Return the links that are bits of a mask."""
    return [i for i in range(mask.bit_length()) if mask >> i & 1]


def _ratio(masks: list[int], counts: list[int], links: int) -> Fraction:
    confined = sum(count for mask, count in zip(masks, counts, strict=True) if mask & ~links == 0)
    return Fraction(confined, links.bit_count())


def _first_ratio(masks: list[int], counts: list[int]) -> Fraction:
    """Return a lower bound to start from: all jobs on all links."""
    union = 0
    for mask in masks:
        union |= mask
    return _ratio(masks, counts, union)


def assign(links: list[list[int]], supply: list[int], room: dict[int, int]) -> tuple[list[dict[int, int]], int | None]:
    """Assign ``supply[g]`` units of each group to its links, each of which has ``room`` units; all integers.

    Returns the flow of each group by link, and None. If the units do not fit, the second value is a mask of links: the
    groups confined to them have more units than the links have room. ``room`` is used up.
    """
    flow: list[dict[int, int]] = [{} for _ in links]
    users: dict[int, set[int]] = {slot: set() for slot in room}
    # Groups with few links first: then the greedy start rarely needs a correction.
    for group in sorted(range(len(links)), key=lambda g: (len(links[g]), g)):
        left = supply[group]
        for slot in sorted(links[group], key=lambda s: (-room[s], s)):
            take = min(left, room[slot])
            if take:
                _move(flow, users, room, group, slot, take)
                left -= take
        while left:
            path, reached = _augmenting_path(links, flow, users, room, group)
            if path is None:
                return flow, sum(1 << slot for slot in reached)
            left -= _push(flow, users, room, path, left)
    return flow, None


def _move(
    flow: list[dict[int, int]],
    users: dict[int, set[int]],
    room: dict[int, int],
    group: int,
    slot: int,
    amount: int,
) -> None:
    flow[group][slot] = flow[group].get(slot, 0) + amount
    room[slot] -= amount
    if flow[group][slot]:
        users[slot].add(group)
    else:
        del flow[group][slot]
        users[slot].discard(group)


def _augmenting_path(
    links: list[list[int]],
    flow: list[dict[int, int]],
    users: dict[int, set[int]],
    room: dict[int, int],
    group: int,
) -> tuple[list[tuple[int, int]] | None, list[int]]:
    """Search breadth first for a link with room; return ``(group, slot)`` hops to it, or None and the links reached."""
    reached_by: dict[int, tuple[int, int | None]] = {}
    seen = {group}
    queue: deque[tuple[int, int | None]] = deque([(group, None)])
    while queue:
        here, via = queue.popleft()
        for slot in links[here]:
            if slot in reached_by:
                continue
            reached_by[slot] = (here, via)
            if room[slot]:
                return _walk_back(reached_by, slot), []
            for other in sorted(users[slot] - seen):
                seen.add(other)
                queue.append((other, slot))
    return None, list(reached_by)


def _walk_back(reached_by: dict[int, tuple[int, int | None]], slot: int) -> list[tuple[int, int]]:
    path: list[tuple[int, int]] = []
    step: int | None = slot
    while step is not None:
        group, via = reached_by[step]
        path.append((group, step))
        step = via
    return path[::-1]


def _push(
    flow: list[dict[int, int]],
    users: dict[int, set[int]],
    room: dict[int, int],
    path: list[tuple[int, int]],
    most: int,
) -> int:
    """Push along a path: each group uses more of its slot, and as much less of the slot before it."""
    amount = min(most, room[path[-1][1]])
    for (_, given_up), (group, _) in pairwise(path):
        amount = min(amount, flow[group][given_up])
    for i, (group, slot) in enumerate(path):
        if i:
            _move(flow, users, room, group, path[i - 1][1], -amount)
        _move(flow, users, room, group, slot, amount)
    return amount


def cut_jobs(counts: list[int], flow: list[dict[int, int]], unit: int, load: Fraction) -> Balance:
    """Put each group's jobs, of ``unit`` units each, in a row, and cut it at the links' shares.

    At most links-1 jobs of a group are divided.
    """
    q = unit
    spans: list[tuple[int, int, int]] = []  # on one line for all groups, in units of 1/q job: start, end, link
    at = first = 0
    for count, shares in zip(counts, flow, strict=True):
        at = first * q
        for slot in sorted(shares):
            spans.append((at, at + shares[slot], slot))
            at += shares[slot]
        first += count
    if q == 1:
        of_job = np.repeat(np.array([link for _, _, link in spans]), [end - start for start, end, _ in spans])
        none, all_of_it = np.zeros(first, dtype=np.int64), np.ones(first, dtype=np.int64)
        return Balance(load, 1, np.arange(first), of_job, none, all_of_it)
    start, end, slot = np.array(spans, dtype=np.int64).T
    jobs = -(-end // q) - start // q
    span, job = owners(jobs), ranges(start // q, jobs)
    lo, hi = np.maximum(start[span] - job * q, 0), np.minimum(end[span] - job * q, q)
    common = gcd(q, int(np.gcd.reduce(lo)), int(np.gcd.reduce(hi)))
    return Balance(load, q // common, job, slot[span], lo // common, hi // common)
