"""Certificates of the most that an allreduce by trees can reach: cuts with multipliers, the dual of the program.

Let x_v be the bandwidth of the trees rooted at rank v, X their sum. All outward trees rooted in a set of nodes that
lacks a rank leave it, and all inward trees rooted there enter it: a cut's row. What enters a switch leaves it: a
balance row. Add the rows up with multipliers. If every x_v then counts at least once, X is at most what the links hold
of it: a link's price is the larger of what the rows count of it for outward and for inward trees.
"""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.graph.isomorphism import link_map
from collc.ir.shown import brief_fields
from collc.ir.topology import Topology

from .allreduce_classes import Classes, by_maps
from .exact_lp import whole

__all__ = ["Balance", "Certificate", "TreeCut"]


@attrs.frozen
class TreeCut:
    """A row: the trees rooted on one side of a cut cross it.

    ``nodes`` (ascending) are the smaller side. If ``rooted``, the row counts the roots in ``nodes``, else the roots
    outside. Outward trees cross from the side of the roots to the other, which has a rank; ``inward`` trees cross the
    other way.
    """

    multiplier: Fraction
    nodes: tuple[int, ...]
    inward: bool
    rooted: bool

    __repr__ = brief_fields

    @classmethod
    def of(cls, multiplier: Fraction, near: Array, inward: bool) -> TreeCut:
        """Return the row of a set of roots, a flag for every node."""
        rooted = 2 * int(near.sum()) <= len(near)
        return cls(multiplier, tuple(np.flatnonzero(near if rooted else ~near).tolist()), inward, rooted)

    def near(self, num_nodes: int) -> Array:
        """Return the side of the roots, a flag for every node."""
        side = np.full(num_nodes, not self.rooted)
        side[list(self.nodes)] = self.rooted
        return side


@attrs.frozen
class Balance:
    """A row: as much outward (``inward``) bandwidth enters a switch as leaves it; a multiplier of any sign.

    If outward trees branch in the switch, as much leaves it at least: the multiplier is not positive. If inward trees
    meet in it, as much enters it at least: the multiplier is not negative.
    """

    multiplier: Fraction
    switch: int
    inward: bool


@attrs.frozen(eq=False)
class Certificate:
    """A proof that no allreduce by trees has more bandwidth than :meth:`bound`.

    Each row stands for all its images under the automorphisms ``maps`` (maps of nodes), which share its multiplier in
    equal parts, and if ``mirrored`` for the images with inward and outward exchanged and links reversed. With no maps
    and not ``mirrored``, rows stand for themselves. Switches ``multicast`` copy, switches ``reduces`` add.
    """

    cuts: tuple[TreeCut, ...]
    balances: tuple[Balance, ...] = ()
    maps: tuple[Array, ...] = ()
    mirrored: bool = False
    multicast: tuple[int, ...] = ()
    reduces: tuple[int, ...] = ()

    def bound(self, topology: Topology) -> Fraction | None:
        """Return the most bandwidth that the rows allow, in the topology's unit; None if they prove nothing.

        Rows are added up here from the network's links alone.
        """
        if any(link_map(topology, topology, g) is None for g in self.maps):
            return None
        found = by_maps(topology, self.maps, self.mirrored)
        if not self._is_sound(topology, found):
            return None
        multipliers, _ = whole([*(cut.multiplier for cut in self.cuts), *(row.multiplier for row in self.balances)])
        kind = np.int64 if sum(map(abs, multipliers)) * (len(found.width) + topology.num_nodes) < 1 << 62 else object
        counted, charged = np.zeros(found.num_kinds, dtype=kind), np.zeros(found.num_columns, dtype=kind)
        for multiplier, cut in zip(multipliers, self.cuts, strict=False):
            near = cut.near(topology.num_nodes)
            counted += multiplier * found.inside(near).astype(kind)
            charged += multiplier * found.crossing(near, cut.inward).astype(kind)
        for multiplier, row in zip(multipliers[len(self.cuts) :], self.balances, strict=True):
            charged += multiplier * found.balance(row.switch, row.inward).astype(kind)
        least = min(Fraction(total, ranks) for total, ranks in zip(counted.tolist(), found.count.tolist(), strict=True))
        return _paid(found, charged.tolist()) / least / found.scale if least > 0 else None

    def _is_sound(self, topology: Topology, found: Classes) -> bool:
        """Return whether every row holds for all trees, and its images are rows too."""
        if self.mirrored and not found.mirrored:
            return False
        if any(set(map(int, g[list(able)])) != set(able) for g in self.maps for able in (self.multicast, self.reduces)):
            return False
        if self.mirrored and set(self.multicast) != set(self.reduces):
            return False
        ranks = topology.num_ranks
        return all(cut.multiplier >= 0 and not cut.near(topology.num_nodes)[:ranks].all() for cut in self.cuts) and all(
            ranks <= row.switch < topology.num_nodes and self._has_right_sign(row) for row in self.balances
        )

    def _has_right_sign(self, row: Balance) -> bool:
        if row.inward:
            return row.multiplier >= 0 or row.switch not in self.reduces
        return row.multiplier <= 0 or row.switch not in self.multicast

    def every_cut(self, most: int) -> tuple[TreeCut, ...] | None:
        """Return the cuts with all their images, or None if they have more than ``most`` nodes together."""
        found, size = list[TreeCut](), 0
        for cut in self.cuts:
            images = _images(frozenset(cut.nodes), self.maps, (most - size) // max(len(cut.nodes), 1))
            if images is None:
                return None
            size += len(images) * len(cut.nodes)
            directions = (False, True) if self.mirrored else (cut.inward,)
            share = cut.multiplier / (len(images) * len(directions))
            found += [TreeCut(share, nodes, inward, cut.rooted) for inward in directions for nodes in images]
        return tuple(found)


def _paid(found: Classes, charged: list[int]) -> Fraction:
    """Return what all arcs hold at their prices: the larger of what rows count of them in each direction."""
    members = np.bincount(found.column.ravel(), minlength=found.num_columns).tolist()
    price = [Fraction(total, count) for total, count in zip(charged, members, strict=True)]
    together: dict[tuple[int, int], int] = {}
    for out, into, width in zip(*found.column.tolist(), found.width, strict=True):
        together[out, into] = together.get((out, into), 0) + width
    return sum((max(price[a], price[b], Fraction(0)) * width for (a, b), width in together.items()), Fraction(0))


def _images(
    nodes: frozenset[int], maps: Collection[Array], most: int
) -> list[tuple[int, ...]] | None:  # fmt: skip
    """Return all images of a set, or None if they are more than ``most``."""
    moves = [g.tolist() for g in maps]
    seen, waiting = {nodes}, [nodes]
    while waiting:
        last = waiting.pop()
        for g in moves:
            image = frozenset(g[v] for v in last)
            if image not in seen:
                seen.add(image)
                waiting.append(image)
                if len(seen) > most:
                    return None
    return sorted(tuple(sorted(one)) for one in seen)
