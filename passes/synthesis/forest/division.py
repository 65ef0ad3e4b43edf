"""How an allreduce by trees divides roots and links: the interface between its optimum and its packing.

ForestColl's appendix on allreduce: ranks are roots of different amounts, and every link is divided between trees to the
roots and trees from the roots. Both kinds have the same roots, so what one reduces the other broadcasts.
"""

from __future__ import annotations

from fractions import Fraction

import attrs

__all__ = ["Division"]


@attrs.frozen
class Division:
    """Whole numbers of trees of equal share: of every root, and over every link in each direction.

    Rank r is the root of ``roots[r]`` trees that reduce and of as many that broadcast. At most ``inward[link]`` of the
    former and ``outward[link]`` of the latter cross a physical link of the topology (parallel links count separately).
    ``per_unit`` are the trees that a link holds per unit of its bandwidth: ``inward[link] + outward[link]`` is at most
    ``per_unit`` times the bandwidth, exactly. In each direction as many trees enter a switch as leave it, unless the
    switch multicasts or reduces.

    Trees exist if out of every set of nodes that lacks a rank the outward links hold the trees rooted inside, and if
    the same is true of the inward links of the transpose.
    """

    roots: tuple[int, ...]
    inward: tuple[int, ...]
    outward: tuple[int, ...]
    per_unit: Fraction

    @property
    def trees(self) -> int:
        """The trees of one direction; all carry equal shares of the vector."""
        return sum(self.roots)

    @property
    def value(self) -> Fraction:
        """The bandwidth of the allreduce, in the topology's unit: M bytes take M over it at large sizes."""
        return self.trees / self.per_unit
