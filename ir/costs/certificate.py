"""Bounds and their certificates: a cut, a partition of the ranks, or prices of links."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Literal

import attrs

from ..graph.bottleneck import leaving
from ..shown import brief_fields
from ..topology import Topology
from .partitions import Partition

__all__ = ["Bound", "Cut", "Kind", "Prices", "Program", "cut"]

#: the schedules to which a bound applies: all without coding; reductions and broadcasts along the same trees; an
#: all-to-all's routings, which are all its schedules without coding
Kind = Literal["all-schedules", "tree-schedules", "multi-commodity-flow"]


@attrs.frozen
class Cut:
    """``carries`` vectors of M bytes go out of a set of ``nodes`` (``inward``: into it), over this ``bandwidth``."""

    nodes: tuple[int, ...]
    inward: bool
    carries: Fraction
    bandwidth: Fraction

    __repr__ = brief_fields

    def to_json(self) -> dict[str, object]:
        """Return ``{kind, nodes, direction, carries, bandwidth}``; carries over bandwidth is the bound."""
        return {
            "kind": "cut", "nodes": list(self.nodes), "direction": _direction(self.inward),
            "carries": str(self.carries), "bandwidth": str(self.bandwidth),
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
class Program:
    """Prices of a linear program that were rounded and checked; columns and rows are the program's."""

    columns: int
    rows: int

    def to_json(self) -> dict[str, object]:
        """Return ``{kind, program, columns, rows}``."""
        return {"kind": "prices", "program": "allreduce by trees", "columns": self.columns, "rows": self.rows}


@attrs.frozen
class Bound:
    """A lower bound on the time per byte of M and unit of bandwidth of schedules of a ``kind``, and its certificate.

    ``name`` describes the certificate, which is None if no data move. ``above`` is a value that some schedule reaches
    with fine enough parts, or None if unknown: of an all-to-all, the other end of the bracket around LP (3)'s value.
    """

    value: Fraction
    kind: Kind
    name: str
    certificate: Cut | Partition | Prices | Program | None = None
    above: Fraction | None = None

    __repr__ = brief_fields

    def to_json(self) -> dict[str, object] | None:
        """Return the certificate as an object of strings, numbers and lists: exact rationals are strings."""
        return None if self.certificate is None else self.certificate.to_json()


def cut(topology: Topology, nodes: Iterable[int], carries: Fraction) -> Cut:
    """Return the certificate that a set of nodes must send ``carries`` vectors, stated by its smaller side."""
    inside = sorted(nodes)
    outside = sorted(set(range(topology.num_nodes)).difference(inside))
    inward = len(outside) < len(inside)
    width = sum((topology.bandwidth(link) for link in leaving(topology, inside).tolist()), Fraction(0))
    return Cut(tuple(outside if inward else inside), inward, carries, width)


def _direction(inward: bool) -> str:
    return "into" if inward else "out of"
