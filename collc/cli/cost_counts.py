"""What ``collc cost`` says of shards that differ in size: the planned weights, and what other counts take."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from collc.ir.collective import Collective
from collc.ir.costs.cost import Cost

__all__ = ["counts_object", "counts_rows"]

Row = tuple[str, str, str]

#: weights that are printed
_LISTED = 8
#: a larger gap to the bound is no effect of rounding
_ROUNDING = Fraction(1, 10**6)
_LIMIT = "max(count / weight)"


def counts_rows(c: Cost, collective: Collective) -> list[Row]:
    """Return the rows of the table; none if all shards have the same size."""
    weights = collective.weights
    if weights is None:
        return []
    listed = ", ".join(map(str, weights[:_LISTED])) + (", .." if len(weights) > _LISTED else "")
    whole = "the largest sum of a source" if collective.kind == "alltoall" else "their sum"
    rows = [
        ("weights", listed, f"M is {whole}, {collective.whole}; {_verdict(c)}"),
        ("counts", "right for any", f"at most {_LIMIT} times the planned bandwidth time"),
    ]
    idle = _idle(collective)
    if idle:
        rows.append(("", "", f"no limit if a shard of weight 0 has data: {idle} of {len(weights)} have this weight"))
    return rows


def _verdict(c: Cost) -> str:
    if c.bound_met:
        return "optimal for these weights"
    if c.time_per_byte <= c.time_per_byte_bound * (1 + _ROUNDING):
        return "optimal for these weights up to rounding"
    return "planned for these weights"


def _idle(collective: Collective) -> int:
    """Return the number of shards of weight 0 that move."""
    shards = np.flatnonzero(collective.weight == 0)
    if collective.kind != "alltoall":
        return len(shards)
    g = collective.num_members
    return int((shards // g != shards % g).sum())


def counts_object(collective: Collective) -> dict[str, object]:
    """Return the JSON keys; none if all shards have the same size."""
    if collective.weights is None:
        return {}
    limit = None if _idle(collective) else _LIMIT
    return {"weights": list(collective.weights), "whole_weight": collective.whole, "counts_limit": limit}
