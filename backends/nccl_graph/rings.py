"""The rings of a schedule: which cycle through all ranks each part of the data takes, and its share.

Data of one part must follow one cycle: every rank sends them to one rank only, and receives them from one. A broadcast
or reduce takes a chain through all ranks, which the ring closes.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.diagnostic import CollcError, Kind, Subject, error
from collc.ir.ragged import ranges
from collc.ir.schedule import Forest, Schedule

__all__ = ["KINDS", "Ring", "refused", "rings_of"]

#: the collectives for which NCCL has a ring
KINDS = ("allreduce", "allgather", "reduce-scatter", "broadcast", "reduce")


@attrs.frozen(eq=False)
class Ring:
    """A cycle through all ranks from rank 0 on, the ``share`` of the data on it, and its routes.

    ``routes[i]`` are the links from rank i of the order to the next; None if no data take this part of the ring.
    """

    order: tuple[int, ...]
    share: Fraction
    routes: tuple[tuple[int, ...] | None, ...]


def rings_of(schedule: Schedule | Forest) -> list[Ring]:
    """Return the rings of a verified schedule, in the order of its parts; equal ones are one ring.

    Raises C0911 if the data take no rings.
    """
    steps = schedule.to_steps() if isinstance(schedule, Forest) else schedule
    if steps.topology.num_ranks == 1:
        return [Ring((0,), Fraction(1), (None,))]
    found: dict[object, Ring] = {}
    for share, ends, routes in _parts(steps):
        ring = _ring(steps, share, ends, routes)
        known = found.get((ring.order, ring.routes))
        whole = ring.share if known is None else known.share + ring.share
        found[ring.order, ring.routes] = attrs.evolve(ring, share=whole)
    return list(found.values())


def _parts(schedule: Schedule) -> Iterator[tuple[Fraction, Array, Array]]:
    """Yield for every part of the data its share, the different (sender, receiver) of it, and their routes.

    A rooted collective has parts of each shard. In others all shards take the same rings.
    """
    cuts = np.unique(np.concatenate([schedule.lo, schedule.hi]).astype(np.int64))
    first, last = (np.searchsorted(cuts, column) for column in (schedule.lo, schedule.hi))
    row = np.repeat(np.arange(len(schedule)), last - first)
    cell = ranges(first, last - first)
    rooted = schedule.collective.root is not None
    shard = schedule.shard[row].astype(np.int64) if rooted else np.zeros(len(row), dtype=np.int64)
    table = np.stack([shard, cell, schedule.src[row], schedule.dst[row], schedule.route[row]], axis=1).astype(np.int64)
    table = np.unique(table, axis=0)
    begin = np.flatnonzero(np.any(np.diff(table[:, :2], axis=0), axis=1)) + 1
    parts = schedule.parts * (schedule.collective.num_ranks if rooted else 1)
    for group in np.split(table, begin):
        width = int(cuts[group[0, 1] + 1] - cuts[group[0, 1]])
        yield Fraction(width, parts), group[:, 2:4], group[:, 4]


def _ring(schedule: Schedule, share: Fraction, ends: Array, routes: Array) -> Ring:
    """Return the ring of a part; raise C0911 if its messages are not one cycle, or a chain through all ranks."""
    ranks, names = schedule.topology.num_ranks, schedule.topology.names
    after, route = _next(schedule, ends, routes)
    senders = set(after.values())
    if len(senders) < len(after):
        twice = next(rank for rank in senders if list(after.values()).count(rank) > 1)
        raise refused(schedule, f"{names[twice]} receives one part of the data from two ranks")
    start = next((rank for rank in range(ranks) if rank not in senders), 0)
    order = [start]
    while order[-1] in after and after[order[-1]] != start and len(order) < ranks:
        order.append(after[order[-1]])
    if len(order) < ranks:
        missing = min(set(range(ranks)) - set(order))
        raise refused(schedule, f"one part of the data goes round without {names[missing]}")
    turn = order.index(0)
    order = order[turn:] + order[:turn]
    links = tuple(tuple(schedule.routes.links_of(route[rank])) if rank in route else None for rank in order)
    return Ring(tuple(order), share, links)


def _next(schedule: Schedule, ends: Array, routes: Array) -> tuple[dict[int, int], dict[int, int]]:
    """Return to which rank every rank sends a part, and by which route; raise C0911 if to several."""
    names = schedule.topology.names
    after, route = dict[int, int](), dict[int, int]()
    for src, dst in ends.tolist():
        if after.setdefault(src, dst) != dst:
            both = f"{names[after[src]]} and {names[dst]}"
            raise refused(schedule, f"{names[src]} sends one part of the data to {both}: that is a tree, not a ring")
    for (src, dst), number in zip(ends.tolist(), routes.tolist(), strict=True):
        if route.setdefault(src, number) != number:
            raise refused(schedule, f"{names[src]} sends one part of the data to {names[dst]} by two routes")
    return after, route


def refused(schedule: Schedule | Forest, why: str) -> CollcError:
    """Return the error C0911 for a schedule that no rings of NCCL are."""
    return error(
        "C0911",
        f"NCCL cannot execute this {schedule.collective.kind} by {schedule.scheduler}",
        notes=[why, "NCCL has rings that visit the nodes in order, and inside a node chains; it has no other trees"],
        hint="schedule it `using nccl-rings`, or emit `msccl-xml`, which carries any schedule", kind=Kind.MISFIT,
        about=(Subject.SCHEDULER,),
    )  # fmt: skip
