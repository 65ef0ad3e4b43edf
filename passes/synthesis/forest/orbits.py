"""Orbit trees: on a Cayley digraph a few trees at rank 0, moved by the group, form a forest that loads links equally.

A topology with a regular symmetry has the links out of rank r at places 0 .. d-1, and multiplication on the left keeps
places. So the images of a tree at rank 0 together use every link of place p as often as the tree has edges of place p.
k trees have k(N-1) edges. If place p has its share of them, in proportion to its bandwidth, every rank always receives
at its full bandwidth: the bound of the cut around a single rank, met exactly.

Such trees come from labels. Every rank has a label, rank 0 the least, and may be reached through any link from a rank
with a smaller label. Any choice of these links gives trees, so only a flow of the ranks over the places is left to find
(:func:`..breadth_first.balance.assign`). Distances are labels, and are enough if all arcs are equivalent (rings, square
tori, hypercubes, complete graphs). Otherwise the flow names places to which too many ranks are confined. Some of these
ranks get larger labels, mostly not above the diameter, which opens more places to them.

With parallel links this may find no trees though they exist: all trees at a rank have the same labels here.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import lcm

import attrs
import numpy as np

from collc.ir.arrays import Array, fit
from collc.ir.group import Group
from collc.ir.topology import Topology

from ..breadth_first.balance import assign

__all__ = ["OrbitForest", "orbit_forest", "orbit_trees"]

_DEEPER = (0, 1, 2, 4, 8, 16, 32)  # labels beyond the diameter, tried in turn
_ROUNDS = 60  # rounds of relabelling, for each
_MOST_TREES = 1 << 12  # per rank


@attrs.frozen(eq=False)
class OrbitForest:
    """Trees as columns of :class:`collc.ir.schedule.Forest`, of weight ``weight[t]`` out of ``trees`` per root.

    Edge i belongs to tree ``tree[i]`` and leads from ``parent[i]`` to ``child[i]`` over ``link[i]``; rows of a tree are
    contiguous, parents first. Links at place p of their rank are in ``load[p]`` trees each, counted with weight.
    """

    trees: int
    root: Array
    weight: Array
    tree: Array
    parent: Array
    child: Array
    link: Array
    load: tuple[int, ...]
    height: int


def orbit_forest(topology: Topology, trees: int | None = None) -> OrbitForest | None:
    """Return trees that load all links in proportion to their bandwidths, or None if the search finds none.

    ``trees`` is their number per rank (default: the least for which loads can be in proportion). Also returns None if
    loads cannot be in proportion, without a regular symmetry, with switches, or for a single rank.
    """
    found = orbit_trees(topology, trees)
    return None if found is None or topology.symmetry is None else _moved(topology, topology.symmetry, found)


def orbit_trees(topology: Topology, trees: int | None = None) -> OrbitForest | None:
    """Return the trees at rank 0 of :func:`orbit_forest`, whose images are all others, or None."""
    view = _view(topology)
    if view is None:
        return None
    shares = view.shares
    number = lcm(*(share.denominator for share in shares)) if trees is None else trees
    room = [share * number for share in shares]
    if number > _MOST_TREES or any(amount.denominator > 1 for amount in room):
        return None
    load = [int(amount) for amount in room]
    chosen = _choices(view, number, load)
    if chosen is None:
        return None
    places, labels = chosen
    return _at_rank_0(topology, view, places, labels, load)


@attrs.frozen(eq=False)
class _View:
    """The network around rank 0: over place p rank v is reached from ``tails[v][p]`` and reaches ``heads[v][p]``.

    Loops are not used: at their places a rank is its own tail.
    """

    group: Group
    tails: list[list[int]]
    heads: list[list[int]]
    shares: list[Fraction]
    hops: list[int]

    @property
    def places(self) -> range:
        return range(len(self.shares))


def _view(topology: Topology) -> _View | None:
    group, ranks = topology.symmetry, topology.num_ranks
    if group is None or not topology.is_direct or ranks < 2 or not topology.is_connected:
        return None
    heads = topology.dst.astype(np.int64).reshape(ranks, -1)
    kinds = topology.link_class.reshape(ranks, -1)
    if (kinds != kinds[0]).any():
        return None
    tails = np.empty_like(heads)
    for place in range(heads.shape[1]):
        tails[heads[:, place], place] = np.arange(ranks)
    widths = [topology.bandwidth(place) * int(heads[0, place] != 0) for place in range(heads.shape[1])]
    total = sum(widths, Fraction(0))
    shares = [(ranks - 1) * width / total for width in widths]
    return _View(group, tails.tolist(), heads.tolist(), shares, topology.hops_from(0).tolist())


# ---- the place over which every rank is reached


class _Labels:
    """Labels of the ranks, least for rank 0, and ``masks[v]``: the places over which v is reached from smaller ones."""

    def __init__(self, view: _View) -> None:
        self.view = view
        self.label = list(view.hops)
        self.masks = [self._mask(rank) for rank in range(len(self.label))]

    def _mask(self, rank: int) -> int:
        label, own = self.label, self.label[rank]
        return sum(1 << place for place, x in enumerate(self.view.tails[rank]) if label[x] < own)

    def relabel(self, rank: int, new_label: int) -> None:
        self.label[rank] = new_label
        for v in {rank, *self.view.heads[rank]}:
            self.masks[v] = self._mask(v)

    def new_label(self, rank: int, confined: int) -> int | None:
        """Return the least label with which a rank can be reached over other places than it is confined to."""
        tails = enumerate(self.view.tails[rank])
        ahead = [self.label[x] for place, x in tails if not confined >> place & 1 and x != rank]
        return max(min(ahead), self.label[rank]) + 1 if ahead else None

    def harm(self, rank: int, new_label: int, confined: int) -> int | None:
        """Return how many places a larger label closes to others, or None if it closes the last place of one."""
        harm, own = 0, self.label[rank]
        for head in self.view.heads[rank]:
            if own < self.label[head] <= new_label:
                closed = sum(1 << place for place, x in enumerate(self.view.tails[head]) if x == rank)
                rest = self.masks[head] & ~closed
                if not rest:
                    return None
                harm += 1 + len(self.view.places) * (not rest & ~confined)
        return harm

    def open(self, confined: int, count: int, most: int) -> bool:
        """Give larger labels to up to ``count`` ranks that are confined to some places; return whether any changed."""
        offers = []
        for rank, mask in enumerate(self.masks):
            new_label = self.new_label(rank, confined) if rank and not mask & ~confined else None
            if new_label is not None and new_label <= most:
                harm = self.harm(rank, new_label, confined)
                if harm is not None:
                    offers.append((new_label, harm, rank))
        done = 0
        for new_label, harm, rank in sorted(offers):
            # others may have moved since
            if self.new_label(rank, confined) == new_label and self.harm(rank, new_label, confined) == harm:
                self.relabel(rank, new_label)
                done += 1
                if done == count:
                    break
        return done > 0


def _choices(view: _View, number: int, load: list[int]) -> tuple[Array, Array] | None:
    """Return the place over which tree i reaches rank v, at [v, i] (row 0 is unused), and the labels."""
    for deeper in _DEEPER:
        chosen = _shallow_choices(view, number, load, max(view.hops) + deeper)
        if chosen is not None:
            return chosen
    return None


def _shallow_choices(view: _View, number: int, load: list[int], most: int) -> tuple[Array, Array] | None:
    """Return the result of ``_choices`` with labels of at most ``most``."""
    labels = _Labels(view)
    for _ in range(_ROUNDS):
        kinds = Counter(labels.masks[1:])
        links = [[place for place in view.places if mask >> place & 1] for mask in kinds]
        flow, confined = assign(links, [count * number for count in kinds.values()], dict(enumerate(load)))
        if confined is None:
            return _distribute(labels.masks, dict(zip(kinds, flow, strict=True)), number), np.array(labels.label)
        excess = number * sum(count for mask, count in kinds.items() if not mask & ~confined)
        excess -= sum(amount for place, amount in enumerate(load) if confined >> place & 1)
        if not labels.open(confined, -(-excess // number), most):
            return None
    return None


def _distribute(masks: list[int], flow: dict[int, dict[int, int]], number: int) -> Array:
    """Distribute the places of a mask to its ranks, ``number`` each."""
    decks = {
        mask: iter([p for p, times in sorted(split.items()) for _ in range(times)]) for mask, split in flow.items()
    }
    distributed = [[next(decks[mask]) for _ in range(number)] for mask in masks[1:]]
    return np.array([[0] * number, *distributed], dtype=np.int64)


# ---- trees at rank 0, and the same from every rank


def _at_rank_0(topology: Topology, view: _View, places: Array, labels: Array, load: list[int]) -> OrbitForest:
    ranks, degree = len(labels), len(view.shares)
    order = np.argsort(labels, kind="stable")[1:]  # rank 0 is first
    columns, weight = np.unique(places[order], axis=1, return_counts=True)
    kinds = len(weight)
    child = np.tile(order, kinds)
    place = columns.T.ravel()
    parent = np.array(view.tails)[child, place]
    return OrbitForest(
        trees=int(weight.sum()),
        root=np.zeros(kinds, dtype=np.int64),
        weight=weight,
        tree=np.repeat(np.arange(kinds, dtype=fit(0, ranks * kinds)), ranks - 1),
        parent=parent,
        child=child,
        link=(parent * degree + place).astype(fit(0, topology.num_links)),
        load=tuple(load),
        height=_height(parent.reshape(kinds, -1), order),
    )


def _moved(topology: Topology, group: Group, own: OrbitForest) -> OrbitForest:
    """Return the images of the trees at rank 0 under all group elements, element by element."""
    ranks, kinds = group.order, len(own.weight)
    degree = topology.num_links // ranks
    images = _images(group)
    moved = images[:, own.parent]
    link = moved.astype(own.link.dtype)
    link *= degree
    link += (own.link % degree).astype(link.dtype)
    return attrs.evolve(
        own,
        root=np.repeat(np.arange(ranks), kinds),
        weight=np.tile(own.weight, ranks),
        tree=np.repeat(np.arange(ranks * kinds, dtype=fit(0, ranks * kinds)), ranks - 1),
        parent=moved.ravel(),
        child=images[:, own.child].ravel(),
        link=link.ravel(),
    )


def _images(group: Group) -> Array:
    """Return the products g * v, at [g, v], in blocks: the group works in 64 bits, and the table needs few."""
    every = np.arange(group.order)
    table = np.empty((group.order, group.order), dtype=fit(0, group.order))
    for first in range(0, group.order, 64):
        table[first : first + 64] = group.multiply(every[first : first + 64, None], every)
    return table


def _height(parent: Array, order: Array) -> int:
    """Return the edges on the longest path of trees given as the parents of all ranks in ``order``, parents first."""
    depth = np.zeros((len(parent), len(order) + 1), dtype=np.int64)
    tree = np.arange(len(parent))
    for i, rank in enumerate(order.tolist()):
        depth[:, rank] = depth[tree, parent[:, i]] + 1
    return int(depth.max())
