"""Distance-regular graphs, on which breadth-first schedules are bandwidth-optimal (appendix F.3 of the paper)."""

from __future__ import annotations

import numpy as np

from ..topology import Topology

__all__ = ["intersection_array"]


def intersection_array(topology: Topology) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return ``((b_0, .., b_{D-1}), (c_1, .., c_D))`` if the topology is a distance-regular graph, else None.

    Of two ranks h hops apart, the second has c_h neighbours nearer to the first and b_h farther from it, whichever two
    they are. That these numbers exist is Definition 17 of the direct-connect paper: all s_ij^h follow from them. Links
    must go both ways, one each way between neighbours, and no switches take part.
    """
    if not topology.is_direct or topology.reverse_links is None or topology.diameter is None:
        return None
    joined = np.zeros((topology.num_ranks, topology.num_ranks), dtype=np.float32)  # exact: counts stay below 2^24
    np.add.at(joined, (topology.src, topology.dst), 1)
    if joined.max(initial=0) > 1 or joined.diagonal().any():
        return None
    hops, outer, inner = topology.distances, list[int](), list[int]()
    for h in range(topology.diameter + 1):
        pairs = hops == h
        for numbers, near in ((outer, h + 1), (inner, h - 1)):
            counts = ((hops == near).astype(np.float32) @ joined)[pairs]
            if counts.min() != counts.max():
                return None
            numbers.append(int(counts[0]))
    return tuple(outer[:-1]), tuple(inner[1:])
