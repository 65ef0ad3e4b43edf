"""From a mix of timed paths to whole pieces: every shard in ``parts`` equal pieces, each on one path.

The bound. A vertex of the linear program has at most steps * (classes - 1) shares beyond one a shard. Rounding a
shard's shares down to whole pieces leaves fewer pieces than it has shares, and each goes to one of its paths; so at
most that many pieces are on a path beyond its share, and one piece more on a path is at most one more at each step:

    time <= time of the program + steps^2 * (classes - 1) / parts

The pieces left over go where the busiest links are least hurt, and move while that helps; an integer program on HiGHS
finds the best for small networks. Often nothing is lost at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from math import ceil
from typing import Any

import attrs
import numpy as np

from .expanded import Expanded
from .integers import choose_pieces
from .mixing import Mix

__all__ = ["MOST_PARTS", "Pieces", "excess", "round_freely", "round_mix"]

Array = np.ndarray[Any, np.dtype[Any]]

_FEW, _USUAL, MOST_PARTS = 4, 12, 64  # pieces that are tried unless told otherwise; pieces of a shard at all
_WHOLE = 1e-6
_TOLERANCE = Fraction(1, 10**6)  # of the program's time, which is a float
_PROGRAM = 1000  # paths of a mix whose integer programs take a second or so
#: for every length of paths the paths' numbers among those of a shard, and their cells as rows
_Cells = list[tuple[Array, Array]]
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
    return _Search(mix, target, thorough).among(range(1, most_parts + 1))


def round_freely(mix: Mix, target: Fraction, thorough: bool = False) -> Pieces:
    """Return what :func:`round_mix` returns for the best of :data:`_USUAL` pieces at most.

    Where links are alike the busiest one carries whole pieces at every step, so only multiples of the denominator of
    the program's time can reach that time. :data:`_FEW` pieces are mostly enough, and more are tried only where they
    are not; more than :data:`_USUAL` where the program's own shares are whole pieces then.
    """
    search = _Search(mix, target, thorough)
    best = search.among(range(1, _FEW + 1))
    return search.among([*range(_FEW + 1, _USUAL + 1), *_whole(mix)], best)


def _whole(mix: Mix) -> list[int]:
    """Return the least number of pieces above :data:`_USUAL` of which every share is some, if there is one."""
    for parts in range(_USUAL + 1, MOST_PARTS + 1):
        pieces = mix.shares * parts
        if np.abs(pieces - np.rint(pieces)).max(initial=0) < _WHOLE:
            return [parts]
    return []


@attrs.frozen(eq=False)
class _Search:
    """The search for the pieces of least time, and of those the fewest a shard."""

    mix: Mix
    target: Fraction
    thorough: bool

    def among(self, numbers: Iterable[int], best: Pieces | None = None) -> Pieces:
        """Return the best in so many pieces a shard, or what is ``best`` already."""
        floors = sorted((self._floor(parts), parts) for parts in numbers)
        for make in self._ways():
            for floor, parts in floors:
                if best is not None and (best.time, best.parts) <= (floor, parts):
                    break
                found = make(parts)
                best = found if best is None else min(best, found, key=lambda pieces: (pieces.time, pieces.parts))
        assert best is not None
        return best

    def _ways(self) -> list[Callable[[int], Pieces]]:
        ways: list[Callable[[int], Pieces]] = [lambda parts: _guided(self.mix, parts)]
        if self.thorough or len(self.mix.shares) <= _PROGRAM:
            split, everything = (_free(self.mix, every) for every in (False, True))
            ways.append(lambda parts: _programmed(self.mix, parts, split))
            ways.append(lambda parts: _programmed(self.mix, parts, everything))
        return ways

    def _floor(self, parts: int) -> Fraction:
        """Return a time that so many pieces a shard cannot beat: where links are alike, a whole number of them."""
        least = max(self.target, Fraction(self.mix.time) * (1 - _TOLERANCE))
        if set(self.mix.expanded.capacity) != {1}:
            return least
        return Fraction(ceil(least * parts), parts)


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
        share = np.repeat(busiest, expanded.classes) * capacity
        self.penalty = self._penalty(self.load, share)
        self.units = np.where(mix.shares > 1 - _WHOLE, parts, 0)
        cells = np.split(cell, np.searchsorted(path, np.arange(1, len(mix.paths))))
        free = _free(mix, everything=False).tolist()
        self.cells = {i: (cells[i], share[cells[i]]) for i in free}
        shards: dict[int, list[int]] = {}
        for i in free:
            shards.setdefault(int(mix.commodity[i]), []).append(i)
        self.shards = [(paths, _by_length([cells[i] for i in paths])) for paths in shards.values()]

    def run(self) -> Pieces:
        for paths, cells in self.shards:
            self._round(paths, cells)
        best = _pieces(self.mix, self.units, self.parts)
        for _ in range(_SWEEPS):
            if not sum(self._move(nth, *shard) for shard in self.shards for nth in range(len(shard[0]))):
                break
            pieces = _pieces(self.mix, self.units, self.parts)
            best = min(best, pieces, key=lambda p: p.time)
        return best

    def _round(self, paths: list[int], cells: _Cells) -> None:
        for i in paths:
            amount = float(self.mix.shares[i]) * self.parts
            self.units[i] = int(amount + _WHOLE)
            self._load(i, self.units[i] - amount)
        for _ in range(self.parts - int(self.units[paths].sum())):
            self._add(paths[int(self._penalties(cells).argmin())], 1)

    def _move(self, nth: int, paths: list[int], cells: _Cells) -> bool:
        """Put one piece of a path where it is best; return whether that is another path."""
        if not self.units[paths[nth]]:
            return False
        self._add(paths[nth], -1)
        penalties = self._penalties(cells)
        best = int(penalties.argmin())
        if penalties[nth] == penalties[best]:
            best = nth
        self._add(paths[best], 1)
        return best != nth

    def _add(self, path: int, pieces: int) -> None:
        self.units[path] += pieces
        self._load(path, pieces)

    def _load(self, path: int, amount: float) -> None:
        cells, share = self.cells[path]
        load = self.load.take(cells) + amount
        self.load[cells] = load
        self.penalty[cells] = self._penalty(load, share)

    def _penalty(self, load: Array, share: Array) -> Array:
        """Return what one piece more is to cost on cells that carry so much."""
        above = (load - share) * self.steepness
        np.minimum(above, 50, out=above)
        return np.exp(above, out=above)

    def _penalties(self, cells: _Cells) -> Array:
        """Return what one piece more is to cost on each path of a shard."""
        costs = [np.add.reduce(self.penalty.take(table), axis=1) for _, table in cells]
        if len(costs) == 1:
            return costs[0]
        found = np.empty(sum(len(nth) for nth, _ in cells))
        for (nth, _), cost in zip(cells, costs, strict=True):
            found[nth] = cost
        return found


def _by_length(cells: list[Array]) -> _Cells:
    """Return the cells of paths as a table for every length, with the paths' numbers."""
    lengths = np.array([len(row) for row in cells])
    listed = [np.flatnonzero(lengths == length) for length in np.unique(lengths)]
    return [(nth, np.stack([cells[i] for i in nth])) for nth in listed]
