"""Degree expansion (Definitions 2 and 13): n copies of every rank, and n^2 copies of every link."""

from __future__ import annotations

import numpy as np

from collc.ir.schedule import Schedule
from collc.ir.topology import Topology

from .rows import Rows, common_parts, levels, links_of, placed, require_rows

__all__ = ["degree"]


def degree(schedule: Schedule, topology: Topology, n: int) -> Schedule:
    """Return the allgather of G * n = ``topology`` that expands an allgather of G; rank v*n + i is copy i of v.

    A shard stays within its own copy of G, except at its last hop, which goes to all copies. In one more step every
    rank receives the shards of its own copies over all its in-links, an equal part over each. T_B increases by
    (n-1)/(nN) if G is regular (Theorem 11). G has no self-loops. Raises C0521 if the topology has other links.
    """
    base = schedule.topology
    src, dst, copies = base.src.astype(np.int64), base.dst.astype(np.int64), np.arange(n)
    tails = np.broadcast_to((src[:, None] * n + copies)[:, :, None], (len(src), n, n))
    heads = np.broadcast_to((dst[:, None] * n + copies)[:, None, :], (len(src), n, n))
    level = np.repeat(levels(base), n * n)
    require_rows(topology, len(schedule) * n * n + len(src) * n * n * (n - 1))
    number = placed(topology, tails.ravel(), heads.ravel(), level).reshape(tails.shape)
    start, links = base.in_links
    in_links = n * np.diff(start)
    parts = common_parts(schedule.parts, *np.unique(in_links[in_links > 0]).tolist())
    rows, scale = Rows(topology, parts), parts // schedule.parts
    step, shard, lo, hi = (getattr(schedule, c).astype(np.int64)[:, None, None] for c in ("step", "shard", "lo", "hi"))
    rows.add(step, shard * n + copies[:, None], lo * scale, hi * scale, number[links_of(schedule)])
    # the last step: part k*n + c of the shard of copy i goes to copy j over in-link k from copy c of its tail
    head = dst[links]
    place = np.arange(len(links)) - start[head]
    i, j = (x.ravel() for x in np.nonzero(~np.eye(n, dtype=bool)))
    width = parts // in_links[head]
    part = place[:, None, None] * n + copies[:, None]
    rows.add(
        schedule.num_steps, (head * n)[:, None, None] + i, part * width[:, None, None],
        (part + 1) * width[:, None, None], number[links][:, :, j],
    )  # fmt: skip
    return rows.schedule()
