"""All-to-all on large networks with little symmetry: shards in turn take the best path beside all others."""

from __future__ import annotations

import numpy as np

from collc.ir.arrays import Array

from .expanded import Expanded
from .rounding import ChunkedPaths

__all__ = ["respond"]

_BLOCKS = 768  # smaller blocks react better to each other
_STEEP = (10.0, 20.0, 40.0, 40.0)  # of every sweep


def respond(expanded: Expanded) -> ChunkedPaths:
    """Return a timed path for every shard, whole.

    Blocks of shards in turn are taken out and put back on the cheapest paths. The price of a link at a step grows
    exponentially with its load of other shards. No bound is proved; the usual time is about a tenth above the least.
    """
    commodities, shape = expanded.commodities, (expanded.steps, expanded.classes)
    capacity = np.array([float(c) for c in expanded.capacity])
    blocks = _blocks(commodities, len(expanded.sources))
    paths = np.full((len(commodities), expanded.steps), -1, dtype=np.int32)
    load = np.zeros(expanded.cells, dtype=np.int64)
    best: ChunkedPaths | None = None
    for steep in _STEEP:
        for block in blocks:
            load -= expanded.loads(paths[block], np.ones(len(block)))
            busy = load.reshape(shape) / capacity
            top = busy.max(axis=1, keepdims=True)
            prices = np.exp((busy - top) * (steep * expanded.steps / max(1.0, float(top.sum())))) / capacity
            prices /= (prices @ capacity)[:, None]
            paths[block] = expanded.cheapest(prices, commodities[block])[0]
            load += expanded.loads(paths[block], np.ones(len(block)))
        time = expanded.time(load)
        if best is None or time < best.time:
            ones = np.ones(len(commodities), dtype=np.int64)
            best = ChunkedPaths(expanded, np.arange(len(commodities)), paths.copy(), ones, 1, time)
    assert best is not None
    return best


def _blocks(commodities: Array, sources: int) -> list[Array]:
    """Divide the shards: by source, some together or each divided again by target."""
    split = max(1, _BLOCKS // (2 * sources))
    together = -(-sources // _BLOCKS)
    number = np.unique(commodities[:, 0], return_inverse=True)[1] // together + commodities[:, 1] % split * sources
    order = np.argsort(number, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(number[order])) + 1)
