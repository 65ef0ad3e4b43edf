"""Exact sums in columns: 64 bits where they suffice, Python's integers beyond."""

from __future__ import annotations

from math import gcd, lcm
from typing import Any

import numpy as np

from collc.ir.topology import Topology

__all__ = ["common_unit", "latency_numbers", "roomy", "total"]

Array = np.ndarray[Any, np.dtype[Any]]

_ROOM = 1 << 62


def roomy(column: Array, factor: int) -> Array:
    """Return a column whose sum times ``factor`` can be taken: int64, or Python's integers where that is too narrow."""
    wide = column.astype(np.int64)
    # A float is enough to tell: it is off by far less than the room that is left.
    most = float(np.abs(wide).sum(dtype=np.float64)) * float(factor)
    return wide if most < _ROOM else wide.astype(object)


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
    """Return fractions of one denominator in lowest terms."""
    shared = gcd(unit, int(np.gcd.reduce(parts)) if len(parts) else unit)
    parts, unit = parts // shared, unit // shared
    return parts, unit
