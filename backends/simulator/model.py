"""Time by congestion and distance: the load of every link in every step, and the time of the slowest message."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property
from math import log2

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.costs.cost import DEFAULT_ALPHA, DEFAULT_BANDWIDTH, Point, show_gigabytes, unit_seconds
from collc.ir.shown import brief_fields
from collc.ir.topology import Topology

from .convert import Level, traffic_of
from .latency import Latency
from .network import Routed, route
from .numbers import roomy
from .step import Step, StepLoad, step_loads
from .traffic import Traffic

__all__ = ["ROUTINGS", "Simulation", "assumptions", "simulate"]

#: The routes of messages: those of the schedule, or shortest routes.
ROUTINGS = ("as-scheduled", "minimal")


@attrs.frozen(eq=False)
class Simulation:
    """The time that a schedule takes on a network. All numbers are exact except the predicted ``points``.

    ``seconds_per_unit`` is the time of one byte over one unit of the topology's bandwidth.

    The deficiencies are those of the Swing paper, section 2, whose networks have 2D ports a rank. An allreduce takes
    log2(p) alpha Lambda + n/D beta Psi Xi. Psi Xi is :attr:`congestion`: it counts the most loaded link of every step.
    Psi is the congestion if every rank had a port for each other rank: a step then takes as long as the most data from
    one rank to another. Lambda counts steps. All describe this collective, relative to the figures of an allreduce.

    ``reference`` is D/beta in the topology's unit: half the bandwidth out of a rank (the largest, if ranks differ),
    unless the caller gives D. The ranks of a HyperX have more links than they can use; there D is the number of
    dimensions, as in the paper.

    With ``run_ahead`` ranks do not wait for all others between repetitions of a step. In a ring, for example, a message
    waits only for the one before it. Then the mean latency of the messages counts instead of the greatest, except in
    the last repetition. That is exact for rings, whose messages meet all latencies in turn. It is too little for
    exchanges.

    ``gamma`` (seconds a byte) is the time in which a rank adds what it has received: after every step, all ranks wait
    for the one that adds most. ``epsilon`` (seconds) is the launch, once.

    ``others`` are alternatives, such as the same trees with another number of pieces.
    """

    traffic: Traffic = attrs.field(repr=False)
    routed: Routed = attrs.field(repr=False)
    steps: tuple[StepLoad, ...] = attrs.field(repr=False)
    routing: str
    latency: Latency
    seconds_per_unit: Fraction
    reference: Fraction
    run_ahead: bool = False
    others: tuple[Simulation, ...] = attrs.field(default=(), repr=False)
    gamma: Fraction = Fraction(0)
    epsilon: Fraction = Fraction(0)

    __repr__ = brief_fields

    @property
    def topology(self) -> Topology:
        """The network that carries the messages."""
        return self.traffic.topology

    @property
    def num_steps(self) -> int:
        """Steps of the schedule, with every repetition."""
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
        """Psi: the congestion if messages to different ranks shared no link, and did not divide among routes."""
        return sum((step.times * step.largest for step in self.steps), Fraction(0)) * self.reference

    @property
    def congestion_deficiency(self) -> Fraction | None:
        """Xi: how much longer messages take because they share links. None if there are no messages.

        It can be less than 1 if messages divide among links.
        """
        return self.congestion / self.bandwidth_deficiency if self.bandwidth_deficiency else None

    @property
    def latency_deficiency(self) -> float | None:
        """Lambda: steps over log2 of the ranks; None for one rank. See :attr:`exact_latency_deficiency`."""
        ranks = self.traffic.collective.num_members
        return self.num_steps / log2(ranks) if ranks > 1 else None

    @property
    def exact_latency_deficiency(self) -> Fraction | None:
        """Lambda as a rational number, if the number of ranks is a power of two; else None."""
        ranks = self.traffic.collective.num_members
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
        """Return the exact seconds for M of ``size`` bytes: those of the fastest of this and the ``others``."""
        seconds = self.seconds_per_unit * size
        own_time = sum((self._duration(step, seconds) for step in self.steps), self.epsilon + self.adding * size)
        return min([own_time, *(other.time(size) for other in self.others)])

    @cached_property
    def adding(self) -> Fraction:
        """T_C per byte of M: the seconds in which ranks add, over all steps."""
        return self.gamma * self.traffic.reduced if self.gamma and self.traffic.reduced is not None else Fraction(0)

    def waiting(self, waiting: bool) -> Simulation:
        """Return the same with or without ranks that wait for all others before every step."""
        others = tuple(other.waiting(waiting) for other in self.others)
        return attrs.evolve(self, run_ahead=not waiting, others=others)

    def _duration(self, step: StepLoad, seconds: Fraction) -> Fraction:
        """Return the time of all repetitions of a step."""
        if not self.run_ahead or step.times == 1:
            return step.times * step.time(seconds)
        return step.time(seconds) + (step.times - 1) * step.time_ahead(seconds)

    def loads(self, step: int) -> tuple[Array, int]:
        """Return the load of every link in a step: numerators of shares of M, and their denominator."""
        one = Step(self.traffic, self.routed, self.latency, step)
        return one.loads, one.whole

    def arrivals(self, step: int, rows: Array, size: int) -> list[Fraction]:
        """Return the exact seconds from the beginning of a step to the arrival of each of the messages ``rows``."""
        one = Step(self.traffic, self.routed, self.latency, step)
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
    gamma: Fraction | None = None,
    epsilon: Fraction | None = None,
) -> Simulation:
    """Return the cost of a schedule on the links of its own topology, or of another ``network`` with as many ranks.

    All messages of a step start together. A message takes the ``latency`` of its route plus the time of its busiest
    link in the step. The next step begins when the last message has arrived. ``routing`` is one of :data:`ROUTINGS`; on
    another network, routes are always ``minimal``. ``bandwidth`` is B, the total out of a rank (bytes per second), as
    in :func:`collc.ir.costs.cost.predict`. ``dimensions`` is the D of the deficiencies. With ``run_ahead``, repetitions
    of a step do not wait for each other, see :class:`Simulation`. ``gamma`` and ``epsilon`` are those of
    :func:`collc.ir.costs.cost.predict`, by default the network's. Raises C0301 if a message has no route. Raises
    ValueError for a network of another number of ranks, an unknown routing, or a gamma if it is unknown what
    ranks add.
    """
    if routing not in ROUTINGS:
        raise ValueError(f"routing must be one of {', '.join(ROUTINGS)}")
    traffic = traffic_of(level) if network is None else traffic_of(level).on(network)
    if traffic.routes is None:
        routing = "minimal"
    latency = latency or Latency()
    gamma = traffic.topology.gamma if gamma is None else gamma
    if gamma and traffic.reduced is None:
        raise ValueError("gamma needs to know what the ranks add: `reduced` of the traffic")
    routed = route(traffic, routing, latency.lengths)
    return Simulation(
        traffic, routed, step_loads(traffic, routed, latency), routing, latency,
        unit_seconds(traffic.topology, bandwidth), _reference(traffic.topology, dimensions), run_ahead,
        gamma=gamma, epsilon=traffic.topology.epsilon if epsilon is None else epsilon,
    )  # fmt: skip


def assumptions(topology: Topology, latency: Latency, bandwidth: Fraction | None) -> tuple[str, ...]:
    """Return the values that a simulation assumes because neither the topology nor the caller gives them."""
    found = []
    if latency.base is None and not any(kind.latency for kind in topology.classes):
        found.append(f"{DEFAULT_ALPHA * 10**6} us a message")
    if bandwidth is None and topology.unit != "B/s":
        of = "out of a node" if topology.is_direct and topology.node_bandwidth is not None else "a link unit"
        found.append(f"{show_gigabytes(DEFAULT_BANDWIDTH)} {of}")
    return tuple(found)


def _reference(topology: Topology, dimensions: Fraction | None) -> Fraction:
    """Return D/beta: D times the bandwidth of a link, by default half the bandwidth out of a rank."""
    origin = topology.origin
    if dimensions is None and origin is not None and origin.name == "hyperx":
        dimensions = Fraction(sum(isinstance(size, int) and size > 1 for size in origin.arguments))
    if dimensions is not None:
        return dimensions * max(kind.bandwidth for kind in topology.classes)
    if topology.node_bandwidth is not None:
        return topology.node_bandwidth / 2
    count = np.zeros((topology.num_nodes, len(topology.classes)), dtype=np.int64)
    np.add.at(count, (topology.src, topology.link_class), 1)
    rows = np.unique(count[: topology.num_ranks], axis=0)
    widths = [kind.bandwidth for kind in topology.classes]
    totals = (sum((w * int(n) for w, n in zip(widths, row, strict=True)), Fraction(0)) for row in rows)
    return max(totals, default=Fraction(0)) / 2
