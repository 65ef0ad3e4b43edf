"""Bidirectional versions of one-way topologies (section A.6): half of every shard in each direction."""

from __future__ import annotations

import numpy as np

from collc.ir.schedule import Schedule
from collc.ir.topology import Topology

from .rows import Rows, common_parts, levels, links_of, placed

__all__ = ["bidirectional"]


def bidirectional(forth: Schedule, back: Schedule, topology: Topology) -> Schedule:
    """Return the allgather of G and its transpose together = ``topology``, from an allgather of each.

    The first half of every shard takes the links of G, the second those of the transpose. T_L and T_B stay the same if
    an isomorphism maps ``forth`` to ``back``. Raises C0521 if the topology has other links.
    """
    base, parts = forth.topology, common_parts(2 * forth.parts, 2 * back.parts)
    src, dst, level = base.src.astype(np.int64), base.dst.astype(np.int64), levels(base)
    number = placed(topology, np.concatenate([src, dst]), np.concatenate([dst, src]), np.tile(level, 2))
    rows, half = Rows(topology, parts), parts // 2
    for schedule, links, begin in zip((forth, back), np.split(number, 2), (0, half), strict=True):
        lo, hi = (begin + x.astype(np.int64) * (half // schedule.parts) for x in (schedule.lo, schedule.hi))
        rows.add(schedule.step, schedule.shard, lo, hi, links[links_of(schedule)])
    return rows.schedule()
