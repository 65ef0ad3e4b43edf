"""The trees of an allreduce that is faster than a reduce-scatter and an allgather with equal shards.

Links then divide their bandwidth unevenly between inward and outward trees, and ranks may be roots of different
amounts. On a cluster of boxes, trees of equal roots are built at once (:mod:`.box_trees`), and on one of two tiers with
the bandwidth that the linear program finds (:mod:`.tier_trees`); any other network is divided by its linear program
(:mod:`.allreduce_optimum`), and what each direction gets is packed like an allgather.
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
from .fixed_division import fixed_division
from .optimum import fixed
from .packing import height, pack
from .rail_trees import rail_allreduce
from .routes import Routed, routed
from .tier_trees import FEW, edges_high, low_tiers, lower, tier_trees
from .tiers import tiers

__all__ = [
    "AllreduceTrees", "allreduce_trees", "divides_boxes", "on_rails", "optimal_number", "packed", "unequal",
]  # fmt: skip

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


def allreduce_trees(
    topology: Topology, k: int | str = "optimal", known: AllreduceOptimum | None = None
) -> AllreduceTrees | None:
    """Return trees that reach the optimum; None if equal shards and equal halves of links do, or no program is solved.

    ``value`` is the bandwidth that they reach, in the topology's unit. With a number k, links hold whole trees, and
    every rank is the root of k trees if the ranks of the optimum root equal amounts; None if equal halves hold as many
    at once. Otherwise k is the number of all trees. ``"fewest"`` is the least k on a cluster that reaches the optimum.
    ``known`` is the optimum of a network that :func:`unequal` divides.
    """
    if known is not None and isinstance(k, int):
        return _numbered(topology, known, k)
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
        optimum = allreduce_optimum(topology) if roots is None else None
        return None if optimum is None or optimum.value <= equal else _numbered(topology, optimum, k)
    return _divided(topology, equal)


def unequal(topology: Topology) -> AllreduceOptimum | None:
    """Return the optimum that is faster than equal halves of links, except on a cluster of boxes; None without one."""
    boxes = cluster(topology)
    if boxes is not None and topology.reverse_links is not None and box_roots(topology, boxes) is not None:
        return None
    found = allreduce_optimum(topology)
    return None if found is None or found.value <= composed(topology) else found


def divides_boxes(topology: Topology) -> bool:
    """Whether the network is a cluster of boxes whose uneven links hold more than equal halves do."""
    boxes = cluster(topology)
    roots = None if boxes is None or topology.reverse_links is None else box_roots(topology, boxes)
    return roots is not None and roots.value > composed(topology)


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
    low = on_rails(topology, found.value) or _on_tiers(topology, found.value)
    if low is not None and topology.num_ranks > FEW:
        return low
    trees = packed(topology, found.division)
    return trees if low is None else min((low, trees), key=_size)


def _size(trees: AllreduceTrees) -> tuple[int, int]:
    """Return the height of the highest tree, and the number of trees."""
    both = [trees.outward, trees.outward if trees.transposed is None else trees.transposed]
    return max(map(edges_high, both)), sum(len(one.root) for one in both)


def _on_tiers(topology: Topology, value: Fraction) -> AllreduceTrees | None:
    """Return trees of equal roots on a cluster of two tiers that reach a bandwidth; None if none are found."""
    found = tiers(topology) if topology.reverse_links is not None else None
    if found is None:
        return None
    share = topology.num_ranks / value
    k = lcm(*((kind.bandwidth * share).denominator for kind in topology.classes))
    assert topology.reverse_links is not None, "tiers have two-way links"
    room, reverse = link_capacities(topology, k * share), topology.reverse_links.tolist()
    trees = tier_trees(topology, found, room, [k] * topology.num_ranks, reverse)
    return None if trees is None else AllreduceTrees(k, False, trees, None, value)


def on_rails(topology: Topology, value: Fraction) -> AllreduceTrees | None:
    """Return trees of a cluster on rails that reach a bandwidth; None on other networks, or if they do not fit."""
    found = rail_allreduce(topology, value)
    return None if found is None else AllreduceTrees(found.parts, found.whole, found.trees, None, value)


def _numbered(topology: Topology, found: AllreduceOptimum, k: int) -> AllreduceTrees | None:
    """Return the k trees of most bandwidth: of every rank if the optimum's ranks root equal amounts, else in all.

    None if those of every rank have no more bandwidth than with equal halves of links, or the network is too large.
    """
    ranks, alike = topology.num_ranks, found.has_equal_roots
    division = fixed_division(topology, k * ranks if alike else k, found.value, alike)
    if division is None or (alike and division.value <= k * ranks / _halves(topology, k)):
        return None
    return packed(topology, division)


def _halves(topology: Topology, k: int) -> Fraction:
    """Return the trees per unit of bandwidth of k trees of every rank inward, and k outward."""
    alike = [1] * topology.num_ranks
    outward = fixed(topology, alike, k).per_unit
    return outward + (outward if topology.reverse_links is not None else fixed(topology.transpose(), alike, k).per_unit)


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
    low = low_tiers(topology, held, roots) if boxes is None else cluster_trees(topology, boxes, held, roots)
    if low is not None and (boxes is not None or topology.num_ranks > FEW):
        return low
    choices = removals(flow_network(topology, list(held)), topology.num_ranks, roots, topology.names)
    forests = [(pack(topology.num_ranks, logical.capacity, roots), logical) for logical in choices]
    trees, logical = min(forests, key=lambda one: (height(one[0]), len(one[0])))
    found = routed(sorted(trees, key=lambda tree: tree.root), logical, topology, held)
    return found if low is None else lower(low, found)
