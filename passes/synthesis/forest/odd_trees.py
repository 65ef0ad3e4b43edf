"""Trees of a cluster with a few odd boxes: of one alike box's ranks, which a rotation moves, and of the odd ranks.

* A rank of an alike box sends its data to the rank of its place in every other alike box, where a tree of the box
  spreads them (:mod:`.alike`), and once into every odd part.
* What enters the odd parts from one place of all alike boxes enters along equal trees, which are packed once
  (:mod:`.odd_parts`).
* The data of odd ranks go along trees of the odd parts alone, and once to every alike box, to the same place in all.

No link takes longer than the slowest of some cuts, so the trees are optimal. If they do not fit, there is no template:
then links of the fabric are too slow in one direction, or data within an odd part take longer than all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import lcm

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.graph.bottleneck import worst_ratio
from collc.ir.graph.box_rotation import parts_without
from collc.ir.ragged import group_starts, inverse, nth, owners
from collc.ir.symmetries import Rotations
from collc.ir.topology import Topology

from .alike import box_trees, loads_of
from .allreduce_optimum import division_by_boxes
from .capacities import link_capacities
from .fed_odd import EFFORT, fed_odd
from .halves import Half
from .odd_boxes import OddBoxes, odd_boxes
from .odd_parts import OddParts, bandwidth, packed_parts
from .odd_routes import OddRoutes
from .routes import Routed
from .supplies import Supply

__all__ = ["odd_seed"]

_FEW = 8  # numbers of trees a rank that are tried besides the one that divides the links to the fabric
_MOST_TREES = 1 << 20
_MOST_EDGES = 1 << 24
_MOST_LISTED = 1 << 24  # edges of all trees of one direction: targets without templates list them
_MOST_WHOLE = 1 << 40  # trees of the whole vector


def odd_seed(topology: Topology, both: bool = False) -> tuple[Half, Rotations, bool] | None:
    """Return trees of the first alike box's ranks and of all odd ranks, and the rotation of the first; or None.

    With the images of the first they take no longer than the slowest cut permits. If ``both``, the trees carry data in
    both directions: those of an allreduce. The last value says whether their shares are of the whole vector: then ranks
    are roots of different amounts.
    """
    odd = odd_boxes(topology)
    if odd is None or (both and topology.reverse_links is None):
        return None
    found = _in_both_directions(odd) if both else _outward(odd)
    if found is None:
        divided = _divided(odd) if both else None
        return None if divided is None else _with_own_numbers(topology, odd, *divided)
    trees, supply = found
    half = Half(supply.total(odd) if _differ(supply) else supply.alike, trees)
    return _with_own_numbers(topology, odd, half, _differ(supply))


def _differ(supply: Supply) -> bool:
    return set(supply.odd) != {supply.alike}


def _outward(odd: OddBoxes) -> tuple[Routed, Supply] | None:
    """Return as many trees of every rank."""
    ranks, per_tree = odd.topology.num_ranks, _least(odd)
    supplies = [Supply(k, (k,) * len(odd.ranks)) for k in _numbers(odd, per_tree * ranks)]
    return _built(odd, iter(supplies), per_tree) or _packed(odd, supplies, per_tree)


def _packed(odd: OddBoxes, supplies: Sequence[Supply], per_tree: Fraction) -> tuple[Routed, Supply] | None:
    """Return the first trees of a packing of each box, in as many units of weight for each tree as boxes are alike."""
    for supply in supplies:
        if supply.alike > _MOST_TREES:
            return None
        held, count = link_capacities(odd.topology, per_tree * supply.total(odd)), odd.alike.count
        for trees in fed_odd(odd, [supply.alike] * odd.alike.num_ranks, supply.odd, held):
            if _fit(odd, trees, [count * amount for amount in held], False):
                return trees, Supply(supply.alike * count, tuple(one * count for one in supply.odd))
    return None


def _in_both_directions(odd: OddBoxes) -> tuple[Routed, Supply] | None:
    """Return trees of every rank, of as many roots in a box as its links to the fabric permit."""
    per_tree, shares = _least_of_both(odd), _roots(odd)
    if shares is None:
        return None
    alike, rest = shares
    if {alike} == set(rest):
        numbers = _numbers(odd, per_tree * odd.topology.num_ranks)
        return _built(odd, (Supply(k, (k,) * len(rest), True) for k in numbers), per_tree)
    supplies = (
        Supply(int(alike * trees), tuple(int(share * trees) for share in rest), True)
        for trees in _wholes(odd, alike, rest)
    )
    return _built(odd, supplies, per_tree)


def _divided(odd: OddBoxes) -> tuple[Half, bool] | None:
    """Return trees of the optimum of an allreduce, packed box by box, and whether ranks are roots of different amounts.

    None if boxes cannot send all data of their ranks themselves at the optimum.
    """
    groups = parts_without(odd.topology, [odd.fabric])
    division = division_by_boxes(odd.topology, groups)
    if division is None or division.trees > _MOST_WHOLE:
        return None
    roots, ranks, count = division.roots, odd.alike.num_ranks, odd.alike.count
    if roots[: ranks * count] != roots[:ranks] * count:
        return None
    both = link_capacities(odd.topology, division.per_unit)
    held, rest = [count * amount for amount in both], roots[ranks * count :]
    equal = len(set(roots)) == 1
    inside = box_trees(odd.alike, division.per_unit * ranks / division.trees / 2)
    choices = (None,) if inside is None else (inside, None)
    for effort in (EFFORT, 0):  # few trees may be written out, low ones are more
        for trees in fed_odd(odd, roots[:ranks], rest, division.outward, both, choices, effort):
            moved = int(np.count_nonzero(trees.root < ranks))
            edges = (moved * count + len(trees.root) - moved) * odd.topology.num_ranks
            if edges <= _MOST_LISTED and _fit(odd, trees, held, True):
                return Half(count * (roots[0] if equal else division.trees), trees), not equal
    return None


def _built(odd: OddBoxes, supplies: Iterator[Supply], per_tree: Fraction) -> tuple[Routed, Supply] | None:
    """Return the first trees that take no more than ``per_tree`` of time for each tree of the supply."""
    alike, topology = odd.alike, odd.topology
    inside: Half | None = None
    for supply in supplies:
        edges = (alike.num_ranks + len(odd.ranks)) * topology.num_ranks
        if min(supply.alike, _FEW) * edges > _MOST_EDGES or supply.alike > _MOST_TREES:
            return None
        time = per_tree * supply.total(odd)
        if inside is None:  # equal for all supplies of these shares
            uses = supply.alike * alike.count + Fraction(sum(supply.odd), alike.num_ranks)
            inside = box_trees(alike, time / uses / (2 if supply.both else 1))
        if inside is None:
            return None
        held = link_capacities(topology, time)
        found = packed_parts(odd, held, supply)
        if found is None:
            continue
        for grain in sorted({1, min(supply.alike, _FEW)}):
            trees = _Builder(odd, inside, found, supply, grain).trees()
            if _fit(odd, trees, held, supply.both):
                return trees, supply
    return None


def _with_own_numbers(
    topology: Topology, odd: OddBoxes, half: Half, whole: bool
) -> tuple[Half, Rotations, bool] | None:
    """Return trees and rotation in the network's own numbers; None if its first alike box has not the least ranks."""
    back, rotation = inverse(odd.number), odd.rotation(topology)
    columns = {name: back[getattr(half.trees, name).astype(np.int64)] for name in ("root", "parent", "child")}
    if not np.isin(columns["root"], rotation.roots).all():
        return None
    return Half(half.parts, attrs.evolve(half.trees, **columns)), rotation, whole


def _boxes(odd: OddBoxes) -> list[tuple[int, Fraction]]:
    """Return the ranks of an alike box and of every odd part, and the bandwidth of their links from the fabric."""
    links = [(odd.alike.num_ranks, [one[odd.fabric][0] for one in odd.alike.down])]
    links += [(len(part), [odd.down[v] for v in part if v in odd.down]) for part in odd.parts]
    return [(ranks, bandwidth(odd.topology, down)) for ranks, down in links]


def _into_ranks(topology: Topology) -> list[Fraction]:
    """Return the different bandwidths into ranks."""
    into = np.zeros((topology.num_ranks, len(topology.classes)), dtype=np.int64)
    ending = topology.dst < topology.num_ranks
    np.add.at(into, (topology.dst[ending], topology.link_class[ending]), 1)
    kinds = topology.classes
    return [
        sum((n * kind.bandwidth for n, kind in zip(counts, kinds, strict=True)), Fraction(0))
        for counts in np.unique(into, axis=0).tolist()
    ]


def _least(odd: OddBoxes) -> Fraction:
    """Return the time per tree of equal roots that data into any set of nodes of an alike box, or of odd parts, need.

    Sets with nodes of several alike boxes need no more.
    """
    alike = odd.alike.nodes[0].tolist()
    return max(_slowest(odd.topology, nodes) for nodes in (alike, [*odd.ranks, *odd.switches])) / odd.topology.num_ranks


def _slowest(topology: Topology, nodes: Sequence[int]) -> Fraction:
    """Return the time of the slowest cut between any of these nodes and all others, per shard."""
    own = [node for node in nodes if node < topology.num_ranks]
    number = np.full(topology.num_nodes, len(own))
    number[[*own, *(node for node in nodes if node >= topology.num_ranks)]] = [
        *range(len(own)), *range(len(own) + 1, len(nodes) + 1)
    ]  # fmt: skip
    src, dst = number[topology.src], number[topology.dst]
    links = np.flatnonzero(src != dst)
    network = Topology(
        topology.name, len(own) + 1, src[links], dst[links], len(nodes) - len(own), topology.link_class[links],
        topology.classes, topology.unit,
    )  # fmt: skip
    return worst_ratio(network, [1] * len(own) + [topology.num_ranks - len(own)])[0]


def _least_of_both(odd: OddBoxes) -> Fraction:
    """Return the time per tree that an allreduce needs at least.

    Every part of the vector enters or leaves each rank and box, or both. It connects all P boxes in both directions,
    by P - 1 edges or more, and every one takes a link into a box and one out of a box.
    """
    boxes = _boxes(odd)
    count = odd.alike.count + len(odd.parts)
    width = boxes[0][1] * odd.alike.count + sum((width for _, width in boxes[1:]), Fraction(0))
    least = min([width for _, width in boxes] + _into_ranks(odd.topology))
    return max(Fraction(2 * (count - 1)) / width, 1 / least)


def _roots(odd: OddBoxes) -> tuple[Fraction, list[Fraction]] | None:
    """Return the shares of the vector of a rank of an alike box, and of every odd rank: equal ones if links permit.

    A box that is the root of the share a sends (P - 1) a to the others and gets 1 - a. Its links hold b T in all.
    """
    boxes, time = _boxes(odd), _least_of_both(odd)
    count, ranks = odd.alike.count + len(odd.parts), odd.topology.num_ranks
    most = [(width * time - 1) / (count - 2) for _, width in boxes]
    if all(Fraction(own, ranks) <= room for (own, _), room in zip(boxes, most, strict=True)):
        return Fraction(1, ranks), [Fraction(1, ranks)] * len(odd.ranks)
    total = most[0] * odd.alike.count + sum(most[1:])
    if total < 1:
        return None
    alike, *rest = (room / total / own for (own, _), room in zip(boxes, most, strict=True))
    return alike, [share for part, share in zip(odd.parts, rest, strict=True) for _ in part]


def _wholes(odd: OddBoxes, alike: Fraction, rest: Sequence[Fraction]) -> list[int]:
    """Return numbers of trees in all: the least in which all ranks have whole trees, and one with which the trees that
    enter and leave also divide among the links of a part."""
    least = lcm(alike.denominator, *(share.denominator for share in rest))
    amounts = list[Fraction]()
    for part, (_, width) in zip(odd.parts, _boxes(odd)[1:], strict=True):
        own = sum(rest[odd.place(v)] for v in part)
        links = [odd.topology.bandwidth(odd.down[v]) for v in part if v in odd.down]
        amounts += [link / width * share for link in links for share in (own, alike * odd.alike.num_ranks)]
    return sorted({least, lcm(least, *(amount.denominator for amount in amounts))})


def _numbers(odd: OddBoxes, least: Fraction) -> list[int]:
    """Return numbers of trees a rank: a few, and those with which all links hold whole trees, and what enters divides
    by the number of boxes."""
    topology = odd.topology
    links = [*odd.down.values(), *odd.up.values()]
    whole = lcm(*((kind.bandwidth * least).denominator for kind in topology.classes))
    exact = lcm(*((topology.bandwidth(link) * least / odd.alike.count).denominator for link in links))
    return sorted({*range(1, _FEW + 1), whole, exact})


def _fit(odd: OddBoxes, trees: Routed, held: Sequence[int], both: bool) -> bool:
    """Whether the trees, those of alike boxes with their images, load no link more than it holds."""
    rotation, moves = odd.alike.rotation, trees.root < odd.alike.num_ranks
    row_moves = moves[trees.tree]
    moved = rotation.summed(loads_of(odd.topology, trees, row_moves)[None, :], rotation.link_orbit)[0]
    total = moved + loads_of(odd.topology, trees, ~row_moves)
    reverse = odd.topology.reverse_links
    if both and reverse is not None:
        total = total + total[reverse]
    return bool((total <= np.array(held)).all())


# ---- columns


class _Rows:
    """The edges of each tree, in order."""

    def __init__(self, trees: Routed) -> None:
        self.trees = trees
        self.order = np.argsort(trees.tree, kind="stable")
        self.begin = group_starts(trees.tree[self.order], len(trees.root))

    def of(self, tree: int) -> tuple[Array, Array, Array]:
        """Return parents, children and routes."""
        rows = self.order[self.begin[tree] : self.begin[tree + 1]]
        parent, child, route = (
            getattr(self.trees, name)[rows].astype(np.int64) for name in ("parent", "child", "route")
        )
        return parent, child, route

    def units(self, root: int) -> Array:
        """Return the tree of each unit of weight of a root."""
        chosen = np.flatnonzero(self.trees.root == root)
        found: Array = np.repeat(chosen, self.trees.weight[chosen].astype(np.int64))
        return found


def _counted(*columns: Array) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield the different rows of columns, ascending, and how often each occurs."""
    rows, counts = np.unique(np.stack(columns, axis=1), axis=0, return_counts=True)
    for row, count in zip(rows.tolist(), counts.tolist(), strict=True):
        yield tuple(row), count


class _Builder:
    """Adds trees with their edges; edges are (parent, child, key of the route)."""

    def __init__(self, odd: OddBoxes, inside: Half, packed: OddParts, supply: Supply, grain: int) -> None:
        self.odd, self.supply, self.packed, self.grain = odd, supply, packed, grain
        self.alike, self.rotation = odd.alike, odd.alike.rotation
        self.inside, self.ranks = _Rows(inside.trees), np.array(odd.ranks)
        self.entering = _Rows(packed.entering)
        self.own = None if packed.own is None else _Rows(packed.own)
        self.keys = OddRoutes(odd, inside.trees.routes, packed)
        self.blocks: list[tuple[Array, Array, Array]] = []
        self.lengths: list[int] = []
        self.roots: list[int] = []
        self.weights: list[int] = []

    def trees(self) -> Routed:
        """Return the trees of every rank of the first alike box and of every odd rank; equal trees are one.

        ``grain`` trees of a rank of the first box are different in the alike boxes.
        """
        k, boxes = self.supply.alike, self.alike.count
        entering = self.entering.units(len(self.ranks)).reshape(-1, k)
        grains = np.arange(k) * self.grain // k
        for place in range(self.alike.num_ranks):
            for (grain, unit), weight in _counted(grains, entering[place]):
                # all trees of the box are used by weight
                chosen = self._box_tree(place, grain * boxes + np.arange(boxes), self.grain * boxes)
                self._add(place, weight, self._of_alike(place, chosen, unit))
        sent = np.array(self.supply.odd)
        places, trees = self._in_alike_boxes(int(sent.sum()))
        for number, (root, end) in enumerate(zip(self.odd.ranks, np.cumsum(sent).tolist(), strict=True)):
            units = slice(end - int(sent[number]), end)
            own = np.full(sent[number], -1) if self.own is None else self.own.units(number)
            for key, weight in _counted(self.packed.leaving[number], places[units], trees[units], own):
                self._add(root, weight, self._of_odd(*key))
        return self._columns()

    def _in_alike_boxes(self, trees: int) -> tuple[Array, Array]:
        """Return the place at which each tree of an odd rank enters all alike boxes, and the tree of the box there."""
        place = np.arange(trees) * self.alike.num_ranks // max(trees, 1)
        uses = np.bincount(place, minlength=self.alike.num_ranks)
        number = nth(uses)
        chosen = [self._box_tree(p, number[place == p], uses[p]) for p in range(self.alike.num_ranks)]
        return place, np.concatenate(chosen)

    def _box_tree(self, place: int, share: Array, shares: int | np.int64) -> Array:
        """Return the tree of a place that has the middle of equal shares in the weight of its trees."""
        trees = self.inside.trees
        own = np.flatnonzero(trees.root == place)
        ends = np.cumsum(trees.weight[own].astype(np.int64))
        middle = (2 * share + 1) * int(ends[-1]) // max(2 * int(shares), 1)
        chosen: Array = own[np.searchsorted(ends, middle, side="right")]
        return chosen

    def _of_alike(self, place: int, chosen: Array, unit: int) -> Iterator[tuple[Array, Array, Array]]:
        boxes = np.arange(1, self.alike.count)
        yield self._to_boxes(place, boxes, place)
        for tree in np.unique(chosen).tolist():
            yield self._in_boxes(np.flatnonzero(chosen == tree), tree)
        parent, child, route = self.entering.of(unit)
        outside = parent == len(self.ranks)
        ends = np.where(outside, place, self.ranks[np.where(outside, 0, parent)])
        yield ends, self.ranks[child], self.keys.entering(place, child, route, outside)

    def _of_odd(self, leaves: int, place: int, chosen: int, own: int) -> Iterator[tuple[Array, Array, Array]]:
        if self.own is not None:
            parent, child, route = self.own.of(own)
            yield self.ranks[parent], self.ranks[child], self.keys.own(route)
        boxes = np.arange(self.alike.count)
        yield self._to_boxes(leaves, boxes, place)
        yield self._in_boxes(boxes, chosen)

    def _to_boxes(self, rank: int, boxes: Array, place: int) -> tuple[Array, Array, Array]:
        """Return the edges from a rank to the same place in some alike boxes."""
        heads = self.rotation.nodes(boxes, np.full(len(boxes), place))
        return np.full(len(boxes), rank), heads, self.keys.crossing(rank, boxes, place)

    def _in_boxes(self, boxes: Array, tree: int) -> tuple[Array, Array, Array]:
        """Return the edges of a tree of the box in some alike boxes."""
        parent, child, route = self.inside.of(tree)
        ends = [self.rotation.nodes(boxes[:, None], end[None, :]).ravel() for end in (parent, child)]
        return ends[0], ends[1], self.keys.inside(boxes[:, None], route[None, :]).ravel()

    def _add(self, root: int, weight: int, edges: Iterator[tuple[Array, Array, Array]]) -> None:
        before = len(self.blocks)
        self.blocks += edges
        self.lengths.append(sum(len(block[0]) for block in self.blocks[before:]))
        self.roots.append(root)
        self.weights.append(weight)

    def _columns(self) -> Routed:
        parent, child, key = (np.concatenate(column) for column in zip(*self.blocks, strict=True))
        used, route = np.unique(key, return_inverse=True)
        return Routed(
            np.array(self.roots), np.array(self.weights), owners(self.lengths), parent, child, route.reshape(-1),
            self.keys.routes(used),
        )  # fmt: skip
