"""How long each algorithm takes: what its schedule, or its messages alone, do to the links in the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import attrs

from collc.backends.simulator import LATENCIES, Latency, simulate
from collc.ir.cost import DEFAULT_ALPHA, DEFAULT_BANDWIDTH, seconds_per_unit
from collc.ir.pieces import best_pieces
from collc.ir.rounds import Loads, loads
from collc.ir.schedule import Forest, Schedule
from collc.ir.spec import Problem
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.topology import Topology

from .options import Auto
from .times import Line, Times

__all__ = ["Grown", "Model", "Result"]

#: the most chunks that pieces of trees make of a shard
_MOST_CHUNKS = 1 << 12


@attrs.frozen(eq=False)
class Result:
    """What was measured: the function, the steps, and the schedule itself where it was made."""

    times: Times
    steps: int
    level: Any = None


@attrs.frozen
class Model:
    """What messages take: latency by the way they go, and bandwidth, as :func:`~collc.backends.simulator.simulate`."""

    latency: Latency
    bandwidth: Fraction | None

    @classmethod
    def of(cls, auto: Auto) -> Model:
        latency = LATENCIES[auto.latency]
        return cls(latency if auto.alpha is None else attrs.evolve(latency, base=auto.alpha), auto.bandwidth)

    def assumed(self, topology: Topology) -> tuple[str, ...]:
        """Return what neither the topology nor an option says."""
        found = []
        if self.latency.base is None and not any(kind.latency for kind in topology.classes):
            found.append(f"{DEFAULT_ALPHA * 10**6} us a message")
        if self.bandwidth is None and topology.unit != "B/s":
            of = "out of a node" if topology.is_direct and topology.node_bandwidth is not None else "a link unit"
            found.append(f"{DEFAULT_BANDWIDTH * 8 / 10**9} Gbps {of}")
        return tuple(found)

    def measure(self, algorithm: Any, problem: Problem) -> Result:
        """Return what an algorithm's schedule takes; raise what the algorithm raises where it does not apply."""
        if hasattr(algorithm, "messages"):
            return self.simulated(algorithm.messages(problem))
        level = algorithm.run(problem)
        return attrs.evolve(self.simulated(level), level=level)

    def simulated(self, level: Any) -> Result:
        """Return what a level takes in the simulator."""
        found = simulate(level, latency=self.latency, bandwidth=self.bandwidth)
        scale = found.seconds_per_unit
        steps = [(one.times, [(wait, share * scale) for wait, share in one.slowest]) for one in found.steps]
        return Result(Times.of_steps(steps), found.num_steps)

    def meets_bound(self, level: Any, times: Times) -> bool:
        """Return whether no schedule moves the data in less bandwidth time, by the links of every single rank."""
        from collc.ir.bounds import bandwidth_bound

        topology = level.topology
        floor = bandwidth_bound(topology, level.collective) if topology.is_direct else None
        total = topology.node_bandwidth
        scale = seconds_per_unit(topology.unit, total, self.bandwidth)
        return bool(floor is not None and total and isinstance(level, (Schedule, SymmetricSchedule))
                    and times.slope[-1] * total == floor * scale)  # fmt: skip


@attrs.frozen(eq=False)
class Grown:
    """A forest, and what its trees take in any number of pieces."""

    forest: Forest
    model: Model
    amount: Loads

    @classmethod
    def of(cls, forest: Forest, model: Model) -> Grown:
        return cls(forest, model, loads(forest))

    def pieces(self, sizes: Sequence[int]) -> list[int]:
        """Return the numbers of pieces that are best at these sizes, each once."""
        most = max(_MOST_CHUNKS // self.forest.parts, 1)
        alpha = self._alpha
        found = [best_pieces(self.forest, size, alpha, self.model.bandwidth, most) for size in sizes]
        return sorted(set(found))

    def measure(self, pieces: int) -> Result:
        """Return what that many pieces take."""
        forest = attrs.evolve(self.forest, pieces=pieces)
        if not self._by_rounds:
            return attrs.evolve(self.model.simulated(forest), level=forest)
        topology, collective = forest.topology, forest.collective
        shares = forest.parts * (1 if forest.whole else collective.num_ranks)
        total = topology.node_bandwidth if topology.is_direct else None
        scale = seconds_per_unit(topology.unit, total, self.model.bandwidth) / (shares * pieces)
        rounds = self.amount.rounds(pieces)
        steps = [(count, self._lines(pairs, scale)) for count, pairs in rounds]
        return Result(Times.of_steps(steps), sum(count for count, _ in rounds), forest)

    @property
    def _by_rounds(self) -> bool:
        """Whether messages are late by their links' own latencies or all alike, as rounds have it."""
        late = self.model.latency
        return not (late.per_hop or late.overhead or late.cable)

    @property
    def _alpha(self) -> Fraction | None:
        if self.model.latency.base is not None:
            return self.model.latency.base
        return None if any(kind.latency for kind in self.forest.topology.classes) else DEFAULT_ALPHA

    def _lines(self, pairs: Sequence[Line], scale: Fraction) -> list[Line]:
        alpha = self._alpha
        return [(wait if alpha is None else alpha, per * scale) for wait, per in pairs]
