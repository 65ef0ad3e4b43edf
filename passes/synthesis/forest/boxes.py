"""Clusters of boxes on one fabric: the ranks of each box, their links to the fabric, and their routes to each other.

The fabric is a switch that ranks are linked to. Without it the network falls into parts: the boxes. Inside of a box
every rank reaches every other without passing a third rank, over a link or over a switch of the box. Most machines have
this form, and keep it after a fault: a rank that is cut off from its box becomes a box of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import attrs

from collc.ir.topology import Topology

__all__ = ["Box", "Cluster", "box_of_part", "cluster"]


@attrs.frozen
class Box:
    """The ranks of a box, ascending, and ``inside[v, u]``: the links of the route from v to u, one or two."""

    ranks: tuple[int, ...]
    inside: dict[tuple[int, int], tuple[int, ...]]


@attrs.frozen
class Cluster:
    """The boxes in order of their first rank, and the links of every rank to and from the fabric (-1: none)."""

    boxes: tuple[Box, ...]
    up: tuple[int, ...]
    down: tuple[int, ...]

    def is_even(self, held: Sequence[int]) -> bool:
        """Whether boxes have equally many ranks, and the links of all ranks hold as many trees: no part has failed."""
        if len({len(box.ranks) for box in self.boxes}) > 1 or -1 in self.up or -1 in self.down:
            return False
        if len({held[link] for link in (*self.up, *self.down)}) > 1:
            return False
        return len({tuple(held[link] for link in route) for box in self.boxes for route in box.inside.values()}) <= 1


def cluster(topology: Topology) -> Cluster | None:
    """Return the network as a cluster, or None if it is none.

    There must be at least two boxes, and no two parallel links.
    """
    if not topology.num_switches:
        return None
    links: dict[tuple[int, int], int] = {}
    for link, ends in enumerate(zip(topology.src.tolist(), topology.dst.tolist(), strict=True)):
        if ends[0] == ends[1] or ends in links:
            return None
        links[ends] = link
    out: list[list[int]] = [[] for _ in range(topology.num_nodes)]
    for tail, head in links:
        out[tail].append(head)
    fabric = max(range(topology.num_ranks, topology.num_nodes), key=lambda node: (len(out[node]), -node))
    parts = _parts(out, fabric)
    if len(parts) < 2 or any(head >= topology.num_ranks for head in out[fabric]):
        return None
    boxes = [box_of_part(part, out, links, (fabric,), topology.num_ranks) for part in parts]
    found = tuple(box for box in boxes if box is not None)
    if len(found) < len(boxes):
        return None
    up, down = (
        tuple(links.get((rank, fabric) if upward else (fabric, rank), -1) for rank in range(topology.num_ranks))
        for upward in (True, False)
    )
    return Cluster(found, up, down)


def _parts(out: Sequence[Sequence[int]], fabric: int) -> list[list[int]]:
    """Return the parts that the network without a node falls into, by their least nodes."""
    around: list[list[int]] = [[] for _ in out]
    for tail, heads in enumerate(out):
        for head in heads:
            if fabric not in (tail, head):
                around[tail].append(head)
                around[head].append(tail)
    seen = [False] * len(out)
    seen[fabric] = True
    parts = list[list[int]]()
    for node in range(len(out)):
        if not seen[node]:
            seen[node], part = True, [node]
            for one in part:
                part += (fresh := sorted({other for other in around[one] if not seen[other]}))
                for other in fresh:
                    seen[other] = True
            parts.append(part)
    return parts


def box_of_part(
    part: Sequence[int], out: Sequence[Sequence[int]], links: dict[tuple[int, int], int], fabrics: Collection[int],
    num_ranks: int,
) -> Box | None:  # fmt: skip
    """Return the box of some nodes; None without ranks, or if a rank reaches another only through a third.

    ``out`` has the heads of every node's links, ``links`` the number of every link.
    """
    ranks = sorted(node for node in part if node < num_ranks)
    inside = dict[tuple[int, int], tuple[int, ...]]()
    for v in ranks:
        switches = sorted(node for node in out[v] if node >= num_ranks and node not in fabrics)
        for u in ranks:
            if (v, u) in links:
                inside[v, u] = (links[v, u],)
            elif v != u:
                via = next((node for node in switches if (node, u) in links), -1)
                if via < 0:
                    return None
                inside[v, u] = (links[v, via], links[via, u])
    return Box(tuple(ranks), inside) if ranks else None
