"""Shortest routes from one node, for shards without data in the plan: they need a route, and cost nothing."""

from __future__ import annotations

import numpy as np

from collc.ir.topology import Topology

__all__ = ["links_to", "shortest_links"]


def shortest_links(topology: Topology, source: int) -> dict[int, int]:
    """Return the last link of a shortest route to every node that ``source`` reaches, nearer nodes first.

    Of several, the widest link is taken, and of those the first.
    """
    hops, (start, into) = topology.hops_from(source), topology.in_links
    found = dict[int, int]()
    for node in np.argsort(hops, kind="stable").tolist():
        links = into[start[node] : start[node + 1]]
        tails = topology.src[links]
        near = links[(hops[tails] >= 0) & (hops[tails] + 1 == hops[node])].tolist()
        if hops[node] > 0:
            found[node] = max(near, key=lambda link: (topology.bandwidth(link), -link))
    return found


def links_to(topology: Topology, last: dict[int, int], source: int, node: int) -> list[int]:
    """Return the links from ``source`` to ``node`` over the last links of :func:`shortest_links`."""
    links = list[int]()
    while node != source:
        links.append(last[node])
        node = int(topology.src[last[node]])
    return links[::-1]
