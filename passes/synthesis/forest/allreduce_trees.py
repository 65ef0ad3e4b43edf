"""The trees of an allreduce that is faster than a reduce-scatter and an allgather with equal shards.

Links then divide their bandwidth unevenly between inward and outward trees, and ranks may be roots of different
amounts. On a cluster of boxes, trees of equal roots are built at once (:mod:`.box_trees`); any other network is divided
by its linear program (:mod:`.allreduce_optimum`), and what each direction gets is packed like an allgather.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm

import attrs

from collc.ir.topology import Topology

from .allreduce_optimum import AllreduceOptimum, allreduce_optimum
from .allreduce_program import composed
from .box_division import BoxRoots, box_roots
from .box_leaf import cluster_trees
from .boxes import Cluster, cluster
from .capacities import link_capacities
from .division import Division
from .optimum import fixed
from .packing import height, pack
from .routes import Routed, routed

__all__ = ["AllreduceTrees", "allreduce_trees", "optimal_number", "packed"]

_MOST_TRIED = 64  # numbers of trees, or of trees per unit of bandwidth


@attrs.frozen(eq=False)
class AllreduceTrees:
    """Outward trees of a network, and inward trees as out-trees of its transpose (None: the same trees backwards).

    ``parts`` are the trees of every root, or of the whole vector if roots differ (``whole``).
    """

    parts: int
    whole: bool
    outward: Routed
    transposed: Routed | None
    value: Fraction


def allreduce_trees(topology: Topology, k: int | str = "optimal") -> AllreduceTrees | None:
    """Return trees that reach the optimum; None if equal shards and equal halves of links do, or no program is solved.

    ``value`` is the bandwidth that they reach, in the topology's unit. With a number k, every rank of a cluster of
    boxes is the root of k trees, and links hold whole trees; None if equal halves hold as many at once. ``"fewest"`` is
    the least k on a cluster that reaches the optimum.
    """
    equal = composed(topology)
    boxes = cluster(topology)
    roots = None if boxes is None or topology.reverse_links is None else box_roots(topology, boxes)
    if boxes is not None and roots is not None:
        if roots.value <= equal:
            return None  # the bandwidth of boxes bounds every allreduce
        if isinstance(k, int):
            return _fixed(topology, boxes, roots, k)
        numbers = range(1, min(roots.k, _MOST_TRIED)) if k == "fewest" else ()
        for number in (*numbers, roots.k):
            found = _on_boxes(topology, boxes, number, number * topology.num_ranks / roots.value)
            if found is not None:
                return found
    if isinstance(k, int):
        return None
    return _divided(topology, equal)


def optimal_number(topology: Topology, optimum: AllreduceOptimum) -> tuple[int, bool]:
    """Return the trees of every root that reach an optimum, or of the whole vector (True), if roots differ."""
    boxes = cluster(topology)
    roots = None if boxes is None else box_roots(topology, boxes)
    if roots is not None and roots.value == optimum.value:
        return roots.k, False
    equal = len(set(optimum.division.roots)) == 1
    return (optimum.division.roots[0] if equal else optimum.division.trees), not equal


def _divided(topology: Topology, equal: Fraction) -> AllreduceTrees | None:
    """Return the trees of the linear program: low ones of equal roots if the network is a cluster that holds them."""
    found = allreduce_optimum(topology)
    if found is None or found.value <= equal:
        return None
    boxes = cluster(topology)
    if boxes is not None and topology.reverse_links is not None:
        share = topology.num_ranks / found.value
        k = lcm(*((kind.bandwidth * share).denominator for kind in topology.classes))
        trees = _on_boxes(topology, boxes, k, k * share)
        if trees is not None:
            return trees
    return packed(topology, found.division)


def _fixed(topology: Topology, boxes: Cluster, roots: BoxRoots, k: int) -> AllreduceTrees | None:
    """Return k trees of every rank of a cluster, with the least trees per unit of bandwidth that hold them.

    None if those of two equal halves hold them with fewer.
    """
    alike = [1] * topology.num_ranks
    best = 2 * fixed(topology, alike, k).per_unit
    per_unit = k * topology.num_ranks / roots.value
    for _ in range(_MOST_TRIED):
        if per_unit >= best:
            return None
        found = _on_boxes(topology, boxes, k, per_unit)
        if found is not None:
            return found
        per_unit = min((int(kind.bandwidth * per_unit) + 1) / kind.bandwidth for kind in topology.classes)
    return None


def _on_boxes(topology: Topology, boxes: Cluster, k: int, per_unit: Fraction) -> AllreduceTrees | None:
    """Return k trees of every rank in links that hold whole trees; None if these hold too few."""
    room, total = link_capacities(topology, per_unit), k * topology.num_ranks
    held = [sum(room[boxes.up[v]] for v in box.ranks if boxes.up[v] >= 0) for box in boxes.boxes]
    if sum(held) < 2 * (len(held) - 1) * total or min(held) < total:
        return None
    reverse = topology.reverse_links
    assert reverse is not None, "boxes have two-way links"
    trees = cluster_trees(topology, boxes, room, [k] * topology.num_ranks, reverse.tolist())
    return None if trees is None else AllreduceTrees(k, False, trees, None, total / per_unit)


def packed(topology: Topology, division: Division) -> AllreduceTrees:
    """Return the trees of a division. Raises ValueError if it holds none."""
    reverse = topology.reverse_links
    mirrored = reverse is not None and all(
        inward == division.outward[back] for inward, back in zip(division.inward, reverse.tolist(), strict=True)
    )
    outward = _one_way(topology, division.outward, division.roots)
    transposed = None if mirrored else _one_way(topology.transpose(), division.inward, division.roots)
    equal = len(set(division.roots)) == 1
    parts = division.roots[0] if equal else division.trees
    return AllreduceTrees(parts, not equal, outward, transposed, division.value)


def _one_way(topology: Topology, held: tuple[int, ...], roots: tuple[int, ...]) -> Routed:
    """Return out-trees, root by root: so both directions carry a part of the vector by trees of the same root."""
    from .capacities import flow_network
    from .switches import removals

    boxes = cluster(topology)
    found = None if boxes is None else cluster_trees(topology, boxes, held, roots)
    if found is not None:
        return found
    choices = removals(flow_network(topology, list(held)), topology.num_ranks, roots, topology.names)
    forests = [(pack(topology.num_ranks, logical.capacity, roots), logical) for logical in choices]
    trees, logical = min(forests, key=lambda one: (height(one[0]), len(one[0])))
    return routed(sorted(trees, key=lambda tree: tree.root), logical, topology, held)
