"""A fixed number of chunks per shard: integer program (13) of the direct-connect paper, exactly.

If every shard is cut in P chunks, a link carries whole chunks, and W, the most chunks on any link into a node in a
step, is an integer. A flow with integer capacities can be integer, so W chunks are enough if and only if links that
carry W/P shards are. The least W is the least load of LP (1) times P, rounded up. No search or rounding is needed, and
every step costs less than one chunk more than without the limit:

    T_B < T_B(LP) + M/B * d*D / (P*N)         (D steps, degree d)

This is at most the bound of Theorem 20 for a rounded LP, d(d^D - 1) / ((d-1) P N), and mostly far below.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from .balance import Balance, Histogram, assign, balance, cut_jobs, links_of_mask

__all__ = ["balance_chunks", "theorem_20"]


def balance_chunks(histogram: Histogram, chunks: int) -> Balance:
    """Divide jobs of ``chunks`` chunks each among equal links, with the least load of the busiest link.

    ``load`` of the result is in jobs, a multiple of 1/chunks; ``parts`` divides ``chunks``.

    >>> balance_chunks(((0b111, 1),), 4).load
    Fraction(1, 2)
    """
    exact = balance(histogram)
    if chunks % exact.parts == 0:
        return exact
    most = ceil(exact.load * chunks)
    counts = [count for _, count in histogram]
    links = [links_of_mask(mask) for mask, _ in histogram]
    room = {slot: most for group in links for slot in group}
    flow, _ = assign(links, [count * chunks for count in counts], room)
    return cut_jobs(counts, flow, chunks, Fraction(most, chunks))


def theorem_20(degree: int, diameter: int, chunks: int, num_ranks: int) -> Fraction:
    """Return by how much T_B of a rounded LP may exceed the optimum, in units of M/B (Theorem 20).

    >>> theorem_20(4, 2, 8, 21)
    Fraction(5, 42)
    """
    return Fraction(degree * sum(degree**i for i in range(diameter)), chunks * num_ranks)
