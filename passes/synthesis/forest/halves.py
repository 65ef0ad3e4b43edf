"""Trees of one direction, and the forest that one or two directions make."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING

import attrs
import numpy as np

from collc.ir.arrays import Array, Columns
from collc.ir.diagnostic import CollcError
from collc.ir.schedule import Forest, Routes
from collc.ir.spec import Problem
from collc.ir.topology import Topology

from .inputs import require_balanced

# Judging a problem needs no algorithm: functions import those that they run.
if TYPE_CHECKING:
    from .allreduce_optimum import AllreduceOptimum
    from .allreduce_trees import AllreduceTrees
    from .optimum import Choice
    from .orbits import OrbitForest
    from .rail_trees import RailTrees
    from .routes import Routed

__all__ = [
    "Half", "Mark", "backwards", "divided", "forest_of", "in_shards_of", "joined_halves", "large_on_rails", "no_trees",
    "packed_half",
    "partner_links", "symmetric", "with_switches", "without_switches",
]  # fmt: skip
#: is called with the name of every phase when it is over
Mark = Callable[[str], None]
#: on fewer ranks than these flows pack trees in a second, about
_FEW_RANKS = 256


@attrs.frozen(eq=False)
class Half:
    """The trees of one direction: ``parts`` equal shares of a root's data, and the columns of a forest."""

    parts: int
    trees: Routed


def partner_links(topology: Topology) -> Array | None:
    """Return the reverse of every link if trees may be used backwards: switches then do both, or neither."""
    return topology.reverse_links if topology.multicast == topology.reduces else None


def with_switches(topology: Topology, supply: list[int]) -> tuple[Topology, list[int]]:
    """Return the network and the supply with ranks in place of switches that multicast."""
    if not topology.multicast:
        return topology, supply
    from .in_network import copying

    return copying(topology), [*supply, *[0] * len(topology.multicast)]


def without_switches(half: Half, topology: Topology) -> Half:
    """Return the trees of :func:`with_switches` as trees of the network."""
    if not topology.multicast:
        return half
    from .in_network import joined

    return Half(half.parts, joined(half.trees, topology))


def packed_half(topology: Topology, supply: list[int], choice: Choice, mark: Mark, divides: bool = True) -> Half:
    """Return the choice's number of trees, ``supply[r]`` times it of rank r, packed by flows or built from boxes.

    If ``divides``, they may be divided further.
    """
    from .capacities import flow_network, link_capacities
    from .packing import height, pack
    from .routes import routed
    from .switches import removals
    from .tier_trees import lower

    held = link_capacities(topology, choice.per_unit)
    trees = [choice.k * amount for amount in supply]
    low, final = _low(topology, held, trees)
    if low is not None and final:
        mark("trees")
        return Half(choice.k, low)
    on_rails = _on_rails(topology, held, trees, divides)
    if on_rails is not None:
        mark("trees")
        return Half(choice.k * on_rails.parts, on_rails.trees)
    try:
        choices = list(removals(flow_network(topology, held), topology.num_ranks, trees, topology.names))
    except CollcError:
        require_balanced(
            topology, range(topology.num_ranks, topology.num_nodes)
        )  # if bandwidths do not balance, no number of trees helps
        raise
    mark("switches")
    forests = [(pack(topology.num_ranks, logical.capacity, trees), logical) for logical in choices]
    packed, logical = min(forests, key=lambda found: (height(found[0]), len(found[0])))
    mark("trees")
    found = routed(packed, logical, topology, held)
    mark("routes")
    return Half(choice.k, found if low is None else lower(low, found))


def _low(topology: Topology, held: list[int], trees: list[int]) -> tuple[Routed | None, bool]:
    """Return the trees of a cluster whose links to the fabric differ, or of one of two tiers, and whether no others are
    lower.

    Equal links to a fabric are spread by :mod:`.stars`.
    """
    from .box_leaf import cluster_trees
    from .boxes import cluster
    from .tier_trees import FEW, low_tiers

    boxes = cluster(topology)
    if boxes is None:
        return low_tiers(topology, held, trees), topology.num_ranks > FEW
    return (None if boxes.is_even(held) else cluster_trees(topology, boxes, held, trees)), True


def _on_rails(topology: Topology, held: list[int], trees: list[int], divides: bool) -> RailTrees | None:
    """Return the trees of a large cluster on rails; flows find fewer trees on small ones, in little time."""
    from .rail_trees import rail_trees

    found = rail_trees(topology, held, trees) if topology.num_ranks > _FEW_RANKS else None
    return found if found is not None and (divides or found.parts == 1) else None


def divided(ir: Problem, topology: Topology, k: int | str, known: AllreduceOptimum | None = None) -> Forest | None:
    """Return the forest of an allreduce that is faster than with equal shards and equal halves of links, if any.

    ``known`` is the optimum of the allreduce program, if it is solved already.
    """
    from .allreduce_trees import allreduce_trees

    found = allreduce_trees(topology, k, known)
    return None if found is None else forest_of(ir, found)


def large_on_rails(ir: Problem, value: Fraction) -> Forest | None:
    """Return the forest of an allreduce of this bandwidth on a large cluster on rails; None on other networks."""
    from .allreduce_trees import on_rails

    found = on_rails(ir.topology, value) if ir.topology.num_ranks > _FEW_RANKS else None
    return None if found is None else forest_of(ir, found)


def forest_of(ir: Problem, found: AllreduceTrees) -> Forest:
    """Return the forest of an allreduce: the inward trees first."""
    outward = Half(found.parts, found.outward)
    if found.transposed is not None:
        inward = backwards(Half(found.parts, found.transposed))
    else:
        inward = backwards(outward, ir.topology.reverse_links)
    return joined_halves(ir, [inward, outward], found.whole)


def in_shards_of(topology: Topology, supply: list[int], half: Half) -> Half:
    """Return the trees with shares of shards that differ in size, and trees of ranks without data."""
    from .uneven import in_shards

    return Half(*in_shards(topology, half.trees, [half.parts * amount for amount in supply]))


def symmetric(topology: Topology, orbits: OrbitForest) -> Half:
    """Return trees of the network's symmetry."""
    from .routes import Routed

    columns = (orbits.root, orbits.weight, orbits.tree, orbits.parent, orbits.child, orbits.link)
    return Half(orbits.trees, Routed(*columns, Routes.direct(topology.num_links)))


# ---- both directions


def no_trees() -> Half:
    """Return the trees of a single rank."""
    from .routes import Routed

    none = np.zeros(0, dtype=np.int64)
    return Half(1, Routed(none, none, none, none, none, none, Routes.of([])))


def backwards(half: Half, partner: Array | None = None) -> Half:
    """Return the trees with every route reversed: over the links' partners, or over the same links of the transpose."""
    trees, routes = half.trees, half.trees.routes
    if routes.is_direct:
        return half if partner is None else Half(half.parts, attrs.evolve(trees, route=partner[trees.route]))
    links = routes.links[::-1]
    start = int(routes.start[-1]) - routes.start[::-1].astype(np.int64)
    reversed_routes = Routes(start, links if partner is None else partner[links])
    route = len(routes) - 1 - trees.route.astype(np.int64)
    return Half(half.parts, attrs.evolve(trees, routes=reversed_routes, route=route))


def joined_halves(ir: Problem, halves: list[Half], whole: bool, in_network: bool = False) -> Forest:
    """Return the forest of one direction, or of both: then the inward trees come first."""
    inward = {"reduce-scatter": [True], "reduce": [True], "allreduce": [True, False]}.get(ir.collective.kind, [False])
    inward = inward[: len(halves)]
    parts = lcm(*(half.parts for half in halves))
    trees = [half.trees for half in halves]
    first = [0, *np.cumsum([len(one.root) for one in trees])[:-1].tolist()]
    routes, shift = _joined([one.routes for one in trees])
    columns: Columns = {c: np.concatenate([getattr(one, c) for one in trees]) for c in ("root", "parent", "child")}
    weight = [half.trees.weight.astype(np.int64) * (parts // half.parts) for half in halves]
    tree = [one.tree.astype(np.int64) + begin for one, begin in zip(trees, first, strict=True)]
    route = [one.route.astype(np.int64) + begin for one, begin in zip(trees, shift, strict=True)]
    flags = [np.full(len(one.root), flag) for one, flag in zip(trees, inward, strict=True)]
    return Forest(
        ir.topology, ir.collective, parts, weight=np.concatenate(weight), tree=np.concatenate(tree),
        route=np.concatenate(route), routes=routes, inward=np.concatenate(flags), whole=whole, in_network=in_network,
        **columns,
    )  # fmt: skip


def _joined(routes: list[Routes]) -> tuple[Routes, list[int]]:
    """Return all routes one after the other, and where each list begins; routes of single links are the same."""
    if all(r.is_direct for r in routes):
        return routes[0], [0] * len(routes)
    starts = [routes[0].start.astype(np.int64)]
    for more in routes[1:]:
        starts.append(more.start[1:].astype(np.int64) + starts[-1][-1])
    shift = [0, *np.cumsum([len(r) for r in routes])[:-1].tolist()]
    return Routes(np.concatenate(starts), np.concatenate([r.links for r in routes])), shift
