"""The time of each algorithm: the simulator runs its schedule or only its messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import attrs

from collc.backends.simulator import LATENCIES, Latency, assumptions, simulate, traffic_of_one
from collc.ir.costs.cost import DEFAULT_ALPHA, unit_seconds
from collc.ir.costs.pieces import best_pieces, pieces_that_fit
from collc.ir.costs.rounds import Loads, loads
from collc.ir.levels import Scheduled
from collc.ir.schedule import Forest, Schedule
from collc.ir.spec import Problem
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.symmetric_forest import SymmetricForest
from collc.ir.topology import Topology

from .options import Auto
from .times import Line, Times

if TYPE_CHECKING:
    from collc.backends.simulator import Level as Simulable
    from collc.ir.collective import Collective
    from collc.passes.base import Pass

#: returns the schedule in which ranks relay, of one on the network of the members
Lift: TypeAlias = "Callable[[Scheduled], Scheduled]"

__all__ = ["MeasuredForest", "Model", "Result"]


@attrs.frozen(eq=False)
class Result:
    """The times of an algorithm, its number of steps, and its schedule if one was computed."""

    times: Times
    steps: int
    level: Scheduled | None = None

    def of(self, collective: Collective) -> Result:
        """Return the same for a collective that differs in its size only."""
        if self.level is None or self.level.collective == collective:
            return self
        return attrs.evolve(self, level=with_collective(self.level, collective))


def with_collective(level: Scheduled, collective: Collective) -> Scheduled:
    """Return the same transfers or trees for a collective that differs in its size only."""
    if isinstance(level, SymmetricSchedule):
        return attrs.evolve(level, seed=attrs.evolve(level.seed, collective=collective))
    if isinstance(level, SymmetricForest):
        return level.revised(collective)
    return attrs.evolve(level, collective=collective)


@attrs.frozen
class Model:
    """The latency model, the bandwidth, gamma and epsilon of :func:`~collc.backends.simulator.simulate`."""

    latency: Latency
    bandwidth: Fraction | None
    gamma: Fraction | None = None
    epsilon: Fraction | None = None

    @classmethod
    def of(cls, auto: Auto) -> Model:
        """Return the model that the options of ``auto`` describe."""
        latency = LATENCIES[auto.latency]
        latency = latency if auto.alpha is None else attrs.evolve(latency, base=auto.alpha)
        return cls(latency, auto.bandwidth, None if auto.reduction is None else 1 / auto.reduction, auto.launch)

    def least_latency(self, topology: Topology) -> Fraction:
        """Return seconds that every message takes at least."""
        if self.latency.base is not None:
            return self.latency.base
        latencies = [kind.latency for kind in topology.classes]
        return min(latencies) if any(latencies) else DEFAULT_ALPHA

    def assumed(self, topology: Topology) -> tuple[str, ...]:
        """Return the values that neither the topology nor an option gives."""
        return assumptions(topology, self.latency, self.bandwidth)

    def measure(self, algorithm: Pass, problem: Problem, lift: Lift | None = None) -> Result:
        """Return the times of an algorithm's schedule; raise its error if it does not apply.

        ``lift`` returns the schedule in which ranks relay, if some do; the result is without a schedule then.
        """
        if lift is not None:
            return self.simulated(lift(_scheduled(algorithm, problem)))
        sent = algorithm.messages(problem)
        if sent is not None and (sent.reduced is not None or not self._gamma(problem.topology)):
            return self.simulated(sent)
        level = _scheduled(algorithm, problem)
        return attrs.evolve(self.simulated(level), level=level)

    def simulated(self, level: Simulable) -> Result:
        """Return the times of a schedule in the simulator."""
        if isinstance(level, SymmetricSchedule) and level.orbits is None:
            level = traffic_of_one(level)
        found = simulate(level, latency=self.latency, bandwidth=self.bandwidth, gamma=self.gamma, epsilon=self.epsilon)
        scale = found.seconds_per_unit
        steps = [(one.times, [(latency, share * scale) for latency, share in one.slowest]) for one in found.steps]
        return Result(Times.of_steps([*steps, (1, [(found.epsilon, found.adding)])]), found.num_steps)

    def _gamma(self, topology: Topology) -> Fraction:
        return topology.gamma if self.gamma is None else self.gamma

    def overheads(self, topology: Topology, reduced: Fraction) -> Line:
        """Return the launch, and the seconds a byte in which ranks add ``reduced`` of M."""
        epsilon = topology.epsilon if self.epsilon is None else self.epsilon
        return epsilon, self._gamma(topology) * reduced

    def meets_bound(self, level: Scheduled, times: Times) -> bool:
        """Return whether the bandwidth time meets the lower bound from the links of every single rank."""
        from collc.ir.costs.bounds import bandwidth_bound

        topology = level.topology
        floor = bandwidth_bound(topology, level.collective) if topology.is_direct else None
        total = topology.node_bandwidth
        scale = unit_seconds(topology, self.bandwidth)
        return bool(floor is not None and total and isinstance(level, (Schedule, SymmetricSchedule))
                    and times.slope[-1] * total == floor * scale)  # fmt: skip


def _scheduled(algorithm: Pass, problem: Problem) -> Scheduled:
    level = algorithm.run(problem)
    assert isinstance(level, Scheduled), "a scheduler returns a schedule"
    return level


@attrs.frozen(eq=False)
class MeasuredForest:
    """A forest with its times for any number of pieces; ``relayed``: ranks that are no members are in its trees.

    ``work`` are the steps of work that growing it took.
    """

    forest: Forest | SymmetricForest
    model: Model
    amount: Loads
    relayed: bool = False
    work: int = 0

    @classmethod
    def of(
        cls, forest: Forest | SymmetricForest, model: Model, lift: Lift | None = None, work: int = 0
    ) -> MeasuredForest:
        """Return a forest with the loads of its trees on the links, of trees in which ranks relay by ``lift``."""
        found = forest if lift is None else lift(forest)
        assert isinstance(found, Forest | SymmetricForest), "trees stay trees"
        return cls(found, model, loads(found), lift is not None, work)

    def pieces(self, sizes: Sequence[int]) -> list[int]:
        """Return the best numbers of pieces for these sizes (bytes), each once."""
        most = pieces_that_fit(self.forest)
        alpha = self._alpha
        model = self.model
        given = (alpha, model.bandwidth, most, model.gamma, self.amount if not self.relayed else None)
        return sorted({best_pieces(self.forest, size, *given) for size in sizes})

    def least(self, size: int) -> Fraction:
        """Return seconds that no number of pieces undercuts at a size (bytes)."""
        topology = self.forest.topology
        per_byte = self.amount.busiest * unit_seconds(topology, self.model.bandwidth) / self.forest.vector
        return self.amount.steps * self.model.least_latency(topology) + size * per_byte

    def measure(self, pieces: int) -> Result:
        """Return the times with this number of pieces; without a schedule if ranks relay."""
        found = self._measured(pieces)
        return attrs.evolve(found, level=None) if self.relayed else found

    def _measured(self, pieces: int) -> Result:
        one = self.forest
        forest = attrs.evolve(one, pieces=pieces) if isinstance(one, Forest) else one.revised(pieces=pieces)
        if not self._by_rounds:
            return attrs.evolve(self.model.simulated(forest), level=forest)
        topology, shares = forest.topology, forest.vector
        scale = unit_seconds(topology, self.model.bandwidth) / (shares * pieces)
        rounds = self.amount.rounds(pieces)
        steps = [(count, self._lines(pairs, scale)) for count, pairs in rounds]
        reduced = Fraction(self.amount.reduced(pieces), shares * pieces)
        steps.append((1, [self.model.overheads(topology, reduced)]))
        return Result(Times.of_steps(steps), sum(count for count, _ in rounds), forest)

    @property
    def _by_rounds(self) -> bool:
        """Whether latencies are those of the links, or all equal, as rounds need."""
        latency = self.model.latency
        return not (latency.per_hop or latency.overhead or latency.cable)

    @property
    def _alpha(self) -> Fraction | None:
        if self.model.latency.base is not None:
            return self.model.latency.base
        return None if any(kind.latency for kind in self.forest.topology.classes) else DEFAULT_ALPHA

    def _lines(self, pairs: Sequence[Line], scale: Fraction) -> list[Line]:
        alpha = self._alpha
        return [(latency if alpha is None else alpha, per_byte * scale) for latency, per_byte in pairs]
