"""Whole parts of shards for the trees of a mix.

The shards of a commodity lie end to end, and its trees take one stretch after another, so few shards are divided. The
ends of stretches are rounded to whole parts; of the numbers of parts that lose little, the smallest is taken.
"""

from __future__ import annotations

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.ragged import ranges, starts

from .mix import Mix

__all__ = ["MOST_PARTS", "Portions", "portions"]

MOST_PARTS = 5040
_PARTS = (
    *range(1, 33), 35, 36, 40, 42, 45, 48, 50, 54, 56, 60, 63, 64, 72, 80, 84, 90, 96, 100, 112, 120, 126, 128, 140,
    144, 168, 180, 210, 240, 252, 280, 336, 360, 420, 504, 560, 630, 720, 840, 1260, 1680, 2520, MOST_PARTS,
)  # fmt: skip
_MOST_TRIED = 1 << 26  # numbers of parts times links of all trees
_EXACT, _CLOSE = 1e-9, 1 / 200


@attrs.frozen(eq=False)
class Portions:
    """Row i: parts ``lo[i]`` to ``hi[i]`` (exclusive) of ``shard[i]``, of ``parts``, take tree ``tree[i]`` of a mix."""

    parts: int
    shard: Array
    tree: Array
    lo: Array
    hi: Array


def portions(mix: Mix, most: int = MOST_PARTS) -> Portions:
    """Return the portions of all shards in at most ``most`` parts."""
    shard, tree, lo, hi = _stretches(mix)
    weight = mix.needs.collective.weight[shard].astype(np.float64)
    loads = _Loads(mix, tree)
    tried: list[tuple[float, Portions]] = []
    for parts in (parts for parts in _PARTS if parts <= most):
        first, last = np.rint(lo * parts).astype(np.int64), np.rint(hi * parts).astype(np.int64)
        keep = first < last
        found = Portions(parts, shard[keep], tree[keep], first[keep], last[keep])
        time = loads.time((last - first) * weight / parts)
        tried.append((time, found))
        if time <= mix.time * (1 + _EXACT) or len(tried) * loads.size > _MOST_TRIED:
            break
    least = min(time for time, _ in tried)
    if tried[-1][0] <= least * (1 + _EXACT) and tried[-1][0] <= mix.time * (1 + _EXACT):
        return tried[-1][1]
    return next(found for time, found in tried if time <= least * (1 + _CLOSE))


def _stretches(mix: Mix) -> tuple[Array, Array, Array, Array]:
    """Return shard, tree and the ends of their stretches, as shares of the shard; shards of weight 0 are whole."""
    weight = mix.needs.collective.weight.tolist()
    first = np.searchsorted(mix.commodity, np.arange(len(mix.needs.commodities) + 1)).tolist()
    rows: list[tuple[int, int, float, float]] = []
    for number, one in enumerate(mix.needs.commodities):
        trees = range(first[number], first[number + 1])
        ends = np.cumsum(mix.share[trees.start : trees.stop]) * one.weight
        before, tree = 0, trees.start
        for shard in one.shards:
            size, at = weight[shard], 0.0
            while at < 1.0:
                left = (float(ends[tree - trees.start]) - before) / size if size else 1.0
                to = 1.0 if tree + 1 == trees.stop or left >= 1 - _EXACT else left
                if to > at:
                    rows.append((shard, tree, at, to))
                    at = to
                if at < 1.0:
                    tree += 1
            before += size
    shards, trees_, lo, hi = zip(*rows, strict=True) if rows else ((), (), (), ())
    return np.array(shards, np.int64), np.array(trees_, np.int64), np.array(lo, float), np.array(hi, float)


class _Loads:
    """The loads of links by what rows move along their trees."""

    def __init__(self, mix: Mix, tree: Array) -> None:
        links = [[link for hop in one for link in hop] for one in mix.trees]
        count = np.array([len(one) for one in links], dtype=np.int64)
        start = starts(count)
        flat = np.array([link for one in links for link in one], dtype=np.int64)
        self.link = flat[ranges(start[:-1][tree], count[tree])]
        self.row = np.repeat(np.arange(len(tree)), count[tree])
        self.width = np.array(mix.needs.widths, dtype=np.float64)
        self.size = len(self.link) + len(tree) + 1

    def time(self, amount: Array) -> float:
        """Return the time of the busiest link."""
        load = np.bincount(self.link, amount[self.row], len(self.width))
        return float((load[self.width > 0] / self.width[self.width > 0]).max(initial=0.0))
