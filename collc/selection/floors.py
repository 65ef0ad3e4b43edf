"""What schedulers need at least, so that `auto` does not run those that cannot win: steps, and time per byte."""

from __future__ import annotations

from fractions import Fraction

from collc.ir.collective import Collective
from collc.ir.costs.bounds import bound
from collc.ir.spec import Problem

__all__ = ["around", "straight"]


def straight(problem: Problem) -> tuple[int, Fraction]:
    """Return (steps, time per byte of M) of shards that go straight from their source to all ranks, without copies.

    Those of an allgather load the links as an all-to-all does, whose bound counts the links on the way.

    >>> from collc.frontends.coll import topology
    >>> straight(Problem(topology("torus(3, 3)"), Collective("allgather", 9)))
    (1, Fraction(1, 3))
    """
    topology, collective = problem.topology, problem.collective
    if collective.root is not None:
        return 1, (topology.num_ranks - 1) / topology.egress(collective.root)
    return 1, bound(topology, Collective("alltoall", topology.num_ranks)).value


def around(problem: Problem) -> tuple[int, Fraction]:
    """Return (steps, time per byte of M) of data that visit one rank after the other.

    >>> from collc.frontends.coll import topology
    >>> around(Problem(topology("torus(3, 3)"), Collective("allgather", 9)))
    (8, Fraction(2, 9))
    """
    topology, collective = problem.topology, problem.collective
    phases = 2 if collective.kind == "allreduce" else 1
    return phases * (topology.num_ranks - 1), bound(topology, collective).value
