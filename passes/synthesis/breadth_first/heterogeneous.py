"""Dividing jobs among links that differ in latency and bandwidth: LP (14) of the direct-connect paper, exactly.

A link with latency ``alpha`` that carries ``rate`` jobs a unit of time has carried at most ``(U - alpha) * rate`` jobs
at time U, and none before alpha. So time U is enough if and only if no set of links has more jobs confined to it than
its links can carry by then (Hall's theorem, as in Theorem 19). The least time is the maximum, over sets of links, of
the time that a set needs. Newton's method finds it as for equal links: a flow at the current time either assigns all
jobs, which proves the time optimal, or names a set that needs longer.

A link whose alpha is too large carries no jobs by U and is not used. The paper solves the program again without such a
link; here it is left out at once, and the links left out are the best choice.

With a number of chunks every link carries whole chunks (integer program (13) with LP (14)'s costs): at most
``floor((U - alpha) * rate * chunks)``. A flow with integer capacities can be integer, so the optimum is as exact and as
cheap.
"""

from __future__ import annotations

from fractions import Fraction
from heapq import heapify, heapreplace
from math import floor, lcm

import attrs

from collc.ir.diagnostic import error

from .balance import Balance, Flow, Histogram, assign, cut_jobs, links_of_mask

__all__ = ["Pace", "balance_unlike", "divide_unlike", "least_time"]

_MOST_UNITS = 2**62


@attrs.frozen
class Pace:
    """The speed of a link: no jobs before ``alpha``, then ``rate`` jobs a unit of time (the unit of alpha)."""

    alpha: Fraction
    rate: Fraction


def balance_unlike(histogram: Histogram, paces: tuple[Pace, ...], chunks: int | None = None) -> Balance:
    """Divide jobs among links so that the last one finishes as early as possible; ``load`` of the result is that time.

    ``histogram`` lists ``(mask, count)`` as for :func:`.balance.balance`, ``paces[i]`` is that of link i. With
    ``chunks`` every job is divided in whole multiples of 1/chunks. Raises C0504 if there are too many parts to count.

    >>> slow, fast = Pace(Fraction(0), Fraction(1)), Pace(Fraction(1), Fraction(3))
    >>> balance_unlike(((0b11, 2),), (slow, fast)).load
    Fraction(5, 4)
    """
    found = divide_unlike(histogram, paces, chunks)
    return cut_jobs([count for _, count in histogram], found.flow, found.unit, found.load)


def divide_unlike(histogram: Histogram, paces: tuple[Pace, ...], chunks: int | None = None) -> Flow:
    """Return the optimal division of :func:`balance_unlike`, before jobs are cut."""
    counts = [count for _, count in histogram]
    links = [links_of_mask(mask) for mask, _ in histogram]
    used = sorted({slot for group in links for slot in group})
    time = least_time([paces[slot] for slot in used], sum(counts), chunks)
    while True:
        unit, room = _room(used, paces, time, chunks)
        _require_countable(unit * sum(counts))
        flow, confined = assign(links, [count * unit for count in counts], room)
        if confined is None:
            return Flow(flow, unit, time)
        jobs = sum(count for mask, count in histogram if mask & ~confined == 0)
        time = least_time([paces[slot] for slot in links_of_mask(confined)], jobs, chunks)


def _room(slots: list[int], paces: tuple[Pace, ...], time: Fraction, chunks: int | None) -> tuple[int, dict[int, int]]:
    """Return the units per job, and how many units each link can carry by ``time``."""
    most = {slot: max(Fraction(0), time - paces[slot].alpha) * paces[slot].rate for slot in slots}
    unit = lcm(*(share.denominator for share in most.values())) if chunks is None else chunks
    return unit, {slot: floor(share * unit) for slot, share in most.items()}


def least_time(paces: list[Pace], jobs: int, chunks: int | None = None) -> Fraction:
    """Return the earliest time by which these links have carried ``jobs`` jobs; every link may carry every job.

    >>> least_time([Pace(Fraction(0), Fraction(1)), Pace(Fraction(9), Fraction(1))], 4)
    Fraction(4, 1)
    """
    started, time = sorted(paces, key=lambda pace: pace.alpha), Fraction(0)
    rate = moved = Fraction(0)
    for k, pace in enumerate(started):
        rate += pace.rate
        moved += pace.rate * pace.alpha
        time = (jobs + moved) / rate
        if k + 1 == len(started) or time <= started[k + 1].alpha:
            break
    return time if chunks is None else _whole_chunks(paces, jobs * chunks, chunks, time)


def _whole_chunks(paces: list[Pace], needed: int, chunks: int, time: Fraction) -> Fraction:
    """Return the earliest time, ``time`` or later, by which ``needed`` whole chunks have arrived."""
    done = [floor(max(Fraction(0), time - pace.alpha) * pace.rate * chunks) for pace in paces]
    # (arrival of the link's next chunk, time of a chunk): fewer than len(paces) are missing
    following = [
        (pace.alpha + (k + 1) / (pace.rate * chunks), 1 / (pace.rate * chunks))
        for pace, k in zip(paces, done, strict=True)
    ]
    heapify(following)
    for _ in range(needed - sum(done)):
        time, each = following[0]
        heapreplace(following, (time + each, each))
    return time


def _require_countable(parts: int) -> None:
    """Raise C0504 if 64 bits cannot count the parts of all shards."""
    if parts >= _MOST_UNITS:
        raise error(
            "C0504",
            "balancing the links exactly would cut the shards too finely",
            notes=["the limit is 2^62 parts"],
            hint="give a number of chunks: `using bfb { chunks: 16 }`",
            exit_status=3,
        )
