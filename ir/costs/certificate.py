"""Bounds and their certificates: a cut, a partition of the ranks, a family of cuts, or prices of links."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

import attrs

from ..shown import brief_fields
from .partitions import Partition
from .tree_cuts import TreeCuts

__all__ = ["Bound", "Cut", "Kind", "Prices", "direction"]

#: the schedules to which a bound applies: all without coding; reductions and broadcasts along the same trees; an
#: all-to-all's routings, which are all its schedules without coding
Kind = Literal["all-schedules", "tree-schedules", "multi-commodity-flow"]


@attrs.frozen
class Cut:
    """``carries`` vectors of M bytes go out of a set of ``nodes`` (``inward``: into it), over this ``bandwidth``.

    ``text`` is all of it in words, ``named`` the nodes by their names with ranges (:mod:`collc.ir.graph.node_sets`).
    """

    nodes: tuple[int, ...]
    inward: bool
    carries: Fraction
    bandwidth: Fraction
    text: str = attrs.field(default="", eq=False)
    named: tuple[str, ...] = attrs.field(default=(), eq=False, repr=False)

    __repr__ = brief_fields

    def to_json(self) -> dict[str, object]:
        """Return ``{kind, text, nodes, named, direction, carries, bandwidth}``; carries over bandwidth is the bound."""
        return {
            "kind": "cut", "text": self.text, "nodes": list(self.nodes), "named": list(self.named),
            "direction": direction(self.inward), "carries": str(self.carries), "bandwidth": str(self.bandwidth),
        }  # fmt: skip


@attrs.frozen
class Prices:
    """Prices of links; link k has price k modulo their number. ``distance`` is the sum of the prices of all pairs'
    cheapest routes, ``capacity`` the sum of bandwidth times price of all links. Their ratio is a lower bound on the
    time of a shard between every two ranks (LP (3)'s dual). If shards differ in size, each pair counts by its weight,
    and the ratio is in units of weight. Of a custom collective, ``distance`` is the least that all shards pay, by
    weight, for the routes to all their targets.
    """

    prices: tuple[int, ...]
    distance: int
    capacity: Fraction

    __repr__ = brief_fields

    def to_json(self) -> dict[str, object]:
        """Return ``{kind, prices, distance, capacity}``; distance over N times capacity is the bound (N: M in shards
        or, if they differ in size, in units of weight)."""
        return {
            "kind": "prices", "prices": list(self.prices), "distance": str(self.distance),
            "capacity": str(self.capacity),
        }  # fmt: skip


@attrs.frozen
class Bound:
    """A lower bound on the time per byte of M and unit of bandwidth of schedules of a ``kind``, and its certificate.

    ``name`` describes the certificate, which is None if no data move. ``above`` is a value that some schedule reaches
    with fine enough parts, or None if unknown: of an all-to-all, the other end of the bracket around LP (3)'s value.
    """

    value: Fraction
    kind: Kind
    name: str
    certificate: Cut | Partition | Prices | TreeCuts | None = None
    above: Fraction | None = None

    __repr__ = brief_fields

    def to_json(self) -> dict[str, object] | None:
        """Return the certificate as an object of strings, numbers and lists: exact rationals are strings."""
        return None if self.certificate is None else self.certificate.to_json()


def direction(inward: bool) -> str:
    """Return the words for the links of a set of nodes."""
    return "into" if inward else "out of"
