"""A fixed number of chunks a shard: integer program (13) of the direct-connect paper, exactly.

Where every shard is cut in P chunks, a link carries whole chunks and W, the most that any link into a node carries
in a step, is an integer. A flow with integer capacities may be taken integer, so W chunks are enough if and only if
links that carry W/P shards are: the least W is the least load of LP (1) times P, rounded up. There is nothing to
search or round, and every step costs less than a chunk more than without the limit:

    T_B < T_B(LP) + M/B * d*D / (P*N)         (D steps, degree d)

which is at most the bound of Theorem 20 for a rounded LP, d(d^D - 1) / ((d-1) P N), and mostly far below.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Any

import attrs

from collc.ir.cost import cost
from collc.ir.spec import Problem

from .balance import Balance, Histogram, balance, pieces, route, slots_of

__all__ = ["Unchunked", "balance_chunks", "theorem_20", "unchunked"]


def balance_chunks(histogram: Histogram, chunks: int) -> Balance:
    """Divide jobs of ``chunks`` chunks each among equal links, the busiest of which carries as few as possible.

    ``load`` of the result is in jobs, a multiple of 1/chunks; ``parts`` divides ``chunks``.

    >>> balance_chunks(((0b111, 1),), 4).load
    Fraction(1, 2)
    """
    exact = balance(histogram)
    if chunks % exact.parts == 0:
        return exact
    most = ceil(exact.load * chunks)
    counts = [count for _, count in histogram]
    links = [slots_of(mask) for mask, _ in histogram]
    room = {slot: most for group in links for slot in group}
    flow, _ = route(links, [count * chunks for count in counts], room)
    return pieces(counts, flow, chunks, Fraction(most, chunks))


def theorem_20(degree: int, diameter: int, chunks: int, num_ranks: int) -> Fraction:
    """Return by how much T_B of a rounded LP may exceed the optimum, in units of M/B (Theorem 20).

    >>> theorem_20(4, 2, 8, 21)
    Fraction(5, 42)
    """
    return Fraction(degree * sum(degree**i for i in range(diameter)), chunks * num_ranks)


@attrs.frozen
class Unchunked:
    """What a schedule with a number of chunks would cost in any parts: the values of LP (1) or (14), if not relaxed.

    ``T_B`` (M/B) is nothing where nodes differ; ``theorem_20`` is how large T_B may become by rounding LP (1) (M/B),
    where all nodes and links are alike and every rank has one shard.
    """

    T_B: Fraction | None
    time_per_byte: Fraction
    theorem_20: Fraction | None


def unchunked(scheduler: Any, problem: Problem) -> Unchunked | None:
    """Return what ``problem`` costs by this scheduler without its ``chunks``; nothing where it fixes no number."""
    chunks = getattr(scheduler, "chunks", None)
    if scheduler.name != "bfb" or chunks is None:
        return None
    topology = problem.topology
    best, plain = (cost(attrs.evolve(scheduler, chunks=None, relax=r).run(problem)) for r in (scheduler.relax, False))
    most, phases = None, 2 if plain.collective == "allreduce" else 1
    if plain.T_B is not None and topology.degree and topology.is_uniform and problem.collective.root is None:
        more = theorem_20(topology.degree, topology.diameter or 0, chunks, topology.num_ranks)
        most = plain.T_B + phases * more
    return Unchunked(best.T_B, best.time_per_byte, most)
