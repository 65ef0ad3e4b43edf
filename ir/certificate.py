"""Bounds and what proves them: a cut, a partition of the ranks, or prices of links."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any, Literal

import attrs

from .bottleneck import leaving
from .partitions import Partition
from .topology import Topology

__all__ = ["Bound", "Cut", "Kind", "Prices", "Program", "cut"]

#: what a bound is for: all schedules without coding; reductions and broadcasts along the same trees; an all-to-all's
#: routings, which are all its schedules without coding
Kind = Literal["all-schedules", "tree-schedules", "multi-commodity-flow"]


@attrs.frozen
class Cut:
    """``carries`` vectors of M bytes go out of a set of ``nodes`` (``inward``: into it), over this ``bandwidth``."""

    nodes: tuple[int, ...]
    inward: bool
    carries: Fraction
    bandwidth: Fraction

    def to_json(self) -> dict[str, Any]:
        """Return ``{kind, nodes, direction, carries, bandwidth}``; carries over bandwidth is the bound."""
        return {
            "kind": "cut", "nodes": list(self.nodes), "direction": _direction(self.inward),
            "carries": str(self.carries), "bandwidth": str(self.bandwidth),
        }  # fmt: skip


@attrs.frozen
class Prices:
    """Prices of links: link k has number k modulo the numbers there are. What all pairs pay on their cheapest ways,
    ``distance``, over the prices of the bandwidths of all links, ``capacity``, is the least time of a shard between
    every two ranks (LP (3)'s dual)."""

    prices: tuple[int, ...]
    distance: int
    capacity: Fraction

    def to_json(self) -> dict[str, Any]:
        """Return ``{kind, prices, distance, capacity}``; distance over N times capacity is the bound."""
        return {
            "kind": "prices", "prices": list(self.prices), "distance": str(self.distance),
            "capacity": str(self.capacity),
        }  # fmt: skip


@attrs.frozen
class Program:
    """Prices of a linear program that were rounded and checked; columns and rows are the program's."""

    columns: int
    rows: int

    def to_json(self) -> dict[str, Any]:
        """Return ``{kind, program, columns, rows}``."""
        return {"kind": "prices", "program": "allreduce by trees", "columns": self.columns, "rows": self.rows}


@attrs.frozen
class Bound:
    """The least time per byte of M and unit of bandwidth that schedules of a kind take, and what proves it.

    ``name`` says in words what rules. The certificate is missing where nothing has to be carried. ``above`` is a value
    that some schedule reaches, cut in fine enough pieces, where that is known: of an all-to-all the other end of the
    bracket around LP (3)'s value.
    """

    value: Fraction
    kind: Kind
    name: str
    certificate: Cut | Partition | Prices | Program | None = None
    above: Fraction | None = None

    def to_json(self) -> dict[str, Any] | None:
        """Return the certificate as an object of strings, numbers and lists: exact rationals are strings."""
        return None if self.certificate is None else self.certificate.to_json()


def cut(topology: Topology, nodes: Iterable[int], carries: Fraction) -> Cut:
    """Return the certificate of what has to get out of a set of nodes, told by its smaller side."""
    inside = sorted(nodes)
    outside = sorted(set(range(topology.num_nodes)).difference(inside))
    inward = len(outside) < len(inside)
    width = sum((topology.bandwidth(link) for link in leaving(topology, inside).tolist()), Fraction(0))
    return Cut(tuple(outside if inward else inside), inward, carries, width)


def _direction(inward: bool) -> str:
    return "into" if inward else "out of"
