"""The bandwidth time of steps, with further latencies of messages that are longer than one may be.

Of a template, from one link of each orbit: it carries what the rows of the template send over all links of its orbit.
"""

from __future__ import annotations

from fractions import Fraction

import attrs
import numpy as np

from collc.ir.acting import Acting, route_orbits
from collc.ir.arrays import Array, numbered
from collc.ir.costs.cost import DEFAULT_ALPHA, unit_seconds
from collc.ir.costs.pieces import USUAL_SIZE
from collc.ir.ragged import owners
from collc.ir.schedule import Schedule
from collc.ir.symmetric import AnySchedule, SymmetricSchedule
from collc.ir.symmetries import moved_routes
from collc.ir.topology import Topology

__all__ = ["Crossed", "seed_of", "time_per_byte", "time_with_messages"]


def seed_of(schedule: AnySchedule) -> Schedule:
    """Return the rows of a schedule, of a template its own."""
    return schedule.seed if isinstance(schedule, SymmetricSchedule) else schedule


@attrs.frozen(eq=False)
class Crossed:
    """The links that rows cross: the row, the number of the link in the loads of all steps, and how often.

    Of a template, a link stands for those of its orbit. If elements of the group keep it in place, it carries each of
    their loads as often.
    """

    row: Array
    load: Array
    times: Array | None

    @classmethod
    def of(cls, schedule: AnySchedule) -> Crossed:
        """Return what the rows of a schedule cross, of a template those of its seed."""
        seed = seed_of(schedule)
        row = owners(seed.routes.lengths[seed.route])
        link = seed.routes.links[seed.routes.places(seed.route)].astype(np.int64)
        times = None
        if isinstance(schedule, SymmetricSchedule):
            orbit, first = _link_orbits(schedule)
            times = (schedule.order // np.bincount(orbit))[orbit[link]]
            link = first[orbit[link]]
        return cls(row, seed.step.astype(np.int64)[row] * seed.topology.num_links + link, times)

    def time(self, schedule: AnySchedule, amount: Array, vector: int) -> Fraction:
        """Return the time per byte of rows that move such amounts of a vector, in chunks."""
        steps, links = schedule.num_steps, schedule.topology.num_links
        carried = amount[self.row] if self.times is None else amount[self.row] * self.times
        if len(carried) and int(carried.max()) * len(carried) < 2**53:  # all sums are exact
            load = np.bincount(self.load, weights=carried, minlength=steps * links).astype(np.int64)
        else:
            load = np.zeros(steps * links, dtype=amount.dtype)
            np.add.at(load, self.load, carried)
        return _time(schedule.topology, load.reshape(steps, links)) / vector


def _link_orbits(template: SymmetricSchedule) -> tuple[Array, Array]:
    """Return the orbit of each link under a template's group, and a link of each orbit."""
    topology = template.topology
    if template.orbits is None:  # links of one place at all ranks
        degree = max(topology.num_links // max(topology.num_ranks, 1), 1)
        return np.arange(topology.num_links) % degree, np.arange(degree)
    first, orbit = np.unique(template.orbits.link_orbit, return_index=True, return_inverse=True)[1:]
    return orbit.reshape(-1), first


def time_per_byte(schedule: AnySchedule) -> Fraction:
    """Return the bandwidth time per byte of M, the same as :func:`~collc.ir.costs.cost.cost` computes."""
    return Crossed.of(schedule).time(schedule, seed_of(schedule).amount, schedule.vector)


def _time(topology: Topology, load: Array) -> Fraction:
    """Return the time of loads of links, shape (steps, links)."""
    most = [load[:, topology.link_class == k].max(axis=1, initial=0).tolist() for k in range(len(topology.classes))]
    speeds = [kind.bandwidth for kind in topology.classes]
    return sum(
        (max(Fraction(amount) / speed for amount, speed in zip(step, speeds, strict=True))
         for step in zip(*most, strict=True)),
        Fraction(0),
    )  # fmt: skip


def time_with_messages(schedule: AnySchedule, longest: int | None) -> Fraction:
    """Return the bandwidth time per byte of M.

    With ``longest``, add the latencies of every transfer's messages after the first, each of at most that number of
    chunks.
    """
    time = time_per_byte(schedule)
    more = 0 if longest is None else _split(schedule, longest)
    return time + more * _latency_per_byte(schedule) if more else time


def _latency_per_byte(schedule: AnySchedule) -> Fraction:
    """Return a message's latency in the units of :func:`time_per_byte`, at the collective's size."""
    topology = schedule.topology
    alpha = max(kind.latency for kind in topology.classes) or DEFAULT_ALPHA
    size = schedule.collective.size or USUAL_SIZE
    return alpha / (unit_seconds(topology) * size)


def _split(schedule: AnySchedule, longest: int) -> int:
    """Return the additional messages of the busiest route of each step, summed over the steps."""
    seed = seed_of(schedule)
    more = (seed.hi.astype(np.int64) - seed.lo - 1) // longest
    route = _alike_routes(schedule) if isinstance(schedule, SymmetricSchedule) else seed.route
    found = np.zeros((schedule.num_steps, int(route.max(initial=0)) + 1), dtype=np.int64)
    np.add.at(found, (seed.step, route), more)
    return int(found.max(axis=1, initial=0).sum())


def _alike_routes(template: SymmetricSchedule) -> Array:
    """Return for each row of a template the number of its route's orbit."""
    seed = template.seed
    if template.orbits is None:
        return template.place
    if isinstance(template.orbits, Acting):
        return route_orbits(seed, template.orbits)[0][seed.route]
    image = moved_routes(seed.routes, template.orbits)[1]
    return numbered(image.min(axis=0))[1][seed.route]
