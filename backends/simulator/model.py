"""Time by congestion and distance: what every step puts on every link, and how long its slowest message takes."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property
from math import lcm, log2
from typing import Any

import attrs
import numpy as np

from collc.ir.cost import DEFAULT_BANDWIDTH, Point
from collc.ir.topology import Topology

from .convert import Level, traffic_of
from .latency import Latency
from .network import Routed, route
from .numbers import latency_numbers, roomy, total
from .traffic import Traffic

__all__ = ["ROUTINGS", "Simulation", "StepLoad", "simulate"]

Array = np.ndarray[Any, np.dtype[Any]]

#: How messages find their ways: as the schedule says, or by shortest ones whatever it says.
ROUTINGS = ("as-scheduled", "minimal")


@attrs.frozen
class StepLoad:
    """What a step does to the network; it is done ``times`` times.

    ``load`` is the largest share of M that a link carries, ``link`` the first link that takes longest. ``slowest`` are
    pairs (latency in seconds, share of M per unit of bandwidth) of messages that may be the last to arrive: latencies
    fall, shares rise. ``largest`` is the most from a rank to another, a share of M per unit of the greatest bandwidth.
    """

    times: int
    messages: int
    hops: int
    load: Fraction
    link: int
    largest: Fraction
    slowest: tuple[tuple[Fraction, Fraction], ...]

    def time(self, seconds: Fraction) -> Fraction:
        """Return the seconds it takes where M takes ``seconds`` over a unit of bandwidth; once."""
        return max((wait + share * seconds for wait, share in self.slowest), default=Fraction(0))

    @property
    def busiest(self) -> Fraction:
        """The share of M per unit of bandwidth of the link that takes longest."""
        return self.slowest[-1][1] if self.slowest else Fraction(0)


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
    """

    traffic: Traffic = attrs.field(repr=False)
    ways: Routed = attrs.field(repr=False)
    steps: tuple[StepLoad, ...] = attrs.field(repr=False)
    routing: str
    latency: Latency
    seconds_per_unit: Fraction
    reference: Fraction

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
        """Return the exact seconds for M of so many bytes."""
        seconds = self.seconds_per_unit * size
        return sum((step.times * step.time(seconds) for step in self.steps), Fraction(0))

    def loads(self, step: int) -> tuple[Array, int]:
        """Return what every link carries in a step, as numerators of shares of M, and their denominator."""
        one = _Step(self.traffic, self.ways, self.latency, step)
        return one.loads, one.whole

    def arrivals(self, step: int, rows: Array, size: int) -> list[Fraction]:
        """Return the exact seconds from the beginning of a step to when each of some of its messages is there."""
        one = _Step(self.traffic, self.ways, self.latency, step)
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
) -> Simulation:
    """Return what a schedule costs on the links of its own topology, or of another ``network`` of as many ranks.

    All messages of a step start together; each is as late as ``latency`` says of its way, and then takes as long as the
    link of it that has most to carry in the step. The step lasts until the last message is there, and the next begins.
    ``routing`` is one of :data:`ROUTINGS`; on another network, ways are always ``minimal``. ``bandwidth`` is B, the
    total out of a rank (bytes per second), as :func:`collc.ir.cost.predict` takes it; ``dimensions`` is the D of the
    deficiencies, see :class:`Simulation`. Raises C0301 where a message has
    no way, and ValueError for a network of another number of ranks or a routing that is not known.
    """
    if routing not in ROUTINGS:
        raise ValueError(f"routing is one of {', '.join(ROUTINGS)}")
    traffic = traffic_of(level) if network is None else traffic_of(level).on(network)
    if traffic.routes is None:
        routing = "minimal"
    latency = latency or Latency()
    ways = route(traffic, routing, latency.lengths)
    return Simulation(
        traffic, ways, _steps(traffic, ways, latency), routing, latency,
        seconds_per_unit(traffic.topology, bandwidth), _reference(traffic.topology, dimensions),
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


# ---- one step


def _steps(traffic: Traffic, ways: Routed, latency: Latency) -> tuple[StepLoad, ...]:
    largest = _largest(traffic)
    return tuple(_Step(traffic, ways, latency, number, largest[number]).load() for number in range(len(traffic.times)))


def _largest(traffic: Traffic) -> list[Fraction]:
    """Return for every step the most from a rank to another, as a share of M per unit of the greatest bandwidth.

    Where parallel links join the two, it is what each of these gets.
    """
    topology, nodes = traffic.topology, traffic.topology.num_nodes
    joined, links = np.unique(topology.src.astype(np.int64) * nodes + topology.dst, return_counts=True)
    pair, which = np.unique(traffic.src.astype(np.int64) * nodes + traffic.dst, return_inverse=True)
    place = np.minimum(np.searchsorted(joined, pair), max(len(joined) - 1, 0))
    parallel = np.where(joined[place] == pair, links[place], 1) if len(joined) else np.ones_like(pair)
    common = lcm(*np.unique(parallel).tolist())
    both, row = np.unique(traffic.step.astype(np.int64) * max(len(pair), 1) + which, return_inverse=True)
    step, which = np.divmod(both, max(len(pair), 1))
    amount = total(row, roomy(traffic.amount, common), len(both)) * (common // parallel)[which]
    most = np.zeros(len(traffic.times), dtype=amount.dtype)
    np.maximum.at(most, step, amount)
    whole = traffic.whole * common * max(kind.bandwidth for kind in topology.classes)
    return [int(one) / whole for one in most]


@attrs.frozen(eq=False)
class _Step:
    """The messages of one step on their ways. Loads are whole numbers of M/whole; times of M/(whole * scale) over a
    unit of bandwidth.
    """

    traffic: Traffic
    ways: Routed
    latency: Latency
    number: int
    largest: Fraction = Fraction(0)

    @property
    def rows(self) -> Array:
        a, b = self.traffic.step_start[self.number : self.number + 2].tolist()
        return np.arange(a, b)

    @property
    def whole(self) -> int:
        return self.traffic.whole * self.ways.unit

    @cached_property
    def scale(self) -> int:
        return lcm(*(kind.bandwidth.numerator for kind in self.traffic.topology.classes))

    @cached_property
    def weight(self) -> Array:
        """What a part on each link takes, in 1/scale."""
        weights = [int(self.scale / kind.bandwidth) for kind in self.traffic.topology.classes]
        kinds = np.array(weights, dtype=np.int64 if max(weights) < 1 << 62 else object)
        return kinds[self.traffic.topology.link_class]

    @cached_property
    def amount(self) -> Array:
        return roomy(self.traffic.amount[self.rows], self.ways.unit * int(self.weight.max(initial=1)))

    @cached_property
    def loads(self) -> Array:
        return self.ways.loads(self.rows, self.amount)

    @cached_property
    def taking(self) -> Array:
        """How long every link takes."""
        return self.loads * self.weight

    def load(self) -> StepLoad:
        """Return what the step does to the network."""
        times, rows = int(self.traffic.times[self.number]), self.rows
        if not len(rows):
            return StepLoad(times, 0, 0, Fraction(0), 0, Fraction(0), ())
        return StepLoad(
            times, len(rows), int(self.way[:, 0].max()), Fraction(int(self.loads.max()), self.whole),
            int(np.argmax(self.taking)), self.largest, self._slowest(),
        )  # fmt: skip

    def _slowest(self) -> tuple[tuple[Fraction, Fraction], ...]:
        """Return (latency, share per unit of bandwidth) of messages that no other exceeds in both; latencies fall."""
        late, kind = self.latencies
        most, rows = int(self.taking.max()), self.rows
        found: list[tuple[Fraction, int]] = []
        for wait in sorted(set(late), reverse=True):
            here = rows[np.isin(kind, [i for i, other in enumerate(late) if other == wait])]
            # Links that some message as late as this uses; of all messages these are all links in use.
            used = self.taking
            if len(here) < len(rows):
                used = used * (self.ways.loads(here, np.ones_like(here)) > 0)
            busiest = int(used.max())
            if not found or busiest > found[-1][1]:
                found.append((wait, busiest))
            if busiest == most:
                break
        return tuple((wait, Fraction(busiest, self.whole * self.scale)) for wait, busiest in found)

    @cached_property
    def way(self) -> Array:
        a, b = self.traffic.step_start[self.number : self.number + 2].tolist()
        return self.ways.way(slice(a, b))

    @cached_property
    def latencies(self) -> tuple[list[Fraction], Array]:
        """The latencies of the different kinds of ways, and the kind of each message."""
        topology = self.traffic.topology
        unit = latency_numbers(topology)[1]
        example, kind = _kinds(self.way)
        found = self.way[example].tolist()
        late = [self.latency.of(topology, links, cables, Fraction(own, unit)) for links, cables, own in found]
        return late, kind

    def arrivals(self, rows: Array, seconds: Fraction) -> list[Fraction]:
        """Return when messages ``rows`` arrive, from the start of the step; M takes ``seconds`` over a unit."""
        late, kind = self.latencies
        of, link, _ = self.ways.incidence(rows)
        busiest = np.zeros(len(rows), dtype=self.taking.dtype)
        np.maximum.at(busiest, of, self.taking[link])
        per = seconds / (self.whole * self.scale)
        mine = kind[rows - self.rows[0]].tolist() if len(rows) else []
        return [late[k] + most * per for k, most in zip(mine, busiest.tolist(), strict=True)]


def _kinds(lines: Array) -> tuple[Array, Array]:
    """Return one of each kind of equal lines (its number), and the kind of every line."""
    kind = np.zeros(len(lines), dtype=np.int64)
    for column in lines.T:
        if (column != column[0]).any():
            values, number = np.unique(column, return_inverse=True)
            kind = np.unique(kind * len(values) + number, return_inverse=True)[1]
    return np.unique(kind, return_index=True)[1] if kind.any() else kind[:1], kind
