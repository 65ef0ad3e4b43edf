"""All-to-alls on alike boxes: the transfers of one box's data, and the rotation that makes them those of all boxes."""

from __future__ import annotations

import attrs
import numpy as np

from collc.ir.arrays import Array, lexsort
from collc.ir.graph.box_rotation import rotation_of_all
from collc.ir.ragged import nth, owners
from collc.ir.schedule import Schedule
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.symmetries import Symmetries

__all__ = ["template_of"]


def template_of(schedule: Schedule) -> SymmetricSchedule | None:
    """Return the transfers of an all-to-all from the ranks of one box, and the rotation of the boxes.

    None if the network has no boxes that are all alike, or if the rotation does not map transfers to transfers.
    """
    if schedule.collective.kind != "alltoall" or not schedule.collective.is_plain:
        return None
    rotation = rotation_of_all(schedule.topology)
    if rotation is None or not _is_turned(schedule, rotation):
        return None
    ranks = schedule.topology.num_ranks
    seed = schedule.rows(np.flatnonzero(schedule.shard // ranks < ranks // rotation.order))
    used, route = np.unique(seed.route, return_inverse=True)
    seed = attrs.evolve(seed, route=route.reshape(-1), routes=seed.routes.chosen(used))
    return SymmetricSchedule(seed, rotation)


def _is_turned(schedule: Schedule, rotation: Symmetries) -> bool:
    """Return whether each transfer of a schedule, sorted by step, shard and part, moves to another one."""
    routes, topology = schedule.routes, schedule.topology
    lengths = routes.lengths
    links = np.full((len(routes), int(lengths.max(initial=1))), topology.num_links, dtype=np.int64)
    links[owners(lengths), nth(lengths)] = routes.links
    turned = np.append(rotation.links(1, np.arange(topology.num_links)), topology.num_links)[links]
    shard = schedule.collective.moved(schedule.shard, lambda rank: rotation.nodes(1, rank))
    order = lexsort((schedule.lo, shard, schedule.step))

    def alike(here: Array, there: Array) -> bool:
        return np.array_equal(here, there[order])

    return (
        alike(schedule.shard, shard) and alike(schedule.lo, schedule.lo) and alike(schedule.hi, schedule.hi)
        and alike(schedule.step, schedule.step) and alike(links[schedule.route], turned[schedule.route])
    )  # fmt: skip
