"""The input of the simulator: what each rank sends to each other, step by step, with or without routes."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property

import attrs
import numpy as np

from collc.ir.arrays import Array, Columnar, as_column
from collc.ir.collective import Collective
from collc.ir.ragged import group_starts
from collc.ir.schedule import Routes
from collc.ir.shown import brief_fields
from collc.ir.topology import Topology

__all__ = ["Traffic"]


@attrs.frozen(eq=False)
class Traffic(Columnar):
    """Row i sends ``amount[i]/whole`` of M from rank ``src[i]`` to another, ``dst[i]``, at ``step[i]``, in step order.

    M is the collective's whole vector (of an alltoall: what one rank sends). Messages of a step start together. Step s
    is done ``times[s]`` times, one after the other. ``route[i]`` is a number in ``routes``, if messages have routes of
    their own (``route`` and ``routes`` are both given or both absent). Otherwise the simulator takes shortest routes.
    ``reduced`` is the sum over all steps of the most that a rank adds, as a share of M; None if unknown.
    Raises ValueError for columns that do not fit each other.
    """

    topology: Topology
    collective: Collective
    whole: int
    step: Array = attrs.field(converter=as_column)
    src: Array = attrs.field(converter=as_column)
    dst: Array = attrs.field(converter=as_column)
    amount: Array = attrs.field(converter=as_column)
    times: Array = attrs.field(converter=as_column)
    route: Array = attrs.field(converter=as_column, default=())
    routes: Routes | None = None
    scheduler: str = "steps"
    reduced: Fraction | None = None

    SCALARS = ("topology", "collective", "whole", "routes", "scheduler")
    COLUMNS = ("step", "src", "dst", "amount", "times", "route")

    __repr__ = brief_fields

    def __attrs_post_init__(self) -> None:
        columns = [self.step, self.src, self.dst, self.amount, *([self.route] if self.routes is not None else [])]
        if len({len(column) for column in columns}) > 1:
            raise ValueError("the columns of messages differ in length")
        if len(self.step) and (int(self.step[-1]) >= len(self.times) or (self.step[1:] < self.step[:-1]).any()):
            raise ValueError("steps decrease, or `times` has too few entries")
        if len(self.step) and bool((self.src == self.dst).any()):
            raise ValueError("a message goes from a rank to itself")

    def __len__(self) -> int:
        return len(self.step)

    @property
    def num_steps(self) -> int:
        """Steps, with every repetition."""
        return int(self.times.sum(dtype=np.int64))

    @cached_property
    def step_start(self) -> Array:
        """The first row of each different step, then the number of rows."""
        return group_starts(self.step, len(self.times))

    def on(self, network: Topology) -> Traffic:
        """Return the same messages on another network of as many ranks, without routes."""
        if network.num_ranks != self.topology.num_ranks:
            raise ValueError(f"the network has {network.num_ranks} ranks, not {self.topology.num_ranks}")
        return attrs.evolve(self, topology=network, route=(), routes=None)
