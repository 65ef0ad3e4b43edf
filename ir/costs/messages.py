"""The amount of data that each rank sends to each other, step by step, without the shards: for costs and simulations.

A schedule of 16,384 ranks has hundreds of millions of transfers, because a transfer moves one shard. Its messages are a
few rows per rank and step. Equal steps, such as a ring's, are stored once with their number of repetitions.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property

import attrs
import numpy as np

from ..arrays import Array, Columnar, as_column
from ..bundles import loading
from ..collective import Collective
from ..frozen import frozen
from ..ragged import group_starts
from ..schedule import Routes, Schedule
from ..shown import brief_fields
from ..topology import Topology
from .reductions import largest_sums, reduced_share

__all__ = ["Messages", "with_reduced"]


@frozen(eq=False)
class Messages(Columnar):
    """Messages: ``amount[i]/whole`` of the vector (M bytes) goes along ``route[i]`` in step ``step[i]``.

    Steps count from 0 and never decrease from row to row. Step s is executed ``times[s]`` times in a row, so there are
    ``sum(times)`` steps in time and ``len(times)`` different ones. Messages of one step are sent at the same time; the
    next step begins when all have arrived. ``reduced`` is the sum over steps of the most that a rank adds, as a share
    of M (:func:`.reductions.reduced_share`); None if unknown.
    """

    topology: Topology
    collective: Collective
    whole: int
    step: Array = attrs.field(converter=as_column)
    route: Array = attrs.field(converter=as_column)
    amount: Array = attrs.field(converter=as_column)
    times: Array = attrs.field(converter=as_column)
    routes: Routes
    scheduler: str = "steps"
    reduced: Fraction | None = None

    SCALARS = ("topology", "collective", "whole", "routes", "scheduler")
    COLUMNS = ("step", "route", "amount", "times")

    __repr__ = brief_fields

    def __len__(self) -> int:
        return len(self.step)

    @property
    def num_steps(self) -> int:
        """Steps in time, repetitions counted."""
        return int(self.times.sum(dtype=np.int64))

    @cached_property
    def src(self) -> Array:
        """The rank each row sends from."""
        return self.routes.tails(self.topology)[self.route]

    @cached_property
    def dst(self) -> Array:
        """The rank each row sends to."""
        return self.routes.heads(self.topology)[self.route]

    @cached_property
    def hops(self) -> Array:
        """The links on each row's route."""
        return self.routes.lengths[self.route]

    @cached_property
    def step_start(self) -> Array:
        """The first row of each different step, then the number of rows."""
        return group_starts(self.step, len(self.times))

    def loads(self) -> Iterator[tuple[int, Array]]:
        """Yield for every different step its repetitions and the load of each link, in 1/``whole`` of the vector."""
        for times, a, b in zip(self.times.tolist(), self.step_start[:-1], self.step_start[1:], strict=True):
            route = self.route[a:b].astype(np.int64)
            load = np.zeros(self.topology.num_links, dtype=np.int64)
            amount = np.repeat(self.amount[a:b].astype(np.int64), self.routes.lengths[route])
            places = self.routes.places(route)
            np.add.at(load, self.routes.links[places], self.routes.loads(places, amount))
            yield times, load

    @cached_property
    def slowest(self) -> tuple[Fraction, ...]:
        """For every different step the time of its busiest link, in vectors per unit of bandwidth."""
        found = []
        for _, load in self.loads():
            most = [
                Fraction(int(load[self.topology.link_class == number].max(initial=0))) / kind.bandwidth
                for number, kind in enumerate(self.topology.classes)
            ]
            found.append(max(most, default=Fraction(0)) / self.whole)
        return tuple(found)

    @property
    def time_per_byte(self) -> Fraction:
        """The bandwidth time of all steps per byte of the vector, the same as :func:`.cost.cost` of the rows."""
        pairs = zip(self.times.tolist(), self.slowest, strict=True)
        return sum((times * slowest for times, slowest in pairs), Fraction(0))

    @classmethod
    def of(cls, schedule: Schedule) -> Messages:
        """Return the messages of a schedule: all transfers of one step along one route are one message."""
        own, listed = loading(schedule)
        routes = len(listed)
        key, row = np.unique(schedule.step.astype(np.int64) * routes + own, return_inverse=True)
        amount = np.zeros(len(key), dtype=schedule.amount.dtype)
        np.add.at(amount, row, schedule.amount)
        return cls(
            schedule.topology, schedule.collective, schedule.vector,
            key // max(routes, 1), key % max(routes, 1), amount,
            np.ones(schedule.num_steps, dtype=np.int64), listed, schedule.scheduler, reduced_share(schedule),
        )  # fmt: skip


def with_reduced(sent: Messages, adds: Array) -> Messages:
    """Return messages with ``reduced``, of which receivers add those whose row in ``adds`` is true."""
    rows = np.flatnonzero(adds)
    step = sent.step[rows]
    most = largest_sums(step, sent.dst[rows], sent.amount[rows].astype(np.int64))
    times = sent.times[np.unique(step)].tolist()
    total = sum(count * amount for count, amount in zip(times, most, strict=True))
    return attrs.evolve(sent, reduced=Fraction(total, sent.whole))
