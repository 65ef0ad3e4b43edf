"""From a mix of timed paths to whole pieces: every shard in ``parts`` equal pieces, each on one path.

The bound. A vertex of the linear program has at most steps * (classes - 1) shares beyond one a shard. Rounding a
shard's shares down to whole pieces leaves fewer pieces than it has shares, and each goes to one of its paths; so at
most that many pieces are on a path beyond its share, and one piece more on a path is at most one more at each step:

    time <= time of the program + steps^2 * (classes - 1) / parts

The pieces left over go where the busiest links are least hurt, and move while that helps; an integer program on HiGHS
finds the best for small networks. Often nothing is lost at all.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import attrs
import numpy as np

from .expanded import Expanded
from .integers import choose_pieces
from .mixing import Mix

__all__ = ["Pieces", "excess", "round_mix"]

Array = np.ndarray[Any, np.dtype[Any]]

_WHOLE = 1e-6
_PROGRAM = 1000  # paths of a mix whose integer programs take a second or so
_STEEPNESS = (1.0, 3.0)  # of the penalty on links above their share
_SWEEPS = 20


@attrs.frozen(eq=False)
class Pieces:
    """Timed paths with the whole number of pieces that each carries, of ``parts`` a shard; ``time`` is exact."""

    expanded: Expanded
    commodity: Array
    paths: Array
    units: Array
    parts: int
    time: Fraction


def excess(expanded: Expanded, parts: int) -> Fraction:
    """Return by how much rounding to pieces can at most lengthen the program's time."""
    return Fraction(expanded.steps**2 * (expanded.classes - 1), parts)


def round_mix(mix: Mix, most_parts: int, target: Fraction, thorough: bool = False) -> Pieces:
    """Return the pieces of least time, and of those the fewest a shard; ``target`` is a time that no schedule beats.

    Integer programs are solved for small networks, and with ``thorough`` for all.
    """
    floors = sorted((_floor(mix, target, parts), parts) for parts in range(1, most_parts + 1))
    best = min((_guided(mix, parts) for _, parts in floors), key=lambda pieces: (pieces.time, pieces.parts))
    for everything in (False, True) if thorough or len(mix.shares) <= _PROGRAM else ():
        for floor, parts in floors:
            if (best.time, best.parts) <= (floor, parts):
                break
            pieces = _programmed(mix, parts, _free(mix, everything))
            best = min(best, pieces, key=lambda pieces: (pieces.time, pieces.parts))
    return best


def _floor(mix: Mix, target: Fraction, parts: int) -> Fraction:
    """Return the least time that so many pieces a shard allow: where links are alike, a whole number of them."""
    if set(mix.expanded.capacity) != {1}:
        return target
    return Fraction(-(-target * parts // 1), parts)


def _free(mix: Mix, everything: bool) -> Array:
    """Return the paths of shards that are split, or all."""
    split = np.ones(len(mix.expanded.commodities), dtype=bool)
    if not everything:
        split[mix.commodity[mix.shares > 1 - _WHOLE]] = False
    return np.flatnonzero(split[mix.commodity])


def _pieces(mix: Mix, units: Array, parts: int) -> Pieces:
    used = np.flatnonzero(units)
    order = used[np.argsort(mix.commodity[used], kind="stable")]
    paths, units = mix.paths[order], units[order]
    time = mix.expanded.time(mix.expanded.loads(paths, units)) / parts
    return Pieces(mix.expanded, mix.commodity[order], paths, units, parts, time)


def _programmed(mix: Mix, parts: int, free: Array) -> Pieces:
    """Choose pieces for the ``free`` paths' shards by an integer program; where it fails, as :func:`_guided`."""
    units = np.where(mix.shares > 1 - _WHOLE, parts, 0)
    units[free] = 0
    found = choose_pieces(mix, free, mix.expanded.loads(mix.paths, units), parts)
    if found is None:
        return _guided(mix, parts)
    units[free] = found
    return _pieces(mix, units, parts)


def _guided(mix: Mix, parts: int) -> Pieces:
    """Round split shards down and place what is left over, then move pieces while the penalty falls."""
    rounder = [_Guide(mix, parts, steepness) for steepness in _STEEPNESS]
    best = min((guide.run() for guide in rounder), key=lambda pieces: pieces.time)
    return best


class _Guide:
    """Whole pieces of split shards, and what every cell would carry if the shares not rounded yet stayed split.

    Cells above what the program gave their step's busiest are penalized exponentially.
    """

    def __init__(self, mix: Mix, parts: int, steepness: float) -> None:
        self.mix, self.parts, self.steepness = mix, parts, steepness
        expanded = mix.expanded
        path, cell = expanded.uses(mix.paths)
        self.load = np.bincount(cell, weights=mix.shares[path] * parts, minlength=expanded.cells)
        capacity = np.tile([float(c) for c in expanded.capacity], expanded.steps)
        busiest = (self.load / capacity).reshape(expanded.steps, -1).max(axis=1)
        self.share = np.repeat(busiest, expanded.classes) * capacity
        self.units = np.where(mix.shares > 1 - _WHOLE, parts, 0)
        self.free = _free(mix, everything=False)
        cells = np.split(cell, np.searchsorted(path, np.arange(1, len(mix.paths))))
        self.cells = {i: cells[i] for i in self.free.tolist()}
        self.shards: dict[int, list[int]] = {}
        for i in self.free.tolist():
            self.shards.setdefault(int(mix.commodity[i]), []).append(i)

    def run(self) -> Pieces:
        for paths in self.shards.values():
            self._round(paths)
        best = _pieces(self.mix, self.units, self.parts)
        for _ in range(_SWEEPS):
            if not sum(self._move(path, paths) for paths in self.shards.values() for path in paths):
                break
            pieces = _pieces(self.mix, self.units, self.parts)
            best = min(best, pieces, key=lambda p: p.time)
        return best

    def _round(self, paths: list[int]) -> None:
        for i in paths:
            amount = float(self.mix.shares[i]) * self.parts
            self.units[i] = int(amount + _WHOLE)
            self.load[self.cells[i]] += self.units[i] - amount
        for _ in range(self.parts - int(self.units[paths].sum())):
            self._add(min(paths, key=self._penalty), 1)

    def _move(self, path: int, paths: list[int]) -> bool:
        """Put one piece of a path where it is best; return whether that is another path."""
        if not self.units[path]:
            return False
        self._add(path, -1)
        best = min(paths, key=lambda i: (self._penalty(i), i != path))
        self._add(best, 1)
        return best != path

    def _add(self, path: int, pieces: int) -> None:
        self.units[path] += pieces
        self.load[self.cells[path]] += pieces

    def _penalty(self, path: int) -> float:
        above = self.load[self.cells[path]] - self.share[self.cells[path]]
        return float(np.exp(np.minimum(above * self.steepness, 50)).sum())
