"""Clusters in which most boxes are alike and a few are odd: a part has failed, is slow or missing, or another kind.

Without the fabric, one switch, the network falls into boxes. The boxes of the largest kind are rotated; every node of
the others stays. With ranks renumbered, alike boxes first, the alike boxes are an :class:`~.alike.Alike` of their own.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.graph.box_rotation import kinds_of_parts, parts_without
from collc.ir.ragged import inverse
from collc.ir.symmetries import Rotations
from collc.ir.topology import Topology

from .alike import Alike, to_fabric

__all__ = ["OddBoxes", "odd_boxes"]

#: at most an eighth of the ranks, and at most this number, are in odd boxes
_MOST_SHARE = 8
_MOST_ODD = 128


@attrs.frozen(eq=False)
class OddBoxes:
    """The network with other numbers of nodes: ranks of alike boxes first, box by box, then the ranks of odd ``parts``.

    ``number`` has the new number of every node. Links keep theirs. ``up`` and ``down`` have the link of every odd rank
    to and from the ``fabric`` (-1: none).
    """

    alike: Alike
    number: Array
    parts: tuple[tuple[int, ...], ...]
    switches: tuple[int, ...]
    fabric: int
    up: dict[int, int]
    down: dict[int, int]

    @property
    def topology(self) -> Topology:
        """The network with the new numbers."""
        return self.alike.topology

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks of all odd parts, ascending."""
        return tuple(rank for part in self.parts for rank in part)

    def place(self, rank: int) -> int:
        """Return the number of an odd rank among the odd ranks."""
        return rank - self.alike.count * self.alike.num_ranks

    def rotation(self, topology: Topology) -> Rotations:
        """Return the rotation of the alike boxes of the network with its own numbers."""
        back = inverse(self.number)
        return Rotations(topology, back[self.alike.rotation.generator.astype(np.int64)[self.number]])


def odd_boxes(topology: Topology) -> OddBoxes | None:
    """Return the odd boxes of a cluster and the boxes that are alike, or None if it has no such form.

    Every rank of an alike box has one link to the fabric and one from it; odd ranks have at most one each.
    """
    if not topology.num_switches or topology.multicast or topology.reduces:
        return None
    degree = np.bincount(topology.src, minlength=topology.num_nodes)[topology.num_ranks :]
    fabric = topology.num_ranks + int(np.argmax(degree))
    parts = parts_without(topology, [fabric])
    kinds = kinds_of_parts(topology, parts)
    common = max(kinds, key=lambda kind: len(kinds[kind]))
    chosen = kinds[common]
    odd = [part for number, part in enumerate(parts) if number not in set(chosen)]
    ranks = [node for part in odd for node in part if node < topology.num_ranks]
    few = min(_MOST_ODD, topology.num_ranks // _MOST_SHARE)
    if len(chosen) < 2 or not 0 < len(ranks) <= few:
        return None
    if any(min(part) >= topology.num_ranks for part in parts):  # switches without ranks
        return None
    return _renumbered(topology, [parts[number] for number in chosen], odd, fabric)


def _renumbered(
    topology: Topology, alike: Sequence[Sequence[int]], odd: Sequence[Sequence[int]], fabric: int
) -> OddBoxes | None:
    ranks = topology.num_ranks
    order = [
        *(node for part in (*alike, *odd) for node in part if node < ranks),
        *(node for part in (*alike, *odd) for node in part if node >= ranks), fabric,
    ]  # fmt: skip
    number = inverse(np.array(order, dtype=np.int64))
    src, dst = number[topology.src], number[topology.dst]
    renamed = Topology(
        topology.name, ranks, src, dst, topology.num_switches, topology.link_class, topology.classes, topology.unit
    )
    nodes = np.sort(number[np.array(alike, dtype=np.int64)], axis=1)
    generator = np.arange(topology.num_nodes)
    generator[nodes] = np.roll(nodes, -1, axis=0)
    rotation = Rotations(renamed, generator)
    if any(True for _ in rotation.flaws()):
        return None
    size = sum(node < ranks for node in alike[0])
    top = int(number[fabric])
    up, down = ([to_fabric(renamed, nodes[0], [top], rank, upward) for rank in range(size)] for upward in (True, False))
    if not all(len(one.get(top, ())) == 1 for one in (*up, *down)):
        return None
    boxes = Alike(renamed, nodes, size, rotation, tuple(up), tuple(down))
    parts = tuple(tuple(sorted(number[[node for node in part if node < ranks]].tolist())) for part in odd)
    inner = tuple(sorted(int(number[node]) for part in odd for node in part if node >= ranks))
    links: list[dict[int, int]] = []
    for here, there in ((src, dst), (dst, src)):
        own = np.flatnonzero((there == top) & (here >= size * len(alike)))
        if len(set(here[own].tolist())) < len(own) or (here[own] >= ranks).any():
            return None  # parallel links, or a switch of a box between its ranks and the fabric
        links.append(dict(zip(here[own].tolist(), own.tolist(), strict=True)))
    if any(not links[end].keys() & set(part) for part in parts for end in (0, 1)):
        return None
    return OddBoxes(boxes, number, parts, inner, top, links[0], links[1])
