"""The baselines: what NCCL, and frameworks above it, do on a network, timed by the same simulator as collc's schedules.

On a cluster of boxes these are NCCL's rings and trees, one for each NIC, PAT, and the two-level algorithm. On other
networks every rank is a machine of its own: the ring, the double binary tree and PAT of all ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import attrs

from collc.ir.diagnostic import CollcError
from collc.ir.graph.boxes import Boxes, boxes_of
from collc.ir.progress import counting
from collc.ir.spec import Problem
from collc.passes.schedulers import baselines
from collc.passes.synthesis.groups.applied import member_network

from ..messages.internal import is_fatal
from .algorithm import Algorithm, candidate_of
from .choice import Skipped
from .measure import MeasuredForest, Model, Result
from .protocols import ChoosesPieces, GrowsForest
from .selector import reason_of

__all__ = ["Baseline", "Baselines", "baseline_algorithms", "measure_baselines"]


@attrs.frozen
class Baseline:
    """A baseline and its exact seconds at each size, in the number of pieces that it chooses there."""

    name: str
    algorithm: Algorithm
    seconds: tuple[Fraction, ...]


@attrs.frozen
class Baselines:
    """The baselines of a problem at ``sizes`` (bytes), those that do not apply, and the boxes of the network if any."""

    sizes: tuple[int, ...]
    measured: tuple[Baseline, ...]
    skipped: tuple[Skipped, ...]
    boxes: Boxes | None

    def best(self, place: int) -> Baseline | None:
        """Return the fastest baseline at a size, the first of equal ones; None without baselines."""
        return min(self.measured, key=lambda one: one.seconds[place], default=None)


def baseline_algorithms(problem: Problem) -> tuple[tuple[str, Algorithm], ...]:
    """Return the baselines of a collective on its network, by name.

    >>> from collc.frontends.coll import topology
    >>> from collc.ir.collective import Collective
    >>> [name for name, _ in baseline_algorithms(Problem(topology("dgx_a100(2)"), Collective("allreduce", 16)))]
    ['NCCL ring', 'PAT', 'NCCL tree', 'two-level ring', 'two-level PAT']
    """
    boxed = boxes_of(problem.topology) is not None
    found = baselines(problem.collective.name, boxed)
    return tuple((one.name, Algorithm(scheduler, one.options)) for scheduler, one in found)


def measure_baselines(problem: Problem, sizes: Sequence[int], model: Model) -> Baselines:
    """Return the times of all baselines at each size (bytes)."""
    measured, skipped = list[Baseline](), list[Skipped]()
    problem = member_network(problem)
    for name, algorithm in counting(list(baseline_algorithms(problem)), "baselines"):
        try:
            measured.append(Baseline(name, algorithm, _Timed(problem, algorithm, model).seconds(sizes)))
        except CollcError as mistake:
            if is_fatal(mistake):
                raise
            skipped.append(Skipped(name, reason_of(mistake)))
    return Baselines(tuple(sizes), tuple(measured), tuple(skipped), boxes_of(problem.topology))


class _Timed:
    """The times of one algorithm, each number of pieces measured once."""

    def __init__(self, problem: Problem, algorithm: Algorithm, model: Model) -> None:
        self.problem, self.algorithm, self.model = problem, algorithm, model
        self.scheduler = algorithm.scheduler_pass()
        self.planned = candidate_of(algorithm.scheduler).planned
        self.known: dict[int, Result] = {}

    def seconds(self, sizes: Sequence[int]) -> tuple[Fraction, ...]:
        """Return the seconds at each size."""
        if self.planned == "trees":
            assert isinstance(self.scheduler, GrowsForest)
            forest = MeasuredForest.of(self.scheduler.grow(self.problem), self.model)
            return tuple(self._measured(forest.pieces([size])[0], forest).times.at(size) for size in sizes)
        return tuple(self._measured(self._pieces(size)).times.at(size) for size in sizes)

    def _pieces(self, size: int) -> int:
        """Return the number of pieces at a size; 0 for an algorithm without pieces."""
        if self.planned != "pipeline":
            return 0
        assert isinstance(self.scheduler, ChoosesPieces)
        return self.scheduler.pieces(self.problem.sized(size))

    def _measured(self, pieces: int, forest: MeasuredForest | None = None) -> Result:
        if pieces not in self.known:
            if forest is not None:
                self.known[pieces] = forest.measure(pieces)
            else:
                one = self.algorithm.with_options(pipeline=pieces) if pieces else self.algorithm
                self.known[pieces] = self.model.measure(one.scheduler_pass(), self.problem)
        return self.known[pieces]
