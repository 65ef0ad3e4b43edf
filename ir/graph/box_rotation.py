"""The parts that a network falls into without its fabric, and the rotation of those that are alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arrays import lexsort
from ..ragged import group_starts
from ..symmetries import Rotations
from ..topology import Topology

__all__ = ["box_rotation", "kinds_of_parts", "parts_without"]


def box_rotation(topology: Topology) -> Rotations | None:
    """Return the rotation that moves each box of the largest kind to the next, and keeps all other nodes.

    Boxes are the parts without the busiest switch. None if fewer than two boxes are alike, if no rank is in another
    box, or if the rotation is no automorphism of the network.
    """
    if not topology.num_switches:
        return None
    degree = np.bincount(topology.src, minlength=topology.num_nodes)[topology.num_ranks :]
    parts = parts_without(topology, [topology.num_ranks + int(np.argmax(degree))])
    alike = max(kinds_of_parts(topology, parts).values(), key=len, default=[])
    nodes = np.array([parts[number] for number in alike], dtype=np.int64)
    ranks = int(np.count_nonzero(nodes < topology.num_ranks))
    if len(alike) < 2 or not 0 < ranks < topology.num_ranks:
        return None
    generator = np.arange(topology.num_nodes)
    generator[nodes] = np.roll(nodes, -1, axis=0)
    found = Rotations(topology, generator)
    return None if any(True for _ in found.flaws()) else found


def parts_without(topology: Topology, fabric: Sequence[int]) -> list[list[int]]:
    """Return the nodes of each part that the network falls into without its fabric, by their least nodes."""
    around: list[list[int]] = [[] for _ in range(topology.num_nodes)]
    for tail, head in zip(topology.src.tolist(), topology.dst.tolist(), strict=True):
        around[tail].append(head)
        around[head].append(tail)
    seen, parts = set(fabric), list[list[int]]()
    for node in range(topology.num_nodes):
        if node not in seen:
            part = [node]
            seen.add(node)
            for one in part:
                fresh = set(around[one]) - seen
                seen |= fresh
                part += fresh
            parts.append(sorted(part))
    return parts


def kinds_of_parts(topology: Topology, parts: Sequence[Sequence[int]]) -> dict[bytes, list[int]]:
    """Return the parts of each kind: with equal links between nodes of the same place, and of nodes to the fabric."""
    owner, place = (np.full(topology.num_nodes, -1, dtype=np.int64) for _ in range(2))
    for number, part in enumerate(parts):
        owner[list(part)], place[list(part)] = number, np.arange(len(part))
    src, dst = topology.src.astype(np.int64), topology.dst.astype(np.int64)
    parts_of = np.maximum(owner[src], owner[dst])
    columns = np.stack([place[src], place[dst], topology.link_class.astype(np.int64)])
    order = lexsort((columns[2], columns[1], columns[0], parts_of))
    ends = group_starts(parts_of[order], len(parts))
    found: dict[bytes, list[int]] = {}
    for number, nodes in enumerate(parts):
        own = columns[:, order[ends[number] : ends[number + 1]]]
        sizes = np.array([len(nodes), sum(node < topology.num_ranks for node in nodes)])
        found.setdefault(sizes.tobytes() + own.tobytes(), []).append(number)
    return found
