"""Functions for all expansions: find links by their ends, and concatenate blocks of rows."""

from __future__ import annotations

from math import lcm

import attrs
import numpy as np

from collc.ir.arrays import Array, fit
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError, Excess, Subject, error
from collc.ir.schedule import Action, Schedule
from collc.ir.symmetric import MOST_ROWS
from collc.ir.topology import Topology

__all__ = ["Rows", "common_parts", "levels", "links_of", "mismatch", "placed", "require_rows"]

_MOST_PARTS = 2**62
_MOST_STEPS = 2**31


def levels(topology: Topology) -> Array:
    """Return the place of each link's (bandwidth, latency) among those of the topology, ascending."""
    values = [(c.bandwidth, c.latency) for c in topology.classes]
    place = {value: i for i, value in enumerate(sorted(set(values)))}
    return np.array([place[value] for value in values], dtype=np.int64)[topology.link_class]


def placed(topology: Topology, tails: Array, heads: Array, level: Array | None = None) -> Array:
    """Return the links of ``topology`` from these tails to these heads, each link once.

    Parallel links are sorted by ``level``, then by number. Raises C0521 if the topology has other links than these.
    """
    ends = tails.astype(np.int64) * topology.num_nodes + heads
    found = topology.src.astype(np.int64) * topology.num_nodes + topology.dst
    rows = np.argsort(ends, kind="stable") if level is None else np.lexsort((level, ends))
    numbers = np.lexsort((levels(topology), found))
    if not np.array_equal(ends[rows], found[numbers]):
        raise mismatch(topology)
    links = np.empty(len(ends), dtype=np.int64)
    links[rows] = numbers
    return links


def mismatch(topology: Topology) -> CollcError:
    """Return the error C0521 for links that are not those of the operator."""
    operator = f"`{topology.origin.name}`" if topology.origin else "an operator"
    return error(
        "C0521",
        f"the links of `{topology.name}` are not those of {operator}, so its base's schedule does not expand to it",
        hint="schedule it with bfb, or build it by the operator and leave its links unchanged",
    )


def links_of(schedule: Schedule) -> Array:
    """Return the link of every row of a schedule whose routes are single links."""
    routes = schedule.routes
    return schedule.route if routes.is_direct else routes.links[routes.start[:-1]][schedule.route]


def common_parts(*divisors: int) -> int:
    """Return the least common multiple of these numbers of parts; raise C0504 beyond 2^62."""
    parts = lcm(*divisors)
    if parts > _MOST_PARTS:
        raise error(
            "C0504",
            f"the exact expanded schedule has {parts} parts per shard, needed at most 2^62",
            hint="use fewer expansions, or a base whose nodes have fewer links",
            exit_status=3,
        )
    return parts


def require_rows(topology: Topology, rows: int) -> None:
    """Raise C0525 if a schedule would have more than ``MOST_ROWS`` rows."""
    if rows <= MOST_ROWS:
        return
    raise error(
        "C0525",
        f"the expanded schedule of `{topology.name}` has {rows} transfers; at most {MOST_ROWS} can be listed",
        hint="use fewer ranks, or bfb, which schedules symmetric topologies by a template",
        exit_status=3,
        excess=Excess("transfers", rows, MOST_ROWS),
        about=(Subject.SCHEDULER, Subject.TOPOLOGY),
    )


@attrs.define
class Rows:
    """Blocks of allgather rows for a schedule of ``topology``, in columns no wider than needed."""

    topology: Topology
    parts: int
    blocks: list[tuple[Array, ...]] = attrs.Factory(list)

    def add(self, step: Array | int, shard: Array, lo: Array | int, hi: Array | int, link: Array) -> None:
        """Add rows; all arguments broadcast to one shape."""
        most = (_MOST_STEPS, self.topology.num_ranks, self.parts, self.parts, self.topology.num_links)
        columns = np.broadcast_arrays(step, shard, lo, hi, link)
        self.blocks.append(
            tuple(np.ascontiguousarray(c, dtype=fit(0, m)).ravel() for c, m in zip(columns, most, strict=True))
        )

    def schedule(self) -> Schedule:
        """Return the rows in order of steps; those of one step keep their order."""
        empty = np.zeros(0, dtype=np.uint8)
        step, shard, lo, hi, link = (
            (np.concatenate([block[i] for block in self.blocks]) if self.blocks else empty) for i in range(5)
        )
        step = step.astype(fit(0, int(step.max(initial=0))))  # narrow keys sort by radix
        order = np.argsort(step, kind="stable")
        return Schedule(
            self.topology, Collective("allgather", self.topology.num_ranks), self.parts, step=step[order],
            action=np.full(len(order), Action.COPY, dtype=np.uint8), shard=shard[order], lo=lo[order], hi=hi[order],
            route=link[order], scheduler="expansion",
        )  # fmt: skip
