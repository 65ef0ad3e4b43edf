"""The least time of trees, and their number per rank: the bottleneck cut, k and the trees per link.

ForestColl, sections 4.2 and 4.5, appendices C.1 and C.4. A rank r of supply s sends s k trees (s is 1 for every rank of
an allgather, 1 for the root alone of a broadcast), and a link of bandwidth b holds floor(U b) of them, each parallel
link separately. Trees exist if and only if the links out of every set of nodes that lacks a rank hold the trees of its
ranks (Theorem 5). They then take U/k times the shard (Theorem 13). All is exact: fractions outside, integers inside.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from fractions import Fraction
from math import floor

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.graph.bottleneck import cut_ratio, leaving, sinks_to_see, whole_bandwidths, worst_ratio
from collc.ir.ragged import inverse
from collc.ir.topology import LinkClass, Topology

from .capacities import flow_network, link_capacities

__all__ = ["Choice", "Fixed", "Optimum", "bundled", "certified", "choose", "fixed", "is_balanced", "optimum"]


@attrs.frozen
class Optimum:
    """The optimum of trees.

    ``one_over_x`` is the time of one rank's shard per byte, in the topology's unit of bandwidth: the bottleneck cut's
    supply over its bandwidth. ``cut`` is the set of nodes (ascending) that proves it. ``k`` trees a unit of supply are
    the fewest that reach it if every link holds whole trees: ``per_unit`` for a unit of bandwidth (Proposition 3). On a
    single rank everything is 0, but k is 1.
    """

    one_over_x: Fraction
    cut: tuple[int, ...]
    k: int
    per_unit: Fraction


@attrs.frozen
class Fixed:
    """The best that k trees a unit of supply can do.

    A link of bandwidth b holds floor(``per_unit`` b) trees. ``cut`` is a set of nodes that lets too few out at any
    smaller ``per_unit``.
    """

    k: int
    per_unit: Fraction
    cut: tuple[int, ...]

    @property
    def one_over_x(self) -> Fraction:
        """The time of one rank's shard per byte, as in :class:`Optimum`."""
        return self.per_unit / self.k


@attrs.frozen
class Choice:
    """A choice of the number of trees: ``tried`` are the k tried, each with its part of the optimal bandwidth."""

    optimum: Optimum
    chosen: Optimum | Fixed
    tried: tuple[tuple[int, Fraction], ...]

    @property
    def k(self) -> int:
        """Trees per root."""
        return self.chosen.k

    @property
    def per_unit(self) -> Fraction:
        """Trees per unit of bandwidth; a link holds this times its bandwidth, rounded down."""
        return self.chosen.per_unit

    @property
    def lost_bandwidth(self) -> Fraction:
        """The part of the optimal bandwidth that fewer trees cannot reach: 0 at the optimum."""
        return 1 - _part(self.optimum, self.chosen)


def optimum(topology: Topology, supply: Sequence[int]) -> Optimum:
    """Return the least time of a forest and the fewest trees that reach it (Theorem 1, Proposition 3).

    ``supply[r]`` is how often rank r sends k trees; switches send none. Raises C0301 if data cannot reach a rank.
    """
    ratio, cut = worst_ratio(topology, supply)
    if not ratio:
        return Optimum(ratio, cut, 1, ratio)
    _, scale = whole_bandwidths(topology)
    k = (ratio / scale).denominator  # bandwidths as whole numbers without a common divisor: Proposition 3's gcd is 1
    return Optimum(ratio, cut, k, ratio * k)


def fixed(topology: Topology, supply: Sequence[int], k: int, known: Sequence[tuple[int, ...]] = ()) -> Fixed:
    """Return the least U at which k trees per unit of supply exist in links that hold floor(U b) (Theorems 13 to 15).

    A cut that is too small for its trees tells exactly how large U must be, and the sweep continues from there. U only
    rises, from one fraction of the form j/b to the next, and skips none. ``known`` are sets of nodes to begin with
    (each lacks a rank): cuts of the optimum and of other k save flows.
    """
    first = list(known) or [worst_ratio(topology, supply)[1]]
    found, cut = Fraction(0), tuple[int, ...]()
    for nodes in first:
        needed = _least(topology, supply, k, nodes)
        if needed > found:
            found, cut = needed, nodes
    network = flow_network(topology, link_capacities(topology, found))
    ends = list(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))
    trees = [amount * k for amount in supply] + [0] * topology.num_switches

    def widen(nodes: tuple[int, ...]) -> list[int]:
        nonlocal found, cut
        found, cut = _least(topology, supply, k, nodes), nodes
        held = link_capacities(topology, found)
        network.refill((tail, head, capacity) for (tail, head), capacity in zip(ends, held, strict=True))
        return trees

    network.settle(trees, sinks_to_see(topology, supply), widen)
    return Fixed(k, found, cut)


def certified(topology: Topology, supply: Sequence[int], claim: Optimum | Fixed) -> bool:
    """Return whether the claim's cut proves that no trees are better, in O(links): no flows, no trust in the search.

    An optimum: the cut has the claimed ratio, and k is the fewest. A fixed k: with fewer trees per unit of bandwidth,
    the cut lets too few out. The trees themselves must prove that the claim can be reached.
    """
    inside = set(claim.cut)
    if not claim.cut:
        return not claim.one_over_x and (topology.num_ranks <= 1 or not any(supply))
    if inside.issuperset(range(topology.num_ranks)):
        return False
    if isinstance(claim, Fixed):
        rows = _widths(topology, claim.cut)
        below = sum((-floor(-width * claim.per_unit) - 1) * links for width, links in rows)
        return below < claim.k * sum(supply[node] for node in claim.cut if node < topology.num_ranks)
    if cut_ratio(topology, supply, claim.cut) != claim.one_over_x or claim.per_unit != claim.k * claim.one_over_x:
        return False
    _, scale = whole_bandwidths(topology)
    return claim.k == (claim.one_over_x / scale).denominator


def choose(
    topology: Topology, supply: Sequence[int], k: int | str | None = None, most: int = 10, balanced: bool = False
) -> Choice:
    """Return the number of trees: that of Proposition 3 (None), ``k``, or the result of a search.

    ``"auto"`` chooses the optimum if its k is at most ``most``, else the k up to ``most`` with the best bandwidth (the
    fewest of equals): bandwidth is not monotone in k. ``balanced`` skips k that upset the balance of the nodes (see
    :func:`is_balanced`), and chooses the optimum if none is left. ``"fewest"`` chooses the least k that reaches the
    optimal bandwidth: links off the bottleneck may have a rest that holds no whole tree.
    """
    best = optimum(topology, supply)
    if k is None or k == best.k or (k == "auto" and best.k <= most):
        return Choice(best, best, ((best.k, Fraction(1)),))
    if k == "fewest":
        least = _fewest(topology, supply, best, balanced)
        return Choice(best, least, ((least.k, Fraction(1)),))
    found, cuts = list[Fixed](), dict.fromkeys([best.cut])
    for number in range(1, most + 1) if k == "auto" else [int(k)]:
        found.append(fixed(topology, supply, number, list(cuts)))
        cuts[found[-1].cut] = None
    usable = [one for one in found if not (balanced and k == "auto") or is_balanced(topology, one.per_unit)]
    chosen = min(usable, key=lambda one: (one.one_over_x, one.k), default=best)
    return Choice(best, chosen, tuple((one.k, _part(best, one)) for one in found))


def is_balanced(topology: Topology, per_unit: Fraction) -> bool:
    """Return whether as many whole trees fit into every node as out of it.

    Only such switches can be split off. It is true for any ``per_unit`` if every link has one of the same bandwidth in
    the opposite direction, and at the optimum if bandwidths balance; otherwise rounding down may upset it.
    """
    surplus = [0] * topology.num_nodes
    held = link_capacities(topology, per_unit)
    for tail, head, trees in zip(topology.src.tolist(), topology.dst.tolist(), held, strict=True):
        surplus[tail] -= trees
        surplus[head] += trees
    return not any(surplus)


def bundled(topology: Topology) -> tuple[Topology, Array]:
    """Return the network with parallel links joined into one of their total bandwidth, and which one each link is in.

    Trees then need not fit into single links: what crosses a bundle divides among its links. Optimal bandwidth is the
    same, that of a fixed k may be better. Loops stay unchanged; joined links keep the order of their first.
    """
    keys = topology.src.astype(np.int64) * topology.num_nodes + topology.dst
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    bundle = inverse(order)[group.ravel()]
    counts = np.zeros((len(order), len(topology.classes)), dtype=np.int64)
    np.add.at(counts, (bundle, topology.link_class), 1)
    links = list[tuple[int, int, LinkClass]]()
    for link, row in zip(first[order].tolist(), counts.tolist(), strict=True):
        parts = [(kind, count) for kind, count in zip(topology.classes, row, strict=True) if count]
        total = sum((kind.bandwidth * count for kind, count in parts), Fraction(0))
        whole = LinkClass(total, max(kind.latency for kind, _ in parts))
        links.append((int(topology.src[link]), int(topology.dst[link]), whole))
    joined = Topology.from_links(
        topology.name, topology.num_ranks, links, topology.num_switches,
        unit=topology.unit, node_names=topology.node_names,
    )  # fmt: skip
    return joined, bundle


def _fewest(topology: Topology, supply: Sequence[int], best: Optimum, balanced: bool) -> Optimum | Fixed:
    """Return the least k at which links of floor(U b), U = k/x*, hold all trees; known cuts rule out most k."""
    cuts, sinks = [best.cut], sinks_to_see(topology, supply)
    for k in range(1, best.k):
        per_unit = k * best.one_over_x
        if any(_least(topology, supply, k, nodes) > per_unit for nodes in cuts):
            continue
        if balanced and not is_balanced(topology, per_unit):
            continue
        network = flow_network(topology, link_capacities(topology, per_unit))
        small = network.violated([amount * k for amount in supply] + [0] * topology.num_switches, sinks)
        if not small:
            return Fixed(k, per_unit, best.cut)
        cuts.append(small[0].nodes)
    return best


def _part(best: Optimum, one: Optimum | Fixed) -> Fraction:
    return best.one_over_x / one.one_over_x if one.one_over_x else Fraction(1)


def _widths(topology: Topology, nodes: tuple[int, ...]) -> list[tuple[Fraction, int]]:
    """Return the bandwidths of the links that leave a set, and how many have each."""
    links = np.bincount(topology.link_class[leaving(topology, nodes)], minlength=len(topology.classes)).tolist()
    return [(kind.bandwidth, count) for kind, count in zip(topology.classes, links, strict=True) if count]


def _least(topology: Topology, supply: Sequence[int], k: int, nodes: tuple[int, ...]) -> Fraction:
    """Return the least U at which the links out of a set hold the trees of its ranks: sum floor(U b) >= k supply(S)."""
    needed = k * sum(supply[node] for node in nodes if node < topology.num_ranks)
    rows = _widths(topology, nodes)
    per_unit = Fraction(needed) / sum(width * links for width, links in rows) if needed else Fraction(0)
    held = sum(floor(width * per_unit) * links for width, links in rows)
    next_tree = [((floor(width * per_unit) + 1) / width, width, links) for width, links in rows]
    heapq.heapify(next_tree)
    while held < needed:
        per_unit, width, links = next_tree[0]
        held += links
        heapq.heapreplace(next_tree, (per_unit + 1 / width, width, links))
    return per_unit
