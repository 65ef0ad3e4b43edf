"""Clusters of boxes for tests, made link by link, and what must hold of rings and trees on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

from hypothesis import strategies as st

from collc.ir.graph.boxes import Boxes
from collc.ir.topology import LinkClass, Topology

__all__ = ["CLUSTERS", "cluster", "clusters", "crossing_flaws", "ragged_clusters", "ring_flaws"]

#: clusters of the language, with the ranks of a box
CLUSTERS = {
    "dgx_a100(2)": 8, "dgx_a100(3)": 8, "dgx_h100(4, 8)": 8, "dgx_h100(3, 8)": 8, "mi250(2)": 16,
    "leaf_spine(3, 4, 2)": 4, "leaf_spine(2, 6, 3, 2)": 6, "clustered(hypercube(3), 4, 1/2)": 8,
    "clustered(biring(3), 4, 1/4, 2, 2)": 3, "clustered(complete(5), 2, 1)": 5, "fat_tree(4)": 2,
    "hammingmesh(2, 2, 2, 2)": 4, "dragonfly(2, 2, 1)": 2,
}  # fmt: skip


def cluster(sizes: Sequence[int], inside: Fraction = Fraction(10), outside: Fraction = Fraction(1)) -> Topology:
    """Return boxes of these numbers of ranks, each with a switch, and a fabric that every rank has a link to."""
    ranks, links = sum(sizes), list[tuple[int, int, LinkClass]]()
    fabric, first = ranks + len(sizes), 0
    for box, size in enumerate(sizes):
        for rank in range(first, first + size):
            for switch, speed in ((ranks + box, inside), (fabric, outside)):
                links += [(rank, switch, LinkClass(speed)), (switch, rank, LinkClass(speed))]
        first += size
    return Topology.from_links("cluster", ranks, links, len(sizes) + 1)


#: boxes of two to five ranks, equal or not
clusters = st.lists(st.integers(2, 5), min_size=2, max_size=5)


@st.composite
def ragged_clusters(draw: st.DrawFn) -> Topology:
    """Boxes of any sizes and links inside; some ranks have NICs, of one of two fabrics, and some links are missing."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=2, max_size=4))
    ranks, links = sum(sizes), list[tuple[int, int, LinkClass]]()
    fabrics, first = [ranks + len(sizes), ranks + len(sizes) + 1], 0
    slow, fast = (LinkClass(Fraction(draw(st.sampled_from(speeds)))) for speeds in ((1, 2), (2, 5, 10)))
    for box, size in enumerate(sizes):
        members = list(range(first, first + size))
        kind = draw(st.sampled_from(("switch", "ring", "chain", "complete")))
        pairs = {
            "switch": [pair for rank in members for pair in ((rank, ranks + box), (ranks + box, rank))],
            "ring": [(rank, members[place - 1]) for place, rank in enumerate(members)],
            "chain": [pair for a, b in pairwise(members) for pair in ((a, b), (b, a))],
            "complete": [(a, b) for a in members for b in members],
        }[kind]
        links += [(a, b, fast) for a, b in pairs if a != b]
        for place, rank in enumerate(members):
            if place == 0 or draw(st.booleans()):
                fabric = fabrics[place % 2]
                links += [(rank, fabric, slow), (fabric, rank, slow)]
        first += size
    links += [(fabrics[0], fabrics[1], slow), (fabrics[1], fabrics[0], slow)]
    for _ in range(draw(st.integers(0, 2))):
        del links[draw(st.integers(0, len(links) - 1))]
    return Topology.from_links("ragged", ranks, links, len(sizes) + 2)


def ring_flaws(cycle: Sequence[int], boxes: Boxes) -> Iterator[str]:
    """Yield what is wrong with one ring: every rank once, box after box."""
    if sorted(cycle) != sorted(rank for ranks in boxes.ranks for rank in ranks):
        yield "ranks are missing, or come twice"
        return
    met = [int(boxes.box_of[rank]) for rank in cycle]
    if sum(a != b for a, b in pairwise([*met, met[0]])) != len(boxes):
        yield "a box is entered twice"


def crossing_flaws(cycles: Sequence[Sequence[int]], boxes: Boxes, nics: int) -> Iterator[str]:
    """Yield where rings share the NIC of a crossing; ``nics`` is the number that differ."""
    leaving: dict[int, list[int]] = {}
    entering: dict[int, list[int]] = {}
    for cycle in cycles:
        for a, b in pairwise([*cycle, cycle[0]]):
            if boxes.box_of[a] != boxes.box_of[b]:
                leaving.setdefault(int(boxes.box_of[a]), []).append(a)
                entering.setdefault(int(boxes.box_of[b]), []).append(b)
    for ends in (leaving, entering):
        for box, ranks in ends.items():
            if len(set(ranks)) != nics:
                yield f"box {box}: {len(cycles)} rings use {len(set(ranks))} NICs"
            if not set(ranks) <= set(boxes.gates[box]):
                yield f"box {box}: a ring crosses where there is no NIC"
