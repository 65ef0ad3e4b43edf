"""All-to-all on large networks without much symmetry: shards in turn take the path that is best beside all others."""

from __future__ import annotations

from typing import Any

import numpy as np

from .expanded import Expanded
from .rounding import Pieces

__all__ = ["respond"]

Array = np.ndarray[Any, np.dtype[Any]]

_BLOCKS = 768  # the smaller the blocks, the better they see one another
_STEEP = (10.0, 20.0, 40.0, 40.0)  # of every sweep


def respond(expanded: Expanded) -> Pieces:
    """Return a timed path for every shard, whole.

    Blocks of shards in turn are taken out and put back on the cheapest paths, where the price of a link at a step grows
    exponentially with what it carries beside them. No bound is proved; some tenth more than the least time is usual.
    """
    wanted, shape = expanded.commodities, (expanded.steps, expanded.classes)
    capacity = np.array([float(c) for c in expanded.capacity])
    blocks = _blocks(wanted, len(expanded.sources))
    paths = np.full((len(wanted), expanded.steps), -1, dtype=np.int32)
    load = np.zeros(expanded.cells, dtype=np.int64)
    best: Pieces | None = None
    for steep in _STEEP:
        for block in blocks:
            load -= expanded.loads(paths[block], np.ones(len(block)))
            busy = load.reshape(shape) / capacity
            top = busy.max(axis=1, keepdims=True)
            prices = np.exp((busy - top) * (steep * expanded.steps / max(1.0, float(top.sum())))) / capacity
            prices /= (prices @ capacity)[:, None]
            paths[block] = expanded.cheapest(prices, wanted[block])[0]
            load += expanded.loads(paths[block], np.ones(len(block)))
        time = expanded.time(load)
        if best is None or time < best.time:
            ones = np.ones(len(wanted), dtype=np.int64)
            best = Pieces(expanded, np.arange(len(wanted)), paths.copy(), ones, 1, time)
    assert best is not None
    return best


def _blocks(wanted: Array, sources: int) -> list[Array]:
    """Divide the shards: by source, some together or each divided again by target."""
    split = max(1, _BLOCKS // (2 * sources))
    together = -(-sources // _BLOCKS)
    number = np.unique(wanted[:, 0], return_inverse=True)[1] // together + wanted[:, 1] % split * sources
    order = np.argsort(number, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(number[order])) + 1)
