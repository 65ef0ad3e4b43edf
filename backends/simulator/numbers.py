"""Exact sums in columns: 64 bits if they suffice, else Python's integers."""

from __future__ import annotations

from math import gcd, lcm

import numpy as np

from collc.ir.arrays import Array
from collc.ir.topology import Topology

__all__ = ["common_unit", "latency_numbers", "roomy", "total"]

_ROOM = 1 << 62


def roomy(column: Array, factor: int) -> Array:
    """Return a column that can hold its sum times ``factor``: int64, or Python's integers if that is too narrow."""
    wide = column.astype(np.int64)
    # A float suffices here: its error is far below the unused bit.
    limit = float(np.abs(wide).sum(dtype=np.float64)) * float(factor)
    return wide if limit < _ROOM else wide.astype(object)


def total(place: Array, amount: Array, size: int) -> Array:
    """Return the sums of ``amount`` by ``place`` (0 .. size-1), in amount's type."""
    found = np.zeros(size, dtype=amount.dtype)
    np.add.at(found, place, amount)
    return found


def latency_numbers(topology: Topology) -> tuple[Array, int]:
    """Return the latency of every class of links as whole numbers of 1/unit seconds, and that unit."""
    unit = lcm(*(kind.latency.denominator for kind in topology.classes))
    values = [int(kind.latency * unit) for kind in topology.classes]
    wide = sum(values) * max(topology.num_nodes, 1) >= _ROOM
    return np.array(values, dtype=object if wide else np.int64), unit


def common_unit(parts: Array, unit: int) -> tuple[Array, int]:
    """Return fractions with one denominator, in lowest terms."""
    shared = gcd(unit, int(np.gcd.reduce(parts)) if len(parts) else unit)
    parts, unit = parts // shared, unit // shared
    return parts, unit
