"""One step of a schedule on a network: the load of every link, and the arrival of every message."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from math import lcm

import attrs
import numpy as np

from collc.ir.arrays import Array, lexsort
from collc.ir.progress import counting
from collc.ir.ragged import first_of_group
from collc.ir.shown import brief_fields

from .latency import Latency
from .network import Routed
from .numbers import latency_numbers, roomy, total
from .traffic import Traffic

__all__ = ["Step", "StepLoad", "step_loads"]


@attrs.frozen
class StepLoad:
    """The loads of a step that is done ``times`` times.

    ``load`` is the largest share of M that a link carries, ``link`` the first link that takes longest. ``slowest`` are
    pairs (latency in seconds, share of M per unit of bandwidth) of messages that can be the last to arrive: latencies
    fall, shares rise. ``largest`` is the most data from one rank to another, a share of M per unit of the greatest
    bandwidth. ``mean`` is the mean latency of the messages.
    """

    times: int
    messages: int
    hops: int
    load: Fraction
    link: int
    largest: Fraction
    slowest: tuple[tuple[Fraction, Fraction], ...]
    mean: Fraction = Fraction(0)

    __repr__ = brief_fields

    def time(self, seconds: Fraction) -> Fraction:
        """Return the seconds of one repetition, if M takes ``seconds`` over a unit of bandwidth."""
        return max((latency + share * seconds for latency, share in self.slowest), default=Fraction(0))

    def time_ahead(self, seconds: Fraction) -> Fraction:
        """Return the seconds of one repetition, if ranks wait only for the message that they forward."""
        return min(self.time(seconds), self.mean + self.busiest * seconds)

    @property
    def busiest(self) -> Fraction:
        """The share of M per unit of bandwidth of the link that takes longest."""
        return self.slowest[-1][1] if self.slowest else Fraction(0)


def step_loads(traffic: Traffic, routed: Routed, latency: Latency) -> tuple[StepLoad, ...]:
    """Return the loads of every step, in order; a repeated step is one entry."""
    largest = _largest(traffic)
    numbers = counting(range(len(traffic.times)), "loads of steps")
    return tuple(Step(traffic, routed, latency, number, largest[number]).load() for number in numbers)


def _largest(traffic: Traffic) -> list[Fraction]:
    """Return for every step the most data from one rank to another, a share of M per unit of the greatest bandwidth.

    If parallel links join the two, it is the share of one link.
    """
    topology, nodes = traffic.topology, traffic.topology.num_nodes
    joined, links = np.unique(topology.src.astype(np.int64) * nodes + topology.dst, return_counts=True)
    pair = traffic.src.astype(np.int64) * nodes + traffic.dst
    order = lexsort((pair, traffic.step))
    step, pair, amount = traffic.step[order].astype(np.int64), pair[order], traffic.amount[order]
    fresh = first_of_group(step) | first_of_group(pair)
    row, step, pair = np.cumsum(fresh) - 1, step[fresh], pair[fresh]
    place = np.minimum(np.searchsorted(joined, pair), max(len(joined) - 1, 0))
    parallel = np.where(joined[place] == pair, links[place], 1) if len(joined) else np.ones_like(pair)
    common = lcm(*np.unique(parallel).tolist())
    amount = total(row, roomy(amount, common), len(pair)) * (common // parallel)
    largest = np.zeros(len(traffic.times), dtype=amount.dtype)
    np.maximum.at(largest, step, amount)
    whole = traffic.whole * common * max(kind.bandwidth for kind in topology.classes)
    return [int(one) / whole for one in largest]


@attrs.frozen(eq=False)
class Step:
    """The messages of one step on their routes. Loads are whole numbers of M/whole. Times are whole numbers of
    M/(whole * scale) over a unit of bandwidth.
    """

    traffic: Traffic
    routed: Routed
    latency: Latency
    number: int
    largest: Fraction = Fraction(0)

    @property
    def rows(self) -> Array:
        """The rows of the messages in ``traffic``."""
        a, b = self.traffic.step_start[self.number : self.number + 2].tolist()
        return np.arange(a, b)

    @property
    def whole(self) -> int:
        """The denominator of loads: they count M/whole."""
        return self.traffic.whole * self.routed.unit

    @cached_property
    def scale(self) -> int:
        """A common multiple of the bandwidths' numerators, so that times are whole numbers."""
        return lcm(*(kind.bandwidth.numerator for kind in self.traffic.topology.classes))

    @cached_property
    def weight(self) -> Array:
        """The time of one unit of load on each link, in 1/scale."""
        weights = [int(self.scale / kind.bandwidth) for kind in self.traffic.topology.classes]
        kinds = np.array(weights, dtype=np.int64 if max(weights) < 1 << 62 else object)
        return kinds[self.traffic.topology.link_class]

    @cached_property
    def amount(self) -> Array:
        """The amount of every message, as in ``traffic``, in a type that holds its weighted sums."""
        return roomy(self.traffic.amount[self.rows], self.routed.unit * int(self.weight.max(initial=1)))

    @cached_property
    def loads(self) -> Array:
        """The load of every link, in M/whole."""
        return self.routed.loads(self.rows, self.amount)

    @cached_property
    def link_times(self) -> Array:
        """The time of every link."""
        return self.loads * self.weight

    def load(self) -> StepLoad:
        """Return the loads of the step."""
        times, rows = int(self.traffic.times[self.number]), self.rows
        if not len(rows):
            return StepLoad(times, 0, 0, Fraction(0), 0, Fraction(0), ())
        return StepLoad(
            times, len(rows), int(self.latency_terms[:, 0].max()), Fraction(int(self.loads.max()), self.whole),
            int(np.argmax(self.link_times)), self.largest, self._slowest(), self._mean(),
        )  # fmt: skip

    def _mean(self) -> Fraction:
        latencies, kind = self.latencies
        counts = np.bincount(kind, minlength=len(latencies)).tolist()
        return sum((count * latency for count, latency in zip(counts, latencies, strict=True)), Fraction(0)) / len(kind)

    def _slowest(self) -> tuple[tuple[Fraction, Fraction], ...]:
        """Return (latency, share per unit of bandwidth) of messages that no other exceeds in both. Latencies fall."""
        latencies, kind = self.latencies
        longest, rows = int(self.link_times.max()), self.rows
        found: list[tuple[Fraction, int]] = []
        for latency in sorted(set(latencies), reverse=True):
            here = rows[np.isin(kind, [i for i, other in enumerate(latencies) if other == latency])]
            # The links that a message with this latency uses; all messages together use all links with a load.
            used = self.link_times
            if len(here) < len(rows):
                used = used * self.routed.used(here)
            busiest = int(used.max())
            if not found or busiest > found[-1][1]:
                found.append((latency, busiest))
            if busiest == longest:
                break
        return tuple((latency, Fraction(busiest, self.whole * self.scale)) for latency, busiest in found)

    @cached_property
    def latency_terms(self) -> Array:
        """The terms of every message's latency, a line each, as ``routed`` has them."""
        a, b = self.traffic.step_start[self.number : self.number + 2].tolist()
        return self.routed.latency_terms(slice(a, b))

    @cached_property
    def latencies(self) -> tuple[list[Fraction], Array]:
        """The different latencies of messages, and the index of each message's."""
        topology = self.traffic.topology
        unit = latency_numbers(topology)[1]
        example, kind = _kinds(self.latency_terms)
        terms = self.latency_terms[example].tolist()
        latencies = [self.latency.of(topology, links, cables, Fraction(own, unit)) for links, cables, own in terms]
        return latencies, kind

    def arrivals(self, rows: Array, seconds: Fraction) -> list[Fraction]:
        """Return when messages ``rows`` arrive, from the start of the step; M takes ``seconds`` over a unit."""
        latencies, kind = self.latencies
        of, link, _ = self.routed.incidence(rows)
        busiest = np.zeros(len(rows), dtype=self.link_times.dtype)
        np.maximum.at(busiest, of, self.link_times[link])
        per = seconds / (self.whole * self.scale)
        kinds = kind[rows - self.rows[0]].tolist() if len(rows) else []
        return [latencies[k] + most * per for k, most in zip(kinds, busiest.tolist(), strict=True)]


def _kinds(lines: Array) -> tuple[Array, Array]:
    """Return one row number for each kind of equal lines, and the kind of every line."""
    kind = np.zeros(len(lines), dtype=np.int64)
    for column in lines.T:
        if (column != column[0]).any():
            values, number = np.unique(column, return_inverse=True)
            kind = np.unique(kind * len(values) + number, return_inverse=True)[1]
    return np.unique(kind, return_index=True)[1] if kind.any() else kind[:1], kind
