"""Time by congestion and distance: what every step puts on every link, and how long its slowest message takes."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property
from math import log2
from typing import Any

import attrs
import numpy as np

from collc.ir.cost import DEFAULT_BANDWIDTH, Point
from collc.ir.topology import Topology

from .convert import Level, traffic_of
from .latency import Latency
from .network import Routed, route
from .numbers import roomy
from .step import Step, StepLoad, step_loads
from .traffic import Traffic

__all__ = ["ROUTINGS", "Simulation", "simulate"]

Array = np.ndarray[Any, np.dtype[Any]]

#: How messages find their ways: as the schedule says, or by shortest ones whatever it says.
ROUTINGS = ("as-scheduled", "minimal")


@attrs.frozen(eq=False)
class Simulation:
    """How long what a schedule sends takes on a network: exact but for the predicted ``points``.

    ``seconds_per_unit`` is how long a byte over a unit of the topology's bandwidth takes.

    The deficiencies are those of section 2 of the Swing paper, whose networks have 2D ports a rank: an allreduce takes
    log2(p) alpha Lambda + n/D beta Psi Xi. Psi Xi is :attr:`congestion`, in which every step's most loaded link counts;
    Psi is the same where every rank had a port for each other, so where a step takes as long as what is most from one
    rank to another; Lambda counts steps. All are of this collective as it is, over the figures of an allreduce.

    ``reference`` is D/beta in the topology's unit: half the bandwidth out of a rank (the largest, where ranks differ),
    unless D is given. Of a HyperX, whose ranks have more links than they have use for, D is the number of dimensions,
    as in the paper.

    With ``run_ahead`` ranks do not wait for all others between repetitions of a step, as in a ring, where a message
    waits for the one before it alone: but for the last repetition, the mean of the messages' latencies counts and not
    the greatest. That is exact for rings, whose messages meet all latencies in turn, and too little for exchanges.

    ``others`` may be done instead, as the same trees with the data in other pieces.
    """

    traffic: Traffic = attrs.field(repr=False)
    ways: Routed = attrs.field(repr=False)
    steps: tuple[StepLoad, ...] = attrs.field(repr=False)
    routing: str
    latency: Latency
    seconds_per_unit: Fraction
    reference: Fraction
    run_ahead: bool = False
    others: tuple[Simulation, ...] = attrs.field(default=(), repr=False)

    @property
    def topology(self) -> Topology:
        return self.traffic.topology

    @property
    def num_steps(self) -> int:
        return self.traffic.num_steps

    @cached_property
    def per_unit(self) -> Fraction:
        """The sum over steps of the share of M per unit of bandwidth that the slowest link carries."""
        return sum((step.times * step.busiest for step in self.steps), Fraction(0))

    @property
    def congestion(self) -> Fraction:
        """Psi times Xi: the bandwidth term over n/D beta, exactly."""
        return self.per_unit * self.reference

    @cached_property
    def bandwidth_deficiency(self) -> Fraction:
        """Psi: what the congestion would be if messages to different ranks did not meet, nor divided on their way."""
        return sum((step.times * step.largest for step in self.steps), Fraction(0)) * self.reference

    @property
    def congestion_deficiency(self) -> Fraction | None:
        """Xi: how much longer messages take because they share links; nothing where there are none.

        It may be less than 1 where messages divide among links.
        """
        return self.congestion / self.bandwidth_deficiency if self.bandwidth_deficiency else None

    @property
    def latency_deficiency(self) -> float | None:
        """Lambda: steps over log2 of the ranks; nothing for one rank. See :attr:`exact_latency_deficiency`."""
        ranks = self.traffic.collective.num_ranks
        return self.num_steps / log2(ranks) if ranks > 1 else None

    @property
    def exact_latency_deficiency(self) -> Fraction | None:
        """Lambda where the number of ranks is a power of two, so that it is rational."""
        ranks = self.traffic.collective.num_ranks
        return Fraction(self.num_steps, ranks.bit_length() - 1) if ranks > 1 and ranks & (ranks - 1) == 0 else None

    @property
    def max_link_load(self) -> Fraction:
        """The largest share of M that a link carries in a step."""
        return max((step.load for step in self.steps), default=Fraction(0))

    @cached_property
    def sent(self) -> Fraction:
        """The most that a rank sends over all steps, as a share of M."""
        m = self.traffic
        amount = roomy(m.amount, int(m.times.max(initial=1))) * m.times.astype(np.int64)[m.step]
        total = np.zeros(m.collective.num_ranks, dtype=amount.dtype)
        np.add.at(total, m.src, amount)
        return Fraction(int(total.max(initial=0)), m.whole)

    def time(self, size: int) -> Fraction:
        """Return the exact seconds for M of so many bytes, or those of one of the ``others`` if that is faster."""
        seconds = self.seconds_per_unit * size
        own = sum((self._lasts(step, seconds) for step in self.steps), Fraction(0))
        return min([own, *(other.time(size) for other in self.others)])

    def _lasts(self, step: StepLoad, seconds: Fraction) -> Fraction:
        """Return what all repetitions of a step take."""
        if not self.run_ahead or step.times == 1:
            return step.times * step.time(seconds)
        return step.time(seconds) + (step.times - 1) * step.time_ahead(seconds)

    def loads(self, step: int) -> tuple[Array, int]:
        """Return what every link carries in a step, as numerators of shares of M, and their denominator."""
        one = Step(self.traffic, self.ways, self.latency, step)
        return one.loads, one.whole

    def arrivals(self, step: int, rows: Array, size: int) -> list[Fraction]:
        """Return the exact seconds from the beginning of a step to when each of some of its messages is there."""
        one = Step(self.traffic, self.ways, self.latency, step)
        return one.arrivals(rows, self.seconds_per_unit * size)

    def points(self, sizes: Iterable[int]) -> tuple[Point, ...]:
        """Return time (seconds) and M over time (bytes per second) at each size (bytes)."""
        found = []
        for size in sizes:
            time = self.time(size)
            found.append(Point(size, float(time), float(size / time) if time else 0.0))
        return tuple(found)


def simulate(
    level: Level,
    *,
    network: Topology | None = None,
    routing: str = "as-scheduled",
    latency: Latency | None = None,
    bandwidth: Fraction | None = None,
    dimensions: Fraction | None = None,
    run_ahead: bool = False,
) -> Simulation:
    """Return what a schedule costs on the links of its own topology, or of another ``network`` of as many ranks.

    All messages of a step start together; each is as late as ``latency`` says of its way, and then takes as long as the
    link of it that has most to carry in the step. The step lasts until the last message is there, and the next begins.
    ``routing`` is one of :data:`ROUTINGS`; on another network, ways are always ``minimal``. ``bandwidth`` is B, the
    total out of a rank (bytes per second), as :func:`collc.ir.cost.predict` takes it; ``dimensions`` is the D of the
    deficiencies and ``run_ahead`` says that repetitions of a step do not wait for each other, see :class:`Simulation`.
    Raises C0301 where a message has no way, and ValueError for a network of another number of ranks or a routing that
    is not known.
    """
    if routing not in ROUTINGS:
        raise ValueError(f"routing is one of {', '.join(ROUTINGS)}")
    traffic = traffic_of(level) if network is None else traffic_of(level).on(network)
    if traffic.routes is None:
        routing = "minimal"
    latency = latency or Latency()
    ways = route(traffic, routing, latency.lengths)
    return Simulation(
        traffic, ways, step_loads(traffic, ways, latency), routing, latency,
        seconds_per_unit(traffic.topology, bandwidth), _reference(traffic.topology, dimensions), run_ahead,
    )  # fmt: skip


def seconds_per_unit(topology: Topology, bandwidth: Fraction | None) -> Fraction:
    """Return how long a byte over a unit of bandwidth takes, by the rules of :func:`collc.ir.cost.predict`."""
    total = topology.node_bandwidth if topology.is_direct else None
    if topology.unit == "B/s" and (bandwidth is None or total is None):
        return Fraction(1)
    return (total or 1) / (DEFAULT_BANDWIDTH if bandwidth is None else bandwidth)


def _reference(topology: Topology, dimensions: Fraction | None) -> Fraction:
    """Return D/beta: D times the bandwidth of a link, by default half of what leaves a rank."""
    origin = topology.origin
    if dimensions is None and origin is not None and origin.name == "hyperx":
        dimensions = Fraction(sum(size > 1 for size in origin.arguments))
    if dimensions is not None:
        return dimensions * max(kind.bandwidth for kind in topology.classes)
    if topology.node_bandwidth is not None:
        return topology.node_bandwidth / 2
    table = np.zeros((topology.num_nodes, len(topology.classes)), dtype=np.int64)
    np.add.at(table, (topology.src, topology.link_class), 1)
    rows = np.unique(table[: topology.num_ranks], axis=0)
    widths = [kind.bandwidth for kind in topology.classes]
    totals = (sum((w * int(n) for w, n in zip(widths, row, strict=True)), Fraction(0)) for row in rows)
    return max(totals, default=Fraction(0)) / 2
