"""A forest after faults: for every direction the trees that stay, and the others grown again at the new optimum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.diagnostic import CollcError
from collc.ir.effort import within
from collc.ir.progress import counting
from collc.ir.schedule import Forest, Routes
from collc.ir.spec import Problem
from collc.ir.topology import Topology

from ...base import Kept, Replanned
from .allreduce_optimum import allreduce_optimum
from .allreduce_program import composed
from .box_division import box_roots
from .boxes import cluster
from .capacities import link_capacities
from .division import Division
from .halves import Half, backwards, joined_halves, large_on_rails, packed_half
from .regrowing import Regrown, Standing, grown, regrown, regrown_both_ways, standing
from .routes import Routed

if TYPE_CHECKING:
    from .scheduler import ForestScheduler

__all__ = ["regrown_after", "replanned"]

#: switches that cannot forward all that they get, where one direction of a link is gone: no trees reach the optimum
_UNBALANCED = frozenset({"C0581", "C0584"})
#: steps of growing around trees that stay, before all trees grow again
_EFFORT = 1 << 26


def regrown_after(scheduler: ForestScheduler, problem: Problem, before: Kept) -> Replanned | None:
    """Return what :func:`replanned` does, if need be with reverse links that are gone, or slower, like their partners.

    The result is None if no trees reach the optimum then either. Raises what the scheduler raises.
    """
    partner = before.forest.topology.reverse_links
    for both in (False, True) if partner is not None else (False,):
        try:
            if both and partner is not None:
                return _both_ways(scheduler, problem, before, partner)
            return replanned(scheduler, problem, before)
        except CollcError as mistake:
            if not _UNBALANCED.issuperset(one.code for one in mistake.diagnostics):
                raise
    return None


def _both_ways(scheduler: ForestScheduler, problem: Problem, before: Kept, partner: Array) -> Replanned:
    """Return trees that leave out the reverse of every link that is gone, and use that of a slower one as if it were
    as slow, so that switches forward all that they get.

    They are the best of such a network too.
    """
    spared = (before.link[partner] < 0) & (before.link >= 0)
    used = np.ones(problem.topology.num_links, dtype=bool)
    used[before.link[spared]] = False
    topology, numbers = problem.topology, np.flatnonzero(used)
    kinds, slowed = _like_partners(topology, before, partner)
    smaller = attrs.evolve(topology, src=topology.src[used], dst=topology.dst[used], link_class=kinds[used])
    link = np.where(spared | (before.link < 0), -1, (np.cumsum(used) - 1)[before.link])
    known = attrs.evolve(before, link=link, touched=before.touched | spared | slowed)
    found = replanned(scheduler, attrs.evolve(problem, topology=smaller), known)
    forest, routes = found.forest, found.forest.routes
    route = numbers[forest.route] if routes.is_direct else forest.route
    routes = Routes.direct(topology.num_links) if routes.is_direct else Routes(routes.start, numbers[routes.links])
    return attrs.evolve(found, forest=attrs.evolve(forest, topology=topology, route=route, routes=routes))


def _like_partners(topology: Topology, before: Kept, partner: Array) -> tuple[Array, Array]:
    """Return the classes of the links that are left, those with a slower reverse link like that one, and which links
    of before have one; both had one class.
    """
    healthy, kinds = before.forest.topology, topology.link_class.astype(np.int64)
    slower = np.zeros(healthy.num_links, dtype=bool)
    for link in np.flatnonzero(before.touched & (before.link >= 0)).tolist():
        other = int(partner[link])
        alike = healthy.link_class[link] == healthy.link_class[other] and before.link[other] >= 0
        now = [int(before.link[one]) for one in (link, other)]
        if alike and topology.bandwidth(now[0]) < topology.bandwidth(now[1]):
            kinds[now[1]] = topology.link_class[now[0]]
            slower[other] = True
    return kinds, slower


def replanned(scheduler: ForestScheduler, problem: Problem, before: Kept) -> Replanned:
    """Return trees for a problem on a broken network, of the optimum that a fresh synthesis reaches.

    ``before`` has the trees of the same collective on the whole network. Raises what the scheduler raises.
    """
    scheduler.require(problem)
    kind = problem.collective.kind
    directions = {"allreduce": (False, True)}.get(kind, (kind in ("reduce-scatter", "reduce"),))
    stays = [
        standing(before.forest, inward, before.rank, before.link, before.touched)
        for inward in counting(directions, "trees that stay")
    ]
    found = _allreduce(problem, *stays) if scheduler.divides_links(problem) else None
    found = found or _of_equal_shards(scheduler, problem, directions, stays)
    return Replanned(found[0], found[1], found[0].num_trees - found[1])


def _of_equal_shards(
    scheduler: ForestScheduler, problem: Problem, directions: Sequence[bool], stays: Sequence[Standing]
) -> tuple[Forest, int]:
    """Return the trees of roots with equal shards, direction by direction, and how many of them stay."""
    topology, (supply, whole) = problem.topology, scheduler._supply(problem)
    halves, kept = list[Half](), 0
    for inward, trees in zip(directions, stays, strict=True):
        if halves and _are_reverse(topology, *stays):
            halves.append(backwards(halves[0], topology.reverse_links))
            kept *= 2
        else:
            half, count = _half(scheduler, topology.transpose() if inward else topology, supply, trees)
            halves.append(backwards(half) if inward else half)
            kept += count
    return joined_halves(problem, halves[::-1], whole), kept


# ---- an allreduce that divides links unevenly


def _allreduce(problem: Problem, outward: Standing, inward: Standing) -> tuple[Forest, int] | None:
    """Return the trees of an allreduce at its optimum, and how many of them stay; None if equal shards reach it.

    None too if the program is too large.
    """
    topology = problem.topology
    equal, boxes = composed(topology), cluster(topology)
    roots = None if boxes is None else box_roots(topology, boxes)
    if boxes is not None and roots is not None:
        if roots.value <= equal:
            return None
        if _are_reverse(topology, outward, inward):
            room = link_capacities(topology, roots.per_unit)
            found = regrown_both_ways(topology, boxes, room, roots.k, outward)
            if found is not None:
                half = Half(roots.k * found.parts, found.trees)
                return joined_halves(problem, [backwards(half, topology.reverse_links), half], False), 2 * found.kept
    best = allreduce_optimum(topology)
    if best is None or best.value <= equal:
        return None
    fresh = large_on_rails(problem, best.value)
    return divided(problem, best.division, outward, inward) if fresh is None else (fresh, 0)


def divided(problem: Problem, division: Division, outward: Standing, inward: Standing) -> tuple[Forest, int]:
    """Return the trees of a division of roots and links, root by root, and how many of them stay."""
    topology = problem.topology
    out, kept = _one_way(topology, division.outward, division.roots, outward)
    mirrored = topology.reverse_links is not None and np.array_equal(
        np.array(division.outward)[topology.reverse_links], division.inward
    )
    if mirrored and _are_reverse(topology, outward, inward):
        back, more = backwards(out, topology.reverse_links), kept
    else:
        half, more = _one_way(topology.transpose(), division.inward, division.roots, inward)
        back = backwards(half)
    return joined_halves(problem, [back, out], len(set(division.roots)) > 1), kept + more


def _one_way(topology: Topology, held: Sequence[int], roots: Sequence[int], stays: Standing) -> tuple[Half, int]:
    """Return the trees of one direction, and how many of them stay.

    Parts are those of a shard if all roots are equal, else of the vector.
    """
    found = _kept_within(topology, held, roots, stays, divides=True)
    parts = roots[0] if len(set(roots)) == 1 else sum(roots)
    if found is None:
        return Half(parts, _by_root(grown(topology, held, roots))), 0
    return Half(parts * found.parts, _by_root(found.trees)), found.kept


# ---- one direction


def _are_reverse(topology: Topology, outward: Standing, inward: Standing) -> bool:
    """Return whether the standing trees to the roots are the reverse of those from them, over partners of links."""
    partner = topology.reverse_links
    if partner is None or len(outward.number) != len(inward.number) or outward.share != inward.share:
        return False
    columns = ("root", "tree", "parent", "child")
    if not all(np.array_equal(getattr(outward, name), getattr(inward, name)) for name in columns):
        return False
    return np.array_equal(partner[_links(outward)], _links(inward))


def _links(trees: Standing) -> Array:
    """Return the links of all rows, one row after the other."""
    return trees.routes.links[trees.routes.places(trees.route)]


def _half(scheduler: ForestScheduler, topology: Topology, supply: list[int], stays: Standing) -> tuple[Half, int]:
    """Return the trees of one direction, and how many of them stay; the transpose's if data flow to the roots."""
    choice = scheduler._choice(topology, supply)
    held, trees = link_capacities(topology, choice.per_unit), [choice.k * amount for amount in supply]
    found = _kept_within(topology, held, trees, stays, divides=scheduler.k == "optimal")
    if found is None:
        return packed_half(topology, supply, choice, _ignore, scheduler.k == "optimal"), 0
    return Half(choice.k * found.parts, found.trees), found.kept


def _kept_within(
    topology: Topology, held: Sequence[int], trees: Sequence[int], stays: Standing, divides: bool
) -> Regrown | None:
    """Return the trees of one direction around those that stay; None if that takes too much work, or loses trees."""
    try:
        return within(_EFFORT, lambda: regrown(topology, held, trees, stays, divides))
    except CollcError:
        return None


def _by_root(trees: Routed) -> Routed:
    """Return the trees in the order of their roots: both directions then divide the vector alike."""
    order = np.argsort(trees.root, kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    tree = place[trees.tree]
    rows = np.argsort(tree, kind="stable")
    return attrs.evolve(
        trees, root=trees.root[order], weight=trees.weight[order], tree=tree[rows], parent=trees.parent[rows],
        child=trees.child[rows], route=trees.route[rows],
    )  # fmt: skip


def _ignore(phase: str) -> None:
    pass
