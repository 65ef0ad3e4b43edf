"""One step of a schedule on a network: what every link carries, and when the messages are there."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import Any

import attrs
import numpy as np

from .latency import Latency
from .network import Routed
from .numbers import latency_numbers, roomy, total
from .traffic import Traffic

__all__ = ["Step", "StepLoad", "step_loads"]

Array = np.ndarray[Any, np.dtype[Any]]


@attrs.frozen
class StepLoad:
    """What a step does to the network; it is done ``times`` times.

    ``load`` is the largest share of M that a link carries, ``link`` the first link that takes longest. ``slowest`` are
    pairs (latency in seconds, share of M per unit of bandwidth) of messages that may be the last to arrive: latencies
    fall, shares rise. ``largest`` is the most from a rank to another, a share of M per unit of the greatest bandwidth.
    ``mean`` is the mean latency of its messages.
    """

    times: int
    messages: int
    hops: int
    load: Fraction
    link: int
    largest: Fraction
    slowest: tuple[tuple[Fraction, Fraction], ...]
    mean: Fraction = Fraction(0)

    def time(self, seconds: Fraction) -> Fraction:
        """Return the seconds it takes where M takes ``seconds`` over a unit of bandwidth; once."""
        return max((wait + share * seconds for wait, share in self.slowest), default=Fraction(0))

    def time_ahead(self, seconds: Fraction) -> Fraction:
        """Return the seconds that a repetition takes whose ranks wait for no more than the message they send on."""
        return min(self.time(seconds), self.mean + self.busiest * seconds)

    @property
    def busiest(self) -> Fraction:
        """The share of M per unit of bandwidth of the link that takes longest."""
        return self.slowest[-1][1] if self.slowest else Fraction(0)


def step_loads(traffic: Traffic, ways: Routed, latency: Latency) -> tuple[StepLoad, ...]:
    largest = _largest(traffic)
    return tuple(Step(traffic, ways, latency, number, largest[number]).load() for number in range(len(traffic.times)))


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
class Step:
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
            int(np.argmax(self.taking)), self.largest, self._slowest(), self._mean(),
        )  # fmt: skip

    def _mean(self) -> Fraction:
        late, kind = self.latencies
        counts = np.bincount(kind, minlength=len(late)).tolist()
        return sum((count * wait for count, wait in zip(counts, late, strict=True)), Fraction(0)) / len(kind)

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
