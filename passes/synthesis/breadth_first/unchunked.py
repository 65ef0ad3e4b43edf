"""The cost of exact shares, to compare a breadth-first schedule with a fixed number of chunks to it."""

from __future__ import annotations

from fractions import Fraction

import attrs

from collc.ir.costs.cost import cost
from collc.ir.spec import Problem

from ...base import Pass
from .bfb import BFB
from .chunked import theorem_20

__all__ = ["Unchunked", "unchunked"]


@attrs.frozen
class Unchunked:
    """The cost of a schedule with a number of chunks if it used any parts: the values of LP (1) or (14), not relaxed.

    ``T_B`` (M/B) is None if nodes differ; ``theorem_20`` is how large T_B may become by rounding LP (1) (M/B), if all
    nodes and links are equal and every rank has one shard.
    """

    T_B: Fraction | None
    time_per_byte: Fraction
    theorem_20: Fraction | None


def unchunked(scheduler: Pass, problem: Problem) -> Unchunked | None:
    """Return the cost of ``problem`` by a breadth-first scheduler without its ``chunks``.

    None for other schedulers, and if ``chunks`` is not set.
    """
    if not isinstance(scheduler, BFB) or scheduler.chunks is None:
        return None
    topology = problem.topology
    best, plain = (cost(attrs.evolve(scheduler, chunks=None, relax=r).run(problem)) for r in (scheduler.relax, False))
    most, phases = None, 2 if plain.collective == "allreduce" else 1
    if plain.T_B is not None and topology.degree and topology.is_uniform and problem.collective.root is None:
        more = theorem_20(topology.degree, topology.diameter or 0, scheduler.chunks, topology.num_ranks)
        most = plain.T_B + phases * more
    return Unchunked(best.T_B, best.time_per_byte, most)
