"""Orbit trees: on a Cayley digraph a few trees at rank 0, moved by the group, are a forest that loads links alike.

A topology with a regular symmetry has the links out of rank r at places 0 .. d-1, and multiplying on the left keeps
places. So the images of a tree at rank 0 together use every link of place p as often as the tree has edges of place p.
All of the N-1 ranks that rank 0's data must reach cross some link, k(N-1) edges for k trees; if place p has its share
of them, in the proportion of its bandwidth, then every rank receives at its full bandwidth all the time: the cut of a
single rank, met exactly.

Such trees come from labels. Give every rank a label, rank 0 the least, and let a rank be reached through any link from
a rank with a smaller label: whatever the ranks choose, the choices are trees. So all that is left is a flow of the
ranks over the places (:func:`..balance.route`). Distances are labels, and enough where arcs are all equivalent (rings,
square tori, hypercubes, complete graphs). Elsewhere the flow names places to which too many ranks are confined;
some of those get larger labels, which opens more places to them, and mostly not more than the diameter.

Beside parallel links this may find nothing though trees exist: all trees at a rank have the same labels here.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import lcm
from typing import Any

import attrs
import numpy as np

from collc.ir.arrays import fit
from collc.ir.group import Group
from collc.ir.topology import Topology

from ..balance import route

__all__ = ["OrbitForest", "orbit_forest"]

Array = np.ndarray[Any, np.dtype[Any]]

_DEEPER = (0, 1, 2, 4, 8, 16, 32)  # labels beyond the diameter, tried in turn
_ROUNDS = 60  # of relabelling, in each
_MOST_TREES = 1 << 12  # at a rank


@attrs.frozen(eq=False)
class OrbitForest:
    """Trees as columns, as :class:`collc.ir.schedule.Forest` has them, of weight ``weight[t]`` out of ``trees`` a root.

    Edge i belongs to tree ``tree[i]`` and runs from ``parent[i]`` to ``child[i]`` over ``link[i]``; rows of a tree
    stand together, parents first. Links at place p of their rank are in ``load[p]`` trees each, counted with weight.
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
    """Return trees that load all links in the proportion of their bandwidths, or None where no such trees are found.

    ``trees`` is their number at a rank; unless given, the least for which loads can be in proportion. None is also
    returned where it cannot be so, and without a regular symmetry, with switches, or for a single rank.
    """
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
    return _moved(topology, view, places, labels, load)


@attrs.frozen(eq=False)
class _View:
    """The network around rank 0: over place p rank v is reached from ``tails[v][p]`` and reaches ``heads[v][p]``.

    Loops are left out, so ranks are where they are reached from at places that carry nothing.
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


# ---- over which place every rank is reached


class _Labels:
    """Labels of the ranks, least for rank 0, and ``masks[v]``: the places over which v is reached from smaller ones."""

    def __init__(self, view: _View) -> None:
        self.view = view
        self.label = list(view.hops)
        self.masks = [self._mask(rank) for rank in range(len(self.label))]

    def _mask(self, rank: int) -> int:
        label, own = self.label, self.label[rank]
        return sum(1 << place for place, x in enumerate(self.view.tails[rank]) if label[x] < own)

    def delay(self, rank: int, later: int) -> None:
        self.label[rank] = later
        for v in {rank, *self.view.heads[rank]}:
            self.masks[v] = self._mask(v)

    def later(self, rank: int, confined: int) -> int | None:
        """Return the least label with which a rank is reached over other places than it is confined to."""
        tails = enumerate(self.view.tails[rank])
        ahead = [self.label[x] for place, x in tails if not confined >> place & 1 and x != rank]
        return max(min(ahead), self.label[rank]) + 1 if ahead else None

    def harm(self, rank: int, later: int, confined: int) -> int | None:
        """Return how much a delay closes to others, or None where it closes the last place to one of them."""
        harm, own = 0, self.label[rank]
        for head in self.view.heads[rank]:
            if own < self.label[head] <= later:
                closed = sum(1 << place for place, x in enumerate(self.view.tails[head]) if x == rank)
                rest = self.masks[head] & ~closed
                if not rest:
                    return None
                harm += 1 + len(self.view.places) * (not rest & ~confined)
        return harm

    def open(self, confined: int, wanted: int, most: int) -> bool:
        """Delay as many ranks as wanted that are confined to some places; say whether there were any."""
        offers = []
        for rank, mask in enumerate(self.masks):
            later = self.later(rank, confined) if rank and not mask & ~confined else None
            if later is not None and later <= most:
                harm = self.harm(rank, later, confined)
                if harm is not None:
                    offers.append((later, harm, rank))
        done = 0
        for later, harm, rank in sorted(offers):
            # others may have moved since
            if self.later(rank, confined) == later and self.harm(rank, later, confined) == harm:
                self.delay(rank, later)
                done += 1
                if done == wanted:
                    break
        return done > 0


def _choices(view: _View, number: int, load: list[int]) -> tuple[Array, Array] | None:
    """Return the place over which tree i reaches rank v, at [v, i] (row 0 means nothing), and the labels."""
    for deeper in _DEEPER:
        chosen = _shallow_choices(view, number, load, max(view.hops) + deeper)
        if chosen is not None:
            return chosen
    return None


def _shallow_choices(view: _View, number: int, load: list[int], most: int) -> tuple[Array, Array] | None:
    """Return what ``_choices`` does, with labels of ``most`` or less."""
    labels = _Labels(view)
    for _ in range(_ROUNDS):
        kinds = Counter(labels.masks[1:])
        links = [[place for place in view.places if mask >> place & 1] for mask in kinds]
        flow, confined = route(links, [count * number for count in kinds.values()], dict(enumerate(load)))
        if confined is None:
            return _dealt(labels.masks, dict(zip(kinds, flow, strict=True)), number), np.array(labels.label)
        excess = number * sum(count for mask, count in kinds.items() if not mask & ~confined)
        excess -= sum(amount for place, amount in enumerate(load) if confined >> place & 1)
        if not labels.open(confined, -(-excess // number), most):
            return None
    return None


def _dealt(masks: list[int], flow: dict[int, dict[int, int]], number: int) -> Array:
    """Deal the places over which the ranks of a mask are reached to those ranks, ``number`` each."""
    decks = {
        mask: iter([p for p, times in sorted(split.items()) for _ in range(times)]) for mask, split in flow.items()
    }
    dealt = [[next(decks[mask]) for _ in range(number)] for mask in masks[1:]]
    return np.array([[0] * number, *dealt], dtype=np.int64)


# ---- the same from every rank


def _moved(topology: Topology, view: _View, places: Array, labels: Array, load: list[int]) -> OrbitForest:
    """Return the images of the trees at rank 0 under all group elements, those of an element one after the other."""
    ranks, degree = len(labels), len(view.shares)
    order = np.argsort(labels, kind="stable")[1:]  # rank 0 is first
    columns, weight = np.unique(places[order], axis=1, return_counts=True)
    kinds = len(weight)
    child = np.tile(order, kinds)
    place = columns.T.ravel()
    parent = np.array(view.tails)[child, place]
    images = _images(view.group)
    moved = images[:, parent]
    link = moved.astype(fit(0, topology.num_links))
    link *= degree
    link += place.astype(link.dtype)
    return OrbitForest(
        trees=int(weight.sum()),
        root=np.repeat(np.arange(ranks), kinds),
        weight=np.tile(weight, ranks),
        tree=np.repeat(np.arange(ranks * kinds, dtype=fit(0, ranks * kinds)), ranks - 1),
        parent=moved.ravel(),
        child=images[:, child].ravel(),
        link=link.ravel(),
        load=tuple(load),
        height=_height(parent.reshape(kinds, -1), order),
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
