"""The parts that a network falls into without its fabric, and the rotation of those that are alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..arrays import Array, lexsort
from ..ragged import group_starts
from ..symmetries import Rotations
from ..topology import Topology

__all__ = ["box_rotation", "fabrics", "kinds_of_parts", "nodes_alike", "parts_without", "rotation_of_all"]


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


def nodes_alike(topology: Topology, fabric: Sequence[int]) -> tuple[Array, int, Rotations] | None:
    """Return the nodes of every box that the network falls into without its fabric, box by box, the number of ranks of
    each, and a rotation of the boxes; None if they are not alike, or if the first box has other ranks than the first.
    """
    parts = parts_without(topology, fabric)
    ranks = [[node for node in part if node < topology.num_ranks] for part in parts]
    if len(parts) < 2 or len({(len(part), len(own)) for part, own in zip(parts, ranks, strict=True)}) > 1:
        return None
    size = len(ranks[0])
    if not size or ranks[0] != list(range(size)):
        return None
    nodes = np.array(parts, dtype=np.int64)
    generator = np.arange(topology.num_nodes)
    generator[nodes] = np.roll(nodes, -1, axis=0)
    rotation = Rotations(topology, generator)
    return None if any(True for _ in rotation.flaws()) else (nodes, size, rotation)


def rotation_of_all(topology: Topology) -> Rotations | None:
    """Return a rotation of boxes that are all alike, with the ranks of one box after another; None if there is none."""
    for fabric in fabrics(topology):
        found = nodes_alike(topology, fabric)
        if found is not None and found[2].numbered is not None:
            return found[2]
    return None


def fabrics(topology: Topology) -> Iterator[list[int]]:
    """Yield sets of switches that may join boxes: those farthest from ranks, then those with most links."""
    switches = np.arange(topology.num_ranks, topology.num_nodes)
    level, degree = _levels(topology), np.bincount(topology.src, minlength=topology.num_nodes)
    seen = set[tuple[int, ...]]()
    for key in (level, degree):
        for number in sorted(set(key[switches].tolist()), reverse=True):
            chosen = tuple(switches[key[switches] == number].tolist())
            if chosen not in seen:
                seen.add(chosen)
                yield list(chosen)


def _levels(topology: Topology) -> Array:
    """Return the links from each node to its nearest rank."""
    level = np.where(np.arange(topology.num_nodes) < topology.num_ranks, 0, topology.num_nodes)
    for _ in range(topology.num_switches):
        before = level.copy()
        np.minimum.at(level, topology.src, before[topology.dst] + 1)
        if np.array_equal(level, before):
            break
    return level


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
