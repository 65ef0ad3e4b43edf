"""The bandwidth bound of any allreduce by trees, and what a reduce-scatter and an allgather have of it.

Ranks may be the roots of different amounts of data, and links may divide their bandwidth freely between the reduction
and the broadcast (ForestColl's appendix E). The value is exact, and trees reach it (:mod:`.allreduce_optimum`).
"""

from __future__ import annotations

from fractions import Fraction

import attrs

from collc.ir.graph.bottleneck import worst_ratio
from collc.ir.topology import Topology

from .allreduce_optimum import MOST_COLUMNS, AllreduceOptimum, allreduce_optimum

__all__ = ["MOST_COLUMNS", "AllreduceBound", "ReachedBound", "allreduce_bound", "allreduce_program", "reached_bound"]


@attrs.frozen(eq=False)
class AllreduceBound:
    """No allreduce by trees has more bandwidth than ``value``, in the topology's unit, and one has ``reached``.

    Reduce-scatter and allgather with equal shards have ``composed`` (at most, if a switch has more bandwidth in than
    out or the reverse). ``optimum`` is the solution and its proof.
    """

    optimum: AllreduceOptimum
    composed: Fraction

    @property
    def value(self) -> Fraction:
        """The bound, as bandwidth."""
        return self.optimum.value

    @property
    def reached(self) -> Fraction:
        """The bandwidth of an allreduce that exists: the bound."""
        return self.optimum.division.value

    @property
    def columns(self) -> int:
        """The unknowns of the linear program; 0 if none was needed."""
        return self.optimum.columns

    @property
    def rows(self) -> int:
        """The rows of the linear program; 0 if none was needed."""
        return self.optimum.rows


@attrs.frozen(eq=False)
class ReachedBound:
    """The bound where ``k`` trees of the whole vector reach it, and a cut or partition proves it without a program."""

    value: Fraction
    composed: Fraction
    k: int

    @property
    def reached(self) -> Fraction:
        """The bandwidth of an allreduce that exists: the bound."""
        return self.value


def allreduce_bound(topology: Topology) -> Fraction | None:
    """Return the value of :func:`allreduce_program`, or None if the program is too large.

    >>> from collc.frontends.coll import topology
    >>> allreduce_bound(topology("hypercube(3)"))
    Fraction(12, 7)
    """
    found = allreduce_program(topology)
    return None if found is None else found.value


def allreduce_program(topology: Topology, most_columns: int = MOST_COLUMNS) -> AllreduceBound | None:
    """Return the bound; None for a single rank, or if the program has more than ``most_columns`` unknowns.

    Raises C0301 unless every rank reaches every other.
    """
    found = allreduce_optimum(
        topology, multicast=topology.multicast, reduces=topology.reduces, most_columns=most_columns
    )  # fmt: skip
    return None if found is None else AllreduceBound(found, composed(topology))


def reached_bound(topology: Topology, value: Fraction, k: int) -> ReachedBound:
    """Return the bound of an allreduce whose ``k`` trees have the bandwidth ``value``, the most of all schedules."""
    return ReachedBound(value, composed(topology), k)


def composed(topology: Topology) -> Fraction:
    """Return the bandwidth of the best reduce-scatter, then the best allgather."""
    alike = [1] * topology.num_ranks
    gather, _ = worst_ratio(topology, alike)
    scatter = gather if topology.reverse_links is not None else worst_ratio(topology.transpose(), alike)[0]
    return topology.num_ranks / (gather + scatter)
